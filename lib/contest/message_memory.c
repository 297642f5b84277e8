/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/message_memory.h"

#include <errno.h>

#include "base/allowance.h"

int gf_contest_memory_check(double wanted_bytes, struct gf_error *err)
{
	double there = gf_allowance_memory("");

	if (there < 0 || wanted_bytes <= there)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "want %.4g bytes of memory on this host for the "
			    "largest message, inputs and results of all its "
			    "ranks; %.4g are left",
			    wanted_bytes, there);
}
