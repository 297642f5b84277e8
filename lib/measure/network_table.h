/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_NETWORK_TABLE_H
#define GF_MEASURE_NETWORK_TABLE_H

#include "base/text.h"
#include "doc/profile.h"

/* A profile for people: a line on the model and a table of its tensors, many of
 * them as runs; a table of each kind of costs, with times at some sizes and how
 * far the fits are off. */
void gf_profile_table(const struct gf_profile *p, struct gf_text *out);

#endif
