/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/comm.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/end.h"
#include "base/heap.h"
#include "base/timeout.h"
#include "transport/backoff.h"
#include "transport/transport.h"

/* Where the ranks meet, and then, that they have met. */
static struct gf_comm *meeting(struct gf_comm *c)
{
	c->waits++;
	return c->ops->lend ? c->ops->lend(c) : c;
}

static int met(struct gf_comm *c, const struct gf_comm *at, int rc)
{
	c->broken |= at->broken;
	return rc;
}

int gf_comm_barrier(struct gf_comm *c, struct gf_error *err)
{
	struct gf_comm *at = meeting(c);

	return met(c, at, gf_meet_barrier(at, err));
}

/*
 * No transport can take back what ranks do together, nor a message that its peer has begun. If
 * on_wait gives up, a late rank's bytes are written when they come: the caller's memory may be gone
 * by then. So bytes go through a carton, which stays, too.
 */
#define CARTON_BYTES ((size_t)4 << 20)

struct carton {
	struct gf_left left;
	char data[];
};

static struct carton *carton(size_t size_bytes)
{
	return gf_xmalloc(sizeof(struct carton) + size_bytes);
}

static void put_away(struct gf_comm *c, struct carton *box, int rc)
{
	if (rc)
		gf_comm_leave(c, &box->left);
	else
		free(box);
}

int gf_comm_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes, struct gf_error *err)
{
	struct carton *box = carton(size_bytes < CARTON_BYTES ? size_bytes : CARTON_BYTES);
	struct gf_comm *at = meeting(c);
	size_t first, size;
	int rc = 0;

	for (first = 0; first < size_bytes && !rc; first += size) {
		size = size_bytes - first < CARTON_BYTES ? size_bytes - first : CARTON_BYTES;
		if (c->rank == root)
			memcpy(box->data, (char *)data + first, size);
		rc = met(c, at, gf_meet_bcast(at, root, box->data, size, err));
		if (!rc && c->rank != root)
			memcpy((char *)data + first, box->data, size);
	}
	put_away(c, box, rc);
	return rc;
}

static int gather_large(struct gf_comm *c, const void *send, size_t size_bytes, char *recv,
			struct gf_error *err)
{
	int rank, rc = 0;

	memcpy(recv + (size_t)c->rank * size_bytes, send, size_bytes);
	for (rank = 0; rank < c->ranks && !rc; rank++)
		rc = gf_comm_bcast(c, rank, recv + (size_t)rank * size_bytes, size_bytes, err);
	return rc;
}

int gf_comm_allgather(struct gf_comm *c, const void *send, size_t size_bytes, void *recv,
		      struct gf_error *err)
{
	const size_t own = (size_t)c->rank * size_bytes;
	const size_t all = (size_t)c->ranks * size_bytes;
	struct gf_comm *at;
	struct carton *box;
	int rc;

	if (size_bytes > CARTON_BYTES)
		return gather_large(c, send, size_bytes, recv, err);
	box = carton(all);
	if (size_bytes > 0)
		memcpy(box->data + own, send, size_bytes);
	at = meeting(c);
	rc = met(c, at, gf_meet_allgather(at, box->data, size_bytes, err));
	if (!rc && size_bytes > 0)
		memcpy(recv, box->data, all);
	put_away(c, box, rc);
	return rc;
}

void gf_comm_rest(struct gf_comm *c, double most_s)
{
	if (most_s > 0 && c->ops->rest)
		c->ops->rest(c, most_s);
	else
		gf_clock_sleep(most_s);
}

int gf_comm_wait(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	struct gf_backoff backoff = {.crowded = c->crowded};
	int rc;

	c->waits++;
	while (!(rc = c->ops->test(c, request, err))) {
		rc = c->on_wait ? c->on_wait(c->on_wait_ctx, err) : 0;
		if (rc) {
			c->ops->cancel(c, request);
			c->broken = true;
			return rc;
		}
		gf_comm_rest(c, gf_backoff_next(&backoff));
	}
	return rc < 0 ? rc : 0;
}

int gf_comm_bcast_text(struct gf_comm *c, int root, char **text, size_t *length,
		       struct gf_error *err)
{
	uint64_t size = c->rank == root ? *length : 0;
	char *copy;
	int rc = gf_comm_bcast(c, root, &size, sizeof(size), err);

	if (rc)
		return rc;
	if (c->rank == root)
		return gf_comm_bcast(c, root, *text, size, err);
	copy = gf_xmalloc(size + 1);
	copy[size] = '\0';
	rc = gf_comm_bcast(c, root, copy, size, err);
	if (rc) {
		free(copy);
		return rc;
	}
	*text = copy;
	*length = size;
	return 0;
}

/* The root's half: sizes[r] bytes from each rank, one after the other. */
static int collect(struct gf_comm *c, const char *own, const uint64_t *sizes, char *all,
		   struct gf_error *err)
{
	struct gf_comm_request *request;
	int rank, rc = 0;

	for (rank = 0; rank < c->ranks && !rc; rank++) {
		if (rank == c->rank) {
			memcpy(all, own, sizes[rank]);
		} else if (sizes[rank] > 0) {
			rc = c->ops->irecv(c, rank, gf_tag(GF_CHANNEL_GATHER, 0), all, sizes[rank],
					   &request, err);
			rc = rc ?: gf_comm_wait(c, request, err);
		}
		all += sizes[rank];
	}
	*all = '\0';
	return rc;
}

