/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_CARDS_H
#define GF_COMM_CARDS_H

#include <stddef.h>

#include "base/digest.h"
#include "comm/join.h"

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
 * Shows a rank's address to all, in two rounds of the allgather: a card, which
 * says how long the address is or why there is none (rc, *err), and the address
 * itself. All ranks fail alike.
 * Nothing that comes back is believed, -EPROTO: each address must be as its
 * rank has sealed it, with a digest that covers the rank, the ranks and the
 * place's key. UCX would end the process by an assertion on bytes that are no
 * address.
 */
int gf_cards_show(const struct gf_join *join, int rc, const void *address,
		  size_t size_bytes, struct gf_cards *cards,
		  struct gf_error *err);

#endif
