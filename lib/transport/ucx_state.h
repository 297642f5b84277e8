/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_UCX_STATE_H
#define GF_TRANSPORT_UCX_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#include "base/slab.h"
#include "transport/comm.h"
#include "transport/transport.h"
#include "base/digest.h"
#include "transport/join.h"

/* The addresses of all ranks, each below its seal. The caller frees `sealed`.
 */
struct gf_cards {
	char *sealed;
	size_t size_bytes;
};

static inline const void *gf_cards_address(const struct gf_cards *c, int rank)
{
	return c->sealed + (size_t)rank * c->size_bytes + GF_DIGEST_BYTES;
}

/*
 * Shows a rank's address to all, in two rounds of the allgather: a card, which says how long the
 * address is or why there is none (rc, *err), and the address itself. All ranks fail alike. Nothing
 * that comes back is believed, -EPROTO: each address must be as its rank has sealed it, with a
 * digest that covers the rank, the ranks and the place's key. UCX would end the process by an
 * assertion on bytes that are no address.
 */
int gf_cards_show(const struct gf_join *join, int rc, const void *address, size_t size_bytes,
		  struct gf_cards *cards, struct gf_error *err);

/*
 * The common state of the UCX transport's files, which alone call UCX: ucx.c opens and closes,
 * ucx_message.c passes messages.
 *
 * A rank has one worker, and an endpoint to each rank that it has had to do with. Requests that UCX
 * still has are on the list `live`; one that was given up stays there until UCX lets go of it.
 */
#define GF_UCX_SOURCE_BITS  20
#define GF_UCX_CHANNEL_BITS 20
#define GF_UCX_MATCH_BITS   24
#define GF_UCX_SOURCE_SHIFT (GF_UCX_CHANNEL_BITS + GF_UCX_MATCH_BITS)
#define GF_UCX_SOURCE_MASK  (UINT64_MAX << GF_UCX_SOURCE_SHIFT)
#define GF_UCX_RANKS_MOST   (1 << GF_UCX_SOURCE_BITS)

struct gf_ucx;

struct gf_comm_request {
	struct gf_comm_request *unused; /* the slab's */
	struct gf_ucx *owner;
	struct gf_comm_request *next, **at; /* in `live` */
	void *handle;                       /* UCX's, while it is on the list */
	uint64_t round;                     /* when it was last tested */
	bool done, cancelled;
	ucs_status_t status;
	size_t size_bytes, got_bytes;
	int peer;
	uint64_t tag;
};

struct gf_ucx_peer {
	ucp_ep_h endpoint;   /* NULL: none yet, or closed */
	ucs_status_t failed; /* UCS_OK: not so */
	double failed_s;     /* when that was found */
};

struct gf_ucx {
	struct gf_comm comm;
	struct gf_comm_ops ops;
	ucp_context_h context;
	ucp_worker_h worker;
	int wake_fd;
	struct gf_ucx_peer *peers;
	struct gf_cards cards;
	struct gf_comm_request *live;
	uint64_t round; /* of progress; from 1 */
	struct gf_slab requests;
};

static inline struct gf_ucx *gf_ucx_of(struct gf_comm *c)
{
	return c->priv;
}

/* Keeps the reason; -EIO. Whether the communicator is broken is the caller's to say. */
int gf_ucx_fail(ucs_status_t status, const char *call, struct gf_error *err);

/* Needs err, rc and a label out. */
#define UCX_TRY(call, ...)                                                                         \
	do {                                                                                       \
		ucs_status_t status_ = call(__VA_ARGS__);                                          \
		if (status_ != UCS_OK) {                                                           \
			rc = gf_ucx_fail(status_, #call, err);                                     \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

/* --- ucx_message.c */

/* The operations that pass messages; the others are NULL. */
extern const struct gf_comm_ops gf_ucx_messages;

#endif
