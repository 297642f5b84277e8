/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/network_parts.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "coll/way.h"
#include "contest/device_send.h"
#include "doc/algorithm_traits.h"
#include "exec/exec.h"

bool gf_measure_by_nccl(const struct gf_measure_network *c)
{
	return c->device && c->device->nccl;
}

void gf_measure_entry_add(struct gf_network *net, const char *algorithm,
			  struct gf_stage *stages, size_t nstages)
{
	size_t n = net->nallreduce++;

	net->allreduce = gf_xreallocarray(net->allreduce, n + 1,
					  sizeof(*net->allreduce));
	net->allreduce[n] = (struct gf_allreduce_cost){
		.algorithm = gf_xstrdup(algorithm),
		.stages = stages,
		.nstages = nstages,
	};
}

/* 0 if messages of all sizes can go that way here. */
static int can_run(const struct gf_measure_network *c, const struct gf_way *way,
		   struct gf_error *err)
{
	const struct gf_algorithm *a = way->algorithm;
	struct gf_comm *comm = c->comm;
	struct gf_coll_args args = gf_way_args(way, comm->ranks);
	int rc;

	args.count_elems = c->max_bytes / 4;
	args.elem_bytes = 4;
	if (gf_measure_by_nccl(c))
		return gf_contest_send_check(
			&(struct gf_burst_message){
				.way = *way,
				.element = gf_element_number(GF_F32, GF_OP_SUM),
				.count_elems = args.count_elems,
			},
			comm, err);
	if (!a->build && !comm->ops->iallreduce)
		return gf_error_set(err, -ENOTSUP,
				    "the transport has no all-reduce");
	rc = a->applicable ? a->applicable(&args, err) : 0;
	return rc ? rc : gf_exec_stages_check(comm, &args, err);
}

static int wanted(const struct gf_measure_network *c, const char *name)
{
	size_t i;

	if (!c->algorithms)
		return 1;
	for (i = 0; c->algorithms[i]; i++)
		if (strcmp(c->algorithms[i], name) == 0)
			return 1;
	return 0;
}

struct choosing {
	const struct gf_measure_network *config;
	const char *algorithm;
	struct gf_network *net;
};

/* Whether ranks share memory is not the same for all of them. */
static int choose_stages(void *ctx, const struct gf_stage *stages,
			 size_t nstages, struct gf_error *err)
{
	const struct choosing *c = ctx;
	struct gf_way way;
	int rc = gf_way_of(c->algorithm, stages, nstages, &way, err);

	rc = rc ? rc : can_run(c->config, &way, err);
	rc = gf_comm_agree(c->config->comm, rc, err);
	if (rc == 0)
		gf_measure_entry_add(c->net, c->algorithm,
				     gf_stages_copy(stages, nstages), nstages);
	return rc == -ENOTSUP || rc == -EINVAL ? 0 : rc;
}

/* An entry of the algorithm, and others for its stages. On one level, all of it
 * is one stage. */
static int choose_one(const struct gf_measure_network *c, const char *algorithm,
		      struct gf_network *net, struct gf_error *err)
{
	const int ranks = c->comm->ranks;
	const char *unsaid = gf_stage_unsaid(ranks, false);
	struct gf_stage one = {ranks, (char *)unsaid, NULL}, *stages;
	size_t n = gf_measure_stages(algorithm, c->levels, c->nlevels,
				     gf_measure_by_nccl(c), &stages);
	bool whole = !n && c->nlevels && ranks > 1;

	gf_measure_entry_add(net, algorithm, stages, n);
	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES))
		return 0;
	return gf_measure_stages_vary(
		whole ? &one : stages, whole ? 1 : n, gf_measure_by_nccl(c),
		choose_stages, &(struct choosing){c, algorithm, net}, err);
}

/* Entries with their names and stages, for each algorithm to measure. */
int gf_measure_entries(const struct gf_measure_network *c,
		       struct gf_network *net, struct gf_text *remarks,
		       struct gf_error *err)
{
	struct gf_error why;
	size_t i;
	int rc = 0;

	for (i = 0; gf_algorithms[i] && rc == 0; i++) {
		const struct gf_way way = {.algorithm = gf_algorithms[i]};

		if (!wanted(c, gf_algorithms[i]->name))
			continue;
		if (can_run(c, &way, &why) == 0)
			rc = choose_one(c, gf_algorithms[i]->name, net, err);
		else if (c->algorithms)
			gf_text_addf(remarks, "%s is left out: %s\n",
				     gf_algorithms[i]->name, why.text);
	}
	return rc;
}
