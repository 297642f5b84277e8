/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/shm.h"
#include "comm/transport.h"
#include "comm/ucx.h"

const struct gf_transport gf_transports[] = {
#if GF_HAVE_MPI
	{.name = "mpi",
	 .description = "between all ranks, by the MPI of this build",
	 .launched = gf_comm_mpi_open},
#endif
#if GF_HAVE_UCX
	{.name = "ucx",
	 .description = "between all ranks, by UCX; with or without a launcher",
	 .join = gf_comm_ucx_join},
#endif
	{.name = "shm",
	 .description = "between the ranks of a host, in shared memory",
	 .over = gf_comm_shm_over},
	{.name = "local",
	 .description = "between threads of one process, for tests",
	 .threads = gf_comm_local_new},
	{.name = NULL},
};
