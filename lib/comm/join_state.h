/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_JOIN_STATE_H
#define GF_COMM_JOIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/join.h"

/*
 * The place at which ranks meet: join_port.c is the star of connections with
 * rank 0 in the middle, and join_folder.c says where rank 0 listens if ranks
 * know a folder in place of its port.
 */
struct gf_join_place {
	char *name; /* for messages */
	bool folder;
	int rank, ranks;
	double timeout_s;
	struct gf_port *port; /* of join_port.c */
};

/* Meets all other ranks; gf_port_close follows also if this fails. key: the
 * folder's, or zeros. */
int gf_port_open(struct gf_join_place *p, uint64_t key[2],
		 struct gf_error *err);
int gf_port_allgather(struct gf_join_place *p, const void *send,
		      size_t size_bytes, void *recv, struct gf_error *err);
void gf_port_close(struct gf_join_place *p);

/* More than that is no blob. */
#define GF_PLACE_MOST_BYTES ((size_t)1 << 20)

/* Text says "rank 2 has not come" or "ranks 2, 5 have not come"; -ETIMEDOUT.
 * come: per rank. */
int gf_place_missing(const struct gf_join_place *p, const bool *come,
		     struct gf_error *err);

/* NAME:DIGITS, and no path. */
bool gf_join_is_port(const char *place);

/* --- join_folder.c */

struct gf_join_key {
	uint64_t halves[2]; /* zeros: none */
};

/* Rank 0 listens there: leaves its addresses and a key in the folder, which is
 * made if need be. */
int gf_join_announce(const struct gf_join_place *p, int listener,
		     struct gf_join_key *key, struct gf_error *err);
/* Where rank 0 listens, by the file that is there now, and its key; ends with
 * NULL. The caller frees all. */
char **gf_join_find(const struct gf_join_place *p, struct gf_join_key *key);
void gf_join_withdraw(const struct gf_join_place *p);

#endif
