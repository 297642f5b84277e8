/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/run/snapshot.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "checkpoints/set.h"
#include "json/json.h"

/* --- marks ---------------------------------------------------------------- */

/*
 * The settings that give a checkpoint's state its meaning, as the metadata of its files and in its
 * manifest. A run goes on only from a set that has the same.
 */
#define RUN_MARKS    19 /* at most */
#define MARK_TEXT    24 /* of a number */
#define MARK_SERVERS "servers"
#define MARK_SAMPLES "samples"

/* A set's record of the ranks that wrote it. */
struct origin {
	size_t step, ranks, servers, samples;
};

#define KEY_FORMAT "format"
#define FORMAT     "gf-train 1"

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

enum { NUMBERS = 10, WORDS = 7 };

_Static_assert(NUMBERS + WORDS + 2 <= RUN_MARKS, "room for all, and two texts");

struct marks {
	struct number numbers[NUMBERS];
	struct words words[WORDS];
};

/* The key of its record that binds what it saves in a checkpoint, and its value; NULL: none
 * does. */
static const char *binding_of(const struct gf_selection *s, size_t *value)
{
	const struct gf_record *r = gf_selection_plan(s)->record;
	const struct gf_field *f = s->params ? r->fields : NULL;

	while (f && f->key && !f->binds)
		f++;
	if (!f || !f->key)
		return NULL;
	*value = *(const size_t *)(const void *)((const char *)s->params + f->offset);
	return f->key;
}

static struct marks marks_of(const struct origin *from, const struct gf_run_identity *id)
{
	/* sets of a selection that binds nothing have a 0 there */
	size_t bound = 0;
	const char *binds = binding_of(id->selection, &bound);

	binds = binds ? binds : "chunk_elems";
	return (struct marks){
		.numbers =
			{
				{GF_CHECKPOINT_RANKS, from->ranks, "ranks", NEEDED},
				{MARK_SERVERS, from->servers, "servers", ABSENT_IS_0},
				{GF_CHECKPOINT_STEP, from->step, "step", NEEDED},
				{"batch_per_rank", id->batch, "batch", NEEDED},
				{"accumulate", id->accumulate, "accumulated batches", NEEDED},
				{MARK_SAMPLES, from->samples, id->words->samples, NEEDED},
				{"seed", id->seed, "seed", NEEDED},
				{"staleness", id->staleness, "staleness", NEEDED},
				{"pipeline_warmup_steps", id->pipeline_warmup,
				 "warm-up steps of the pipeline", ABSENT_IS_ANY},
				{binds, bound, binds, ABSENT_IS_ANY},
			},
		.words =
			{
				{KEY_FORMAT, FORMAT, "format", false},
				{"model", id->model, "model", false},
				{"method", id->method, "method", false},
				{"optimizer", id->optimizer, "optimizer", false},
				{"codecs", id->codecs, "codecs", true},
				{"loss_scale", id->loss_scale, "loss scale", true},
				{"period", id->period, "period", true},
			},
	};
}

/* The metadata of every part; returns how many. Borrows from `id` and `numbers`. */
static size_t metadata_of(const struct origin *from, const struct gf_run_identity *id,
			  char numbers[RUN_MARKS][MARK_TEXT],
			  struct gf_metadata metadata[RUN_MARKS])
{
	const struct marks marks = marks_of(from, id);
	size_t i, n = 0;

	for (i = 0; i < WORDS; i++)
		metadata[n++] = (struct gf_metadata){marks.words[i].key, marks.words[i].value};
	for (i = 0; i < NUMBERS; i++) {
		snprintf(numbers[i], MARK_TEXT, "%zu", marks.numbers[i].value);
		metadata[n++] = (struct gf_metadata){marks.numbers[i].key, numbers[i]};
	}
	metadata[n++] = (struct gf_metadata){"training", id->training};
	metadata[n++] = (struct gf_metadata){GF_TRAIN_WAYS, id->ways};
	return n;
}

/* The settings as an object's text, without ranks and step, which are when and where; the caller
 * frees. */
