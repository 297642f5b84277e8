/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/lanes/program.h"

#include <string.h>

#include "base/array.h"
#include "collectives/way.h"
#include "documents/algorithm_traits.h"
#include "base/heap.h"
#include "base/text.h"

size_t gf_lane_program_wire_bytes(const struct gf_lane_program *p, size_t count_elems)
{
	return p->codec ? gf_codec_wire_bytes(p->codec, count_elems)
			: gf_lane_program_bytes(p, count_elems);
}

struct gf_lane_step *gf_lane_program_add(struct gf_lane_program *p, enum gf_lane_op op,
					 struct gf_range range)
{
	struct gf_lane_step *step = gf_array_push(&p->steps, &p->nsteps, &p->capacity);

	memset(step, 0, sizeof(*step));
	step->op = op;
	step->range = range;
	return step;
}

/* Does NCCL carry out a stage? */
static bool has_calls(const struct gf_coll_args *args)
{
	for (size_t i = 0; args->stage_algorithms && i < args->nfactors; i++)
		if (gf_stage_has(args->stage_algorithms[i], GF_STAGE_CALL))
			return true;
	return false;
}

/* What goes by stage: equal parts, of whole grains if there is one for each rank. */
static struct gf_range even_part(const struct gf_coll_args *args)
{
	const size_t ranks = (size_t)args->ranks, n = args->count_elems;
	const size_t head = gf_lane_program_head(args->skew_elems);
	const size_t unit = ranks * GF_LANE_GRAIN_ELEMS;

	if (n < head + unit)
		return gf_data(0, n - n % ranks);
	return gf_data(head, n - head - (n - head) % unit);
}

static void add_all_reduce(struct gf_lane_program *p, struct gf_range range)
{
	if (range.count && p->ranks > 1)
		gf_lane_program_add(p, GF_LANE_ALL_REDUCE, range);
}

/* The program of a schedule for these arguments. */
static int by_schedule(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
		       const struct gf_codec *codec, struct gf_lane_program *p,
		       struct gf_error *err)
{
	GF_RELEASED(gf_schedule_release) struct gf_schedule s = {0};
	int rc = gf_algorithm_schedule(a, args, rank, &s, err);

	if (!rc)
		gf_lane_program_skewed(&s, codec, args->skew_elems, p);
	return rc;
}

/* Stages of NCCL's want equal parts: what is left over goes besides. */
static int by_stage(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
		    struct gf_lane_program *p, struct gf_error *err)
{
	const struct gf_range even = even_part(args);
	const size_t rest = even.first + even.count;
	struct gf_coll_args equal = *args;
	GF_RELEASED(gf_schedule_release) struct gf_schedule s = {0};
	int rc;

	equal.count_elems = even.count;
	equal.segment_elems = equal.skew_elems = 0;
	equal.calls = true;
	rc = gf_algorithm_schedule(a, &equal, rank, &s, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < s.nsteps; i++)
		s.steps[i].range.first += even.first;
	gf_lane_program_of(&s, NULL, p);
	p->count_elems = args->count_elems;
	p->skew_elems = args->skew_elems;
	add_all_reduce(p, gf_data(0, even.first));
	add_all_reduce(p, gf_data(rest, args->count_elems - rest));
	return 0;
}

static int check_stages(const struct gf_coll_args *args, const struct gf_codec *codec,
			struct gf_error *err)
{
	for (size_t i = 0; args->stage_algorithms && i < args->nfactors; i++) {
		const char *name = args->stage_algorithms[i];

		if (!gf_stage_has(name, GF_STAGE_BY_GPU))
			return gf_error_set(err, -ENOTSUP,
					    "stage %zu: %s runs between processors, and messages "
					    "go from GPU to GPU here; want nccl, ring or halving",
					    i, name);
	}
	if (has_calls(args) && codec)
		return gf_error_set(err, -ENOTSUP,
				    "a stage by nccl moves f32 as they are, not %s; ring and "
				    "halving move any codec",
				    codec->name);
	if (has_calls(args) && args->half != GF_COLL_WHOLE)
		return gf_error_set(
			err, -ENOTSUP,
			"a stage by nccl goes there and back, not in halves; ring and halving do");
	return 0;
}

