/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_SHM_STATE_H
#define GF_TRANSPORT_SHM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"
#include "transport/comm.h"
#include "transport/shm_queue.h"

/*
 * The common state of the shared-memory transport's parts: shm.c has the operations, shm_move.c the
 * messages, shm_join.c finds the host's other ranks.
 */
enum gf_shm_state {
	GF_SHM_PENDING, /* send: the queue is full */
	GF_SHM_READING, /* send: announced, the receiver reads our memory */
	GF_SHM_POSTED,  /* receive: nothing has come */
	GF_SHM_COPYING, /* receive: from the sender's memory */
	GF_SHM_BELOW,   /* both: the transport below has it */
	GF_SHM_COMPLETE,
	GF_SHM_FAILED,
};

/* A part of a rank's memory. */
struct gf_shm_place {
	uint64_t segment; /* serial number there; 0: none */
	uint64_t offset;
};

struct gf_comm_request {
	enum gf_shm_state state;
	int peer; /* index into peers, -1: `below` alone */
	/* send: lent; receive that reduces: to be put back if it is lent */
	bool lent;
	struct gf_shm_place back; /* where at the peer it has been put */
	uint64_t tag;
	size_t size_bytes, done_bytes;
	const char *from;
	char *to;
	char *lent_at;                   /* receive, GF_SHM_COPYING: from, if it may be written */
	const struct gf_element *reduce; /* to becomes to + from; or NULL */
	char *bounce;                    /* reduce, GF_SHM_BELOW: where it lands first */
	_Atomic uint32_t *done;
	struct gf_comm_request *below;
	struct gf_comm_request *next;
	int failure_rc;
	struct gf_error failure; /* last: not cleared without need */
};

/* A message that came before its receive. */
struct gf_shm_arrival {
	struct gf_shm_entry entry;
	struct gf_shm_arrival *next;
};

/* A sum that lies at the peer already. */
struct gf_shm_sum {
	const char *data;
	size_t size_bytes;
	struct gf_shm_place at;
	struct gf_shm_sum *next;
};

struct gf_shm_list {
	struct gf_comm_request *first, **last;
};

struct gf_shm_mapped {
	struct gf_segment segment;
	uint64_t serial;
};

struct gf_shm_peer {
	int rank, pid;
	int pid_fd; /* readable once the process has ended; or -1 */
	bool gone;
	double gone_s;
	struct gf_shm_queue *out, *in;
	struct gf_shm_list pending, posted;
	struct gf_shm_arrival *arrivals, **last_arrival;
	struct gf_shm_sum *sums;
	struct gf_shm_mapped *mapped;
	size_t nmapped, mapped_capacity;
	uint32_t next_done;
	bool held[GF_SHM_DONE]; /* done flags that a send has not seen raised */
};

struct gf_shm_own {
	struct gf_segment segment;
	uint64_t serial;
};

struct gf_shm {
	struct gf_comm comm, *below;
	struct gf_comm_ops ops;    /* without those that below lacks */
	struct gf_segment control; /* the queues */
	struct gf_shm_peer *peers; /* the other ranks of this host */
	int npeers;
	int *peer_of; /* per rank; -1 not on this host */
	struct gf_shm_own *own;
	size_t nown, own_capacity;
	uint64_t serial;
	uint64_t rounds; /* of progress */
	struct gf_slab requests, arrivals, sums;
};

/* --- shm_move.c */

struct gf_comm_request *gf_shm_take(struct gf_shm *s);
void gf_shm_give(struct gf_shm *s, struct gf_comm_request *r);
void gf_shm_append(struct gf_shm_list *l, struct gf_comm_request *r);
void gf_shm_unlink(struct gf_shm_list *l, struct gf_comm_request *r);
/* A GF_SHM_PENDING send: announces it if the queue has room. */
void gf_shm_push(struct gf_shm *s, struct gf_comm_request *r);
/* Takes the message that has come for the receive, or leaves it GF_SHM_POSTED. */
void gf_shm_receive(struct gf_shm *s, struct gf_comm_request *r);
/* Sends messages that wait for room, and takes in arrivals from all peers. */
void gf_shm_progress(struct gf_shm *s);
/* Moves one request on that is GF_SHM_COPYING, GF_SHM_BELOW or GF_SHM_READING.
 */
void gf_shm_advance(struct gf_shm *s, struct gf_comm_request *r);

/* --- shm_join.c */

/* Looks, in each round of progress, whether a peer has ended. */
void gf_shm_look(struct gf_shm *s);
/* Asks the kernel now. */
bool gf_shm_has_ended(struct gf_shm_peer *p);
/* -ECONNRESET: the request waits for a process that has ended. */
int gf_shm_lost(struct gf_shm *s, const struct gf_comm_request *r, struct gf_error *err);

/* --- shm_back.c: sums that go back to where a part of them came from */

/* Forgets a sum that was put back from the memory of that receive. */
void gf_shm_forget(struct gf_shm *s, const struct gf_comm_request *receive);
/* The receive has put its sum back. */
void gf_shm_remember(struct gf_shm *s, const struct gf_comm_request *receive);
/* The place at the peer at which a send's data lies already; forgets it. */
struct gf_shm_place gf_shm_recall(struct gf_shm *s, const struct gf_comm_request *send);

/* A GF_SHM_READING send lets go of its done flag. */
void gf_shm_let_go(struct gf_shm *s, const struct gf_comm_request *r);

/* Collective. Finds the host's other ranks and the queues to them; *usable only if some ranks share
 * a host and every host lets them share memory. */
int gf_shm_join(struct gf_shm *s, bool *usable, struct gf_error *err);

#endif
