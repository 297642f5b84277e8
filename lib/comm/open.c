/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/comm.h"
#include "comm/processors.h"
#include "comm/shm.h"

int gf_comm_open(struct gf_comm **comm, struct gf_error *err)
{
	struct gf_comm *mpi;
	double share;
	int rc;

	rc = gf_comm_mpi_open(&mpi, err);
	if (rc)
		return rc;
	rc = gf_comm_processor_share(mpi, &share, err);
	/* thirds of a processor may sum to a little less than one */
	mpi->crowded = !rc && share < 1 - 1e-6;
	rc = rc ? rc : gf_comm_shm_over(mpi, comm, err);
	if (rc)
		gf_comm_close(mpi);
	return rc;
}
