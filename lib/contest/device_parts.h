/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DEVICE_PARTS_H
#define GF_CONTEST_DEVICE_PARTS_H

#include "contest/device_send.h"
#include "doc/dialect.h"
#include "engine/engine.h"

/* The engines and memory that device_bench.c opens and device_send.c sends
 * with; private to them. */
struct gf_contest_told_engine {
	struct gf_tuning tuning;
	struct gf_engine *engine;
};

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
	/* Those whose NCCL is told something, each made once. */
	struct gf_contest_told_engine *told;
	size_t ntold, told_capacity;
};

/* NULL: NCCL is told nothing, and has as many blocks as in training. */
int gf_contest_gpu_engine(struct gf_contest_gpu *d, struct gf_nccl_tuning *told,
			  struct gf_engine **engine, struct gf_error *err);
/* The one that is told that; no dialect: d->engine. It has sent a message.
 * Collective. -EIO: NCCL cannot do that here. */
int gf_contest_gpu_told(struct gf_contest_gpu *d,
			const struct gf_tuning *tuning,
			struct gf_engine **engine, struct gf_error *err);

#endif