/* Unsaid, every stage of f32 is NCCL's. */
static void name_stages(struct gf_coll_args *args, const struct gf_codec *codec,
			const char *names[GF_WAY_FACTORS])
{
	if (args->stage_algorithms || !args->nfactors || codec || args->half != GF_COLL_WHOLE)
		return;
	for (size_t i = 0; i < args->nfactors; i++)
		names[i] = gf_stage_unsaid(args->factors[i], true);
	args->stage_algorithms = names;
}

int gf_lane_program_new(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
			const struct gf_codec *codec, struct gf_lane_program *p,
			struct gf_error *err)
{
	const char *names[GF_WAY_FACTORS];
	struct gf_coll_args named = *args;
	int rc;

	if (codec && codec->plain)
		codec = NULL;
	if (!a->build) {
		if (codec)
			return gf_error_set(err, -ENOTSUP, "%s sends f32 as it is, not %s", a->name,
					    codec->name);
		if (args->half != GF_COLL_WHOLE && args->count_elems % (size_t)args->ranks)
			return gf_error_set(
				err, -ENOTSUP,
				"NCCL's halves want equal parts for %d ranks, got %zu elements",
				args->ranks, args->count_elems);
		if (args->half != GF_COLL_WHOLE) {
			named.calls = true;
			return by_schedule(a, &named, rank, NULL, p, err);
		}
		*p = (struct gf_lane_program){
			.rank = rank,
			.ranks = args->ranks,
			.contributors = args->ranks,
			.count_elems = args->count_elems,
			.skew_elems = args->skew_elems,
		};
		add_all_reduce(p, gf_data(0, args->count_elems));
		return 0;
	}
	if (gf_algorithm_has(a->name, GF_ALGORITHM_STAGES)) {
		name_stages(&named, codec, names);
		rc = check_stages(&named, codec, err);
		if (rc)
			return rc;
		if (has_calls(&named))
			return by_stage(a, &named, rank, p, err);
	}
	/* NCCL cuts transfers up by itself. */
	named.segment_elems = 0;
	named.lossy = codec != NULL;
	/* coded, parts go from aligned places on the wire; a caller's begin where its layout says
	 */
	named.grain_elems = codec || args->owners ? 0 : GF_LANE_GRAIN_ELEMS;
	return by_schedule(a, &named, rank, codec, p, err);
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
		} else if (s->op == GF_LANE_REDUCE_SCATTER || s->op == GF_LANE_ALL_GATHER) {
			size_t size = (size_t)p->teams[s->team].size;

			bytes += s->range.count / size * (size - 1) * sizeof(float);
		}
	}
	return bytes;
}

#define NAMED 8 /* of many */

static void mark(const struct gf_lane_program *p, const struct gf_lane_step *step, bool *met)
{
	const struct gf_group all = {0, 1, p->ranks, p->rank};
	const struct gf_group *team = NULL;

	switch (step->op) {
	case GF_LANE_SEND:
	case GF_LANE_RECV:
		met[step->peer] = true;
		break;
	case GF_LANE_ALL_REDUCE:
		team = &all;
		break;
	case GF_LANE_REDUCE_SCATTER:
	case GF_LANE_ALL_GATHER:
		team = &p->teams[step->team];
		break;
	default:
		break;
	}
	for (int i = 0; team && i < team->size; i++)
		met[team->first + i * team->stride] = true;
}

char *gf_lane_program_peers(const struct gf_lane_program *p)
{
	GF_FREED bool *met = gf_xcalloc((size_t)p->ranks + 1, sizeof(*met));
	struct gf_text t = {0};
	int rank, count = 0, named = 0;

	for (size_t i = 0; i < p->nsteps; i++)
		mark(p, &p->steps[i], met);
	met[p->rank] = false;
	for (rank = 0; rank < p->ranks; rank++)
		count += met[rank];
	for (rank = 0; rank < p->ranks && named < NAMED; rank++)
		if (met[rank])
			gf_text_addf(&t, "%s%d",
				     named++      ? ", "
				     : count == 1 ? "rank "
						  : "ranks ",
				     rank);
	if (count > named)
		gf_text_addf(&t, " and %d more", count - named);
	if (!count)
		gf_text_addf(&t, "nobody");
	return gf_text_take(&t);
}