static char *settings_of(const struct origin *from, const struct gf_run_identity *id)
{
	const struct marks marks = marks_of(from, id);
	struct gf_json_writer w = {0};

	gf_json_open_object(&w, NULL);
	for (size_t i = 0; i < WORDS; i++)
		gf_json_put_string(&w, marks.words[i].key, marks.words[i].value);
	for (size_t i = 0; i < NUMBERS; i++)
		if (strcmp(marks.numbers[i].key, GF_CHECKPOINT_RANKS) != 0 &&
		    strcmp(marks.numbers[i].key, GF_CHECKPOINT_STEP) != 0)
			gf_json_put_size(&w, marks.numbers[i].key, marks.numbers[i].value);
	gf_json_put_string(&w, GF_TRAIN_WAYS, id->ways);
	gf_json_close_object(&w);
	return gf_text_take(&w.text);
}

static int same_number(const struct gf_safetensors *s, const struct number *n,
		       const struct gf_snapshot_words *words, struct gf_error *err)
{
	bool absent = !gf_safetensors_has_metadata(s, n->key);
	const char *advice = strcmp(n->key, GF_CHECKPOINT_RANKS) == 0 ? words->other_ranks : NULL;
	size_t got = 0;
	int rc = 0;

	if (absent && n->absent == ABSENT_IS_ANY)
		return 0;
	if (!absent || n->absent == NEEDED)
		rc = gf_safetensors_metadata_size(s, n->key, 0, INT64_MAX, &got, err);
	if (!rc && got != n->value)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s %zu, this run has %zu%s%s%s", s->path,
				  n->what, got, n->value, advice ? " (" : "", advice ? advice : "",
				  advice ? ")" : "");
	return rc;
}

static int same_words(const struct gf_safetensors *s, const struct words *w, struct gf_error *err)
{
	GF_FREED char *got = NULL;
	int rc;

	if (w->may_be_absent && !gf_safetensors_has_metadata(s, w->key))
		return 0;
	rc = gf_safetensors_metadata(s, w->key, &got, err);
	if (!rc && strcmp(got, w->value) != 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s \"%s\", this run has \"%s\"", s->path,
				  w->what, got, w->value);
	return rc;
}

/* -EINVAL names the first that a file has otherwise. */
static int check_marks(const struct gf_safetensors *s, const struct origin *from,
		       const struct gf_run_identity *id, struct gf_error *err)
{
	const struct marks marks = marks_of(from, id);
	int rc = 0;

	for (size_t i = 0; !rc && i < WORDS; i++)
		rc = same_words(s, &marks.words[i], err);
	for (size_t i = 0; !rc && i < NUMBERS; i++)
		rc = same_number(s, &marks.numbers[i], id->words, err);
	return rc;
}

/* --- writing ------------------------------------------------------------- */

/* Rank 0 stores what is shared; every rank what is its own. */
static bool stores(int rank, const struct gf_state_item *item)
{
	return rank == 0 || item->scope == GF_STATE_OWN;
}

static int write_part(const char *path, const struct gf_comm *comm, size_t step, const char *run,
		      const struct gf_run_identity *id, const struct gf_state *state,
		      struct gf_file_seal *seal, struct gf_error *err)
{
	const struct origin self = {step, (size_t)comm->ranks, id->servers, id->samples};
	GF_FREED struct gf_tensor_source *t = gf_xcalloc(state->nitems + 1, sizeof(*t));
	struct gf_metadata metadata[RUN_MARKS + 2];
	char numbers[RUN_MARKS][MARK_TEXT], rank[16];
	size_t i, n = 0, k = metadata_of(&self, id, numbers, metadata);

	snprintf(rank, sizeof(rank), "%d", comm->rank);
	metadata[k++] = (struct gf_metadata){GF_CHECKPOINT_RUN, run};
	metadata[k++] = (struct gf_metadata){GF_CHECKPOINT_RANK, rank};
	for (i = 0; i < state->nitems; i++) {
		const struct gf_state_item *item = &state->items[i];

		if (!stores(comm->rank, item) && !item->tensor.bring)
			continue;
		t[n] = item->tensor;
		t[n++].elsewhere = !stores(comm->rank, item);
	}
	return gf_safetensors_write(path, t, n, metadata, k, seal, err);
}

/* A run's first name is made of all its settings: equal runs write equal files. A run that goes on
 * keeps its name. */
static int name_run(struct gf_team *team, struct gf_folder *f, const char *settings,
		    const struct gf_run_identity *id, struct gf_error *err)
{
	char digest[GF_DIGEST_TEXT], *text;

	if (!f->run[0]) {
		text = gf_xasprintf("%d ranks %s %s", team->comm->ranks, settings, id->training);
		gf_digest_text(text, strlen(text), digest);
		memcpy(f->run, strchr(digest, ':') + 1, GF_RUN_NAME - 1);
		free(text);
	}
	return gf_team_bcast(team, f->run, sizeof(f->run), err);
}

