/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/human.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

struct scale {
	double from; /* values of at least this size use this unit */
	double unit;
	const char *name;
};

static const struct scale sizes[] = {
	{1099511627776.0, 1099511627776.0, "TiB"},
	{1073741824.0, 1073741824.0, "GiB"},
	{1048576.0, 1048576.0, "MiB"},
	{1024.0, 1024.0, "KiB"},
	{0, 1, "B"},
};

static const struct scale times[] = {
	{1, 1, "s"},        {1e-3, 1e-3, "ms"},   {1e-6, 1e-6, "us"},
	{1e-9, 1e-9, "ns"}, {1e-15, 1e-12, "ps"}, {0, 1, "s"},
};

static const struct scale rates[] = {
	{1e12, 1e12, "TB/s"}, {1e9, 1e9, "GB/s"}, {1e6, 1e6, "MB/s"},
	{1e3, 1e3, "KB/s"},   {0, 1, "B/s"},
};

static const struct scale links[] = {
	{125e9, 125e9, "Tb/s"}, {125e6, 125e6, "Gb/s"}, {125e3, 125e3, "Mb/s"},
	{125, 125, "kb/s"},     {0, 0.125, "b/s"},
};

static const struct scale shares[] = {{0, 1, "%"}};

bool gf_human_find_unit(const char *name, size_t length, struct gf_human_unit *unit)
{
	static const struct scale *const families[] = {sizes, times, rates, links, shares};
	const struct scale *s;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(families); i++)
		for (s = families[i];; s++) {
			if (strlen(s->name) == length && strncmp(s->name, name, length) == 0) {
				*unit = (struct gf_human_unit){(int)i, s->unit, s->name};
				return true;
			}
			if (s->from == 0)
				break;
		}
	return false;
}

/* As many decimals as make three digits. */
static int decimals_of(double value)
{
	double size = fabs(value);

	if (!(size > 0))
		return 0;
	return (int)fmax(0, 2 - floor(log10(size * 1.0005)));
}

/* whole: a whole number has no decimals. */
static struct gf_human scaled(double value, const struct scale *scale, bool whole)
{
	struct gf_human h;
	double shown;
	int decimals;

	/* sums and quotients are not exact: 1 GB/s is no 1000 MB/s */
	while (scale->from > 0 && fabs(value) < scale->from * (1 - 1e-9))
		scale++;
	shown = value / scale->unit;
	decimals = scale->from > 0 ? decimals_of(shown) : 0;
	if (whole && fabs(shown - nearbyint(shown)) < 1e-9)
		decimals = 0;
	snprintf(h.text, sizeof(h.text), "%.*f %s", decimals, shown, scale->name);
	return h;
}

struct gf_human gf_human_size(double bytes)
{
	return scaled(bytes, sizes, true);
}

struct gf_human gf_human_time(double seconds)
{
	return scaled(seconds, times, false);
}

struct gf_human gf_human_rate(double bytes_per_s)
{
	return scaled(bytes_per_s, rates, false);
}

struct gf_human gf_human_link(double bytes_per_s)
{
	return scaled(bytes_per_s, links, true);
}

struct gf_human gf_human_ratio(double ratio)
{
	struct gf_human h;

	snprintf(h.text, sizeof(h.text), "%.*f", decimals_of(ratio), ratio);
	return h;
}
