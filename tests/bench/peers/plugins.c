/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries that are loaded (plugins/plugin.h), each of their algorithms. */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>

#include "../plugins/plugin.h"
#include "arena.h"

static struct {
	const struct gf_peer *plugin;
	void *peer;
} opened[CONTESTANTS_MOST];
static int nopened;

/* An address of this host that others reach. */
static void own_address(char *text, socklen_t size)
{
	struct ifaddrs *all, *i;

	snprintf(text, size, "127.0.0.1");
	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
		    !(i->ifa_flags & IFF_LOOPBACK))
			getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), text, size, NULL, 0,
				    NI_NUMERICHOST);
	freeifaddrs(all);
}

static int allgather(const void *send, size_t size_bytes, void *recv)
{
	return MPI_Allgather(send, (int)size_bytes, MPI_BYTE, recv, (int)size_bytes, MPI_BYTE,
			     MPI_COMM_WORLD);
}

/* Takes part if it opens on every rank. */
static void open_way(struct arena *a, const struct gf_peer *plugin, int way)
{
	char address[64], name[40];
	struct gf_peer_place place = {.rank = a->comm->rank,
				      .ranks = a->comm->ranks,
				      .address = address,
				      .store = a->o.store,
				      .allgather = allgather};
	void *peer;
	int ok;

	own_address(address, sizeof(address));
	peer = plugin->open(&place, way);
	ok = peer != NULL;
	MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	snprintf(name, sizeof(name), "%s-%s", plugin->name, plugin->ways[way]);
	if (ok) {
		opened[nopened].plugin = plugin;
		opened[nopened].peer = peer;
		enlist(a, &plugin_side, PEER, name)->number = nopened++;
		return;
	}
	if (a->comm->rank == 0)
		printf("without %s: it does not open\n", name);
	if (peer)
		plugin->close(peer);
}

static void enter(struct arena *a)
{
	int i, way;

	for (i = 0; i < a->o.nplugins; i++) {
		void *library = dlopen(a->o.plugins[i], RTLD_NOW);
		const struct gf_peer *plugin = library ? dlsym(library, "gf_peer") : NULL;

		must(!plugin, a->o.plugins[i]);
		for (way = 0; plugin->ways[way]; way++)
			open_way(a, plugin, way);
	}
}

static void start(struct arena *a, struct contestant *c)
{
	const struct gf_peer *plugin = opened[c->number].plugin;

	if (plugin->start)
		must(plugin->start(opened[c->number].peer, c->data, a->count), c->name);
}

static void run(struct arena *a, struct contestant *c)
{
	must(opened[c->number].plugin->run(opened[c->number].peer, c->data, a->count), c->name);
}

static void end(struct arena *a, struct contestant *c)
{
	const struct gf_peer *plugin = opened[c->number].plugin;

	(void)a;
	if (plugin->end)
		plugin->end(opened[c->number].peer);
}

static void leave(struct arena *a)
{
	(void)a;
	while (nopened-- > 0)
		opened[nopened].plugin->close(opened[nopened].peer);
}

const struct side plugin_side = {
	.enter = enter,
	.start = start,
	.run = run,
	.end = end,
	.leave = leave,
};
