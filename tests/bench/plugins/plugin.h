/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BENCH_PLUGIN_H
#define GF_BENCH_PLUGIN_H

#include <stddef.h>

/*
 * Another library's all-reduce, for allreduce_peers to load: built apart, with that library's
 * headers, as a shared object that exports one `gf_peer`. The project neither needs the library nor
 * links with it.
 */
struct gf_peer_place {
	int rank, ranks;
	const char *address; /* of this host, that others reach */
	const char *store;   /* a folder that all ranks see; or NULL */
	/* Blocking, all ranks; 0. recv: ranks * size_bytes. */
	int (*allgather)(const void *send, size_t size_bytes, void *recv);
};

struct gf_peer {
	const char *name;
	const char *const *ways; /* algorithms; NULL-terminated */
	/* Collective. NULL after saying why on stderr. */
	void *(*open)(const struct gf_peer_place *place, int way);
	/* Around the runs on one buffer; optional. 0, or -1 after saying why; so, too, the next. */
	int (*start)(void *peer, float *data, size_t count);
	/* Sums over all ranks, in place. */
	int (*run)(void *peer, float *data, size_t count);
	void (*end)(void *peer); /* optional */
	void (*close)(void *peer);
};

#endif
