/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/timeout.h"
#include "transport/processors.h"
#include "transport/transport.h"

/* --- which transport ---------------------------------------------------- */

static bool joins(const struct gf_comm_how *how)
{
	return how->join || how->meet;
}

/* The first that finds the ranks in the way that was asked for. */
static const struct gf_transport *first(bool join)
{
	const struct gf_transport *const *t = gf_transports;

	while (*t && !(join ? (*t)->join != NULL : (*t)->launched != NULL))
		t++;
	return *t;
}

static const struct gf_transport *named(const char *name)
{
	const struct gf_transport *t = gf_named_find(gf_transports, 0, name);

	return t && (t->join || t->launched) ? t : NULL;
}

static int choose(const struct gf_comm_how *how, const struct gf_transport **chosen,
		  struct gf_error *err)
{
	const struct gf_transport *t = how->transport ? named(how->transport) : first(joins(how));

	if (how->join && how->meet)
		return gf_error_set(err, -EINVAL,
				    "%s: want an allgather or a place to meet, got both",
				    how->meet);
	if (!t && how->transport)
		return gf_error_set(err, -ENOTSUP, "transport %s: not in this build",
				    how->transport);
	if (!t)
		return gf_error_set(err, -ENOTSUP, "built without a transport between processes%s",
				    joins(how) ? " that no launcher started" : "");
	if (joins(how) && !t->join)
		return gf_error_set(
			err, -EINVAL,
			"transport %s: its launcher says which ranks there are, nothing else can",
			t->name);
	*chosen = t;
	return 0;
}

/* --- a limit to the waiting --------------------------------------------- */

struct limit {
	double timeout_s, until_s;
};

static int check_limit(void *ctx, struct gf_error *err)
{
	const struct limit *l = ctx;

	return gf_clock_s() < l->until_s
		       ? 0
		       : gf_error_set(err, -ETIMEDOUT, "start: waited %g s for all ranks",
				      l->timeout_s);
}

/* l: from now on; or NULL */
static void set_limit(struct gf_comm *c, struct limit *l)
{
	if (l)
		l->until_s = gf_clock_s() + l->timeout_s;
	c->on_wait = l ? check_limit : NULL;
	c->on_wait_ctx = l;
}

/* --- what finds the ranks ----------------------------------------------- */

static int launcher_allgather(void *launcher, const void *send, size_t size_bytes, void *recv,
			      struct gf_error *err)
{
	return gf_comm_allgather(launcher, send, size_bytes, recv, err);
}

/* Ranks that were told unlike transports would meet in the launcher's, and nowhere else. */
static int same_transport(const struct gf_transport *t, struct gf_comm *launched,
			  struct limit *limit, struct gf_error *err)
{
	int rc;

	set_limit(launched, limit);
	rc = gf_comm_same_text(launched, "transport", t->name, err);
	set_limit(launched, NULL);
	return rc;
}

/* By the launcher of its own. */
static int launch(const struct gf_transport *t, struct limit *limit, struct gf_comm **comm,
		  struct gf_error *err)
{
	int rc = t->launched(comm, err);

	if (rc)
		return rc;
	rc = same_transport(t, *comm, limit, err);
	if (rc)
		gf_comm_close(*comm);
	return rc;
}

/* Over a transport that has a launcher, which stays as long as the other. */
static int join_launched(const struct gf_transport *t, const struct gf_comm_how *how,
			 struct limit *limit, struct gf_comm **comm, struct gf_error *err)
{
	const struct gf_transport *starter = first(false);
	struct gf_comm *launcher;
	struct gf_join join = {.allgather = launcher_allgather};
	int rc;

	if (!starter)
		return gf_error_set(err, -ENOTSUP,
				    "transport %s: want a place to join at in a build without MPI",
				    t->name);
	rc = starter->launched(&launcher, err);
	if (rc)
		return rc;
	rc = same_transport(t, launcher, limit, err);
	set_limit(launcher, limit);
	join.rank = launcher->rank;
	join.ranks = launcher->ranks;
	join.ctx = launcher;
	rc = rc ?: t->join(how, &join, comm, err);
	set_limit(launcher, NULL);
	if (rc)
		gf_comm_close(launcher);
	else
		(*comm)->launcher = launcher;
	return rc;
}

static int join_place(const struct gf_transport *t, const struct gf_comm_how *how, double timeout_s,
		      struct gf_comm **comm, struct gf_error *err)
{
	struct gf_join join = {.rank = how->rank, .ranks = how->ranks};
	int rc = gf_join_open(how->meet, timeout_s, &join, err);

	if (rc)
		return rc;
	rc = t->join(how, &join, comm, err);
	gf_join_close(&join);
	return rc;
}

/* Shared memory is opened by process numbers, which are of a namespace. */
static const char pids_file[] = "/proc/self/ns/pid";

struct identity {
	char name[256], kernel[GF_KERNEL_BYTES], pids[64];
};

/* Fills in c's host, local_rank and local_ranks: processes that share a kernel, a host name and
 * process numbers are on one host. Collective. */
static int find_hosts(struct gf_comm *c, struct gf_error *err)
{
	struct identity own = {0}, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int rank, rc;

	gethostname(own.name, sizeof(own.name) - 1);
	gf_comm_kernel(own.kernel);
	/* not known: left empty, alike on the ranks of a host */
	if (readlink(pids_file, own.pids, sizeof(own.pids) - 1) < 0)
		own.pids[0] = '\0';
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

static int connect_ranks(const struct gf_comm_how *how, struct limit *limit, struct gf_comm **comm,
			 struct gf_error *err)
{
	const struct gf_transport *t = NULL;
	int rc = choose(how, &t, err);

	if (rc)
		return rc;
	if (how->join)
		return t->join(how, how->join, comm, err);
	if (how->meet)
		return join_place(t, how, limit->timeout_s, comm, err);
	return t->launched ? launch(t, limit, comm, err) : join_launched(t, how, limit, comm, err);
}

/* --- and what lies over it ---------------------------------------------- */

static int complete(struct gf_comm **comm, struct gf_error *err)
{
	const struct gf_transport *const *t;
	struct gf_comm *c = *comm;
	int rc = c->local_ranks ? 0 : find_hosts(c, err);

	rc = rc ?: gf_comm_processor_share(c, &c->processors, err);
	/* thirds of a processor may sum to a little less than one */
	c->crowded = !rc && c->processors < 1 - 1e-6;
	for (t = gf_transports; !rc && *t; t++)
		if ((*t)->over)
			rc = (*t)->over(*comm, comm, err);
	return rc;
}

void gf_comm_settle(const struct gf_comm_how *how)
{
	const struct gf_transport *const *t;

	for (t = gf_transports; *t; t++)
		if ((*t)->settle)
			(*t)->settle(how);
}

int gf_comm_open(const struct gf_comm_how *how, struct gf_comm **comm, struct gf_error *err)
{
	static const struct gf_comm_how zeros = {0};
	struct limit limit;
	struct gf_comm *c;
	int rc;

	how = how ? how : &zeros;
	gf_comm_settle(how);
	limit.timeout_s = how->timeout_s > 0 ? how->timeout_s : GF_TIMEOUT_S;
	rc = connect_ranks(how, &limit, &c, err);
	if (rc)
		return rc;
	set_limit(c, &limit);
	rc = complete(&c, err);
	set_limit(c, NULL);
	/* the others are still waited for in vain */
	c->broken |= rc == -ETIMEDOUT;
	if (rc)
		gf_comm_close(c);
	else
		*comm = c;
	return rc;
}
