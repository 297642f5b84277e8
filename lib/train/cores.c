/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

struct place {
	char machine[64];
	cpu_set_t mask;
};

static void find_machine(char *name, size_t size)
{
	FILE *f = fopen(BOOT_ID, "r");
	size_t n = f ? fread(name, 1, size - 1, f) : 0;

	name[n] = '\0';
	if (f)
		fclose(f);
	if (!n)
		gethostname(name, size - 1);
}

int gf_cores_find(struct gf_comm *comm, struct gf_cores *cores,
		  struct gf_error *err)
{
	struct place own = {{0}, {{0}}};
	struct place *all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	cpu_set_t together;
	int r, rc;

	find_machine(own.machine, sizeof(own.machine));
	if (sched_getaffinity(0, sizeof(own.mask), &own.mask))
		CPU_SET(0, &own.mask); /* more than 1024: count on one */
	rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	if (rc)
		goto out;
	memset(cores, 0, sizeof(*cores));
	CPU_ZERO(&together);
	for (r = 0; r < comm->ranks; r++) {
		if (strcmp(all[r].machine, own.machine) != 0)
			continue;
		cores->ranks++;
		if (CPU_EQUAL(&all[r].mask, &own.mask))
			cores->sharing++;
		CPU_OR(&together, &together, &all[r].mask);
	}
	cores->own = CPU_COUNT(&own.mask);
	cores->all = CPU_COUNT(&together);
out:
	free(all);
	return rc;
}

int gf_cores_threads(const struct gf_cores *cores)
{
	int threads = cores->own / cores->sharing;

	return threads < 1 ? 1 : threads;
}
