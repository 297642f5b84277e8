/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The all-reduce beside others', in one run. Under mpirun:
 *
 *	allreduce_peers [-b BYTES] [-e BYTES] [-f FACTOR] [-s SECONDS]
 *		[-l LINK_BYTES_PER_S] [-g GLOO_PEER.so -d STORE] [-a LIST] [-v]
 *
 * Contestants: ours (auto, and the algorithms of -a), MPI_Allreduce by default
 * and by each algorithm that Open MPI's "tuned" component can be forced to,
 * gloo (gloo_peer.cc). They take turns, repeat by repeat, so that all meet the
 * same machine; a time is the slowest rank's, figures are medians.
 *
 * The limit: with -l, 2(n-1)/n of the message over a link of that rate, n
 *hosts, whose ranks share it; else a contestant of its own: every rank copies
 *half of its message to the other half and back, which reads and writes as many
 *bytes as the reduction of its part of all messages straight into all of them.
 */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <math.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bench/stat.h"
#include "rt/burst.h"
#include "rt/choose.h"

enum { MOST = 24, REPEATS = 101, FEWEST = 3 };
/* So much slower than the default on its first run: out of the race. */
static const double hopeless = 3;

static const char *const tuned_names[] = {"default", "linear", "nonoverlap",
					  "recdbl",  "ring",   "segring",
					  "raben",   NULL};
#define TUNED 7

struct gloo {
	void *peer;
	int (*sum)(void *peer, int algorithm, float *data, size_t count);
};

struct options {
	size_t low, high, factor;
	double seconds, link;
	const char *gloo, *store, *algorithms;
	bool verbose;
};

enum side { MPI_PEER, GLOO_PEER, OURS, COPY };

struct contestant {
	enum side side;
	char name[32];
	int number;        /* MPI_PEER: of tuned; GLOO_PEER: 1 ring, 2 bcube */
	struct gf_way way; /* OURS; without an algorithm: auto */
	struct gf_burst *burst;
	bool out;
	double times[REPEATS], processor_s;
	int n;
};

struct arena {
	struct options o;
	struct gf_comm *comm;
	struct gf_watch watch;
	struct gf_chooser *chooser;
	MPI_Comm tuned[TUNED];
	struct gloo gloo;
	struct contestant list[MOST];
	int n;
	float *data;
	size_t count;
};

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "allreduce_peers: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static double processor_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* --- who takes part --------------------------------------------------------
 */

/* The component reads its parameter when a communicator is made. */
static bool force_tuned(int number)
{
	int index, count, provided;
	MPI_T_cvar_handle handle;

	if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) ||
	    MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) ||
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
		return false;
	return !MPI_T_cvar_write(handle, &number);
}

static struct contestant *enlist(struct arena *a, enum side side,
				 const char *prefix, const char *name)
{
	struct contestant *c = &a->list[a->n++];

	must(a->n == MOST, "too many contestants");
	c->side = side;
	snprintf(c->name, sizeof(c->name), "%s%.20s", prefix, name);
	return c;
}

static void enlist_mpi(struct arena *a)
{
	int i;

	for (i = 0; tuned_names[i]; i++) {
		if (!force_tuned(i) && i > 0)
			continue;
		must(MPI_Comm_dup(MPI_COMM_WORLD, &a->tuned[i]), "MPI");
		enlist(a, MPI_PEER, "mpi-", tuned_names[i])->number = i;
	}
	force_tuned(0);
}

/* An address of this host that others reach. */
static void own_address(char *text, socklen_t size)
{
	struct ifaddrs *all, *i;

	snprintf(text, size, "127.0.0.1");
	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
		    (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK))
			getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in),
				    text, size, NULL, 0, NI_NUMERICHOST);
	freeifaddrs(all);
}

static void enlist_gloo(struct arena *a)
{
	void *(*open)(const char *store, int rank, int ranks,
		      const char *address);
	char address[64];
	void *library = a->o.gloo ? dlopen(a->o.gloo, RTLD_NOW) : NULL;

	if (!library)
		return;
	open = (void *(*)(const char *, int, int, const char *))dlsym(
		library, "gloo_peer_open");
	a->gloo.sum = (int (*)(void *, int, float *, size_t))dlsym(
		library, "gloo_peer_sum");
	own_address(address, sizeof(address));
	a->gloo.peer = open(a->o.store, a->comm->rank, a->comm->ranks, address);
	must(!a->gloo.peer, "gloo does not connect");
	enlist(a, GLOO_PEER, "gloo-", "ring")->number = 1;
	enlist(a, GLOO_PEER, "gloo-", "bcube")->number = 2;
}

