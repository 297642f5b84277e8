/* SPDX-License-Identifier: BSD-3-Clause */
/* What an exchange's selection holds back, its sets, and what is known of it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "checkpoints/run/snapshot.h"
#include "collectives/runnable.h"
#include "libgradflow/handle.h"
#include "trainer/choose_ways.h"

#define API __attribute__((visibility("default")))

/* --- what is held back ---------------------------------------------------- */

/* Collective, between steps: before the state is looked at. */
static int settle(struct gradflow_exchange *x, struct gf_error *err)
{
	bool bad; /* all of it has come back as NaN */
	int rc = gf_exchange_learn(x->exchange, true, &bad, err);

	return rc < 0 ? rc : gf_exchange_settle(x->exchange, err);
}

/* All ranks do alike, so that nothing has to be told. */
static int change(struct gradflow_exchange *x, const char *call, double factor)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_state *s = &x->state;
	int rc = gf_embed_between(x, call, err);
	size_t i, k;

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	if (!isfinite(factor))
		rc = gf_error_set(err, -EINVAL, "%s: want a finite factor, got %g", call, factor);
	rc = rc ? rc : settle(x, err);
	for (i = 0; i < s->nitems && !rc; i++) {
		float *values = s->items[i].data;

		/* and the sum of what ranks hold */
		if (s->items[i].scope != GF_STATE_OWN && s->items[i].rule != GF_STATE_SUM)
			continue;
		for (k = 0; k < s->items[i].count_elems; k++)
			values[k] = factor == 0 ? 0 : (float)(values[k] * factor);
	}
	rc = rc ? rc : gf_exchange_restore(x->exchange, x->steps, err);
	return gf_embed_leave(x, rc);
}

API int gradflow_exchange_drop(struct gradflow_exchange *x)
{
	return change(x, "gradflow_exchange_drop", 0);
}

API int gradflow_exchange_rescale(struct gradflow_exchange *x, double factor)
{
	return change(x, "gradflow_exchange_rescale", factor);
}

API double gradflow_exchange_carried(const struct gradflow_exchange *x)
{
	return x ? x->carried : 0;
}

API int gradflow_exchange_state(struct gradflow_exchange *x, size_t index,
				struct gradflow_array *array)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_state_item *item;
	int rc = gf_embed_between(x, "gradflow_exchange_state", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	if (!array)
		rc = gf_error_set(err, -EINVAL,
				  "gradflow_exchange_state: want a place for the array, got NULL");
	if (!rc && index >= x->state.nitems)
		rc = gf_error_set(err, -ENOENT,
				  "gradflow_exchange_state: want an array below %zu, got %zu",
				  x->state.nitems, index);
	rc = rc ? rc : settle(x, err);
	if (!rc) {
		item = &x->state.items[index];
		*array = (struct gradflow_array){
			.name = item->name,
			.data = item->data,
			.size_bytes =
				item->count_elems * gf_safetensors_elem_bytes(item->tensor.dtype),
			.shared = item->scope == GF_STATE_SHARED,
		};
	}
	return gf_embed_leave(x, rc);
}

API int gradflow_exchange_restored(struct gradflow_exchange *x, uint64_t steps)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_between(x, "gradflow_exchange_restored", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_exchange_restore(x->exchange, steps, err);
	if (!rc)
		x->steps = steps;
	return gf_embed_leave(x, rc);
}

/* --- checkpoints ---------------------------------------------------------- */

static const struct gf_snapshot_words words = {
	.samples = "epoch_steps",
	.other_run =
		"gradflow_exchange_load goes on from the last of them, another folder starts anew",
};

static struct gf_team team_of(const struct gradflow_exchange *x)
{
	return (struct gf_team){.comm = x->comm, .exchange = x->exchange, .workers = x->plan.ranks};
}

static struct gf_run_identity identity(const struct gradflow_exchange *x)
{
	return (struct gf_run_identity){
		.words = &words,
		.model = x->plan.model->name,
		.method = gf_selection_name(&x->plan.selection),
		.batch = 1, /* the caller's */
		.accumulate = 1,
		.staleness = (size_t)x->plan.staleness,
		.pipeline_warmup = x->plan.pipeline_warmup_steps,
		.selection = &x->plan.selection,
		.codecs = x->codecs,
		.period = "every",
		.samples = x->epoch_steps,
		.ways = x->ways,
		.optimizer = "none",
		.loss_scale = "none",
		.training = "none",
	};
}

/* Each rank writes and reads a part of one set. */
static int same_folder(struct gf_team *team, const char *folder, struct gf_error *err)
{
	int rc = gf_team_same_text(team, "folder", folder ? folder : "none", err);

	if (!rc && (!folder || !folder[0]))
		rc = gf_error_set(err, -EINVAL, "want a folder's name, got none");
	return rc;
}

