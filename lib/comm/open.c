/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/comm.h"
#include "comm/shm.h"

int gf_comm_open(struct gf_comm **comm, struct gf_error *err)
{
	struct gf_comm *mpi;
	int rc;

	rc = gf_comm_mpi_open(&mpi, err);
	if (rc)
		return rc;
	rc = gf_comm_shm_over(mpi, comm, err);
	if (rc)
		gf_comm_close(mpi);
	return rc;
}