static void enlist_ours(struct arena *a)
{
	char *names = gf_xstrdup(a->o.algorithms), *rest = names, *name;
	struct gf_way way;
	size_t nlayout;
	int layout[2], i;

	must(gf_way_layout(a->comm, &nlayout, layout, NULL), "layout");
	enlist(a, OURS, "gf-", "auto");
	while ((name = strsep(&rest, ","))) {
		way = (struct gf_way){.algorithm = gf_algorithm_find(name)};
		must(!way.algorithm, name);
		if (gf_way_takes_factors(way.algorithm) && nlayout) {
			way.nfactors = nlayout;
			for (i = 0; i < 2; i++)
				way.factors[i] = layout[i];
		}
		enlist(a, OURS, "gf-", name)->way = way;
	}
	free(names);
}

/* --- a race ----------------------------------------------------------------
 */

static void open_burst(struct arena *a, struct contestant *c)
{
	struct gf_burst_message message = {
		.way = c->way,
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.count_elems = a->count,
	};
	struct gf_error err = {""};

	if (!c->way.algorithm)
		must(gf_chooser_pick(a->chooser, a->count, a->data,
				     &message.way, &err),
		     err.text);
	if (!c->way.algorithm)
		snprintf(c->name, sizeof(c->name), "gf-auto:%.20s",
			 message.way.algorithm->name);
	must(gf_burst_new(&(struct gf_burst_config){.comm = a->comm,
						    .watch = &a->watch,
						    .messages = &message,
						    .nmessages = 1,
						    .lanes = 1},
			  &c->burst, &err),
	     err.text);
}

static void copy(struct arena *a)
{
	size_t half = a->count / 2;

	memcpy(a->data + half, a->data, half * sizeof(float));
	/* the compiler must not see that this brings nothing new */
	__asm__ volatile("" : : "r"(a->data) : "memory");
	memcpy(a->data, a->data + half, half * sizeof(float));
}

static double once(struct arena *a, struct contestant *c)
{
	struct gf_error err = {""};
	double begin_s, used_s, mine, all;

	MPI_Barrier(MPI_COMM_WORLD);
	used_s = processor_s();
	begin_s = gf_clock_s();
	switch (c->side) {
	case MPI_PEER:
		MPI_Allreduce(MPI_IN_PLACE, a->data, (int)a->count, MPI_FLOAT,
			      MPI_SUM, a->tuned[c->number]);
		break;
	case GLOO_PEER:
		must(a->gloo.sum(a->gloo.peer, c->number, a->data, a->count),
		     "gloo");
		break;
	case COPY:
		copy(a);
		break;
	case OURS:
		must(gf_burst_send(c->burst, a->data, &err), err.text);
	}
	mine = gf_clock_s() - begin_s;
	c->processor_s += processor_s() - used_s;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static void race(struct arena *a)
{
	double first[MOST], slowest = 0, total;
	int i, k, repeats;

	for (i = 0; i < a->n; i++) {
		if (a->list[i].side == OURS)
			open_burst(a, &a->list[i]);
		once(a, &a->list[i]);
	}
	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		first[i] = fmin(once(a, c), once(a, c));
		/* these three say what the table is about */
		c->out = first[i] > hopeless * first[0] && i > 0 &&
			 c->side != COPY &&
			 (c->side != OURS || c->way.algorithm);
		a->list[i].processor_s = 0;
		a->list[i].n = 0;
		if (!a->list[i].out)
			slowest += first[i];
	}
	repeats = (int)fmin(REPEATS, fmax(FEWEST, a->o.seconds / slowest));
	for (k = 0; k < repeats; k++)
		for (i = 0; i < a->n; i++) {
			struct contestant *c = &a->list[i];

			if (!c->out)
				c->times[c->n++] = once(a, c);
		}
	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		MPI_Allreduce(&c->processor_s, &total, 1, MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
		c->processor_s = c->n ? total / a->comm->ranks / c->n : 0;
		gf_burst_free(c->burst);
		c->burst = NULL;
	}
}

/* --- what came of it -------------------------------------------------------
 */

static double median_s(struct contestant *c)
{
	return c->out ? INFINITY : gf_stat_median(c->times, (size_t)c->n);
}

static struct contestant *best(struct arena *a, enum side from, enum side to)
{
	struct contestant *found = NULL;
	int i;

	for (i = 0; i < a->n; i++)
		if (a->list[i].side >= from && a->list[i].side <= to &&
		    (!found || median_s(&a->list[i]) < median_s(found)))
			found = &a->list[i];
	return found;
}

static double limit_s(struct arena *a)
{
	double bytes = (double)a->count * sizeof(float);
	double hosts = (double)a->comm->ranks / a->comm->local_ranks;

	if (a->o.link > 0 && hosts > 1)
		return bytes * 2 * (hosts - 1) / hosts / a->o.link;
	return median_s(&a->list[a->n - 1]);
}

static struct contestant *find_auto(struct arena *a)
{
	int i;

