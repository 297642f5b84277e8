/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over UCX.
 *
 * TAGS. UCX matches 64 bits: source, channel and match, from the top. A probe leaves the source
 * open.
 *
 * FAILURE. UCX ends what is sent to a rank that has gone, but a receive belongs to no endpoint: it
 * fails here, by what is known of the rank that it waits for. So a receive makes the endpoint to
 * its rank, too.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "transport/ucx_state.h"

/* So many events are taken in a round before others have their turn. */
#define BURST 16
/* What a rank sent before it went may still be on its way, over another connection: why it went,
 * for one. */
#define GRACE_S   0.05
#define WHOLE_TAG UINT64_MAX

_Static_assert(GF_UCX_SOURCE_BITS + GF_UCX_SOURCE_SHIFT == 64, "a tag of UCX");

static int map_tag(int source, uint64_t tag, ucp_tag_t *mapped, struct gf_error *err)
{
	static const struct gf_tag_bits bits = {GF_UCX_CHANNEL_BITS, GF_UCX_MATCH_BITS};
	uint64_t packed;
	int rc = gf_tag_pack(&bits, tag, "UCX's", &packed, err);

	if (!rc)
		*mapped = (uint64_t)source << GF_UCX_SOURCE_SHIFT | packed;
	return rc;
}

static void note_failure(void *peer, ucp_ep_h endpoint, ucs_status_t status)
{
	struct gf_ucx_peer *p = peer;

	(void)endpoint;
	if (p->failed != UCS_OK)
		return;
	p->failed = status;
	p->failed_s = gf_clock_s();
}

static int connect_to(struct gf_comm *c, int rank, struct gf_error *err)
{
	struct gf_ucx *u = gf_ucx_of(c);
	struct gf_ucx_peer *p = &u->peers[rank];
	const void *address = gf_cards_address(&u->cards, rank);
	const ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = address,
		/* the transport within a process knows no failure */
		.err_mode =
			rank == c->rank ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {note_failure, p},
	};
	ucs_status_t status;
	int rc;

	if (p->endpoint || p->failed != UCS_OK)
		return 0;
	status = ucp_ep_create(u->worker, &params, &p->endpoint);
	if (status == UCS_OK)
		return 0;
	p->endpoint = NULL;
	c->broken = true;
	rc = gf_ucx_fail(status, "ucp_ep_create", err);
	gf_error_prefix(err, "rank %d", rank);
	return rc;
}

/* UCX has ended it: perhaps before the call that posts it returns, and then it is on no list
 * yet. */
static void conclude(struct gf_comm_request *r, ucs_status_t status, size_t got_bytes)
{
	r->done = true;
	r->status = status;
	if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED && !r->cancelled)
		note_failure(&r->owner->peers[r->peer], NULL, status);
	r->got_bytes = got_bytes;
	if (!r->handle)
		return;
	ucp_request_free(r->handle);
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	if (r->cancelled)
		gf_slab_give(&r->owner->requests, r);
}

static void sent(void *handle, ucs_status_t status, void *request)
{
	struct gf_comm_request *r = request;

	(void)handle;
	conclude(r, status, r->size_bytes);
}

static void received(void *handle, ucs_status_t status, const ucp_tag_recv_info_t *info,
		     void *request)
{
	(void)handle;
	conclude(request, status, info->length);
}

/* Takes what a post has given back. A failure comes out in test. */
static struct gf_comm_request *posted(struct gf_comm_request *r, ucs_status_ptr_t handle)
{
	struct gf_ucx *u = r->owner;

	if (!UCS_PTR_IS_PTR(handle)) {
		conclude(r, UCS_PTR_STATUS(handle), r->size_bytes);
	} else if (r->done) {
		ucp_request_free(handle);
	} else { /* UCX has it under way */
		r->handle = handle;
		r->next = u->live;
		r->at = &u->live;
		if (r->next)
			r->next->at = &r->next;
		u->live = r;
	}
	return r;
}

/* Makes a message ready to be posted. source: in its tag. */
static int prepare(struct gf_comm *c, int peer, int source, uint64_t tag, ucp_tag_t *mapped,
		   struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request *r;
	int rc = map_tag(source, tag, mapped, err);

	rc = rc ?: connect_to(c, peer, err);
	if (rc)
		return rc;
	r = gf_slab_take(&gf_ucx_of(c)->requests);
	*r = (struct gf_comm_request){.owner = gf_ucx_of(c), .peer = peer, .tag = tag};
	*request = r;
	return 0;
}

