/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_CROWD_H
#define GF_MEASURE_CROWD_H

#include "doc/profile.h"
#include "measure/overlap.h"

/*
 * What it gains to send messages beside backward where ranks share processors.
 *
 * There a rank's messages take time from the compute of all ranks of the
 * processor, and wait for it. The ranks do not pass backward together, so what
 * one rank sees of its own backward and its own messages (measure/overlap.h) is
 * not what a step gains. So steps are measured whole, as training does them:
 * the gradient as one message after backward, in turns with the gradient in
 * parts that go as backward makes them. The step model is asked at which
 * compute_slowdown it would predict the measured ratio of the two.
 *
 * In a second beside each other, backward does 1 / compute_slowdown of its work
 * and the messages do 1 / message_slowdown of theirs. The sum of both is what
 * the processors can do, whatever the algorithm, so the other algorithms get
 * the compute_slowdown that gives the same sum.
 */

/* Into how many messages the gradient is cut, at most. */
enum { GF_MEASURE_PARTS = 3 };

/* The gradient in equal messages. */
struct gf_measure_parts {
	size_t count;
	size_t elems;                  /* of each */
	size_t last[GF_MEASURE_PARTS]; /* tensor with which each is ready */
};

/* What both do together in a second if a step in parts takes so many times as
 * long as one with the whole gradient: 1 / compute_slowdown + 1 /
 * message_slowdown of cost's algorithm. NAN: the ratio does not tell. */
double gf_measure_joint_rate(const struct gf_model_profile *model,
			     const struct gf_allreduce_cost *cost,
			     const struct gf_measure_parts *whole,
			     const struct gf_measure_parts *parts,
			     double ratio);

/* Sets compute_slowdown of every algorithm of the profile, which has both
 * halves. load: how messages go; its `cost` and `repeats` do not count.
 * Collective; all ranks get the same. */
int gf_measure_crowd(const struct gf_measure_overlap *load, double budget_s,
		     struct gf_measure_step *step, struct gf_profile *profile,
		     struct gf_error *err);

#endif
