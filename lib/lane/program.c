/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/program_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "doc/algorithm_traits.h"

size_t gf_lane_program_bytes(const struct gf_lane_program *p,
			     size_t count_elems)
{
	return count_elems * (p->sets ? p->sets->size_bytes : sizeof(float));
}

size_t gf_lane_program_wire_bytes(const struct gf_lane_program *p,
				  size_t count_elems)
{
	return p->codec ? gf_codec_wire_bytes(p->codec, count_elems)
			: gf_lane_program_bytes(p, count_elems);
}

struct gf_lane_step *gf_lane_program_add(struct gf_lane_program *p,
					 enum gf_lane_op op,
					 struct gf_range range)
{
	struct gf_lane_step *step =
		gf_array_push(&p->steps, &p->nsteps, &p->capacity);

	memset(step, 0, sizeof(*step));
	step->op = op;
	step->range = range;
	return step;
}

static void begin(struct gf_lane_program *p, int rank,
		  const struct gf_coll_args *args)
{
	memset(p, 0, sizeof(*p));
	p->rank = rank;
	p->ranks = p->contributors = args->ranks;
	p->count_elems = args->count_elems;
	p->skew_elems = args->skew_elems;
}

/* --- by stage ------------------------------------------------------------- */

static void add_stages(struct gf_lane_program *p,
		       const struct gf_coll_args *args, struct gf_range held)
{
	int stride = 1;
	size_t i;

	for (i = 0; i < args->nfactors; i++) {
		const int size = args->factors[i];
		const int me = p->rank / stride % size;
		struct gf_group *team;

		if (size > 1) {
			gf_lane_program_add(p, GF_LANE_REDUCE_SCATTER, held)
				->team = p->nteams;
			team = gf_array_push(&p->teams, &p->nteams,
					     &p->teams_capacity);
			*team = (struct gf_group){p->rank - me * stride, stride,
						  size, me};
			held = gf_range_part(held, size, me);
		}
		stride *= size;
	}
}

/* What goes by stage: equal parts, of whole grains if there is one for each
 * rank. */
static struct gf_range even_part(const struct gf_coll_args *args)
{
	const size_t ranks = (size_t)args->ranks, n = args->count_elems;
	const size_t head = gf_lane_program_head(args->skew_elems);
	const size_t unit = ranks * GF_LANE_GRAIN_ELEMS;

	if (n < head + unit)
		return gf_data(0, n - n % ranks);
	return gf_data(head, n - head - (n - head) % unit);
}

static void by_stage(const struct gf_coll_args *args, int rank,
		     struct gf_lane_program *p)
{
	const struct gf_range even = even_part(args);
	const size_t rest = even.first + even.count;
	size_t i, end;

	begin(p, rank, args);
	if (even.count)
		add_stages(p, args, even);
	end = p->nsteps;
	for (i = end; i-- > 0;) {
		const struct gf_lane_step out = p->steps[i];

		gf_lane_program_add(p, GF_LANE_ALL_GATHER, out.range)->team =
			out.team;
	}
	if (even.first)
		gf_lane_program_add(p, GF_LANE_ALL_REDUCE,
				    gf_data(0, even.first));
	if (rest < args->count_elems)
		gf_lane_program_add(p, GF_LANE_ALL_REDUCE,
				    gf_data(rest, args->count_elems - rest));
}

static bool goes_by_stage(const struct gf_algorithm *a,
			  const struct gf_coll_args *args,
			  const struct gf_codec *codec)
{
	return !codec && args->nfactors && args->half == GF_COLL_WHOLE &&
	       gf_algorithm_has(a->name, GF_ALGORITHM_STAGES);
}

static int by_step(const struct gf_algorithm *a,
		   const struct gf_coll_args *args, int rank,
		   const struct gf_codec *codec, struct gf_lane_program *p,
		   struct gf_error *err)
{
	struct gf_coll_args whole = *args;
	struct gf_schedule s;
	int rc;

	/* NCCL cuts transfers up by itself. */
	whole.segment_elems = 0;
	whole.lossy = codec != NULL;
	/* coded, parts go from aligned places on the wire */
	whole.grain_elems = codec ? 0 : GF_LANE_GRAIN_ELEMS;
	rc = gf_algorithm_schedule(a, &whole, rank, &s, err);
	if (rc)
		return rc;
	gf_lane_program_skewed(&s, codec, args->skew_elems, p);
	gf_schedule_release(&s);
	return 0;
}

int gf_lane_program_new(const struct gf_algorithm *a,
			const struct gf_coll_args *args, int rank,
			const struct gf_codec *codec, struct gf_lane_program *p,
			struct gf_error *err)
{
	if (codec && codec->plain)
		codec = NULL;
	if (!a->build) {
		if (codec)
			return gf_error_set(err, -ENOTSUP,
					    "%s sends f32 as it is, not %s",
					    a->name, codec->name);
		begin(p, rank, args);
		if (args->count_elems && args->ranks > 1)
			gf_lane_program_add(p, GF_LANE_ALL_REDUCE,
					    gf_data(0, args->count_elems));
		return 0;
	}
	if (goes_by_stage(a, args, codec)) {
		by_stage(args, rank, p);
		return 0;
	}
	return by_step(a, args, rank, codec, p, err);
}

void gf_lane_program_release(struct gf_lane_program *p)
{
	if (!p)
		return;
	free(p->steps);
	free(p->teams);
	memset(p, 0, sizeof(*p));
}

size_t gf_lane_program_sent(const struct gf_lane_program *p)
{
	size_t bytes = 0, i;

	for (i = 0; i < p->nsteps; i++) {
		const struct gf_lane_step *s = &p->steps[i];

		if (s->op == GF_LANE_SEND) {
			bytes += gf_lane_program_wire_bytes(p, s->range.count);
		} else if (s->op == GF_LANE_REDUCE_SCATTER ||
			   s->op == GF_LANE_ALL_GATHER) {
			size_t size = (size_t)p->teams[s->team].size;

			bytes += s->range.count / size * (size - 1) *
				 sizeof(float);
		}
	}
	return bytes;
}
