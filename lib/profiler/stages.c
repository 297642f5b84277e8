/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/registry.h"
#include "collectives/algorithm.h"
#include "collectives/way.h"
#include "documents/algorithm_traits.h"
#include "profiler/chain.h"
#include "profiler/contest/device_send.h"
#include "runtime/exec/exec.h"

/* Within a level: by NCCL between GPUs; through shared memory where that is what it is, else
 * halving where it halves evenly, else in a ring. */
static const char *stage_algorithm(const struct gf_level *level, size_t factor, bool gpus)
{
	if (!gpus && strcmp(level->link, "shm") == 0)
		return "shm";
	if (!gpus && factor == 2) /* either way it is one exchange */
		return "ring";
	return gf_stage_unsaid((int)factor, gpus);
}

size_t gf_measure_stages(const char *algorithm, const struct gf_level *levels, size_t nlevels,
			 bool gpus, struct gf_stage **out)
{
	bool two = gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS);
	bool staged = gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES);
	struct gf_stage *stages = gf_xcalloc(nlevels + 1, sizeof(*stages));
	size_t count = 0, i;

	for (i = 0; i < nlevels; i++) {
		size_t size = levels[i].size;

		if (size < 2)
			continue;
		/* to the masters of groups the outer levels are one */
		if (two && count == 2) {
			stages[1].factor *= (int)size;
			continue;
		}
		stages[count].factor = (int)size;
		stages[count++].algorithm =
			gf_xstrdup(staged ? stage_algorithm(&levels[i], size, gpus) : "ring");
	}
	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_LEVELS) || count < 2) {
		gf_stages_free(stages, count);
		stages = NULL;
		count = 0;
	}
	*out = stages;
	return count;
}

/* --- the other algorithms of a stage -------------------------------------- */

/* Of two ranks halving is the ring's exchange. */
static bool differs(const struct gf_stage *stage, const char *name, bool gpus)
{
	return strcmp(stage->algorithm, name) != 0 &&
	       gf_stage_has(name, gpus ? GF_STAGE_BY_GPU : GF_STAGE_BY_HOST) &&
	       gf_stage_takes(name, stage->factor) &&
	       !(stage->factor == 2 && gf_stage_has(name, GF_STAGE_HALVES));
}

int gf_measure_stages_vary(const struct gf_stage *base, size_t nstages, bool gpus,
			   gf_measure_stages_fn *each, void *ctx, struct gf_error *err)
{
	struct gf_stage *stages = gf_stages_copy(base, nstages);
	char *own;
	int rc = 0;

	for (size_t i = 0; i < nstages; i++) {
		own = stages[i].algorithm;
		for (size_t k = 0; gf_stage_names[k] && rc == 0; k++) {
			if (!differs(&base[i], gf_stage_names[k], gpus))
				continue;
			stages[i].algorithm = (char *)gf_stage_names[k];
			rc = each(ctx, stages, nstages, err);
		}
		stages[i].algorithm = own;
	}
	gf_stages_free(stages, nstages);
	return rc;
}

/* Stages of one algorithm that are those of another entry but for stage i. */
static bool but_for(const struct gf_allreduce_cost *a, const struct gf_allreduce_cost *b, size_t i)
{
	size_t rest = a->nstages - i - 1;

	return strcmp(a->algorithm, b->algorithm) == 0 && a->nstages == b->nstages &&
	       a->stages[i].factor == b->stages[i].factor &&
	       gf_stages_same(a->stages, i, b->stages, i) &&
	       gf_stages_same(a->stages + i + 1, rest, b->stages + i + 1, rest);
}

size_t gf_measure_stages_together(const struct gf_network *net, size_t base, double bytes,
				  struct gf_stage **out)
{
	const struct gf_allreduce_cost *from = &net->allreduce[base];
	struct gf_stage *best = gf_stages_copy(from->stages, from->nstages);
	size_t i, k;

	for (i = 0; i < from->nstages; i++) {
		double least_s = INFINITY;

		for (k = base; k < net->nallreduce; k++) {
			const struct gf_allreduce_cost *c = &net->allreduce[k];
			struct gf_cost_lines lines = gf_allreduce_lines(c);
			double time_s = gf_cost_lines_s(&lines, bytes);

			if (!but_for(c, from, i) || time_s >= least_s)
				continue;
			least_s = time_s;
			free(best[i].algorithm);
			best[i].algorithm = gf_xstrdup(c->stages[i].algorithm);
		}
	}
	for (k = base; k < net->nallreduce; k++)
		if (strcmp(net->allreduce[k].algorithm, from->algorithm) == 0 &&
		    gf_stages_same(best, from->nstages, net->allreduce[k].stages,
				   net->allreduce[k].nstages))
			break;
	if (k == net->nallreduce) {
		*out = best;
		return from->nstages;
	}
	gf_stages_free(best, from->nstages);
	return 0;
}

