/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "comm/pages.h"
#include "embed/job.h"
#include "engine/runnable.h"
#include "train/choose.h"
#include "train/scale.h"
#include "train/snapshot.h"
#include "train/train.h"

static int alloc_params(struct gradflow *g, struct gf_error *err)
{
	size_t count = g->offset[g->ntensors];
	void *params;

	if (gf_pages_alloc(count * sizeof(*g->params), &params, NULL))
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu parameters", count);
	g->params = params;
	return 0;
}

static void list_state(struct gradflow *g)
{
	size_t i;

	for (i = 0; i < g->ntensors; i++)
		gf_state_add(&g->state, GF_STATE_SHARED,
			     gf_xstrdup(g->plan.model->tensors[i].name),
			     &g->shapes[i], g->params + g->offset[i]);
	gf_method_state(&g->method, &g->state);
}

static int open_method(struct gradflow *g, const struct gf_loss_scale *scale,
		       struct gf_error *err)
{
	struct gf_method_env env = {
		.comm = g->comm,
		.plan = &g->plan,
		.params = g->params,
		.shapes = g->shapes,
		.epoch_steps = g->epoch_steps,
		.optim = &g->optim,
		.scale = *scale,
		.timeout_s = g->timeout_s,
		.threads = 1, /* the caller's, at least */
	};
	int rc = gf_method_open(&g->method, &env, err);

	free(g->ways);
	g->ways = gf_train_ways(&g->plan);
	if (rc)
		return rc;
	list_state(g);
	return gf_state_check_names(&g->state, err);
}

int gf_embed_start(struct gradflow *g, struct gf_error *err)
{
	struct gf_loss_scale scale = {0};
	int rc = gf_method_check(&g->plan, err);

	g->optim = gf_train_optim(&g->training);
	if (!rc)
		rc = gf_loss_scale_init(&scale, &g->training, &g->plan, false,
					err);
	if (!rc)
		rc = alloc_params(g, err);
	rc = gf_comm_agree(g->comm, rc, err);
	if (rc)
		return rc;
	g->codecs = gf_train_codecs(&g->plan);
	g->said = gf_training_write(&g->training);
	return open_method(g, &scale, err);
}

/* --- checkpoints --------------------------------------------------------- */

static const struct gf_snapshot_words words = {
	.samples = "epoch_steps",
	.other_run = "gradflow_load goes on from the last of them, another "
		     "folder starts anew",
};

static struct gf_run_identity identity(const struct gradflow *g)
{
	return (struct gf_run_identity){
		.words = &words,
		.model = g->plan.model->name,
		.method = gf_method_name(&g->plan),
		.optimizer = g->training.optimizer,
		.batch = 1, /* the caller's */
		.accumulate = 1,
		.staleness = (size_t)g->plan.staleness,
		.pipeline_warmup = g->plan.pipeline_warmup_steps,
		.selection = &g->plan.selection,
		.codecs = g->codecs,
		.loss_scale = gf_loss_scale_name(&g->method.scale),
		.samples = g->epoch_steps,
		.training = g->said,
		.ways = g->ways,
	};
}

/* Each rank writes and reads a part of one set. */
static int same_folder(struct gf_team *team, const char *folder,
		       struct gf_error *err)
{
	int rc = gf_team_same_text(team, "folder", folder ? folder : "none",
				   err);

	if (!rc && !folder)
		rc = gf_error_set(err, -EINVAL,
				  "want a folder's name, got none");
	return rc;
}

static void own_folder(struct gradflow *g, const char *folder)
{
	*gf_array_push(&g->folders, &g->nfolders, &g->folders_capacity) =
		gf_xstrdup(folder);
}

static bool owns_folder(const struct gradflow *g, const char *folder)
{
	size_t i;

	for (i = 0; i < g->nfolders; i++)
		if (!strcmp(g->folders[i], folder))
			return true;
	return false;
}

