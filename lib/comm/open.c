/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "comm/processors.h"
#include "comm/transport.h"

static int join(struct gf_comm **comm, struct gf_error *err)
{
	const struct gf_transport *t;

	for (t = gf_transports; t->name; t++)
		if (t->join)
			return t->join(comm, err);
	return gf_error_set(err, -ENOTSUP,
			    "built without a transport between processes");
}

int gf_comm_open(struct gf_comm **comm, struct gf_error *err)
{
	const struct gf_transport *t;
	struct gf_comm *c;
	int rc = join(&c, err);

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