/* Does everything go by NCCL? */
static bool by_nccl(const struct gf_measure_network *c)
{
	return c->device && c->device->nccl;
}

void gf_measure_entry_add(struct gf_network *net, const char *algorithm, struct gf_stage *stages,
			  size_t nstages)
{
	size_t n = net->nallreduce++;

	net->allreduce = gf_xreallocarray(net->allreduce, n + 1, sizeof(*net->allreduce));
	net->allreduce[n] = (struct gf_allreduce_cost){
		.algorithm = gf_xstrdup(algorithm),
		.stages = stages,
		.nstages = nstages,
	};
}

/* 0 if messages of all sizes can go that way here. */
static int can_run(const struct gf_measure_network *c, const struct gf_way *way,
		   enum gf_coll_half half, struct gf_error *err)
{
	const struct gf_algorithm *a = way->algorithm;
	struct gf_comm *comm = c->comm;
	struct gf_coll_args args = gf_way_args(way, comm->ranks);
	int rc;

	args.count_elems = c->max_bytes / 4;
	args.elem_bytes = 4;
	args.half = half;
	if (by_nccl(c))
		return gf_contest_send_check(
			&(struct gf_burst_message){
				.way = *way,
				.element = gf_element_number(GF_F32, GF_OP_SUM),
				.half = half,
				.count_elems = args.count_elems,
			},
			comm, err);
	if (!a->build && !comm->ops->iallreduce)
		return gf_error_set(err, -ENOTSUP, "the transport has no all-reduce");
	rc = a->applicable ? a->applicable(&args, err) : 0;
	return rc ?: gf_exec_stages_check(comm, &args, err);
}

bool gf_measure_has_half(const struct gf_measure_network *c, const struct gf_allreduce_cost *cost,
			 enum gf_coll_half half)
{
	struct gf_error ignored;
	struct gf_way way;

	return gf_way_of(cost->algorithm, cost->stages, cost->nstages, &way, &ignored) == 0 &&
	       way.algorithm->owned && can_run(c, &way, half, &ignored) == 0;
}

struct choosing {
	const struct gf_measure_network *config;
	const char *algorithm;
	struct gf_network *net;
};

/* 0 on all ranks, or on none: whether ranks share memory is not the same for all of them. */
static int check_stages(const struct gf_measure_network *c, const char *algorithm,
			const struct gf_stage *stages, size_t n, struct gf_error *err)
{
	struct gf_way way;
	int rc = gf_way_of(algorithm, stages, n, &way, err);

	rc = rc ?: can_run(c, &way, GF_COLL_WHOLE, err);
	return gf_comm_agree(c->comm, rc, err);
}

static int choose_stages(void *ctx, const struct gf_stage *stages, size_t nstages,
			 struct gf_error *err)
{
	const struct choosing *c = ctx;
	int rc = check_stages(c->config, c->algorithm, stages, nstages, err);

	if (rc == 0)
		gf_measure_entry_add(c->net, c->algorithm, gf_stages_copy(stages, nstages),
				     nstages);
	return rc == -ENOTSUP || rc == -EINVAL ? 0 : rc;
}

/* Links may promise shared memory that these ranks do not share: stages then go by no algorithm
 * that is named. */
static int settle_base(const struct gf_measure_network *c, const char *algorithm,
		       struct gf_stage *stages, size_t n, struct gf_error *err)
{
	int rc = check_stages(c, algorithm, stages, n, err);

	if (rc != -ENOTSUP && rc != -EINVAL)
		return rc;
	for (size_t i = 0; i < n; i++) {
		free(stages[i].algorithm);
		stages[i].algorithm = gf_xstrdup(gf_stage_unsaid(stages[i].factor, by_nccl(c)));
	}
	return 0;
}

