/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot/ticks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

struct unit {
	double size;
	const char *name;
};

/* The largest unit that does not exceed the value; the smallest otherwise.
 * Zero has the base unit. */
static const struct unit *unit_of(enum gf_quantity quantity, double value)
{
	static const struct unit plain[] = {{1, ""}};
	static const struct unit percent[] = {{0.01, "%"}};
	static const struct unit seconds[] = {
		{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
	static const struct unit bytes[] = {{1099511627776.0, "TiB"},
					    {1073741824, "GiB"},
					    {1048576, "MiB"},
					    {1024, "KiB"},
					    {1, "B"}};
	static const struct unit rate[] = {{1e12, "TB/s"},
					   {1e9, "GB/s"},
					   {1e6, "MB/s"},
					   {1e3, "kB/s"},
					   {1, "B/s"}};
	static const struct {
		const struct unit *units;
		size_t count;
	} tables[] = {
		[GF_QUANTITY_NUMBER] = {plain, GF_ARRAY_LENGTH(plain)},
		[GF_QUANTITY_SECONDS] = {seconds, GF_ARRAY_LENGTH(seconds)},
		[GF_QUANTITY_BYTES] = {bytes, GF_ARRAY_LENGTH(bytes)},
		[GF_QUANTITY_RATE] = {rate, GF_ARRAY_LENGTH(rate)},
		[GF_QUANTITY_PERCENT] = {percent, GF_ARRAY_LENGTH(percent)},
	};
	const struct unit *u = tables[quantity].units;
	const struct unit *last = u + tables[quantity].count - 1;

	while (u < last &&
	       (value == 0 ? u->size != 1 : fabs(value) < u->size * (1 - 1e-9)))
		u++;
	return u;
}

void gf_quantity_print(enum gf_quantity quantity, double value, char out[24])
{
	const struct unit *u = unit_of(quantity, value);
	double shown = value / u->size;

	if (quantity == GF_QUANTITY_NUMBER && fabs(value) >= 1e4) {
		snprintf(out, 24, "%.3g%s",
			 value / (fabs(value) >= 1e6 ? 1e6 : 1e3),
			 fabs(value) >= 1e6 ? "M" : "k");
		return;
	}
	/* %g would turn 1024 into 1.02e+03. */
	snprintf(out, 24,
		 fabs(shown) >= 999.5 && fabs(shown) < 1e6 ? "%.0f%s%s"
							   : "%.3g%s%s",
		 shown, *u->name && *u->name != '%' ? " " : "", u->name);
}

/* 1, 2 or 5 times a power of ten; for bytes a power of two. */
static double round_step(double raw, int binary)
{
	double power, rest;

	if (binary)
		return exp2(ceil(log2(raw) - 1e-9));
	power = pow(10, floor(log10(raw)));
	rest = raw / power;
	if (rest < 1 + 1e-9)
		return power;
	if (rest < 2 + 1e-9)
		return 2 * power;
	return rest < 5 + 1e-9 ? 5 * power : 10 * power;
}

static void linear(const struct gf_plot_axis *axis, int wanted, int widen,
		   struct gf_ticks *t)
{
	const struct unit *u;
	double step, first, last, i;
	int decimals;

	if (t->low >= 0 && !axis->from_data)
		t->low = 0;
	if (!(t->high > t->low)) /* a single value: room around it */
		t->high = t->low + (t->low != 0 ? fabs(t->low) : 1);
	u = unit_of(axis->quantity, fmax(fabs(t->low), fabs(t->high)));
	step = u->size * round_step((t->high - t->low) / u->size / wanted,
				    axis->quantity == GF_QUANTITY_BYTES);
	first = widen ? floor(t->low / step + 1e-9)
		      : ceil(t->low / step - 1e-9);
	last = widen ? ceil(t->high / step - 1e-9)
		     : floor(t->high / step + 1e-9);
	if (widen) {
		t->low = first * step;
		t->high = last * step;
	}
	decimals = (int)fmax(0, -floor(log10(step / u->size) + 1e-9));
	for (i = first; i <= last && t->count < GF_TICKS_MAX; i++) {
		t->at[t->count] = i * step;
		snprintf(t->label[t->count], sizeof(t->label[0]), "%.*f",
			 decimals, i == 0 ? 0.0 : i * step / u->size);
		t->count++;
	}
	t->unit = u->name;
	t->unit_size = u->size;
}

static void logarithmic(const struct gf_plot_axis *axis, int wanted, int widen,
			struct gf_ticks *t)
{
	static const double halves[] = {1, 2, 5};
	const double base = t->scale == GF_SCALE_LOG2 ? 2 : 10;
	double first = floor(log(t->low) / log(base) + 1e-9);
	double last = ceil(log(t->high) / log(base) - 1e-9);
	double stride, e;
	size_t h, nhalves;

	if (last == first)
		last++;
	stride = ceil((last - first) / wanted);
	/* Little more than a decade: 1, 2, 5 instead of two lonely ticks. */
	nhalves = base == 10 && last - first <= 2 ? 3 : 1;
	if (widen && (base == 2 || last - first > 3)) {
		t->low = pow(base, first);
		t->high = pow(base, last);
	} else if (widen) { /* a decade is much here: the next 1, 2 or 5 */
		double low = pow(10, first), high = pow(10, last);

		for (h = 1; h < GF_ARRAY_LENGTH(halves); h++)
			if (halves[h] * pow(10, first) <= t->low * (1 + 1e-9))
				low = halves[h] * pow(10, first);
		for (h = GF_ARRAY_LENGTH(halves); h-- > 1;)
			if (halves[h] * pow(10, last - 1) >=
			    t->high * (1 - 1e-9))
				high = halves[h] * pow(10, last - 1);
		t->low = low;
		t->high = high > low ? high : low * 10;
	}
	for (e = first; e <= last + 1e-9; e += stride) {
		for (h = 0; h < nhalves; h++) {
			double at = halves[h] * pow(base, e);

			if (at < t->low * (1 - 1e-9) ||
			    at > t->high * (1 + 1e-9) ||
			    t->count == GF_TICKS_MAX)
				continue;
			t->at[t->count] = at;
			gf_quantity_print(axis->quantity, at,
					  t->label[t->count]);
			t->count++;
		}
	}
	t->unit = "";
	t->unit_size = 1;
}

void gf_ticks_make(const struct gf_plot_axis *axis, double low, double high,
		   int wanted, int widen, struct gf_ticks *t)
{
	memset(t, 0, sizeof(*t));
	t->scale = axis->scale;
	t->low = low;
	t->high = high;
	if (axis->scale == GF_SCALE_LINEAR)
		linear(axis, wanted, widen, t);
	else
		logarithmic(axis, wanted, widen, t);
}

double gf_ticks_position(const struct gf_ticks *t, double value)
{
	if (t->scale == GF_SCALE_LINEAR)
		return (value - t->low) / (t->high - t->low);
	return log(value / t->low) / log(t->high / t->low);
}
