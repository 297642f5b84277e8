/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

/*
 * To add a transport: one file here with the callbacks of struct gf_comm_ops (comm.h), and a row
 * below: `launched` or `join` if it connects the ranks of a job, `over` if it is a layer on another
 * transport. Check its messages with tests/unit/transport.h, as test_mpi.c and test_shm.c do.
 */
const struct gf_transport gf_transports[] = {
#if GF_HAVE_MPI
	{.name = "mpi",
	 .description = "between all ranks, by the MPI of this build",
	 .launched = gf_comm_mpi_open},
#endif
#if GF_HAVE_UCX
	{.name = "ucx",
	 .description = "between all ranks, by UCX; with or without a launcher",
	 .settle = gf_comm_ucx_settle,
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
