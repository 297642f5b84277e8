/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_SUM_ERROR_H
#define GF_SIMULATOR_SUM_ERROR_H

#include "collectives/rounding.h"
#include "documents/plan.h"

/*
 * What rounding does to the mean gradients of a plan: the rms error, relative to the rms of the
 * exact mean. Gradients that a selection leaves out are no error here. A library's all-reduce,
 * whose steps nobody knows, is taken for the worst of those that it stands for, with sums of the
 * type that is sent, into which it is given the gradients rounded.
 *
 * A correlation below 0 counts as 0: it is what few ranks have by chance, and many cannot have it.
 */

/* Less than this is the rounding of f32, which nobody chooses by. */
#define GF_ERROR_OF_NOTE 1e-5

/* Of a message like that one among so many ranks. NAN: it is not known, as of a described codec. */
struct gf_sum_error_of {
	const struct gf_message *message;
	int ranks, servers, copies;
	bool scattered; /* its reduce-scatter alone */
};
/* times (optional): how often a gradient is encoded on its way, in the root of the mean square. */
double gf_sim_sum_error(const struct gf_sum_error_of *of, const struct gf_value_statistics *values,
			double *times);

/* The same with whatever gradients the message has of this model: the largest. m may be NULL. */
double gf_sim_worst_error(const struct gf_sum_error_of *of, const struct gf_model_profile *m);

/* Of a library's all-reduce, or scattered its reduce-scatter, in that codec: the largest. */
double gf_sim_library_error(const char *codec, int ranks, bool scattered,
			    const struct gf_model_profile *m);
/* That of a plan's message. */
struct gf_sum_error_of gf_sum_error_of(const struct gf_plan *p, size_t message);
/* The error of a plan's step, by what the model knows of its gradients. Where it does not know all,
 * messages' errors are weighed by elements. 0: unknown, as of plans whose selection leaves
 * gradients out. messages (optional): zeros, which become the error of each message that is known.
 */
double gf_sim_step_error(const struct gf_plan *p, double *messages);
/* The same in the plan's prediction. */
void gf_sim_predict_error(struct gf_plan *p);

#endif