/* Rank 0, when all have written their parts. */
static int publish(struct gf_folder *f, size_t step, int ranks, char *settings,
		   struct gf_file_seal *seals, struct gf_error *err)
{
	struct gf_checkpoint_parent parent = {
		.run = f->from.run, .step = f->from.step, .sha256 = f->from.sha256};
	struct gf_manifest m = {
		.run = f->run,
		.step = step,
		.ranks = ranks,
		.parent = f->from.ranks ? &parent : NULL,
		.settings = settings,
		.files = gf_xcalloc((size_t)ranks, sizeof(*m.files)),
		.nfiles = (size_t)ranks,
	};
	const bool adopts = f->from.ranks && !f->from.run;
	int r, rc;

	for (r = 0; r < ranks; r++)
		m.files[r] = (struct gf_checkpoint_file){
			.name = gf_xasprintf("rank-%d.safetensors", r),
			.size_bytes = seals[r].size_bytes,
			.sha256 = seals[r].sha256,
		};
	rc = gf_checkpoint_owns(f->owner, err);
	rc = rc ?: gf_checkpoint_publish(f->dir, &m, adopts, err);
	for (r = 0; r < ranks; r++)
		free(m.files[r].name);
	free(m.files);
	free(m.sha256);
	return rc;
}

int gf_snapshot_write(struct gf_team *team, struct gf_folder *f, size_t step,
		      const struct gf_run_identity *id, const struct gf_state *state,
		      struct gf_error *err)
{
	struct gf_comm *comm = team->comm;
	GF_FREED char *path = gf_checkpoint_part(f->dir, step, comm->rank, true);
	const struct origin self = {step, (size_t)comm->ranks, id->servers, id->samples};
	GF_FREED char *settings = settings_of(&self, id);
	struct gf_file_seal seal = {0};
	GF_FREED struct gf_file_seal *seals = NULL;
	int rc = 0;

	seals = gf_xcalloc((size_t)comm->ranks, sizeof(*seals));
	if (comm->rank == 0)
		rc = gf_checkpoint_owns(f->owner, err);
	if (comm->rank == 0 && !rc)
		rc = gf_checkpoint_begin(f->dir, step, err);
	rc = gf_team_agree(team, rc, err);
	rc = rc ?: name_run(team, f, settings, id, err);
	if (rc)
		goto out;
	rc = write_part(path, comm, step, f->run, id, state, &seal, err);
	rc = gf_team_agree(team, rc, err);
	rc = rc ?: gf_team_allgather(team, &seal, sizeof(seal), seals, err);
	if (!rc) {
		if (comm->rank == 0)
			rc = publish(f, step, comm->ranks, settings, seals, err);
		rc = gf_team_agree(team, rc, err);
	}
	if (rc && comm->rank == 0 && !gf_checkpoint_owns(f->owner, NULL))
		gf_checkpoint_discard(f->dir, step);
	f->known |= !rc;
	f->newest = rc ? f->newest : step;
out:
	return rc;
}

/* --- reading ------------------------------------------------------------- */

static int open_part(const char *dir, int part, const struct origin *from,
		     const struct gf_run_identity *id, struct gf_safetensors *s,
		     struct gf_error *err)
{
	int rc = gf_checkpoint_open_part(dir, from->step, part, s, err);

	return rc ?: check_marks(s, from, id, err);
}

static int load_scope(const struct gf_safetensors *s, enum gf_state_scope scope,
		      const struct gf_state *state, struct gf_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < state->nitems; i++) {
		const struct gf_state_item *item = &state->items[i];

		if (item->scope != scope)
			continue;
		rc = gf_safetensors_load(s, item->name, item->tensor.dtype, item->count_elems,
					 item->data, err);
		if (!rc && item->tensor.bring)
			rc = item->tensor.bring(item->tensor.ctx, &item->tensor, false, err);
	}
	return rc;
}

/* The items of one scope out of one file. */
static int read_part(const char *dir, int part, const struct origin *from,
		     enum gf_state_scope scope, const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	GF_RELEASED(gf_safetensors_close) struct gf_safetensors s = {0};
	int rc = open_part(dir, part, from, id, &s, err);

	return rc ?: load_scope(&s, scope, state, err);
}

