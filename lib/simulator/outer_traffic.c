/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "collectives/codecs/codec.h"
#include "collectives/way.h"
#include "simulator/period_time.h"

/* What an outer exchange sends out of a group. */

/* Steps of a group's ranks, roughly, that are made and looked at. */
#define STEPS_MOST 4e6

/* Elements that a rank sends to others than the group's. -ENOTSUP: it has no steps. */
static int sent_elems(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
		      int group, double *elems)
{
	struct gf_schedule s;
	size_t i;
	int rc = gf_algorithm_schedule(a, args, rank, &s, NULL);

	*elems = 0;
	if (rc < 0)
		return rc;
	for (i = 0; i < s.nsteps; i++)
		if (s.steps[i].op == GF_STEP_SEND && s.steps[i].peer >= group)
			*elems += (double)s.steps[i].range.count;
	gf_schedule_release(&s);
	return 0;
}

static int count_message(const struct gf_plan *outer, size_t message, int group, double *sum,
			 double *most)
{
	const struct gf_message *m = &outer->messages[message];
	struct gf_coll_args args;
	struct gf_way way;
	double elems;
	int rank, rc = gf_way_of_message(m, &way, NULL);

	*sum = *most = 0;
	if (rc < 0 || !way.algorithm->build)
		return -1;
	args = gf_way_args(&way, outer->ranks);
	args.count_elems = gf_plan_message_elems(outer, message);
	args.elem_bytes = sizeof(float);
	for (rank = 0; rank < group && rc == 0; rank++) {
		rc = sent_elems(way.algorithm, &args, rank, group, &elems);
		*sum += elems;
		*most = fmax(*most, elems);
	}
	return rc;
}

void gf_sim_border(const struct gf_plan *p, struct gf_border *out)
{
	const int group = p->period.group_ranks;
	const double groups = (double)p->ranks / group;
	const bool counted = (double)group * p->ranks * (double)p->period.nmessages < STEPS_MOST;
	struct gf_plan outer;
	size_t i;

	*out = (struct gf_border){0};
	gf_period_outer(p, &outer);
	for (i = 0; i < outer.nmessages; i++) {
		const double wire =
			sizeof(float) * gf_codec_ratio(gf_codec_find(outer.messages[i].codec));
		double sum, most;

		if (!counted || count_message(&outer, i, group, &sum, &most)) {
			sum = 2 * (groups - 1) / groups * (double)gf_plan_message_elems(&outer, i);
			most = sum / group;
		}
		out->group_bytes += wire * sum;
		out->rank_bytes += wire * most;
		out->plain_group_bytes += sizeof(float) * sum;
	}
	gf_plan_release(&outer);
}
