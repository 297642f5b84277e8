/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_LOCAL_H
#define GF_TESTS_LOCAL_H

#include "transport/comm.h"

/* Threads of one process as ranks; fills comms[0..ranks-1], each closed by itself. */
int gf_comm_local_new(int ranks, struct gf_comm **comms, struct gf_error *err);

#endif
