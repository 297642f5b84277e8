/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "ckpt/set.h"
#include "train/heirs.h"
#include "train/reshard.h"

#define KEY_FORMAT  "format"
#define FORMAT      "gf-train 1"
#define KEY_SERVERS "servers"
#define KEY_SAMPLES "samples"

/* --- what must be the same ----------------------------------------------- */

/* Later ones may be absent from sets of earlier versions. */
struct number {
	const char *key;
	size_t value;
	const char *what; /* for people */
	enum { NEEDED, ABSENT_IS_0, ABSENT_IS_ANY } absent;
};

struct words {
	const char *key, *value, *what;
	bool may_be_absent;
};

enum { NUMBERS = 10, WORDS = 6 };

struct marks {
	struct number numbers[NUMBERS];
	struct words words[WORDS];
};

/* A set's record of the ranks that wrote it. */
struct origin {
	size_t step, ranks, servers, samples;
};

static struct marks marks_of(const struct origin *from,
			     const struct gf_run_identity *id)
{
	/* sets of a selection that binds nothing have a 0 there */
	size_t bound = 0;
	const char *binds = gf_selection_binds(id->selection, &bound);

	binds = binds ? binds : "chunk_elems";
	return (struct marks){
		.numbers =
			{
				{GF_CKPT_RANKS, from->ranks, "ranks", NEEDED},
				{KEY_SERVERS, from->servers, "servers",
				 ABSENT_IS_0},
				{GF_CKPT_STEP, from->step, "step", NEEDED},
				{"batch_per_rank", id->batch, "batch", NEEDED},
				{"accumulate", id->accumulate,
				 "accumulated batches", NEEDED},
				{KEY_SAMPLES, from->samples, id->words->samples,
				 NEEDED},
				{"seed", id->seed, "seed", NEEDED},
				{"staleness", id->staleness, "staleness",
				 NEEDED},
				{"pipeline_warmup_steps", id->pipeline_warmup,
				 "warm-up steps of the pipeline",
				 ABSENT_IS_ANY},
				{binds, bound, binds, ABSENT_IS_ANY},
			},
		.words =
			{
				{KEY_FORMAT, FORMAT, "format", false},
				{"model", id->model, "model", false},
				{"method", id->method, "method", false},
				{"optimizer", id->optimizer, "optimizer",
				 false},
				{"codecs", id->codecs, "codecs", true},
				{"loss_scale", id->loss_scale, "loss scale",
				 true},
			},
	};
}

/* --- writing ------------------------------------------------------------- */

/* Rank 0 stores what is shared; every rank what is its own. */
static bool stores(int rank, const struct gf_state_item *item)
{
	return rank == 0 || item->scope == GF_STATE_OWN;
}

static int write_part(const char *path, const struct gf_comm *comm, size_t step,
		      const struct gf_run_identity *id,
		      const struct gf_state *state, struct gf_error *err)
{
	const struct origin self = {step, (size_t)comm->ranks, id->servers,
				    id->samples};
	const struct marks marks = marks_of(&self, id);
	struct gf_tensor_source *t = gf_xcalloc(state->nitems + 1, sizeof(*t));
	struct gf_metadata metadata[NUMBERS + WORDS + 2];
	char text[NUMBERS][24];
	size_t i, n = 0, k = 0;
	int rc;

	for (i = 0; i < WORDS; i++)
		metadata[k++] = (struct gf_metadata){marks.words[i].key,
						     marks.words[i].value};
	for (i = 0; i < NUMBERS; i++) {
		snprintf(text[i], sizeof(text[i]), "%zu",
			 marks.numbers[i].value);
		metadata[k++] =
			(struct gf_metadata){marks.numbers[i].key, text[i]};
	}
	metadata[k++] = (struct gf_metadata){"training", id->training};
	metadata[k++] = (struct gf_metadata){GF_TRAIN_WAYS, id->ways};
	for (i = 0; i < state->nitems; i++)
		if (stores(comm->rank, &state->items[i]))
			t[n++] = state->items[i].tensor;
	rc = gf_safetensors_write(path, t, n, metadata, k, err);
	free(t);
	return rc;
}

int gf_snapshot_write(struct gf_team *team, const char *dir, size_t step,
		      const struct gf_run_identity *id,
		      const struct gf_state *state, struct gf_error *err)
{
	struct gf_comm *comm = team->comm;
	char *path = gf_ckpt_part(dir, step, comm->rank, true);
	int rc = 0;

	if (comm->rank == 0)
		rc = gf_ckpt_begin(dir, step, err);
	rc = gf_team_agree(team, rc, err);
	if (rc)
		goto out;
	rc = write_part(path, comm, step, id, state, err);
	rc = gf_team_agree(team, rc, err);
	if (!rc) {
		if (comm->rank == 0)
			rc = gf_ckpt_publish(dir, step, comm->ranks, err);
		rc = gf_team_agree(team, rc, err);
	}
	if (rc && comm->rank == 0)
		gf_ckpt_discard(dir, step);
out:
	free(path);
	return rc;
}

