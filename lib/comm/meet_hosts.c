/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "comm/meet.h"
#include "comm/processors.h"

/* Shared memory is opened by process numbers, which are of a namespace. */
static const char pids_file[] = "/proc/self/ns/pid";

struct identity {
	char name[256], kernel[GF_KERNEL_BYTES], pids[64];
};

static void identify(struct identity *own)
{
	memset(own, 0, sizeof(*own));
	gethostname(own->name, sizeof(own->name) - 1);
	gf_comm_kernel(own->kernel);
	/* not known: left empty, alike on the ranks of a host */
	if (readlink(pids_file, own->pids, sizeof(own->pids) - 1) < 0)
		own->pids[0] = '\0';
}

int gf_meet_hosts(struct gf_comm *c, struct gf_error *err)
{
	struct identity own, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int rank, rc;

	identify(&own);
	rc = gf_comm_allgather(c, &own, sizeof(own), all, err);
	c->host = c->rank;
	c->local_rank = c->local_ranks = 0;
	for (rank = 0; rank < c->ranks && !rc; rank++) {
		if (memcmp(&all[rank], &own, sizeof(own)) != 0)
			continue;
		if (!c->local_ranks++)
			c->host = rank;
		c->local_rank += rank < c->rank;
	}
	free(all);
	return rc;
}
