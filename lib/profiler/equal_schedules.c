/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "profiler/chain.h"
#include "runtime/exec/exec.h"

/* Messages of one segment, and of several. */
static const size_t sizes[] = {1 << 10, 1 << 20};

/* False if it has no steps here. */
static bool build(struct gf_comm *comm, const struct gf_allreduce_cost *cost, size_t bytes,
		  struct gf_schedule *s)
{
	const struct gf_algorithm *a = gf_algorithm_find(cost->algorithm);
	struct gf_element f32 = gf_element_number(GF_F32, GF_OP_SUM);
	int *factors = gf_xcalloc(cost->nstages + 1, sizeof(*factors));
	const char **stages = gf_xcalloc(cost->nstages + 1, sizeof(*stages));
	struct gf_coll_args args = {
		.ranks = comm->ranks,
		.count_elems = bytes / sizeof(float),
		.elem_bytes = sizeof(float),
		.nfactors = cost->nstages,
		.calls = true,
	};
	struct gf_error ignored;
	size_t i;
	bool built;

	args.segment_elems = gf_exec_segment_elems(comm, &f32, args.count_elems);
	for (i = 0; i < cost->nstages; i++) {
		factors[i] = cost->stages[i].factor;
		stages[i] = cost->stages[i].algorithm;
	}
	if (cost->nstages) {
		args.factors = factors;
		args.stage_algorithms = stages;
	}
	built = a && !gf_algorithm_schedule(a, &args, comm->rank, s, &ignored);
	free(stages);
	free(factors);
	return built;
}

static bool same_step(const struct gf_schedule *a, const struct gf_schedule *b, size_t i)
{
	const struct gf_step *x = &a->steps[i], *y = &b->steps[i];
	uint32_t k;

	if (x->op != y->op || x->peer != y->peer || x->match != y->match ||
	    x->range.count != y->range.count || x->ndeps != y->ndeps)
		return false;
	for (k = 0; k < x->ndeps; k++)
		if (a->deps[x->first_dep + k] != b->deps[y->first_dep + k])
			return false;
	return true;
}

static bool same(const struct gf_schedule *a, const struct gf_schedule *b)
{
	size_t i;

	if (a->nsteps != b->nsteps)
		return false;
	for (i = 0; i < a->nsteps; i++)
		if (!same_step(a, b, i))
			return false;
	return true;
}

static bool same_here(struct gf_comm *comm, const struct gf_allreduce_cost *a,
		      const struct gf_allreduce_cost *b, size_t bytes)
{
	struct gf_schedule x = {0}, y = {0};
	bool alike = build(comm, a, bytes, &x) && build(comm, b, bytes, &y) && same(&x, &y);

	gf_schedule_release(&x);
	gf_schedule_release(&y);
	return alike;
}

int gf_measure_twins(struct gf_comm *comm, const struct gf_network *net, size_t **twins,
		     struct gf_error *err)
{
	size_t n = net->nallreduce, i, k, s;
	/* [i * n + k]: do i and k differ on some rank? */
	double *differ = gf_xcalloc(n * n + 1, sizeof(*differ));
	int rc;

	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			for (s = 0; s < GF_ARRAY_LENGTH(sizes) && !differ[i * n + k]; s++)
				differ[i * n + k] = !same_here(comm, &net->allreduce[i],
							       &net->allreduce[k], sizes[s]);
	rc = gf_measure_slowest(comm, differ, n * n, err);
	*twins = gf_xcalloc(n + 1, sizeof(**twins));
	for (i = 0; i < n; i++) {
		for (k = 0; k < i && differ[i * n + k];)
			k++;
		(*twins)[i] = k;
	}
	free(differ);
	return rc;
}