/* The folder as it is known; NULL: it is not. */
static struct gf_folder *find_folder(const struct gradflow_exchange *x, const char *dir)
{
	size_t i;

	for (i = 0; i < x->nfolders; i++)
		if (!strcmp(x->folders[i].dir, dir))
			return &x->folders[i];
	return NULL;
}

static void keep_folder(struct gradflow_exchange *x, const struct gf_folder *f)
{
	struct gf_folder *known = find_folder(x, f->dir);

	if (known && known->dir == x->owned)
		x->owned = NULL;
	if (known)
		gf_folder_release(known);
	else
		known = gf_array_push(&x->folders, &x->nfolders, &x->folders_capacity);
	*known = *f;
}

/* The folder becomes this job's to write to, and the one before is left. */
static int own_folder(struct gradflow_exchange *x, struct gf_team *team, const char *dir,
		      struct gf_error *err)
{
	const struct gf_folder_wish wish = {.dir = dir, .other_run = words.other_run};
	struct gf_folder *known = find_folder(x, dir), first = {0};
	size_t i;
	int rc;

	if (known && known->dir == x->owned)
		return 0;
	for (i = 0; i < x->nfolders; i++)
		gf_folder_leave(&x->folders[i]);
	x->owned = NULL;
	if (!known && x->nfolders) { /* a run has one name in all of them */
		memcpy(first.run, x->folders[0].run, sizeof(first.run));
		gf_manifest_copy(&first.from, &x->folders[0].from);
	}
	rc = gf_folder_claim(team, &wish, known ? known : &first, err);
	if (rc && !known)
		gf_folder_release(&first);
	else if (!known)
		keep_folder(x, &first);
	if (!rc)
		x->owned = find_folder(x, dir)->dir;
	return rc;
}

/* Collective, between steps. */
static int save(struct gradflow_exchange *x, const char *folder, struct gf_error *err)
{
	struct gf_team team = team_of(x);
	struct gf_run_identity id = identity(x);
	int rc = settle(x, err);

	rc = rc ? rc : same_folder(&team, folder, err);
	rc = rc ? rc : own_folder(x, &team, folder, err);
	return rc ? rc
		  : gf_snapshot_write(&team, find_folder(x, folder), (size_t)x->steps, &id,
				      &x->state, err);
}

/*
 * Other algorithms add in other orders, to other bits: what the plan leaves open goes as it went in
 * the set's run, not as it was measured here. If that cannot be, everything stays as it was.
 */
static int take_ways(struct gradflow_exchange *x, const char *folder, const char *ways,
		     struct gf_error *err)
{
	GF_FREED char *now = gf_xstrdup(x->ways);
	struct gf_error why = {""};
	int taken, rc = 0;

	gf_train_put_ways(&x->plan, x->asked);
	taken = gf_train_take_ways(&x->plan, ways, &why);
	taken = taken ? taken : gf_plan_runnable(&x->plan, &why);
	if (taken) {
		gf_train_put_ways(&x->plan, now);
		*err = why;
		gf_error_prefix(err, "%s", folder);
	} else if (strcmp(ways, now) != 0) {
		gf_embed_stop(x);
		rc = gf_embed_start(x, err);
		if (rc) { /* there is nothing left that could take steps */
			x->failed = rc;
			x->why = *err;
		}
	}
	return taken ? taken : rc;
}

static int go_as_before(struct gradflow_exchange *x, const struct gf_folder *folder,
			struct gf_error *err)
{
	struct gf_team team = team_of(x);
	GF_FREED char *ways = NULL;
	int rc = gf_train_stored_ways(&team, folder, &ways, err);

	if (!rc && ways)
		rc = take_ways(x, folder->dir, ways, err);
	return rc;
}

/* An epoch has the same samples, whatever its steps: as many epochs, and parts of one, were
 * done. */
static int count_on(struct gradflow_exchange *x, const char *folder,
		    const struct gf_snapshot_source *from, struct gf_error *err)
{
	size_t samples;

	if (from->samples == x->epoch_steps) {
		x->steps = from->step;
		return 0;
	}
	if (__builtin_mul_overflow(from->samples, x->epoch_steps, &samples))
		return gf_error_set(err, -EINVAL,
				    "%s: was written with epoch_steps %zu, this run has %zu: no "
				    "steps are counted so far",
				    folder, from->samples, x->epoch_steps);
	x->steps = gf_reshard_steps(from->step, samples, x->epoch_steps, from->samples);
	return 0;
}

/* Collective, before the first step. A set may be of another number of ranks: x->carried becomes
 * the norm of what went from ranks that are gone to others.
 */
