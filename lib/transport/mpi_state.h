/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_MPI_STATE_H
#define GF_TRANSPORT_MPI_STATE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"
#include "transport/comm.h"
#include "transport/transport.h"

/*
 * The common state of the MPI transport's files, which alone call MPI: mpi.c opens and closes and
 * has the collective calls, mpi_message.c passes messages, mpi_number.c knows MPI's types and
 * operations, mpi_told.c has the all-reduce that is told how to go.
 *
 * WAITING. Between open and close all calls but one return at once: collectives are the
 * non-blocking ones, because a blocked rank could neither give up nor answer whether it is alive.
 * The exceptions are MPI_Comm_create_group, which has no other form, and mpi_told.c's.
 */
struct gf_comm_request {
	struct gf_comm_request *unused; /* the slab's */
	/* each test reads these: one line of the cache */
	size_t npieces, done;
	MPI_Request one, *pieces; /* &one, or many */
	size_t place;             /* 1 + where it is on the list; 0: not there */
	uint64_t round;           /* when it was last asked about */
	bool come, receive;       /* piece `done` has come: code and state */
	int code;

	MPI_Status state;
	MPI_Request *many; /* kept for the next long message */
	size_t capacity;   /* of many */
	int peer;
	uint64_t tag;
	size_t size_bytes, piece_bytes;
};

/* The list of requests that are waited for, as MPI wants it. The handle of a request on the list is
 * here, not among its pieces. Rounds are counted from 1. */
struct gf_mpi_asked {
	struct gf_comm_request **list, **come;
	MPI_Request *handles;
	MPI_Status *states;
	int *which;
	size_t n, capacity;
	uint64_t round;
	bool found; /* something, in this round */
};

struct gf_mpi {
	struct gf_comm comm;
	struct gf_comm_ops ops;
	bool own;       /* began MPI, and ends it */
	bool yields;    /* as it was begun */
	bool tools;     /* MPI_T has begun, which takes 0.2 s */
	MPI_Comm world; /* a duplicate: has only this library's messages */
	struct gf_tag_bits tag_bits;
	size_t piece_bytes;
	struct gf_slab requests;
	struct gf_mpi_asked asked;
	MPI_Request nothing;    /* persistent: from nobody, done when started */
	MPI_Datatype two_bytes; /* f16 and bf16, which MPI does not know */
	MPI_Op half_ops[GF_DTYPES][GF_OPS];
	struct gf_comm_team *teams;
};

static inline struct gf_mpi *gf_mpi_of(struct gf_comm *c)
{
	return c->priv;
}

/* Does MPI yield the processor in each test that finds nothing? Returns what it did before. Nothing
 * where the library is not Open MPI. */
bool gf_mpi_set_yields(bool yields);
/* What does that, to be called often; NULL: it is not Open MPI. */
bool (*gf_mpi_yielder(void))(bool yields);

/* Keeps the reason, and sets c->broken; c NULL: there is no communicator yet. -EIO. */
int gf_mpi_fail(struct gf_comm *c, int code, const char *call, struct gf_error *err);

/* Needs c, err, rc and a label out. */
#define MPI_TRY(call, ...)                                                                         \
	do {                                                                                       \
		int code_ = call(__VA_ARGS__);                                                     \
		if (code_ != MPI_SUCCESS) {                                                        \
			rc = gf_mpi_fail(c, code_, #call, err);                                    \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

/* --- mpi_message.c */

/* A request of so many pieces, all MPI_REQUEST_NULL. */
struct gf_comm_request *gf_mpi_take(struct gf_comm *c, size_t npieces);
size_t gf_mpi_count_pieces(size_t size, size_t limit);
void gf_mpi_cancel(struct gf_comm *c, struct gf_comm_request *r);
/* The operations that pass messages; the others are NULL. */
extern const struct gf_comm_ops gf_mpi_messages;
void gf_mpi_asked_release(struct gf_mpi_asked *a);

/* --- mpi_told.c */

int gf_mpi_tell(struct gf_comm *c, int algorithm, size_t segment_bytes, struct gf_comm_told **told,
		struct gf_error *err);

/* --- mpi_number.c */

/* The two bytes, and the operations on them. */
int gf_mpi_numbers_make(struct gf_mpi *m, struct gf_error *err);
void gf_mpi_numbers_free(struct gf_mpi *m);
/* -ENOTSUP: no number. */
int gf_mpi_number(const struct gf_mpi *m, const struct gf_element *element, MPI_Datatype *type,
		  MPI_Op *op, struct gf_error *err);

#endif