int gf_snapshot_claim(struct gf_team *team, const char *dir,
		      const struct gf_snapshot_words *words,
		      struct gf_error *err)
{
	int rc = 0;

	if (team->comm->rank == 0 && gf_ckpt_any(dir))
		rc = gf_error_set(err, -EINVAL,
				  "%s: holds checkpoints of an earlier run%s%s",
				  dir, words->other_run ? ": " : "",
				  words->other_run ? words->other_run : "");
	rc = gf_team_agree(team, rc, err);
	return rc ? rc : gf_snapshot_try(team, dir, err);
}

int gf_snapshot_try(struct gf_team *team, const char *dir, struct gf_error *err)
{
	int rc = team->comm->rank == 0 ? gf_ckpt_try(dir, err) : 0;

	return gf_team_agree(team, rc, err);
}

/* --- reading ------------------------------------------------------------- */

static int same_number(const struct gf_safetensors *s, const struct number *n,
		       const struct gf_snapshot_words *words,
		       struct gf_error *err)
{
	bool absent = !gf_safetensors_has_metadata(s, n->key);
	const char *advice =
		strcmp(n->key, GF_CKPT_RANKS) == 0 ? words->other_ranks : NULL;
	size_t got = 0;
	int rc = 0;

	if (absent && n->absent == ABSENT_IS_ANY)
		return 0;
	if (!absent || n->absent == NEEDED)
		rc = gf_safetensors_metadata_size(s, n->key, 0, INT64_MAX, &got,
						  err);
	if (!rc && got != n->value)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s %zu, this run has "
				  "%zu%s%s%s",
				  s->path, n->what, got, n->value,
				  advice ? " (" : "", advice ? advice : "",
				  advice ? ")" : "");
	return rc;
}

static int same_words(const struct gf_safetensors *s, const struct words *w,
		      struct gf_error *err)
{
	char *got = NULL;
	int rc;

	if (w->may_be_absent && !gf_safetensors_has_metadata(s, w->key))
		return 0;
	rc = gf_safetensors_metadata(s, w->key, &got, err);
	if (!rc && strcmp(got, w->value) != 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s \"%s\", this run "
				  "has \"%s\"",
				  s->path, w->what, got, w->value);
	free(got);
	return rc;
}

static int check_identity(const struct gf_safetensors *s,
			  const struct origin *from,
			  const struct gf_run_identity *id,
			  struct gf_error *err)
{
	const struct marks marks = marks_of(from, id);
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < WORDS; i++)
		rc = same_words(s, &marks.words[i], err);
	for (i = 0; !rc && i < NUMBERS; i++)
		rc = same_number(s, &marks.numbers[i], id->words, err);
	return rc;
}

static int open_part(const char *dir, int part, const struct origin *from,
		     const struct gf_run_identity *id, struct gf_safetensors *s,
		     struct gf_error *err)
{
	char *path = gf_ckpt_part(dir, from->step, part, false);
	int rc;

	rc = gf_safetensors_open(path, s, err);
	if (!rc)
		rc = check_identity(s, from, id, err);
	free(path);
	return rc;
}

static int load_scope(const struct gf_safetensors *s, enum gf_state_scope scope,
		      const struct gf_state *state, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < state->nitems; i++) {
		const struct gf_state_item *item = &state->items[i];

		if (item->scope == scope)
			rc = gf_safetensors_load(
				s, item->name, item->tensor.dtype,
				item->count_elems, item->data, err);
	}
	return rc;
}

/* The items of one scope out of one file. */
static int read_part(const char *dir, int part, const struct origin *from,
		     enum gf_state_scope scope,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	struct gf_safetensors s = {0};
	int rc;

	rc = open_part(dir, part, from, id, &s, err);
	if (!rc)
		rc = load_scope(&s, scope, state, err);
	gf_safetensors_close(&s);
	return rc;
}

/* Each rank's own, out of the files of all ranks that computed. */
static int read_resharded(const char *dir, const struct origin *from,
			  const struct gf_run_identity *id,
			  const struct gf_state *state,
			  const struct gf_reshard *r, struct gf_error *err)
{
	int part, rc = 0;

	gf_reshard_begin(state);
	for (part = 0; part < r->from && !rc; part++) {
		struct gf_safetensors s = {0};

		rc = open_part(dir, part, from, id, &s, err);
		if (!rc)
			rc = gf_reshard_take(r, part, &s, state, err);
		gf_safetensors_close(&s);
	}
	if (!rc)
		gf_reshard_end(r, state);
	return rc;
}

