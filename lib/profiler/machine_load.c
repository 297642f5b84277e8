/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"

/* All processors of this machine since it started; < 0: unknown. Time that a hypervisor gave to
 * others (steal) is busy, too. */
static double busy_s(void)
{
	FILE *f = gf_heap_need(fopen("/proc/stat", "r"));
	double user, nice, system, idle, wait, irq, soft, steal = 0;
	int n;

	if (!f)
		return -1;
	n = fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
		   &irq, &soft, &steal);
	fclose(f);
	if (n < 7)
		return -1;
	return (user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK);
}

static double own_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void gf_measure_load_begin(struct gf_measure_load *l)
{
	l->began_s = gf_clock_s();
	l->busy_s = busy_s();
	l->own_s = own_s();
}

/* What one rank saw. */
struct seen {
	int machine, online; /* processors; 0: unknown */
	double share;        /* this rank's, in processors; 0: unknown */
	double busy, own;    /* per second */
};

static struct seen look(const struct gf_measure_load *l, const struct gf_comm *comm)
{
	double took_s = gf_clock_s() - l->began_s, now_s = busy_s();
	struct seen s = {.machine = comm->machine};

	if (l->busy_s < 0 || now_s < 0 || !(took_s > 0))
		return s;
	s.online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	s.share = comm->processors;
	s.busy = (now_s - l->busy_s) / took_s;
	s.own = (own_s() - l->own_s) / took_s;
	return s;
}

int gf_measure_load_end(const struct gf_measure_load *l, struct gf_comm *comm,
			struct gf_measure_load_found *found, struct gf_error *err)
{
	struct seen own = look(l, comm);
	struct seen *all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	int rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	int h, r;

	*found = (struct gf_measure_load_found){.others = -1};
	for (h = 0; rc == 0 && h < comm->ranks; h++) {
		struct gf_measure_load_found here = {0};
		double share = 0, beside;

		for (r = h; r < comm->ranks; r++)
			if (all[r].machine == h) {
				here.ranks++;
				here.own += all[r].own;
				share += all[r].share;
			}
		if (all[h].machine != h || !all[h].online)
			continue;
		/* thirds of a processor may sum to a little more than one */
		here.processors = (int)ceil(share - 1e-6);
		if (here.processors < 1 || here.processors > all[h].online)
			here.processors = all[h].online;
		/* other programs may be where this one may not be */
		beside = all[h].online - here.processors;
		here.others = fmax(all[h].busy - here.own - beside, 0);
		if (here.others > found->others)
			*found = here;
	}
	free(all);
	return rc;
}
