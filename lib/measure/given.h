/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_GIVEN_H
#define GF_MEASURE_GIVEN_H

#include <stdbool.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/model.h"
#include "doc/stream.h"

/* The parts of a profile, as given to the command on rank 0. */

/* Collective: the model of rank 0's documents, as gf_measure_given_model.
 * -EINVAL: nothing to measure, a topology of other ranks than the job's, or a
 * profile that has a half in it which is about to be measured. */
int gf_measure_given(struct gf_comm *comm, const struct gf_documents *d,
		     bool network, struct gf_model *model, bool *given,
		     struct gf_error *err);

/* Collective: rank 0's model (NULL there: none; ignored elsewhere) on every
 * rank, as a copy; *given says whether there is one. All ranks return alike.
 * Only rank 0 needs to see the file it came from. */
int gf_measure_given_model(struct gf_comm *comm, const struct gf_model *model,
			   struct gf_model *copy, bool *given,
			   struct gf_error *err);

#endif