static int load(struct gradflow_exchange *x, const char *folder, struct gf_error *err)
{
	struct gf_team team = team_of(x);
	struct gf_run_identity id = identity(x);
	const struct gf_folder_wish wish = {.dir = folder, .resume = true};
	struct gf_snapshot_source from = {.reshard = true, .recount = true, .former = x->former};
	struct gf_folder found = {0};
	int rc;

	if (x->steps)
		return gf_error_set(
			err, -EINVAL,
			"%s: want a set read before the first step, got it after step %zu",
			folder ? folder : "none", (size_t)x->steps);
	rc = same_folder(&team, folder, err);
	rc = rc ? rc : gf_folder_find(&team, &wish, &found, err);
	if (!rc && strcmp(x->asked, x->ways) != 0) {
		rc = go_as_before(x, &found, err);
		team = team_of(x);
		id = identity(x);
	}
	rc = rc ? rc : gf_snapshot_read(&team, &found, &from, &id, &x->state, err);
	rc = rc ? rc : count_on(x, folder, &from, err);
	rc = rc ? rc : gf_exchange_restore(x->exchange, x->steps, err);
	rc = gf_team_agree(&team, rc, err);
	if (rc) {
		x->steps = 0;
		gf_folder_release(&found);
		return rc;
	}
	x->carried = from.carried;
	keep_folder(x, &found);
	return 0;
}

API int gradflow_exchange_save(struct gradflow_exchange *x, const char *folder)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_between(x, "gradflow_exchange_save", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	return gf_embed_leave(x, save(x, folder, err));
}

API int gradflow_exchange_load(struct gradflow_exchange *x, const char *folder)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_between(x, "gradflow_exchange_load", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	return gf_embed_leave(x, load(x, folder, err));
}

/* --- what is there -------------------------------------------------------- */

API int gradflow_exchange_rank(const struct gradflow_exchange *x)
{
	return x ? x->comm->rank : -EINVAL;
}

API int gradflow_exchange_ranks(const struct gradflow_exchange *x)
{
	return x ? x->comm->ranks : -EINVAL;
}

API const char *gradflow_exchange_host(const struct gradflow_exchange *x, int rank)
{
	return x && rank >= 0 && rank < x->comm->ranks ? x->hosts[rank].name : NULL;
}

API int gradflow_exchange_missing(struct gradflow_exchange *x, int *ranks, size_t most)
{
	static const char call[] = "gradflow_exchange_missing";
	struct gf_error *err = gf_embed_error();
	int rank, found = 0, rc = gf_embed_reach(x, call, err);
	bool *missing;

	if (rc)
		return rc;
	if (most && !ranks)
		return gf_embed_leave(x, gf_error_set(err, -EINVAL,
						      "%s: want a place for %zu ranks, got NULL",
						      call, most));
	GF_EMBED_GUARD(x);
	missing = gf_xcalloc((size_t)x->comm->ranks, sizeof(*missing));
	rc = x->exchange && !gf_embed_is_lost(x) ? gf_exchange_missing(x->exchange, missing)
						 : -ENODATA;
	if (rc)
		gf_error_set(err, rc, "%s: not known after a failure outside of steps", call);
	for (rank = 0; !rc && rank < x->comm->ranks; rank++) {
		if (!missing[rank])
			continue;
		if ((size_t)found < most)
			ranks[found] = rank;
		found++;
	}
	free(missing);
	return gf_embed_leave(x, rc ? rc : found);
}

API int gradflow_exchange_local_rank(const struct gradflow_exchange *x)
{
	return x ? x->comm->local_rank : -EINVAL;
}

API const char *gradflow_exchange_ways(const struct gradflow_exchange *x)
{
	return x ? x->ways : NULL;
}

API size_t gradflow_exchange_messages(const struct gradflow_exchange *x)
{
	return x ? x->plan.nmessages : 0;
}

API size_t gradflow_exchange_message(const struct gradflow_exchange *x, size_t tensor)
{
	const struct gf_plan *plan = x ? &x->plan : NULL;
	size_t i;

	if (!x || !x->exchange || tensor >= x->ntensors)
		return SIZE_MAX;
	for (i = 0; plan->messages[i].last < x->order[tensor]; i++)
		;
	return i;
}

API uint64_t gradflow_exchange_steps(const struct gradflow_exchange *x)
{
	return x ? x->steps : 0;
}

API uint64_t gradflow_exchange_sent_bytes(const struct gradflow_exchange *x)
{
	return x && x->exchange ? gf_exchange_totals(x->exchange).waited_bytes : 0;
}

API uint64_t gradflow_exchange_copied_bytes(const struct gradflow_exchange *x)
{
	return x && x->exchange ? gf_exchange_totals(x->exchange).copied_bytes : 0;
}