int gf_comm_gather_text(struct gf_comm *c, int root, const char *text, size_t length, char **all,
			size_t *lengths, struct gf_error *err)
{
	uint64_t own = length, total = 0;
	GF_FREED uint64_t *sizes = gf_xcalloc((size_t)c->ranks, sizeof(*sizes));
	struct gf_comm_request *request;
	struct carton *box;
	int rank, rc;

	rc = gf_comm_allgather(c, &own, sizeof(own), sizes, err);
	if (rc)
		goto out;
	if (c->rank == root) {
		for (rank = 0; rank < c->ranks; rank++)
			total += sizes[rank];
		box = carton(total + 1);
		rc = collect(c, text, sizes, box->data, err);
	} else {
		box = carton(length);
		if (length > 0) {
			memcpy(box->data, text, length);
			rc = c->ops->isend(c, root, gf_tag(GF_CHANNEL_GATHER, 0), box->data, length,
					   &request, err);
			rc = rc ?: gf_comm_wait(c, request, err);
		}
	}
	*all = NULL;
	if (!rc && c->rank == root) {
		for (rank = 0; rank < c->ranks; rank++)
			lengths[rank] = sizes[rank];
		*all = gf_xmalloc(total + 1);
		memcpy(*all, box->data, total + 1);
	}
	put_away(c, box, rc);
out:
	return rc;
}

/* All ranks take over the root's rc and reason. */
static int follow(struct gf_comm *c, int root, int rc, struct gf_error *err)
{
	struct {
		int32_t rc;
		struct gf_error reason;
	} verdict = {rc, {""}};
	int failed;

	if (rc && err)
		verdict.reason = *err;
	failed = gf_comm_bcast(c, root, &verdict, sizeof(verdict), err);
	if (failed)
		return failed;
	if (verdict.rc && err)
		*err = verdict.reason;
	return verdict.rc;
}

int gf_comm_agree(struct gf_comm *c, int rc, struct gf_error *err)
{
	int32_t own = rc, *codes;
	int rank, other, named = 0, agreed;

	/* nobody can be told any more, and the others find out */
	if (c->ranks == 1 || (rc && c->broken))
		return rc;
	codes = gf_xcalloc((size_t)c->ranks, sizeof(*codes));
	agreed = gf_comm_allgather(c, &own, sizeof(own), codes, err);
	if (agreed)
		goto out;
	for (rank = 0; rank < c->ranks && !codes[rank]; rank++)
		;
	if (rank == c->ranks)
		goto out;
	agreed = follow(c, rank, rc, err);
	if (err) /* a reason that was agreed on before names its rank already */
		sscanf(err->text, "rank %d: %n", &other, &named);
	if (err && !named)
		gf_error_prefix(err, "rank %d", rank);
out:
	free(codes);
	return agreed;
}

/* On rank 0: compares the others' texts with its own. */
static int compare(int ranks, const char *what, const char *all, const size_t *lengths,
		   struct gf_error *err)
{
	const char *text = all + lengths[0];

	for (int rank = 1; rank < ranks; text += lengths[rank++])
		if (lengths[rank] != lengths[0] || memcmp(text, all, lengths[0]) != 0)
			return gf_error_set(err, -EINVAL, "%s: rank 0 has %.*s, rank %d has %.*s",
					    what, (int)lengths[0], all, rank, (int)lengths[rank],
					    text);
	return 0;
}

int gf_comm_same_text(struct gf_comm *c, const char *what, const char *text, struct gf_error *err)
{
	GF_FREED size_t *lengths = gf_xcalloc((size_t)c->ranks, sizeof(*lengths));
	GF_FREED char *all = NULL;
	int rc = gf_comm_gather_text(c, 0, text, strlen(text), &all, lengths, err);

	if (rc)
		goto out;
	if (c->rank == 0)
		rc = compare(c->ranks, what, all, lengths, err);
	rc = follow(c, 0, rc, err);
out:
	return rc;
}

void gf_comm_abort(struct gf_comm *c, int status)
{
	/* without a timer there is no waiting for a launcher */
	if (gf_end_within(GF_TIMEOUT_ABORT_S, status))
		c->ops->abort(c, status);
	_Exit(status);
}

bool gf_comm_sever(struct gf_comm *c)
{
	if (!c->ops->sever)
		return false;
	c->ops->sever(c);
	return true;
}

void gf_comm_leave(struct gf_comm *c, struct gf_left *memory)
{
	if (c->ops->leave) {
		c->ops->leave(c, memory);
		return;
	}
	memory->next = c->left;
	c->left = memory;
}

/* A broken transport still runs. */
static void keep(struct gf_left *memory)
{
	static _Atomic(struct gf_left *) kept;

	memory->next = atomic_load(&kept);
	while (!atomic_compare_exchange_weak(&kept, &memory->next, memory))
		;
}

void gf_comm_close(struct gf_comm *c)
{
	struct gf_comm *launcher = c ? c->launcher : NULL;
	struct gf_left *left = c ? c->left : NULL, *one;
	bool broken = c && c->broken;

	if (!c)
		return;
	if (launcher)
		launcher->broken |= c->broken;
	c->ops->close(c);
	while ((one = left)) {
		left = one->next;
		if (broken)
			keep(one);
		else
			free(one);
	}
	gf_comm_close(launcher);
}
