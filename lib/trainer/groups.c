/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/groups.h"

#include "base/heap.h"
#include "transport/comm.h"

static bool is_used(const struct gf_train_config *k)
{
	return !gf_period_has(&k->plan->period, GF_PERIOD_EVERY);
}

/* --- the communicator ----------------------------------------------------- */

static int check(const struct gf_train_config *k, struct gf_error *err)
{
	const char *name = gf_period_name(&k->plan->period);

	if (k->resume == GF_RESUME_ANY)
		return gf_error_set(
			err, -EINVAL,
			"--resume: want the same ranks with period %s, whose groups have "
			"parameters of their own",
			name);
	return 0;
}

int gf_train_split(struct gf_train_config *k, struct gf_error *err)
{
	struct gf_comm *whole;
	int rc;

	if (!is_used(k))
		return 0;
	rc = check(k, err);
	if (rc)
		return rc;
	rc = gf_comm_split(k->comm, k->plan->period.group_ranks, &whole, &k->group, err);
	if (!rc) {
		k->undivided = k->comm;
		k->comm = whole;
	}
	return rc;
}

void gf_train_join(struct gf_train_config *k)
{
	if (!k->group)
		return;
	gf_comm_close(k->group);
	gf_comm_close(k->comm);
	k->group = NULL;
	k->comm = k->undivided;
}

void gf_groups_lost(const struct gf_train_config *k)
{
	if (!k->group)
		return;
	k->group->broken |= k->comm->broken;
	k->comm->broken |= k->group->broken;
}

/* --- opening and closing -------------------------------------------------- */

const struct gf_plan *gf_groups_plan(struct gf_groups *g, const struct gf_train_config *k)
{
	if (!is_used(k))
		return k->plan;
	if (!g->plan.messages)
		gf_period_inner(k->plan, &g->plan);
	return &g->plan;
}

struct gf_comm *gf_groups_comm(const struct gf_train_config *k)
{
	return k->group ? k->group : k->comm;
}

int gf_groups_open(struct gf_groups *g, const struct gf_train_config *k, float *params,
		   struct gf_compute *compute, struct gf_error *err)
{
	struct gf_outer_env env = {
		.comm = k->comm,
		.plan = k->plan,
		.timeout_s = k->timeout_s,
		.threads = k->place.gpu ? 1 : k->threads,
	};

	if (!is_used(k))
		return 0;
	g->compute = params ? compute : NULL;
	g->owns_params = !params;
	/* a replay has no parameters: zeros take their way */
	g->params = params ? params
			   : gf_xcalloc(gf_model_profile_elems(k->plan->model), sizeof(*g->params));
	env.params = g->params;
	return gf_outer_open(&g->outer, &env, err);
}

void gf_groups_close(struct gf_groups *g)
{
	gf_outer_close(g->outer);
	if (g->owns_params)
		free(g->params);
	gf_state_release(&g->common);
	if (g->plan.messages)
		gf_plan_release(&g->plan);
	*g = (struct gf_groups){0};
}

struct gf_team gf_groups_team(const struct gf_groups *g, const struct gf_train_config *k)
{
	if (!g->outer)
		return gf_method_team(g->method);
	return (struct gf_team){.comm = k->comm,
				.exchange = gf_outer_exchange(g->outer),
				.workers = k->plan->ranks};
}

/* --- state ---------------------------------------------------------------- */

int gf_groups_agree(struct gf_groups *g, const struct gf_train_config *k, int rc,
		    struct gf_error *err)
{
	struct gf_team team = gf_groups_team(g, k);

	if (!g->outer || team.comm->broken || k->group->broken)
		return rc;
	return gf_team_agree(&team, rc, err);
}

/* --- steps ---------------------------------------------------------------- */

/* Before the parameters change on the host: a device has read them. Its running statistics, which
 * go back with them, come. */
static int settle(struct gf_groups *g, struct gf_error *err)
{
	int rc = gf_method_settle(g->method, err);

	return rc || !g->compute ? rc : gf_compute_fetch(g->compute, err);
}

static int send(struct gf_groups *g, struct gf_error *err)
{
	return g->compute ? gf_compute_send(g->compute, err) : 0;
}

int gf_groups_step(struct gf_groups *g, size_t step, uint64_t *sent_bytes, struct gf_error *err)
{
	uint64_t sent;
	bool changed;
	int rc;

	*sent_bytes = 0;
	if (!g->outer || !gf_outer_due(g->outer, step))
		return 0;
	rc = settle(g, err);
	rc = rc ?: gf_outer_step(g->outer, step, &changed, err);
	if (!rc && changed)
		rc = send(g, err);
	sent = gf_outer_totals(g->outer).sent_bytes;
	*sent_bytes = sent - g->told_bytes;
	g->told_bytes = sent;
	return rc;
}

uint64_t gf_groups_dense_bytes(const struct gf_groups *g)
{
	return gf_exchange_totals(g->outer ? gf_outer_exchange(g->outer)
					   : gf_method_team(g->method).exchange)
		.dense_bytes;
}

int gf_groups_finish(struct gf_groups *g, const struct gf_train_config *k, size_t step,
		     struct gf_error *err)
{
	int rc;

	if (!g->outer)
		return 0;
	rc = gf_groups_agree(g, k, settle(g, err), err);
	rc = rc ?: gf_outer_finish(g->outer, step, err);
	return rc ?: send(g, err);
}
