/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_CODECS_H
#define GF_MEASURE_CODECS_H

#include "base/error.h"
#include "comm/comm.h"
#include "doc/processing.h"

/* Collective: the cost of each codec on the host, by the calls with which
 * messages are encoded and decoded, on one thread of every rank at once. The
 * slowest rank's counts; all ranks get the same. Takes about a tenth of a
 * second for each codec. Adds to `out`. */
int gf_bench_codecs(struct gf_comm *comm, struct gf_processing *out,
		    struct gf_error *err);

#endif
