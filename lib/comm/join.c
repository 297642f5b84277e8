/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/join.h"

#include <errno.h>

int gf_join_open(const char *place, double timeout_s, struct gf_join *join,
		 struct gf_error *err)
{
	(void)timeout_s;
	(void)join;
	return gf_error_set(err, -ENOTSUP,
			    "%s: this build cannot meet at a place", place);
}
void gf_join_close(struct gf_join *join, int rc)
{
	(void)join;
	(void)rc;
}
