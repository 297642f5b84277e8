/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trainer tells, and its steps. */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "embed/trainer.h"
#include "gradflow.h"

#define API __attribute__((visibility("default")))

/* --- what is there ------------------------------------------------------- */

API int gradflow_rank(const struct gradflow *g)
{
	return g ? g->job.comm->rank : -EINVAL;
}

API int gradflow_ranks(const struct gradflow *g)
{
	return g ? g->job.comm->ranks : -EINVAL;
}

API int gradflow_local_rank(const struct gradflow *g)
{
	return g ? g->job.comm->local_rank : -EINVAL;
}

API const char *gradflow_ways(const struct gradflow *g)
{
	return g ? g->job.ways : NULL;
}

API size_t gradflow_place(const struct gradflow *g, size_t tensor)
{
	return g && tensor < g->job.ntensors
		       ? g->job.offset[g->job.order[tensor]]
		       : SIZE_MAX;
}

API float *gradflow_parameters(struct gradflow *g)
{
	return g ? g->params : NULL;
}

API size_t gradflow_count(const struct gradflow *g)
{
	return g ? g->job.offset[g->job.ntensors] : 0;
}

API uint64_t gradflow_steps(const struct gradflow *g)
{
	return g ? g->job.steps : 0;
}

API uint64_t gradflow_sent_bytes(struct gradflow *g)
{
	if (!g)
		return 0;
	if (!g->job.failed)
		g->sent_bytes += gf_method_sent_bytes(&g->method);
	return g->sent_bytes;
}

/* --- steps --------------------------------------------------------------- */

/* Begins a call, in a step or between steps; `leave` ends it. */
static int enter(struct gradflow *g, const char *call, bool within)
{
	int rc = gf_job_reach(g ? &g->job : NULL, call, gf_embed_error());

	if (rc)
		return rc;
	if (gf_job_failed(&g->job, gf_embed_error()))
		rc = g->job.failed;
	else if (within && !g->begun)
		rc = gf_error_set(gf_embed_error(), -EINVAL,
				  "%s, step %zu: want gradflow_begin first",
				  call, (size_t)g->job.steps + 1);
	else if (!within && g->begun)
		rc = gf_error_set(gf_embed_error(), -EINVAL,
				  "%s: want it between steps, got it within "
				  "step %zu",
				  call, (size_t)g->job.steps + 1);
	return rc ? gf_job_leave(&g->job, rc) : 0;
}

static int leave(struct gradflow *g, int rc)
{
	return gf_job_leave(&g->job, rc);
}

API int gradflow_start(struct gradflow *g)
{
	struct gf_team team;
	int rc = enter(g, "gradflow_start", false);

	if (rc)
		return rc;
	team = gf_method_team(&g->method);
	rc = gf_team_bcast(&team, g->params, gradflow_count(g) * sizeof(float),
			   gf_embed_error());
	return leave(g, gf_job_keep(&g->job, rc, gf_embed_error()));
}

API float *gradflow_begin(struct gradflow *g)
{
	float *grads;

	if (enter(g, "gradflow_begin", false))
		return NULL;
	g->begun = true;
	grads = gf_method_begin(&g->method, (size_t)g->job.steps + 1);
	(void)leave(g, 0);
	return grads;
}

API int gradflow_ready(struct gradflow *g, size_t tensor)
{
	int rc = enter(g, "gradflow_ready", true);

	if (rc)
		return rc;
	if (tensor < g->job.ntensors)
		gf_method_ready(&g->method, g->job.order[tensor]);
	else
		rc = gf_error_set(gf_embed_error(), -EINVAL,
				  "gradflow_ready: want a tensor below %zu, "
				  "got %zu",
				  g->job.ntensors, tensor);
	return leave(g, rc);
}

static int step(struct gradflow *g, double rate)
{
	const size_t number = (size_t)g->job.steps + 1;
	int rc;

	if (!isfinite(rate))
		return gf_error_set(gf_embed_error(), -EINVAL,
				    "gradflow_step, step %zu: rate: want a "
				    "finite number, got %g",
				    number, rate);
	g->begun = false;
	gf_method_backward_end(&g->method);
	rc = gf_method_exchange(&g->method, number, gf_embed_error());
	rc = gf_job_keep(&g->job, rc, gf_embed_error());
	if (rc)
		return rc;
	gf_method_update(&g->method, number, rate);
	g->job.steps++;
	return 0;
}

API int gradflow_step(struct gradflow *g, double rate)
{
	int rc = enter(g, "gradflow_step", true);

	return rc ? rc : leave(g, step(g, rate));
}

API int gradflow_save(struct gradflow *g, const char *folder)
{
	int rc = enter(g, "gradflow_save", false);

	return rc ? rc
		  : leave(g, gf_job_save(&g->job, folder, gf_embed_error()));
}

API int gradflow_load(struct gradflow *g, const char *folder)
{
	int rc = enter(g, "gradflow_load", false);

	return rc ? rc
		  : leave(g,
			  gf_job_load(&g->job, folder, NULL, gf_embed_error()));
}
