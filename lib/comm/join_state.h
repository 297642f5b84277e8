/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_JOIN_STATE_H
#define GF_COMM_JOIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/join.h"

/*
 * The common state of the places at which ranks meet: join.c chooses one,
 * join_folder.c (with join_file.c) and join_port.c are the places.
 */
struct gf_join_place;

struct gf_place_ops {
	/* Meets all other ranks. */
	int (*open)(struct gf_join_place *p, struct gf_error *err);
	int (*allgather)(struct gf_join_place *p, const void *send,
			 size_t size_bytes, void *recv, struct gf_error *err);
	/* rc: as gf_join_close. Also after open has failed. */
	void (*close)(struct gf_join_place *p, int rc);
};

struct gf_join_place {
	const struct gf_place_ops *ops;
	char *name; /* for messages */
	int rank, ranks;
	double timeout_s;
	void *priv; /* close frees it */
};

extern const struct gf_place_ops gf_place_folder, gf_place_port;

/* Rank 0 stays so long to tell others why there is no job, and they wait so
 * long for it. */
#define GF_PLACE_GRACE_S 2.0
/* More than that is no blob. */
#define GF_PLACE_MOST_BYTES ((size_t)1 << 20)

/* Text says "rank 2 has not come" or "ranks 2, 5 have not come"; -ETIMEDOUT.
 * come: per rank. */
int gf_place_missing(const struct gf_join_place *p, const bool *come,
		     struct gf_error *err);
/* -EINVAL: rank came with another number of ranks than this one has. */
int gf_place_other_ranks(const struct gf_join_place *p, int rank, long ranks,
			 struct gf_error *err);

/* --- join_file.c: what ranks leave in a folder */

struct gf_join_key {
	uint64_t halves[2]; /* zeros: none */
};

/* Each file begins so. */
struct gf_join_head {
	char magic[8];
	uint32_t rank, ranks;
	struct gf_join_key own, job;
	uint64_t size_bytes; /* of what follows */
};

struct gf_join_file {
	struct gf_join_head head;
	char *data; /* owned; size_bytes of it */
};

/* A whole file or none; head's magic is filled in. */
int gf_join_write(const char *path, const struct gf_join_head *head,
		  const void *data, struct gf_error *err);
/* false: it is not there, not whole, or not ours; data is NULL then. */
bool gf_join_read(const char *path, struct gf_join_file *f);

#endif
