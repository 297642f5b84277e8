/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

struct unit {
	const char *name;
	double factor;
	/* or 0: 5us is 5/1e6, the nearest number; 5*1e-6 is the one below */
	double divisor;
};

static const struct unit size_units[] = {
	{"", 1, 0},
	{"B", 1, 0},
	{"K", 1024.0, 0},
	{"KiB", 1024.0, 0},
	{"M", 1048576.0, 0},
	{"MiB", 1048576.0, 0},
	{"G", 1073741824.0, 0},
	{"GiB", 1073741824.0, 0},
	{"T", 1099511627776.0, 0},
	{"TiB", 1099511627776.0, 0},
};

static const struct unit rate_units[] = {
	{"B/s", 1, 0},           {"KB/s", 1e3, 0},       {"MB/s", 1e6, 0},
	{"GB/s", 1e9, 0},        {"TB/s", 1e12, 0},      {"b/s", 1 / 8.0, 0},
	{"Kb/s", 1e3 / 8.0, 0},  {"Mb/s", 1e6 / 8.0, 0}, {"Gb/s", 1e9 / 8.0, 0},
	{"Tb/s", 1e12 / 8.0, 0},
};

static const struct unit time_units[] = {
	{"s", 1, 0},
	{"ms", 0, 1e3},
	{"us", 0, 1e6},
	{"ns", 0, 1e9},
};

/*
 * strtod alone would take "inf", "nan", hexadecimal and leading blanks; want
 * a plain decimal number.
 */
static int read_number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.' && *text != '-' &&
	    *text != '+')
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

static int read_with_unit(const char *text, const struct unit *units,
			  size_t nunits, double *value)
{
	const char *rest;
	double number;
	size_t i;

	if (read_number(text, &number, &rest))
		return -EINVAL;
	for (i = 0; i < nunits; i++) {
		if (strcmp(rest, units[i].name) == 0) {
			*value = units[i].divisor > 0
					 ? number / units[i].divisor
					 : number * units[i].factor;
			return 0;
		}
	}
	return -EINVAL;
}

int gf_units_size(const char *text, size_t *bytes, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, size_units, GF_ARRAY_LENGTH(size_units),
			   &value) ||
	    value < 0 || value >= 9.2e18 || value != floor(value))
		return gf_error_set(err, -EINVAL,
				    "want a size in bytes such as 4096, 64K or "
				    "4M, got \"%s\"",
				    text);
	*bytes = (size_t)value;
	return 0;
}

int gf_units_rate(const char *text, double *bytes_per_s, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, rate_units, GF_ARRAY_LENGTH(rate_units),
			   &value) ||
	    !(value > 0) || !isfinite(value))
		return gf_error_set(err, -EINVAL,
				    "want a rate > 0 such as 12.5GB/s or "
				    "100Gb/s, got \"%s\"",
				    text);
	*bytes_per_s = value;
	return 0;
}

int gf_units_time(const char *text, double *seconds, struct gf_error *err)
{
	double value;

	if (read_with_unit(text, time_units, GF_ARRAY_LENGTH(time_units),
			   &value) ||
	    value < 0 || !isfinite(value))
		return gf_error_set(
			err, -EINVAL,
			"want a time >= 0 such as 3us or 1.5ms, got \"%s\"",
			text);
	*seconds = value;
	return 0;
}

int gf_units_int(const char *text, long long low, long long high,
		 long long *value, struct gf_error *err)
{
	const char *digits = text + (*text == '-' || *text == '+');
	long long number;
	char *end;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)*digits) || *end || errno || number < low ||
	    number > high)
		return gf_error_set(
			err, -EINVAL,
			"want an integer from %lld to %lld, got \"%s\"", low,
			high, text);
	*value = number;
	return 0;
}

int gf_units_real(const char *text, double low, double high, double *value,
		  struct gf_error *err)
{
	const char *rest;
	double number;

	if (read_number(text, &number, &rest) || *rest || number < low ||
	    number > high)
		return gf_error_set(err, -EINVAL,
				    "want a number from %g to %g, got \"%s\"",
				    low, high, text);
	*value = number;
	return 0;
}
