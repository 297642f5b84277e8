/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_TRANSPORT_H
#define GF_TRANSPORT_TRANSPORT_H

#include <stdint.h>

#include "transport/comm.h"
#include "transport/join.h"
#include "base/error.h"

/*
 * A transport is one file with the callbacks of struct gf_comm_ops (comm.h) and one entry,
 * gf_transport_NAME. An entry has one of three ways to make a communicator; gf_comm_open takes one
 * of the first two kinds, and then puts every layer over it, in the order of listings. Check its
 * messages with tests/unit/transport.h, as test_mpi.c and test_shm.c do.
 */
struct gf_transport {
	const char *name;        /* as in gf_comm_ops */
	const char *description; /* one line, for --list */
	unsigned place;          /* in listings, ascending (lib/list.sh) */
	/* Before any rank is looked for: undoes what the transport's library has done to the
	 * process as it was loaded. (optional) */
	void (*settle)(const struct gf_comm_how *how);
	/* All ranks of the job that the process was started in. */
	int (*launched)(struct gf_comm **comm, struct gf_error *err);
	/* The ranks that the allgather connects, which is borrowed until it returns. Of how, only
	 * `variable` counts. */
	int (*join)(const struct gf_comm_how *how, const struct gf_join *join,
		    struct gf_comm **comm, struct gf_error *err);
	/* A layer, for the ranks that it connects better than the transport below. Takes `below`;
	 * *comm is `below` itself where it helps none, the same on every rank. */
	int (*over)(struct gf_comm *below, struct gf_comm **comm, struct gf_error *err);
};

extern const struct gf_transport *const gf_transports[]; /* NULL-terminated */

/*
 * Ranks of one host meet in shared memory; everything else goes through the transport below. The
 * host's other ranks can read memory from buffer_alloc directly. So a receive that reduces is one
 * pass over the sender's memory and the receiver's, with no copy between: the sum of two ranks
 * reads two halves and writes two halves.
 *
 * Collective. Takes `below`: closing *comm closes it. Where no two ranks share a host, or some host
 * does not let its processes share memory, *comm is `below` itself on every rank.
 */
int gf_comm_shm_over(struct gf_comm *below, struct gf_comm **comm, struct gf_error *err);

/* --- what transports are made of ---------------------------------------- */

/* How many bits of a transport's own tags hold channel and match. */
struct gf_tag_bits {
	int channel, match;
};

/* The tag in so many bits, channel above match. The library's own channels are counted down from
 * the top. -EOVERFLOW: it does not fit; `whose` tags they are. */
int gf_tag_pack(const struct gf_tag_bits *bits, uint64_t tag, const char *whose, uint64_t *packed,
		struct gf_error *err);

/* What gf_comm_barrier, _bcast and _allgather do on the communicator where ranks meet. After a
 * failure the memory stays in use; `all` has this rank's part. */
int gf_meet_barrier(struct gf_comm *c, struct gf_error *err);
int gf_meet_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes, struct gf_error *err);
int gf_meet_allgather(struct gf_comm *c, void *all, size_t size_bytes, struct gf_error *err);

#endif
