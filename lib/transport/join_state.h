/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_JOIN_STATE_H
#define GF_TRANSPORT_JOIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/join.h"
#include "base/error.h"

/*
 * The place at which ranks meet: join_port.c is the star of connections with rank 0 in the middle,
 * and join_folder.c says where rank 0 listens if ranks know a folder in place of its port.
 */
struct gf_join_place {
	char *name; /* for messages */
	bool folder;
	int rank, ranks;
	double timeout_s;
	struct gf_port *port; /* of join_port.c */
};

/* NAME:DIGITS, and no path. */
bool gf_join_is_port(const char *place);

/* --- join_folder.c */

struct gf_join_key {
	uint64_t halves[2]; /* zeros: none */
};

/* Rank 0 listens there: leaves its addresses and a key in the folder, which is made if need be. */
int gf_join_announce(const struct gf_join_place *p, int listener, struct gf_join_key *key,
		     struct gf_error *err);
/* Where rank 0 listens, by the file that is there now, and its key; ends with NULL. The caller
 * frees all. */
char **gf_join_find(const struct gf_join_place *p, struct gf_join_key *key);
void gf_join_withdraw(const struct gf_join_place *p);

/* Sockets that wait no longer than they are told; until_s is on gf_clock_s. All return a descriptor
 * or bytes, or a negative errno. */

/* The most sockets that listen for one place. */
#define GF_SOCKET_LISTENERS 8
/* "ADDRESS:PORT" */
#define GF_SOCKET_PEER 64

/* Listens at PORT of each address that HOST stands for on this machine; of all its addresses if
 * that is none, but 127.0.1.1 and the like for a name. NULL: a port of the kernel's, at all
 * addresses. Returns how many sockets. */
int gf_socket_listen(const char *place, int fds[GF_SOCKET_LISTENERS], struct gf_error *err);
/* The port at which it listens. */
int gf_socket_port(int listener);
/* One attempt at each address of HOST. -ENXIO: it has none. */
int gf_socket_connect(const char *place, double until_s);
/* -EAGAIN: nobody is there. */
int gf_socket_accept(int listener, char peer[GF_SOCKET_PEER]);
/* What is there: 0 is nothing yet, -ECONNRESET the end. */
ssize_t gf_socket_some(int fd, void *data, size_t size_bytes);
bool gf_socket_gone(int fd);
/* The first size_bytes that come, which stay to be read. */
int gf_socket_peek(int fd, void *data, size_t size_bytes, double until_s);
/* All of it: 0, -ETIMEDOUT, -ECONNRESET or another errno. */
int gf_socket_read(int fd, void *data, size_t size_bytes, double until_s);
int gf_socket_write(int fd, const void *data, size_t size_bytes, double until_s);

#endif