int gf_embed_save(struct gradflow *g, const char *folder, struct gf_error *err)
{
	struct gf_team team = gf_method_team(&g->method);
	struct gf_run_identity id = identity(g);
	int rc = gf_method_settle(&g->method, err);

	rc = rc ? rc : same_folder(&team, folder, err);
	/* another run's sets are not to be replaced */
	if (!rc && !owns_folder(g, folder)) {
		rc = gf_snapshot_claim(&team, folder, id.words, err);
		if (!rc)
			own_folder(g, folder);
	}
	return rc ? rc
		  : gf_snapshot_write(&team, folder, (size_t)g->steps, &id,
				      &g->state, err);
}

/* Rank 0's find; *ways is NULL if there is none. */
static int stored_ways(struct gf_team *team, const char *folder, char **ways,
		       struct gf_error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	int rc = 0;

	if (team->comm->rank == 0)
		rc = gf_train_stored_ways(folder, team->comm->ranks, &text,
					  err);
	rc = gf_team_agree(team, rc, err);
	bytes = text ? strlen(text) + 1 : 0;
	rc = rc ? rc : gf_team_bcast(team, &bytes, sizeof(bytes), err);
	if (!rc && bytes) {
		if (!text)
			text = gf_xmalloc(bytes);
		rc = gf_team_bcast(team, text, bytes, err);
	}
	if (rc) {
		free(text);
		text = NULL;
	}
	*ways = text;
	return rc;
}

/*
 * Other algorithms add in other orders, to other bits: what the plan leaves
 * open goes as it went in the set's run, not as it was measured here. If that
 * cannot be, everything stays as it was.
 */
static int take_ways(struct gradflow *g, const char *folder, const char *ways,
		     struct gf_error *err)
{
	char *now = gf_xstrdup(g->ways);
	struct gf_loss_scale scale = g->method.env.scale;
	struct gf_error why = {""};
	int taken, rc = 0;

	gf_train_put_ways(&g->plan, g->asked);
	taken = gf_train_take_ways(&g->plan, ways, &why);
	taken = taken ? taken : gf_plan_runnable(&g->plan, &why);
	if (taken) {
		gf_train_put_ways(&g->plan, now);
		*err = why;
		gf_error_prefix(err, "%s", folder);
	} else if (strcmp(ways, now) != 0) {
		gf_method_close(&g->method);
		gf_state_release(&g->state);
		rc = open_method(g, &scale, err);
		if (rc) { /* there is nothing left that could take steps */
			g->failed = rc;
			g->why = *err;
		}
	}
	free(now);
	return taken ? taken : rc;
}

static int go_as_before(struct gradflow *g, const char *folder,
			struct gf_error *err)
{
	struct gf_team team = gf_method_team(&g->method);
	char *ways = NULL;
	int rc = stored_ways(&team, folder, &ways, err);

	if (!rc && ways)
		rc = take_ways(g, folder, ways, err);
	free(ways);
	return rc;
}

int gf_embed_load(struct gradflow *g, const char *folder, struct gf_error *err)
{
	struct gf_team team = gf_method_team(&g->method);
	struct gf_run_identity id = identity(g);
	struct gf_snapshot_source from = {.dir = folder};
	int rc;

	if (g->steps)
		return gf_error_set(err, -EINVAL,
				    "%s: want a set read before the first "
				    "step, got it behind step %zu",
				    folder ? folder : "none", (size_t)g->steps);
	rc = same_folder(&team, folder, err);
	if (!rc && strcmp(g->asked, g->ways) != 0) {
		rc = go_as_before(g, folder, err);
		team = gf_method_team(&g->method);
		id = identity(g);
	}
	rc = rc ? rc : gf_snapshot_read(&team, &from, &id, &g->state, err);
	rc = rc ? rc : gf_method_restore(&g->method, err);
	rc = gf_team_agree(&team, rc, err);
	if (rc)
		return rc;
	g->steps = from.step;
	own_folder(g, folder);
	gf_engine_count_from(g->method.exchange.engine, from.step);
	return 0;
}