static int ucx_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err)
{
	const struct gf_ucx_peer *p = &gf_ucx_of(c)->peers[peer];
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = sent,
	};
	struct gf_comm_request *r;
	ucp_tag_t mapped;
	int rc = prepare(c, peer, c->rank, tag, &mapped, &r, err);

	if (rc)
		return rc;
	r->size_bytes = size_bytes;
	param.user_data = r;
	*request = posted(r, p->failed != UCS_OK ? UCS_STATUS_PTR(p->failed)
						 : ucp_tag_send_nbx(p->endpoint, data, size_bytes,
								    mapped, &param));
	return 0;
}

static int ucx_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err)
{
	/* only the callback learns how long the message was */
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv = received,
	};
	struct gf_comm_request *r;
	ucp_tag_t mapped;
	int rc = prepare(c, peer, peer, tag, &mapped, &r, err);

	if (rc)
		return rc;
	r->size_bytes = size_bytes;
	param.user_data = r;
	*request = posted(r, ucp_tag_recv_nbx(gf_ucx_of(c)->worker, data, size_bytes, mapped,
					      WHOLE_TAG, &param));
	return 0;
}

static bool ucx_poll(struct gf_comm *c)
{
	struct gf_ucx *u = gf_ucx_of(c);
	int n;

	u->round++;
	for (n = 0; n < BURST && ucp_worker_progress(u->worker); n++)
		;
	return n > 0;
}

static bool ucx_is_ripe(const struct gf_comm *c, const struct gf_comm_request *r)
{
	const struct gf_ucx *u = c->priv;

	return r->done || u->peers[r->peer].failed != UCS_OK;
}

static void ucx_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	struct gf_ucx *u = gf_ucx_of(c);

	if (r->done) {
		gf_slab_give(&u->requests, r);
		return;
	}
	r->cancelled = true;
	ucp_request_cancel(u->worker, r->handle);
}

/* The network is polled once a round, when a request is tested for the second time in it: a caller
 * that waits for several messages tests them in turn. */
static int ucx_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	struct gf_ucx *u = gf_ucx_of(c);
	const struct gf_ucx_peer *p = &u->peers[r->peer];
	int rc = 1;

	if (r->round == u->round && (!r->done || p->failed != UCS_OK))
		ucx_poll(c);
	r->round = u->round;
	if (r->done && (r->status == UCS_OK || r->status == UCS_ERR_MESSAGE_TRUNCATED)) {
		if (r->status != UCS_OK || r->got_bytes != r->size_bytes)
			rc = gf_error_set(err, -EMSGSIZE,
					  "message from rank %d, channel %" PRIu64
					  ", match %" PRIu64 ": want %zu bytes, got %zu",
					  r->peer, r->tag >> 32, r->tag & UINT32_MAX, r->size_bytes,
					  r->got_bytes);
		gf_slab_give(&u->requests, r);
		return rc;
	}
	if (p->failed == UCS_OK || gf_clock_s() - p->failed_s < GRACE_S)
		return 0;
	ucx_cancel(c, r);
	c->broken = true;
	return gf_error_set(err, -ECONNRESET, "rank %d is gone (UCX: %s)", r->peer,
			    ucs_status_string(p->failed));
}

static int ucx_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	struct gf_ucx *u = gf_ucx_of(c);
	ucp_tag_recv_info_t info;
	ucp_tag_t mapped;
	int rc = map_tag(0, tag, &mapped, err);

	if (rc)
		return rc;
	ucx_poll(c);
	if (!ucp_tag_probe_nb(u->worker, mapped, ~GF_UCX_SOURCE_MASK, 0, &info))
		return 0;
	*peer = (int)(info.sender_tag >> GF_UCX_SOURCE_SHIFT);
	return 1;
}

static bool ucx_is_gone(struct gf_comm *c, int rank)
{
	return gf_ucx_of(c)->peers[rank].failed != UCS_OK;
}

const struct gf_comm_ops gf_ucx_messages = {
	.isend = ucx_isend,
	.irecv = ucx_irecv,
	.test = ucx_test,
	.is_ripe = ucx_is_ripe,
	.poll = ucx_poll,
	.cancel = ucx_cancel,
	.probe = ucx_probe,
	.is_gone = ucx_is_gone,
};
