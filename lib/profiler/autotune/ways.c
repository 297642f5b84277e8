/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/autotune/ways.h"

#include <math.h>

#include "base/heap.h"
#include "runtime/exec/exec.h"
#include "documents/plan_rule.h"

int gf_choose_layout(struct gf_comm *comm, size_t *nfactors, int factors[2], struct gf_error *err)
{
	int mine[2] = {comm->host, comm->local_ranks}, rank, rc;
	GF_FREED int *all = gf_xcalloc(2 * (size_t)comm->ranks, sizeof(*all));
	int local = comm->local_ranks;

	rc = gf_comm_allgather(comm, mine, sizeof(mine), all, err);
	*nfactors = 0;
	if (rc == 0 && local > 1 && local < comm->ranks && comm->ranks % local == 0) {
		*nfactors = 2;
		factors[0] = local;
		factors[1] = comm->ranks / local;
	}
	/* alike on all ranks: the first host's size decides, then all agree */
	for (rank = 0; rc == 0 && rank < comm->ranks; rank++)
		if (all[2 * rank + 1] != all[1] || all[2 * rank] != rank - rank % all[1])
			*nfactors = 0;
	return rc;
}

int gf_choose_place(struct gf_comm *comm, struct gf_plan *plan, bool gpus, struct gf_error *err)
{
	int factors[2], rc;
	size_t n;

	if (!plan->rule || comm->ranks < 2)
		return 0;
	rc = gf_choose_layout(comm, &n, factors, err);
	if (rc)
		return rc;
	if (n == 0)
		factors[n++] = comm->ranks;
	gf_rule_place(plan, factors, n);
	if (gpus)
		gf_plan_use_calls(plan);
	return 0;
}

int gf_choose_by_rule(const struct gf_plan *rule, size_t size_bytes, int ranks, struct gf_way *way,
		      struct gf_error *err)
{
	struct gf_tensor tensor = {
		.name = (char[]){"message"},
		.count_elems = size_bytes / sizeof(float) ?: 1,
		.need_s = NAN,
	};
	struct gf_model_profile model = {
		.name = tensor.name,
		.device = (char[]){"cpu"},
		.overlap_slowdown = 1,
		.tensors = &tensor,
		.ntensors = 1,
	};
	GF_RELEASED(gf_plan_release) struct gf_plan whole = {0};
	int rc = gf_plan_bind(rule, &model, ranks, &whole, err);

	return rc ?: gf_way_of_message(&whole.messages[0], way, err);
}

size_t gf_choose_stages(const struct gf_way *way, struct gf_stage **stages)
{
	*stages = way->nfactors ? gf_xcalloc(way->nfactors, sizeof(**stages)) : NULL;
	for (size_t i = 0; i < way->nfactors; i++) {
		const char *name = gf_way_stage_at(way, i);

		(*stages)[i].factor = way->factors[i];
		(*stages)[i].algorithm = gf_xstrdup(name ? name : "ring");
	}
	return way->nfactors;
}

/* One element, for the answer. */
static int try_library(const struct gf_algorithm *a, const struct gf_coll_args *like,
		       struct gf_comm *comm, const struct gf_element *element, struct gf_error *err)
{
	struct gf_exec_config config = {.count_elems = 1, .element = *element, .half = like->half};
	struct gf_coll_args args = *like;
	struct gf_exec *exec = gf_exec_new(comm);
	struct gf_exec_run *run = NULL;
	struct gf_schedule s = {0};
	void *data = NULL;
	int rc = comm->ops->buffer_alloc(comm, element->size_bytes, &data, err);

	args.count_elems = 1;
	if (rc == 0 && args.half != GF_COLL_WHOLE) {
		config.schedule = &s;
		rc = gf_algorithm_schedule(a, &args, comm->rank, &s, err);
	}
	rc = rc ?: gf_exec_run_new(exec, &config, &run, err);
	/* what one rank has no memory for, none begins */
	rc = gf_comm_agree(comm, rc, err);
	rc = rc ?: gf_exec_start(run, data, err);
	rc = rc ?: gf_exec_wait(exec, run, 0, err);
	gf_exec_run_free(run);
	gf_exec_free(exec);
	gf_schedule_release(&s);
	comm->ops->buffer_free(comm, data);
	return rc;
}

int gf_choose_check(const struct gf_way *way, struct gf_comm *comm,
		    const struct gf_element *element, enum gf_coll_half half, size_t count_elems,
		    struct gf_error *err)
{
	struct gf_coll_args args = gf_way_args(way, comm->ranks);
	int rc;

	args.count_elems = count_elems;
	args.elem_bytes = element->size_bytes;
	args.half = half;
	args.lossy = gf_element_lossy(element);
	args.calls = !way->algorithm->build;
	if (way->density > 0)
		rc = element->number && element->dtype == GF_F32 && element->op == GF_OP_SUM
			     ? 0
			     : gf_error_set(err, -EINVAL,
					    "want f32 sums for sparse sets, got others");
	else if (way->algorithm->build)
		rc = gf_algorithm_can(way->algorithm, &args, err);
	else
		rc = comm->ranks > 1 ? try_library(way->algorithm, &args, comm, element, err) : 0;
	if (rc)
		gf_error_prefix(err, "%s", way->algorithm->name);
	return rc;
}