	for (i = 0; i < a->n; i++)
		if (a->list[i].side == OURS && !a->list[i].way.algorithm)
			return &a->list[i];
	return NULL;
}

static void print_all(struct arena *a, double limit)
{
	int i;

	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		if (c->out)
			printf("%38s%-20s  out of the race\n", "", c->name);
		else
			printf("%38s%-20s %10.4f ms  +- %3.0f %%  %4.2f x "
			       "default  %4.0f %% of the limit  cpu %8.4f ms\n",
			       "", c->name, median_s(c) * 1e3,
			       100 * gf_stat_spread(c->times, (size_t)c->n) /
				       median_s(c),
			       median_s(&a->list[0]) / median_s(c),
			       100 * limit / median_s(c), c->processor_s * 1e3);
	}
}

static void print_line(struct arena *a)
{
	struct contestant *ours = find_auto(a),
			  *peer = best(a, MPI_PEER, GLOO_PEER);
	double limit = limit_s(a), ours_s = median_s(ours);
	double share = limit / ours_s;

	printf("%10zu  %9.4f  %9.4f  %9.4f %-15s %9.4f +-%2.0f%% %-20s %5.2f "
	       "%5.2f %5.0f%%%s %5.2f\n",
	       a->count * sizeof(float), limit * 1e3,
	       median_s(&a->list[0]) * 1e3, median_s(peer) * 1e3, peer->name,
	       ours_s * 1e3,
	       100 * gf_stat_spread(ours->times, (size_t)ours->n) / ours_s,
	       ours->name, median_s(&a->list[0]) / ours_s,
	       median_s(peer) / ours_s, 100 * share,
	       share > 1.005 ? " (invalid: above the limit)" : "",
	       ours->processor_s / a->list[0].processor_s);
	if (a->o.verbose)
		print_all(a, limit);
	fflush(stdout);
}

static struct options parse(int argc, char **argv)
{
	struct options o = {.low = 1024,
			    .high = 64 << 20,
			    .factor = 4,
			    .seconds = 2,
			    .algorithms = "ring,rhd,butterfly,tree"};
	int key;

	while ((key = getopt(argc, argv, "b:e:f:s:l:g:d:a:v")) != -1)
		switch (key) {
		case 'b':
			o.low = strtoul(optarg, NULL, 10);
			break;
		case 'e':
			o.high = strtoul(optarg, NULL, 10);
			break;
		case 'f':
			o.factor = strtoul(optarg, NULL, 10);
			break;
		case 's':
			o.seconds = strtod(optarg, NULL);
			break;
		case 'l':
			o.link = strtod(optarg, NULL);
			break;
		case 'g':
			o.gloo = optarg;
			break;
		case 'd':
			o.store = optarg;
			break;
		case 'a':
			o.algorithms = optarg;
			break;
		case 'v':
			o.verbose = true;
			break;
		default:
			exit(2);
		}
	return o;
}

int main(int argc, char **argv)
{
	struct arena a = {.o = parse(argc, argv)};
	struct gf_error err = {""};
	size_t size;
	void *data;

	/* forced algorithms want it; without one the fixed rules hold still */
	setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1);
	if (gf_comm_open(&a.comm, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 3;
	}
	gf_watch_init(&a.watch, a.comm, 60);
	must(gf_chooser_new(
		     &(struct gf_chooser_config){
			     .comm = a.comm,
			     .watch = &a.watch,
			     .element = gf_element_number(GF_F32, GF_OP_SUM),
			     .lanes = 1},
		     &a.chooser, &err),
	     err.text);
	must(a.comm->ops->buffer_alloc(a.comm, a.o.high, &data, &err),
	     err.text);
	a.data = data;
	enlist_mpi(&a);
	enlist_gloo(&a);
	enlist_ours(&a);
	enlist(&a, COPY, "", "copy");
	if (a.comm->rank == 0)
		printf("%d ranks, %d per host; median ms; limit by %s\n"
		       "%10s  %9s  %9s  %9s %-15s %9s %5s %-20s %5s %5s %6s "
		       "%5s\n",
		       a.comm->ranks, a.comm->local_ranks,
		       a.o.link > 0 ? "the link" : "copying", "bytes", "limit",
		       "default", "best", "peer", "ours", "", "by", "x def",
		       "x bst", "limit", "cpu/d");
	for (size = a.o.low; size <= a.o.high; size *= a.o.factor) {
		a.count = size / sizeof(float);
		memset(a.data, 0, size);
		race(&a);
		if (a.comm->rank == 0)
			print_line(&a);
	}
	gf_chooser_free(a.chooser);
	gf_watch_release(&a.watch);
	a.comm->ops->buffer_free(a.comm, a.data);
	gf_comm_close(a.comm);
	return 0;
}