/* An entry of the algorithm, and others for its stages. On one level, all of it is one stage. */
static int choose_one(const struct gf_measure_network *c, const char *algorithm,
		      struct gf_network *net, struct gf_error *err)
{
	const int ranks = c->comm->ranks;
	const char *unsaid = gf_stage_unsaid(ranks, false);
	struct gf_stage one = {ranks, (char *)unsaid, NULL}, *stages;
	size_t n = gf_measure_stages(algorithm, c->levels, c->nlevels, by_nccl(c), &stages);
	bool whole = !n && c->nlevels && ranks > 1;
	int rc = n ? settle_base(c, algorithm, stages, n, err) : 0;

	gf_measure_entry_add(net, algorithm, stages, n);
	if (rc)
		return rc;
	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES))
		return 0;
	return gf_measure_stages_vary(whole ? &one : stages, whole ? 1 : n, by_nccl(c),
				      choose_stages, &(struct choosing){c, algorithm, net}, err);
}

/* Entries with their names and stages, for each algorithm to measure. */
int gf_measure_entries(const struct gf_measure_network *c, struct gf_network *net,
		       struct gf_text *remarks, struct gf_error *err)
{
	struct gf_error why;
	int rc = 0;

	for (size_t i = 0; gf_algorithms[i] && rc == 0; i++) {
		const struct gf_way way = {.algorithm = gf_algorithms[i]};

		if (c->algorithms && gf_names_index(c->algorithms, gf_algorithms[i]->name) < 0)
			continue;
		if (can_run(c, &way, GF_COLL_WHOLE, &why) == 0)
			rc = choose_one(c, gf_algorithms[i]->name, net, err);
		else if (c->algorithms)
			gf_text_addf(remarks, "%s is left out: %s\n", gf_algorithms[i]->name,
				     why.text);
	}
	return rc;
}

/* Messages of one segment, and of several. */
static const size_t sizes[] = {1 << 10, 1 << 20};

/* False if it has no steps here. */
static bool build(struct gf_comm *comm, const struct gf_allreduce_cost *cost, size_t bytes,
		  struct gf_schedule *s)
{
	struct gf_element f32 = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_coll_args args;
	struct gf_error ignored;
	struct gf_way way;

	if (gf_way_of(cost->algorithm, cost->stages, cost->nstages, &way, &ignored))
		return false;
	args = gf_way_args(&way, comm->ranks);
	args.count_elems = bytes / sizeof(float);
	args.elem_bytes = sizeof(float);
	args.calls = true;
	args.segment_elems = gf_exec_segment_elems(comm, &f32, args.count_elems);
	return !gf_algorithm_schedule(way.algorithm, &args, comm->rank, s, &ignored);
}

static bool same_step(const struct gf_schedule *a, const struct gf_schedule *b, size_t i)
{
	const struct gf_step *x = &a->steps[i], *y = &b->steps[i];

	if (x->op != y->op || x->peer != y->peer || x->match != y->match ||
	    x->range.count != y->range.count || x->ndeps != y->ndeps)
		return false;
	for (uint32_t k = 0; k < x->ndeps; k++)
		if (a->deps[x->first_dep + k] != b->deps[y->first_dep + k])
			return false;
	return true;
}

static bool same(struct gf_comm *comm, const struct gf_allreduce_cost *a,
		 const struct gf_allreduce_cost *b, size_t bytes)
{
	GF_RELEASED(gf_schedule_release) struct gf_schedule x = {0}, y = {0};
	bool alike = build(comm, a, bytes, &x) && build(comm, b, bytes, &y);

	alike = alike && x.nsteps == y.nsteps;
	for (size_t i = 0; alike && i < x.nsteps; i++)
		alike = same_step(&x, &y, i);
	return alike;
}

int gf_measure_twins(struct gf_comm *comm, const struct gf_network *net, size_t **twins,
		     struct gf_error *err)
{
	size_t n = net->nallreduce, i, k, s;
	/* [i * n + k]: do i and k differ on some rank? */
	GF_FREED double *differ = gf_xcalloc(n * n + 1, sizeof(*differ));
	int rc;

	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			for (s = 0; s < GF_ARRAY_LENGTH(sizes) && !differ[i * n + k]; s++)
				differ[i * n + k] = !same(comm, &net->allreduce[i],
							  &net->allreduce[k], sizes[s]);
	rc = gf_measure_slowest(comm, differ, n * n, err);
	*twins = gf_xcalloc(n + 1, sizeof(**twins));
	for (i = 0; i < n; i++) {
		for (k = 0; k < i && differ[i * n + k];)
			k++;
		(*twins)[i] = k;
	}
	return rc;
}
