/* SPDX-License-Identifier: BSD-3-Clause */
/* A job: its exchange, and its sets. */
#include "embed/embedded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "coll/runnable.h"
#include "doc/plan_brief.h"
#include "train/choose_ways.h"
#include "train/method.h"
#include "run/reshard.h"

int gf_job_same(struct gf_comm *comm, const struct gf_said *said, size_t n,
		struct gf_error *err)
{
	int rc = gf_comm_same_text(comm, "version", GF_VERSION, err);
	size_t i;

	for (i = 0; i < n && !rc; i++)
		rc = gf_comm_same_text(comm, said[i].what,
				       said[i].text ? said[i].text : "none",
				       err);
	return rc;
}

int gf_job_start(struct gf_job *g, struct gf_error *err)
{
	int rc;

	free(g->codecs);
	g->codecs = gf_plan_codecs_text(&g->plan);
	free(g->ways);
	g->ways = gf_train_ways(&g->plan);
	rc = gf_embed_start(g, err);
	return rc ? rc : gf_state_check_names(&g->state, err);
}

void gf_job_stay(struct gf_job *g)
{
	struct gf_comm *comm = g->comm;

	gf_comm_leave(comm, &g->left);
	gf_comm_close(comm);
}

void gf_job_close(struct gf_job *g)
{
	size_t i;

	if (g->exchange)
		gf_embed_stop(g);
	gf_watch_release(&g->watch);
	gf_comm_close(g->comm);
	gf_plan_release(&g->plan);
	free(g->shapes);
	free(g->order);
	free(g->offset);
	free(g->codecs);
	free(g->asked);
	free(g->ways);
	for (i = 0; i < g->nfolders; i++)
		gf_folder_release(&g->folders[i]);
	free(g->folders);
}

static struct gf_team team_of(const struct gf_job *g)
{
	return (struct gf_team){.comm = g->comm,
				.exchange = g->exchange,
				.workers = g->plan.ranks};
}

int gf_job_keep(struct gf_job *g, int rc, const struct gf_error *err)
{
	if (rc && !g->failed) {
		g->failed = rc < 0 ? rc : -EDOM;
		g->why = *err;
	}
	return g->failed;
}

int gf_job_failed(const struct gf_job *g, struct gf_error *err)
{
	if (g->failed)
		*err = g->why;
	return g->failed;
}

/* --- checkpoints --------------------------------------------------------- */

static const struct gf_snapshot_words words = {
	.samples = "epoch_steps",
	.other_run = "gradflow_exchange_load goes on from the last of them, "
		     "another folder starts anew",
};

static struct gf_run_identity identity(const struct gf_job *g)
{
	return (struct gf_run_identity){
		.words = &words,
		.model = g->plan.model->name,
		.method = gf_method_name(&g->plan),
		.batch = 1, /* the caller's */
		.accumulate = 1,
		.staleness = (size_t)g->plan.staleness,
		.pipeline_warmup = g->plan.pipeline_warmup_steps,
		.selection = &g->plan.selection,
		.codecs = g->codecs,
		.period = "every",
		.samples = g->epoch_steps,
		.ways = g->ways,
		.optimizer = "none",
		.loss_scale = "none",
		.training = "none",
	};
}

/* Each rank writes and reads a part of one set. */
static int same_folder(struct gf_team *team, const char *folder,
		       struct gf_error *err)
{
	int rc = gf_team_same_text(team, "folder", folder ? folder : "none",
				   err);

	if (!rc && (!folder || !folder[0]))
		rc = gf_error_set(err, -EINVAL,
				  "want a folder's name, got none");
	return rc;
}

/* The folder as it is known; NULL: it is not. */
static struct gf_folder *find_folder(const struct gf_job *g, const char *dir)
{
	size_t i;

	for (i = 0; i < g->nfolders; i++)
		if (!strcmp(g->folders[i].dir, dir))
			return &g->folders[i];
	return NULL;
}

static void keep_folder(struct gf_job *g, const struct gf_folder *f)
{
	struct gf_folder *known = find_folder(g, f->dir);

	if (known && known->dir == g->owned)
		g->owned = NULL;
	if (known)
		gf_folder_release(known);
	else
		known = gf_array_push(&g->folders, &g->nfolders,
				      &g->folders_capacity);
	*known = *f;
}

/* The folder becomes this job's to write to, and the one before is left. */
static int own_folder(struct gf_job *g, struct gf_team *team, const char *dir,
		      struct gf_error *err)
{
	const struct gf_folder_wish wish = {.dir = dir,
					    .other_run = words.other_run};
	struct gf_folder *known = find_folder(g, dir), first = {0};
	size_t i;
	int rc;

