/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_ENTRIES_H
#define GF_MEASURE_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "doc/profile.h"
#include "measure/network.h"

/* The ways that a network's measurement takes, as entries without figures. */

/* Does everything go by NCCL? */
bool gf_measure_by_nccl(const struct gf_measure_network *c);

/* Takes the stages. */
void gf_measure_entry_add(struct gf_network *net, const char *algorithm,
			  struct gf_stage *stages, size_t nstages);

/* Collective: an entry for each algorithm that is wanted and can run here on
 * messages of all sizes, and for other algorithms of its stages
 * (measure/stages.h). */
int gf_measure_entries(const struct gf_measure_network *c,
		       struct gf_network *net, struct gf_text *remarks,
		       struct gf_error *err);

#endif
