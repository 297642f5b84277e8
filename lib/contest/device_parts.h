/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DEVICE_PARTS_H
#define GF_CONTEST_DEVICE_PARTS_H

#include "contest/device_send.h"
#include "engine/engine.h"

/* The engine and memory that device_bench.c opens and device_send.c sends with;
 * private to them. */
struct gf_contest_gpu {
	struct gf_contest_device device;
	struct gf_comm *comm;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *begun, *ended;
	void *source, *work;
	size_t room_bytes;        /* in each */
	struct gf_pool layout;    /* one tensor, of no memory */
	struct gf_engine *engine; /* NULL: messages go by the host */
	int lanes;
};

#endif