/* Whose set it is that rank 0 has found. */
static int find_origin(const char *dir, struct origin *from,
		       struct gf_error *err)
{
	struct gf_safetensors s = {0};
	char *path;
	int rc = gf_ckpt_latest(dir, &from->step, err);

	if (rc)
		return rc;
	path = gf_ckpt_part(dir, from->step, 0, false);
	rc = gf_safetensors_open(path, &s, err);
	if (!rc)
		rc = gf_safetensors_metadata_size(&s, GF_CKPT_RANKS, 1, INT_MAX,
						  &from->ranks, err);
	if (!rc && gf_safetensors_has_metadata(&s, KEY_SERVERS))
		rc = gf_safetensors_metadata_size(&s, KEY_SERVERS, 0,
						  from->ranks - 1,
						  &from->servers, err);
	if (!rc)
		rc = gf_safetensors_metadata_size(&s, KEY_SAMPLES, 0, INT64_MAX,
						  &from->samples, err);
	gf_safetensors_close(&s);
	free(path);
	return rc;
}

/* The root of the sum over ranks. */
static int add_up(struct gf_team *team, double *squares, struct gf_error *err)
{
	const int ranks = team->comm->ranks;
	double *all = gf_xcalloc((size_t)ranks, sizeof(*all)), sum = 0;
	int rc = gf_team_allgather(team, squares, sizeof(*squares), all, err);
	int r;

	for (r = 0; r < ranks; r++)
		sum += all[r];
	free(all);
	*squares = sqrt(sum);
	return rc;
}

int gf_snapshot_read(struct gf_team *team, struct gf_snapshot_source *source,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	struct gf_comm *comm = team->comm;
	struct origin from = {0},
		      want = {0, (size_t)comm->ranks, id->servers, id->samples};
	struct gf_reshard r = {.to = comm->ranks - (int)id->servers,
			       .rank = comm->rank,
			       .carried = &source->carried};
	int *heirs = NULL, rc = 0;

	/* rank 0 chooses: a listing may differ while a file system settles */
	if (comm->rank == 0)
		rc = find_origin(source->dir, &from, err);
	rc = gf_team_agree(team, rc, err);
	if (!rc)
		rc = gf_team_bcast(team, &from, sizeof(from), err);
	if (rc)
		return rc;
	want.step = from.step;
	source->step = from.step;
	source->computed = r.from = (int)(from.ranks - from.servers);
	if (source->reshard)
		rc = gf_heirs_find(team, source->former, r.from, &heirs, err);
	if (rc)
		return rc;
	r.heirs = heirs;
	source->resharded =
		source->reshard && (from.ranks != want.ranks ||
				    from.servers != want.servers || heirs);
	source->samples = want.samples;
	if (source->resharded) {
		/* 0 is no number of samples: there are no epochs */
		if (source->recount && from.samples && id->samples)
			source->samples = from.samples;
		want = from;
		want.samples = source->samples;
	}
	rc = read_part(source->dir, 0, &want, GF_STATE_SHARED, id, state, err);
	if (!rc && source->resharded)
		rc = read_resharded(source->dir, &want, id, state, &r, err);
	else if (!rc)
		rc = read_part(source->dir, comm->rank, &want, GF_STATE_OWN, id,
			       state, err);
	free(heirs);
	rc = gf_team_agree(team, rc, err);
	return rc || !source->resharded ? rc
					: add_up(team, &source->carried, err);
}

/* --- replicas ------------------------------------------------------------ */

static int differs(const unsigned char *all, int ranks)
{
	int r;

	for (r = 1; r < ranks; r++)
		if (memcmp(all, all + (size_t)r * GF_DIGEST_BYTES,
			   GF_DIGEST_BYTES) != 0)
			return r;
	return 0;
}

int gf_snapshot_compare(struct gf_team *team, size_t step,
			const struct gf_state *state, struct gf_error *err)
{
	int ranks = team->comm->ranks, other, rc;
	unsigned char own[GF_DIGEST_BYTES];
	unsigned char *all = gf_xcalloc((size_t)ranks, sizeof(own));
	size_t i;

	gf_state_digest(state, GF_STATE_SHARED, own);
	rc = gf_team_allgather(team, own, sizeof(own), all, err);
	if (rc || !differs(all, ranks))
		goto out;
	/* every rank is here: now find the first array that differs */
	for (i = 0; i < state->nitems && !rc; i++) {
		if (state->items[i].scope != GF_STATE_SHARED)
			continue;
		gf_state_digest_one(state, i, own);
		rc = gf_team_allgather(team, own, sizeof(own), all, err);
		other = rc ? 0 : differs(all, ranks);
		if (other) {
			gf_error_set(err, 0,
				     "replicas differ after step %zu: %s on "
				     "rank %d is not what it is on rank 0",
				     step, state->items[i].name, other);
			rc = 1;
		}
	}
out:
	free(all);
	return rc;
}