	if (known && known->dir == g->owned)
		return 0;
	for (i = 0; i < g->nfolders; i++)
		gf_folder_leave(&g->folders[i]);
	g->owned = NULL;
	if (!known && g->nfolders) { /* a run has one name in all of them */
		memcpy(first.run, g->folders[0].run, sizeof(first.run));
		gf_manifest_copy(&first.from, &g->folders[0].from);
	}
	rc = gf_folder_claim(team, &wish, known ? known : &first, err);
	if (rc && !known)
		gf_folder_release(&first);
	else if (!known)
		keep_folder(g, &first);
	if (!rc)
		g->owned = find_folder(g, dir)->dir;
	return rc;
}

int gf_job_save(struct gf_job *g, const char *folder, struct gf_error *err)
{
	struct gf_team team = team_of(g);
	struct gf_run_identity id = identity(g);
	int rc = gf_embed_settle(g, err);

	rc = rc ? rc : same_folder(&team, folder, err);
	rc = rc ? rc : own_folder(g, &team, folder, err);
	return rc ? rc
		  : gf_snapshot_write(&team, find_folder(g, folder),
				      (size_t)g->steps, &id, &g->state, err);
}

/*
 * Other algorithms add in other orders, to other bits: what the plan leaves
 * open goes as it went in the set's run, not as it was measured here. If that
 * cannot be, everything stays as it was.
 */
static int take_ways(struct gf_job *g, const char *folder, const char *ways,
		     struct gf_error *err)
{
	char *now = gf_xstrdup(g->ways);
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
		gf_embed_stop(g);
		rc = gf_job_start(g, err);
		if (rc) { /* there is nothing left that could take steps */
			g->failed = rc;
			g->why = *err;
		}
	}
	free(now);
	return taken ? taken : rc;
}

static int go_as_before(struct gf_job *g, const struct gf_folder *folder,
			struct gf_error *err)
{
	struct gf_team team = team_of(g);
	char *ways;
	int rc = gf_train_stored_ways(&team, folder, &ways, err);

	if (!rc && ways)
		rc = take_ways(g, folder->dir, ways, err);
	free(ways);
	return rc;
}

/* An epoch has the same samples, whatever its steps: as many epochs, and parts
 * of one, were done. */
static int count_on(struct gf_job *g, const char *folder,
		    const struct gf_snapshot_source *from, struct gf_error *err)
{
	size_t samples;

	if (from->samples == g->epoch_steps) {
		g->steps = from->step;
		return 0;
	}
	if (__builtin_mul_overflow(from->samples, g->epoch_steps, &samples))
		return gf_error_set(err, -EINVAL,
				    "%s: was written with epoch_steps %zu, "
				    "this run has %zu: no steps are counted so "
				    "far",
				    folder, from->samples, g->epoch_steps);
	g->steps = gf_reshard_steps(from->step, samples, g->epoch_steps,
				    from->samples);
	return 0;
}

int gf_job_load(struct gf_job *g, const char *folder, double *carried,
		struct gf_error *err)
{
	struct gf_team team = team_of(g);
	struct gf_run_identity id = identity(g);
	const struct gf_folder_wish wish = {.dir = folder, .resume = true};
	struct gf_snapshot_source from = {
		.reshard = true, .recount = true, .former = g->former};
	struct gf_folder found = {0};
	int rc;

	if (g->steps)
		return gf_error_set(err, -EINVAL,
				    "%s: want a set read before the first "
				    "step, got it after step %zu",
				    folder ? folder : "none", (size_t)g->steps);
	rc = same_folder(&team, folder, err);
	rc = rc ? rc : gf_folder_find(&team, &wish, &found, err);
	if (!rc && strcmp(g->asked, g->ways) != 0) {
		rc = go_as_before(g, &found, err);
		team = team_of(g);
		id = identity(g);
	}
	rc = rc ? rc
		: gf_snapshot_read(&team, &found, &from, &id, &g->state, err);
	rc = rc ? rc : gf_embed_restore(g, err);
	rc = rc ? rc : count_on(g, folder, &from, err);
	rc = gf_team_agree(&team, rc, err);
	if (rc) {
		gf_folder_release(&found);
		return rc;
	}
	*carried = from.carried;
	keep_folder(g, &found);
	gf_exchange_count_from(g->exchange, g->steps);
	return 0;
}
