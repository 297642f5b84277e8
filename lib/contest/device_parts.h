/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DEVICE_PARTS_H
#define GF_CONTEST_DEVICE_PARTS_H

#include "contest/device_send.h"
#include "lane/lane.h"

/* The lanes and memory that device_bench.c opens and device_send.c sends on;
 * private to them. */
struct gf_device_bench {
	struct gf_bench_device device;
	struct gf_comm *comm;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *begun, *loaded, *ended;
	void *source, *work;
	size_t room_bytes; /* in each */
	struct gf_device_lane *lanes;
	int nlanes;
	bool failed; /* lanes were given up */
};

/* The communicator's own. */
int gf_device_bench_on_wait(void *comm, struct gf_error *err);

#endif
