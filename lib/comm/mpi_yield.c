/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>

#include "comm/mpi_state.h"

/* Open MPI sets this once, by the environment: a job with more ranks than slots
 * yields. No call of the standard changes it. */
bool (*gf_mpi_yielder(void))(bool yields)
{
	bool (*set)(bool);

	*(void **)&set =
		dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	return set;
}

bool gf_mpi_set_yields(bool yields)
{
	bool (*set)(bool) = gf_mpi_yielder();

	return set && set(yields);
}
