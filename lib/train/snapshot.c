/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/snapshot.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "ckpt/set.h"

#define KEY_FORMAT "format"
#define FORMAT     "gf-train 1"

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
	struct gf_tensor_source *t = gf_xcalloc(state->nitems + 1, sizeof(*t));
	char ranks[24], at[24], batch[24], accumulate[24], samples[24],
		seed[24], staleness[24];
	const struct gf_metadata metadata[] = {
		{KEY_FORMAT, FORMAT},      {GF_CKPT_STEP, at},
		{GF_CKPT_RANKS, ranks},    {"model", id->model},
		{"method", id->method},    {"optimizer", id->optimizer},
		{"batch_per_rank", batch}, {"accumulate", accumulate},
		{"samples", samples},      {"seed", seed},
		{"staleness", staleness},  {"training", id->training},
	};
	size_t i, n = 0;
	int rc;

	snprintf(ranks, sizeof(ranks), "%d", comm->ranks);
	snprintf(at, sizeof(at), "%zu", step);
	snprintf(batch, sizeof(batch), "%zu", id->batch);
	snprintf(accumulate, sizeof(accumulate), "%zu", id->accumulate);
	snprintf(staleness, sizeof(staleness), "%zu", id->staleness);
	snprintf(samples, sizeof(samples), "%zu", id->samples);
	snprintf(seed, sizeof(seed), "%zu", id->seed);
	for (i = 0; i < state->nitems; i++)
		if (stores(comm->rank, &state->items[i]))
			t[n++] = state->items[i].tensor;
	rc = gf_safetensors_write(path, t, n, metadata,
				  GF_ARRAY_LENGTH(metadata), err);
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
		      struct gf_error *err)
{
	int rc = 0;

	if (team->comm->rank == 0 && gf_ckpt_any(dir))
		rc = gf_error_set(err, -EINVAL,
				  "%s: holds checkpoints of an earlier run: "
				  "--resume goes on from the last of them, "
				  "another folder starts anew",
				  dir);
	return gf_team_agree(team, rc, err);
}

/* --- reading ------------------------------------------------------------- */

static int same_size(const struct gf_safetensors *s, const char *key,
		     size_t want, const char *what, struct gf_error *err)
{
	size_t got = 0;
	int rc = gf_safetensors_metadata_size(s, key, 0, INT64_MAX, &got, err);

	if (!rc && got != want)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s %zu, this run has "
				  "%zu",
				  s->path, what, got, want);
	return rc;
}

static int same_text(const struct gf_safetensors *s, const char *key,
		     const char *want, const char *what, struct gf_error *err)
{
	char *got = NULL;
	int rc = gf_safetensors_metadata(s, key, &got, err);

	if (!rc && strcmp(got, want) != 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s \"%s\", this run "
				  "has \"%s\"",
				  s->path, what, got, want);
	free(got);
	return rc;
}

static int check_identity(const struct gf_safetensors *s, int ranks,
			  size_t step, const struct gf_run_identity *id,
			  struct gf_error *err)
{
	const struct {
		const char *key;
		size_t want;
		const char *what;
	} numbers[] = {
		{GF_CKPT_RANKS, (size_t)ranks, "ranks"},
		{GF_CKPT_STEP, step, "step"},
		{"batch_per_rank", id->batch, "batch"},
		{"accumulate", id->accumulate, "accumulated batches"},
		{"samples", id->samples, "training samples"},
		{"seed", id->seed, "seed"},
		{"staleness", id->staleness, "staleness"},
	};
	size_t i;
	int rc;

	rc = same_text(s, KEY_FORMAT, FORMAT, "format", err);
	if (!rc)
		rc = same_text(s, "model", id->model, "model", err);
	if (!rc)
		rc = same_text(s, "method", id->method, "method", err);
	if (!rc)
		rc = same_text(s, "optimizer", id->optimizer, "optimizer", err);
	for (i = 0; !rc && i < GF_ARRAY_LENGTH(numbers); i++)
		rc = same_size(s, numbers[i].key, numbers[i].want,
			       numbers[i].what, err);
	return rc;
}

/* The items of one scope out of one file. */
static int read_part(const char *dir, size_t step, int part, int ranks,
		     enum gf_state_scope scope,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	char *path = gf_ckpt_part(dir, step, part, false);
	struct gf_safetensors s = {0};
	size_t i;
	int rc;

	rc = gf_safetensors_open(path, &s, err);
	if (!rc)
		rc = check_identity(&s, ranks, step, id, err);
	for (i = 0; !rc && i < state->nitems; i++) {
		const struct gf_state_item *item = &state->items[i];

		if (item->scope == scope)
			rc = gf_safetensors_load(
				&s, item->name, item->tensor.dtype,
				item->count_elems, item->data, err);
	}
	gf_safetensors_close(&s);
	free(path);
	return rc;
}

int gf_snapshot_read(struct gf_team *team, const char *dir, size_t *step,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err)
{
	struct gf_comm *comm = team->comm;
	uint64_t latest = 0;
	size_t found = 0;
	int rc = 0;

	/* rank 0 chooses: a listing may differ while a file system settles */
	if (comm->rank == 0)
		rc = gf_ckpt_latest(dir, &found, err);
	latest = found;
	rc = gf_team_agree(team, rc, err);
	if (!rc)
		rc = gf_team_bcast(team, &latest, sizeof(latest), err);
	if (rc)
		return rc;
	rc = read_part(dir, latest, 0, comm->ranks, GF_STATE_SHARED, id, state,
		       err);
	if (!rc)
		rc = read_part(dir, latest, comm->rank, comm->ranks,
			       GF_STATE_OWN, id, state, err);
	rc = gf_team_agree(team, rc, err);
	if (!rc)
		*step = latest;
	return rc;
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
