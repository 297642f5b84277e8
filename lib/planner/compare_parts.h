/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_COMPARE_PARTS_H
#define GF_PLANNER_COMPARE_PARTS_H

#include "planner/compare.h"

/* For compare*.c alone. */

/* The request with values of axes in it. */
struct gf_compare_variant {
	struct gf_request request;
	struct gf_axes axes;
	const char *codecs[2];
};

/* Puts the i-th value of that axis in. */
void gf_compare_ask(struct gf_compare_variant *v, enum gf_compare_axis axis, size_t i);

#endif
