/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/team.h"

#include <stdlib.h>

#include "base/heap.h"

/* Elements of a mean that go round at a time: bounds what a rank holds. */
#define MEAN_PIECE 4096

struct call {
	const char *what;
	const void *send;
	void *data;
	size_t size_bytes;
};

static int run(struct gf_team *t,
	       int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err),
	       struct call *call, struct gf_error *err)
{
	if (t->exchange)
		return gf_exchange_call(t->exchange, fn, call, err);
	return fn(t->comm, call, err);
}

int gf_team_agree(struct gf_team *t, int rc, struct gf_error *err)
{
	return t->exchange ? gf_exchange_agree(t->exchange, rc, err)
			   : gf_comm_agree(t->comm, rc, err);
}

static int same_text(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct call *call = ctx;

	return gf_comm_same_text(comm, call->what, call->send, err);
}

int gf_team_same_text(struct gf_team *t, const char *what, const char *text,
		      struct gf_error *err)
{
	struct call call = {.what = what, .send = text};

	return run(t, same_text, &call, err);
}

static int bcast(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct call *call = ctx;

	return gf_comm_bcast(comm, 0, call->data, call->size_bytes, err);
}

int gf_team_bcast(struct gf_team *t, void *data, size_t size_bytes,
		  struct gf_error *err)
{
	struct call call = {.data = data, .size_bytes = size_bytes};

	return run(t, bcast, &call, err);
}

static int allgather(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct call *call = ctx;

	return gf_comm_allgather(comm, call->send, call->size_bytes, call->data,
				 err);
}

int gf_team_allgather(struct gf_team *t, const void *send, size_t size_bytes,
		      void *recv, struct gf_error *err)
{
	struct call call = {
		.send = send, .data = recv, .size_bytes = size_bytes};

	return run(t, allgather, &call, err);
}

int gf_team_mean(struct gf_team *t, const float *value, float *mean,
		 size_t count, struct gf_error *err)
{
	size_t ranks = (size_t)t->comm->ranks, first, n, i, r;
	size_t workers = t->workers ? (size_t)t->workers : ranks;
	float *all = gf_xcalloc(ranks * MEAN_PIECE, sizeof(*all));
	int rc = 0;

	for (first = 0; first < count && !rc; first += n) {
		n = count - first < MEAN_PIECE ? count - first : MEAN_PIECE;
		rc = gf_team_allgather(t, value + first, n * sizeof(*all), all,
				       err);
		for (i = 0; i < n && !rc; i++) {
			double sum = 0;

			for (r = 0; r < workers; r++)
				sum += (double)all[r * n + i];
			mean[first + i] = (float)(sum / (double)workers);
		}
	}
	free(all);
	return rc;
}
