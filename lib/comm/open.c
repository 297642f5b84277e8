/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "comm/processors.h"
#include "comm/transport.h"

static bool finds(const struct gf_transport *t, const struct gf_comm_how *how)
{
	return how->join ? t->join != NULL : t->launched != NULL;
}

/* The transport that was named, or the first that finds the ranks in that
 * way. */
static const struct gf_transport *choose(const struct gf_comm_how *how,
					 struct gf_error *err)
{
	const struct gf_transport *t;

	for (t = gf_transports; t->name; t++) {
		bool asked =
			how->transport && strcmp(t->name, how->transport) == 0;

		if ((asked || !how->transport) && finds(t, how))
			return t;
	}
	gf_error_set(err, -ENOTSUP,
		     how->join ? "transport %s cannot join by an allgather in "
				 "this build"
			       : "transport %s does not connect the processes "
				 "of a job in this build",
		     how->transport ? how->transport : "(any)");
	return NULL;
}

static int connect_ranks(const struct gf_comm_how *how, struct gf_comm **comm,
			 struct gf_error *err)
{
	const struct gf_transport *t;

	if (how->meet)
		return gf_error_set(err, -ENOTSUP,
				    "%s: this build cannot meet at a place",
				    how->meet);
	t = choose(how, err);
	if (!t)
		return -ENOTSUP;
	return how->join ? t->join(how->join, comm, err)
			 : t->launched(comm, err);
}

int gf_comm_open(const struct gf_comm_how *how, struct gf_comm **comm,
		 struct gf_error *err)
{
	static const struct gf_comm_how zeros = {0};
	const struct gf_transport *t;
	struct gf_comm *c;
	int rc = connect_ranks(how ? how : &zeros, &c, err);

	if (rc)
		return rc;
	rc = gf_comm_processor_share(c, &c->processors, err);
	/* thirds of a processor may sum to a little less than one */
	c->crowded = !rc && c->processors < 1 - 1e-6;
	for (t = gf_transports; !rc && t->name; t++)
		if (t->over)
			rc = t->over(c, &c, err);
	if (rc)
		gf_comm_close(c);
	else
		*comm = c;
	return rc;
}
