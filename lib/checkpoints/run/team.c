/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/run/team.h"

#include <string.h>

#include "base/heap.h"
#include "checkpoints/safetensors.h"

/* Elements of a mean that go round at a time: bounds what a rank holds. */
#define MEAN_PIECE 4096

struct call {
	enum { AGREE, SAME_TEXT, BCAST, ALLGATHER } what;
	const char *name; /* of a text */
	const void *send;
	void *data;
	size_t size_bytes;
	int rc;
};

static int perform(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct call *call = ctx;
	struct gf_error *reason = call->data;
	int rc;

	switch (call->what) {
	case SAME_TEXT:
		return gf_comm_same_text(comm, call->name, call->send, err);
	case BCAST:
		return gf_comm_bcast(comm, 0, call->data, call->size_bytes, err);
	case ALLGATHER:
		return gf_comm_allgather(comm, call->send, call->size_bytes, call->data, err);
	case AGREE:
		break;
	}
	rc = gf_comm_agree(comm, call->rc, reason);
	if (rc) /* err may be that of the thread which is called */
		*err = *reason;
	return rc;
}

static int run(struct gf_team *t, struct call call, struct gf_error *err)
{
	if (t->exchange)
		return gf_exchange_call(t->exchange, perform, &call, err);
	return perform(t->comm, &call, err);
}

int gf_team_agree(struct gf_team *t, int rc, struct gf_error *err)
{
	return run(t, (struct call){AGREE, .rc = rc, .data = err}, err);
}

int gf_team_same_text(struct gf_team *t, const char *what, const char *text, struct gf_error *err)
{
	return run(t, (struct call){SAME_TEXT, .name = what, .send = text}, err);
}

int gf_team_bcast(struct gf_team *t, void *data, size_t size_bytes, struct gf_error *err)
{
	return run(t, (struct call){BCAST, .data = data, .size_bytes = size_bytes}, err);
}

int gf_team_allgather(struct gf_team *t, const void *send, size_t size_bytes, void *recv,
		      struct gf_error *err)
{
	return run(t,
		   (struct call){ALLGATHER, .send = send, .data = recv, .size_bytes = size_bytes},
		   err);
}

int gf_team_mean(struct gf_team *t, const float *value, float *mean, size_t count,
		 struct gf_error *err)
{
	size_t ranks = (size_t)t->comm->ranks, first, n, i, r;
	size_t workers = t->workers ? (size_t)t->workers : ranks;
	GF_FREED float *all = gf_xcalloc(ranks * MEAN_PIECE, sizeof(*all));
	int rc = 0;

	for (first = 0; first < count && !rc; first += n) {
		n = count - first < MEAN_PIECE ? count - first : MEAN_PIECE;
		rc = gf_team_allgather(t, value + first, n * sizeof(*all), all, err);
		for (i = 0; i < n && !rc; i++) {
			double sum = 0;

			for (r = 0; r < workers; r++)
				sum += (double)all[r * n + i];
			mean[first + i] = (float)(sum / (double)workers);
		}
	}
	return rc;
}

/* --- replicas ------------------------------------------------------------- */

/* Of the items from `first` on to `end` that are shared. */
static int digest(const struct gf_state *s, size_t first, size_t end,
		  unsigned char out[GF_DIGEST_BYTES], struct gf_error *err)
{
	struct gf_digest d;
	int rc = 0;

	gf_digest_init(&d);
	for (; first < end && !rc; first++) {
		const struct gf_state_item *item = &s->items[first];
		const struct gf_tensor_source *t = &item->tensor;

		if (item->scope != GF_STATE_SHARED)
			continue;
		rc = t->bring ? t->bring(t->ctx, t, true, err) : 0;
		gf_digest_add(&d, item->data,
			      item->count_elems * gf_safetensors_elem_bytes(t->dtype));
		if (!rc && t->bring)
			rc = t->bring(t->ctx, t, false, err);
	}
	gf_digest_end(&d, out);
	return rc;
}

static int differs(const unsigned char *all, int ranks)
{
	for (int r = 1; r < ranks; r++)
		if (memcmp(all, all + (size_t)r * GF_DIGEST_BYTES, GF_DIGEST_BYTES) != 0)
			return r;
	return 0;
}

int gf_team_compare(struct gf_team *team, size_t step, const struct gf_state *state,
		    struct gf_error *err)
{
	int ranks = team->comm->ranks, other, rc;
	unsigned char own[GF_DIGEST_BYTES];
	GF_FREED unsigned char *all = gf_xcalloc((size_t)ranks, sizeof(own));

	rc = digest(state, 0, state->nitems, own, err);
	rc = rc ?: gf_team_allgather(team, own, sizeof(own), all, err);
	if (rc || !differs(all, ranks))
		goto out;
	/* every rank is here: now find the first array that differs */
	for (size_t i = 0; i < state->nitems && !rc; i++) {
		if (state->items[i].scope != GF_STATE_SHARED)
			continue;
		rc = digest(state, i, i + 1, own, err);
		rc = rc ?: gf_team_allgather(team, own, sizeof(own), all, err);
		other = rc ? 0 : differs(all, ranks);
		if (other) {
			gf_error_set(err, 0,
				     "replicas differ after step %zu: %s on rank %d is not what it "
				     "is on rank 0",
				     step, state->items[i].name, other);
			rc = 1;
		}
	}
out:
	return rc;
}
