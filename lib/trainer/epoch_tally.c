/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/trainer.h"

#include <math.h>

#include "base/heap.h"

void gf_tally_note(struct gf_tally *t, size_t step, const struct gf_step_outcome *outcome)
{
	struct gf_train_row *row = &t->rows[t->pending];

	*row = (struct gf_train_row){
		.part = "batch",
		.step = step,
		.samples = (size_t)t->ranks * t->batch,
		.seconds = outcome->seconds,
		.loss_scale = outcome->loss_scale,
		.skipped = outcome->skipped,
		.samples_per_s = (double)t->ranks * (double)t->batch / outcome->seconds,
	};
	t->own.loss[t->pending] = outcome->loss;
	t->own.correct[t->pending] = outcome->correct;
	t->own.sent_bytes[t->pending] = outcome->sent_bytes;
	t->own.dense_bytes[t->pending] = outcome->dense_bytes;
	if (!isfinite(outcome->loss) && !t->own.bad_step) {
		t->own.bad_step = step;
		t->own.bad_loss = outcome->loss;
	}
	t->pending++;
}

/* The earliest bad step; of several ranks the lowest. */
static int find_bad(const struct gf_tally *t, struct gf_error *err)
{
	const struct gf_tally_record *bad = NULL;

	for (int r = 0; r < t->ranks; r++)
		if (t->all[r].bad_step && (!bad || t->all[r].bad_step < bad->bad_step))
			bad = &t->all[r];
	if (!bad)
		return 0;
	return gf_error_set(err, 1, "the loss is %s in step %llu on rank %d: training has diverged",
			    isnan(bad->bad_loss) ? "not a number" : "infinite",
			    (unsigned long long)bad->bad_step, (int)(bad - t->all));
}

int gf_tally_meet(struct gf_tally *t, struct gf_team *team, struct gf_train_row **rows,
		  size_t *nrows, struct gf_error *err)
{
	int r, rc;

	rc = gf_team_allgather(team, &t->own, sizeof(t->own), t->all, err);
	rc = rc ?: find_bad(t, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < t->pending; i++) {
		struct gf_train_row *row = &t->rows[i];

		for (r = 0; r < t->ranks; r++) {
			row->loss += t->all[r].loss[i];
			row->correct += t->all[r].correct[i];
		}
		for (r = 0; r < t->ranks + t->servers; r++) {
			row->sent_bytes += t->all[r].sent_bytes[i];
			row->dense_bytes += t->all[r].dense_bytes[i];
		}
		row->loss /= t->ranks;
		t->epoch_loss += row->loss;
		t->epoch_correct += row->correct;
		t->epoch_steps++;
		t->epoch_sent_bytes += row->sent_bytes;
		t->epoch_dense_bytes += row->dense_bytes;
	}
	*rows = t->rows;
	*nrows = t->pending;
	t->pending = 0;
	return 0;
}

struct gf_train_row gf_tally_epoch(struct gf_tally *t)
{
	struct gf_train_row row = {
		.part = "train",
		.loss = t->epoch_loss / (double)t->epoch_steps,
		.correct = t->epoch_correct,
		.samples = t->epoch_steps * (size_t)t->ranks * t->batch,
		.sent_bytes = t->epoch_sent_bytes,
		.dense_bytes = t->epoch_dense_bytes,
	};

	t->epoch_loss = 0;
	t->epoch_correct = 0;
	t->epoch_steps = 0;
	t->epoch_sent_bytes = t->epoch_dense_bytes = 0;
	return row;
}

int gf_tally_sum(struct gf_team *team, struct gf_score *score, struct gf_error *err)
{
	size_t ranks = (size_t)team->comm->ranks, r;
	GF_FREED struct gf_score *all = gf_xcalloc(ranks, sizeof(*all));
	int rc = gf_team_allgather(team, score, sizeof(*score), all, err);

	if (!rc)
		*score = (struct gf_score){0};
	for (r = 0; r < ranks && !rc; r++) {
		score->loss += all[r].loss;
		score->correct += all[r].correct;
	}
	return rc;
}