/* Each rank's own, out of the files of all ranks that computed. */
static int read_resharded(const char *dir, const struct origin *from,
			  const struct gf_run_identity *id, const struct gf_state *state,
			  const struct gf_reshard *r, struct gf_error *err)
{
	int rc = 0;

	gf_reshard_begin(state);
	for (int part = 0; part < r->from && !rc; part++) {
		GF_RELEASED(gf_safetensors_close) struct gf_safetensors s = {0};

		rc = open_part(dir, part, from, id, &s, err);
		rc = rc ?: gf_reshard_take(r, part, &s, state, err);
	}
	if (!rc)
		gf_reshard_end(r, state);
	return rc;
}

/* By which ranks the set was written. */
static int find_origin(const struct gf_folder *f, struct origin *from, struct gf_error *err)
{
	GF_RELEASED(gf_safetensors_close) struct gf_safetensors s = {0};
	int rc = gf_checkpoint_open_part(f->dir, f->from.step, 0, &s, err);

	from->step = f->from.step;
	from->ranks = (size_t)f->from.ranks;
	if (!rc && gf_safetensors_has_metadata(&s, MARK_SERVERS))
		rc = gf_safetensors_metadata_size(&s, MARK_SERVERS, 0, from->ranks - 1,
						  &from->servers, err);
	if (!rc)
		rc = gf_safetensors_metadata_size(&s, MARK_SAMPLES, 0, INT64_MAX, &from->samples,
						  err);
	return rc;
}

/* The root of the sum over ranks. */
static int add_up(struct gf_team *team, double *squares, struct gf_error *err)
{
	const int ranks = team->comm->ranks;
	double *all = gf_xcalloc((size_t)ranks, sizeof(*all)), sum = 0;
	int rc = gf_team_allgather(team, squares, sizeof(*squares), all, err);

	for (int r = 0; r < ranks; r++)
		sum += all[r];
	free(all);
	*squares = sqrt(sum);
	return rc;
}

/* A folder that is only read may be another job's, and that job replaces sets whole. */
static int check_still_there(const struct gf_folder *f, struct gf_error *err)
{
	GF_RELEASED(gf_manifest_release) struct gf_manifest m = {0};
	int rc = 0;

	if (f->from.sha256) /* an earlier version's has none */
		rc = gf_checkpoint_describe(f->dir, f->from.step, &m, err);
	if (!rc && f->from.sha256 && (!m.sha256 || strcmp(m.sha256, f->from.sha256) != 0))
		rc = gf_error_set(err, -EINVAL,
				  "%s/step-%zu: want the set that was found, another job has "
				  "replaced it since",
				  f->dir, f->from.step);
	return rc;
}

int gf_snapshot_read(struct gf_team *team, const struct gf_folder *folder,
		     struct gf_snapshot_source *source, const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	struct gf_comm *comm = team->comm;
	const char *dir = folder->dir;
	struct origin from = {0};
	struct origin want = {0, (size_t)comm->ranks, id->servers, id->samples};
	struct gf_reshard r = {.to = comm->ranks - (int)id->servers,
			       .rank = comm->rank,
			       .carried = &source->carried};
	int *heirs = NULL, rc = 0;

	if (comm->rank == 0)
		rc = find_origin(folder, &from, err);
	rc = gf_team_agree(team, rc, err);
	rc = rc ?: gf_team_bcast(team, &from, sizeof(from), err);
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
	source->resharded = source->reshard &&
			    (from.ranks != want.ranks || from.servers != want.servers || heirs);
	source->samples = want.samples;
	if (source->resharded) {
		/* 0 is no number of samples: there are no epochs */
		if (source->recount && from.samples && id->samples)
			source->samples = from.samples;
		want = from;
		want.samples = source->samples;
	}
	rc = read_part(dir, 0, &want, GF_STATE_SHARED, id, state, err);
	if (!rc && source->resharded)
		rc = read_resharded(dir, &want, id, state, &r, err);
	else if (!rc)
		rc = read_part(dir, comm->rank, &want, GF_STATE_OWN, id, state, err);
	free(heirs);
	rc = gf_team_agree(team, rc, err);
	if (!rc) /* all have read */
		rc = gf_team_agree(team, comm->rank == 0 ? check_still_there(folder, err) : 0, err);
	return rc || !source->resharded ? rc : add_up(team, &source->carried, err);
}
