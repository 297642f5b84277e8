/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	double factor;
	/* or 0: 5us is 5/1e6, the nearest number; 5*1e-6 is the one below */
	double divisor;
};

/* Units after a number; `prefix` is the step from one letter of PREFIXES to the next, or 0 where
 * units have none. */
struct scale {
	double prefix;
	const struct unit *units; /* ended by an entry without a name */
};

#define PREFIXES "kmgtp"

static const struct scale sizes = {
	1024, (const struct unit[]){{"", 1, 0}, {"B", 1, 0}, {"iB", 1, 0}, {0}}};

static const struct scale rates = {1000, (const struct unit[]){{"B/s", 1, 0},
							       {"Bps", 1, 0},
							       {"b/s", 0.125, 0},
							       {"bps", 0.125, 0},
							       {"bit/s", 0.125, 0},
							       {0}}};

static const struct scale paces = {
	1000,
	(const struct unit[]){
		{"", 1, 0}, {"F", 1, 0}, {"F/s", 1, 0}, {"FLOPS", 1, 0}, {"FLOP/s", 1, 0}, {0}}};

static const struct scale times = {0, (const struct unit[]){{"", 1, 0},
							    {"s", 1, 0},
							    {"ms", 0, 1e3},
							    {"us", 0, 1e6},
							    {"\u00b5s", 0, 1e6}, /* micro sign */
							    {"\u03bcs", 0, 1e6}, /* Greek mu */
							    {"ns", 0, 1e9},
							    {0}}};

/*
 * strtod alone would take "inf", "nan", hexadecimal and leading blanks; want a plain decimal
 * number.
 */
static int read_number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.' && *text != '-' && *text != '+')
		return -EINVAL;
	if (strncasecmp(text + strspn(text, "-+"), "0x", 2) == 0)
		return -EINVAL;
	errno = 0;
	*value = strtod(text, &end);
	if (end == text || !isfinite(*value))
		return -EINVAL;
	*rest = end;
	return 0;
}

static int read_with_unit(const char *text, const struct scale *scale, double *value)
{
	const struct unit *unit;
	const char *rest, *letter;
	double number, prefix = 1;

	if (read_number(text, &number, &rest))
		return -EINVAL;
	letter =
		*rest && scale->prefix > 0 ? strchr(PREFIXES, tolower((unsigned char)*rest)) : NULL;
	if (letter) {
		prefix = pow(scale->prefix, (double)(letter - PREFIXES + 1));
		rest++;
	}
	for (unit = scale->units; unit->name; unit++) {
		if (strcmp(rest, unit->name) == 0) {
			*value = unit->divisor > 0 ? number / unit->divisor
						   : number * (prefix * unit->factor);
			return 0;
		}
	}
	return -EINVAL;
}

int gf_units_size(const char *text, size_t *bytes, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, &sizes, &value) || value < 0 || value >= 9.2e18 ||
	    value != floor(value))
		return gf_error_set(err, -EINVAL,
				    "want a size in bytes such as 4096, 64K or 4M, got \"%s\"",
				    text);
	*bytes = (size_t)value;
	return 0;
}

/* Rates of equal links. */
#define TOGETHER_MOST (1 << 24)

int gf_units_rate(const char *text, double *bytes_per_s, struct gf_error *err)
{
	char *end;
	const long count = strtol(text, &end, 10);
	const int several = end > text && *end == 'x';
	double value;

	if (read_with_unit(several ? end + 1 : text, &rates, &value) || !(value > 0) ||
	    !isfinite(value) || (several && (count < 1 || count > TOGETHER_MOST)))
		return gf_error_set(err, -EINVAL,
				    "want a rate > 0 such as 12.5GB/s, 100Gb/s or 8x100Gb/s, got "
				    "\"%s\"",
				    text);
	*bytes_per_s = several ? (double)count * value : value;
	return 0;
}

int gf_units_flops(const char *text, double *flop_per_s, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, &paces, &value) || !(value > 0) || !isfinite(value))
		return gf_error_set(err, -EINVAL,
				    "want FLOP/s > 0 such as 7e12 or 15TF, got \"%s\"", text);
	*flop_per_s = value;
	return 0;
}

int gf_units_time(const char *text, double *seconds, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, &times, &value) || value < 0 || !isfinite(value))
		return gf_error_set(err, -EINVAL,
				    "want a time >= 0 such as 3us or 1.5ms, got \"%s\"", text);
	*seconds = value;
	return 0;
}

int gf_units_int(const char *text, long long low, long long high, long long *value,
		 struct gf_error *err)
{
	const char *digits = text + (*text == '-' || *text == '+');
	long long number;
	char *end;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)*digits) || *end || errno || number < low || number > high)
		return gf_error_set(err, -EINVAL, "want an integer from %lld to %lld, got \"%s\"",
				    low, high, text);
	*value = number;
	return 0;
}

int gf_units_real(const char *text, double low, double high, double *value, struct gf_error *err)
{
	const char *rest;
	double number = 0;
	int rc = read_number(text, &number, &rest);

	if (rc == 0 && high <= 1 && strcmp(rest, "%") == 0) {
		number /= 100;
		rest++;
	}
	if (rc || *rest || number < low || number > high)
		return gf_error_set(err, -EINVAL, "want a number from %g to %g, got \"%s\"", low,
				    high, text);
	*value = number;
	return 0;
}
