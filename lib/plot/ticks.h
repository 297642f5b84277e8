/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLOT_TICKS_H
#define GF_PLOT_TICKS_H

#include <stddef.h>

#include "plot/plot.h"

/*
 * An axis' range, its round ticks with labels, and its unit. The ticks of a
 * linear axis stand on 1, 2 or 5 times a power of ten of the printed unit
 * (bytes: a power of two); those of a logarithmic one on powers of its base.
 */
#define GF_TICKS_MAX 32

struct gf_ticks {
	enum gf_scale scale;
	double low, high; /* the axis' ends, in base units */
	size_t count;
	double at[GF_TICKS_MAX];
	char label[GF_TICKS_MAX][24];
	const char *unit; /* "" when every label carries its own */
	double unit_size; /* of `unit`, in base units; else 1 */
};

/* Ticks of `axis` over data in [low, high], about `wanted` of them. `widen`
 * moves the ends out to ticks; else the range is kept as it is. */
void gf_ticks_make(const struct gf_plot_axis *axis, double low, double high,
		   int wanted, int widen, struct gf_ticks *t);

/* Where a value lies between the ends: 0 .. 1. */
double gf_ticks_position(const struct gf_ticks *t, double value);

/* One value for people: three significant digits and its unit. */
void gf_quantity_print(enum gf_quantity quantity, double value, char out[24]);

#endif
