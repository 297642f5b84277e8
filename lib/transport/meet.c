/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

#include <inttypes.h>

#include "transport/comm.h"

#define OWN_CHANNELS (2 * GF_CHANNELS_OWN)

int gf_tag_pack(const struct gf_tag_bits *bits, uint64_t tag, const char *whose, uint64_t *packed,
		struct gf_error *err)
{
	uint64_t channel = tag >> 32, match = tag & UINT32_MAX;
	uint64_t channels = (uint64_t)1 << bits->channel;

	if (channel > GF_CHANNEL_LAST) {
		channel = channels - 1 - (GF_CHANNEL_GATHER - channel);
		channels = channel + 1;
	} else {
		channels -= OWN_CHANNELS;
	}
	if (channel >= channels || match >> bits->match)
		return gf_error_set(err, -EOVERFLOW,
				    "channel %" PRIu64 ", match %" PRIu64
				    ": more than %s tags hold (%d + %d bits)",
				    tag >> 32, match, whose, bits->channel, bits->match);
	*packed = channel << bits->match | match;
	return 0;
}

/* What one rank sends and receives in a round. */
struct round {
	struct gf_comm *c;
	uint32_t match;
	struct gf_comm_request *requests[4];
	int n;
};

static int post(struct round *r, bool receive, int peer, void *data, size_t size_bytes,
		struct gf_error *err)
{
	const struct gf_comm_ops *ops = r->c->ops;
	uint64_t tag = gf_tag(GF_CHANNEL_MEET, r->match);
	int rc = receive ? ops->irecv(r->c, peer, tag, data, size_bytes, &r->requests[r->n], err)
		     : ops->isend(r->c, peer, tag, data, size_bytes, &r->requests[r->n], err);

	if (!rc)
		r->n++;
	return rc;
}

/* Waits for all that was posted; after a failure, rc, cancels the rest: other ranks are then left
 * in the middle. */
static int finish(struct round *r, int rc, struct gf_error *err)
{
	for (int i = 0; i < r->n; i++)
		if (rc)
			r->c->ops->cancel(r->c, r->requests[i]);
		else
			rc = gf_comm_wait(r->c, r->requests[i], err);
	r->c->broken |= rc != 0;
	r->n = 0;
	r->match++;
	return rc;
}

/* Dissemination: in round k, each rank tells the one 2^k further. */
int gf_meet_barrier(struct gf_comm *c, struct gf_error *err)
{
	struct round r = {.c = c};
	int p = c->ranks, step, rc = 0;

	for (step = 1; step < p && !rc; step *= 2) {
		rc = post(&r, true, (c->rank + p - step) % p, NULL, 0, err);
		rc = rc ?: post(&r, false, (c->rank + step) % p, NULL, 0, err);
		rc = finish(&r, rc, err);
	}
	return rc;
}

/* A binomial tree. Ranks are counted from the root: each receives from the one without its lowest
 * bit, and sends to those with one lower bit more. */
int gf_meet_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes, struct gf_error *err)
{
	struct round r = {.c = c};
	int p = c->ranks, own = (c->rank + p - root) % p, bit = 1, rc = 0;

	while (bit < p && !(own & bit))
		bit *= 2;
	if (own) {
		rc = post(&r, true, (own - bit + root) % p, data, size_bytes, err);
		rc = finish(&r, rc, err);
	}
	r.match = 0;
	for (bit /= 2; bit > 0 && !rc; bit /= 2) {
		if (own + bit >= p)
			continue;
		rc = post(&r, false, (own + bit + root) % p, data, size_bytes, err);
		rc = finish(&r, rc, err);
		r.match = 0;
	}
	return rc;
}

/* n blocks from the first on, counted round the ranks: one or two pieces. */
static int post_blocks(struct round *r, bool receive, int peer, char *all, size_t size_bytes,
		       int first, int n, struct gf_error *err)
{
	int p = r->c->ranks, straight = n < p - first ? n : p - first, rc;

	rc = post(r, receive, peer, all + (size_t)first * size_bytes, (size_t)straight * size_bytes,
		  err);
	if (!rc && straight < n)
		rc = post(r, receive, peer, all, (size_t)(n - straight) * size_bytes, err);
	return rc;
}

/* Bruck et al., 1997, in place: with n blocks from its own on, each rank fetches the next n from
 * the one n further. */
int gf_meet_allgather(struct gf_comm *c, void *all, size_t size_bytes, struct gf_error *err)
{
	struct round r = {.c = c};
	int p = c->ranks, n, more, rc = 0;

	for (n = 1; n < p && !rc; n += more) {
		more = n < p - n ? n : p - n;
		rc = post_blocks(&r, true, (c->rank + n) % p, all, size_bytes, (c->rank + n) % p,
				 more, err);
		rc = rc ? rc
			: post_blocks(&r, false, (c->rank + p - n) % p, all, size_bytes, c->rank,
				      more, err);
		rc = finish(&r, rc, err);
	}
	return rc;
}
