/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_DEVICE_FLAGS_H
#define GF_EXCHANGE_DEVICE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/gpu.h"

/*
 * Is a step's gradient infinite or not a number? A device finds out and its
 * update heeds it at once; the host is told later, while there is work
 * enqueued. Steps count from 0; a flag is another step's after `count`: as many
 * as are under way, and one of which the host knows nothing yet.
 */
struct gf_exchange_flags {
	struct gf_gpu *gpu; /* borrowed */
	size_t count;
	void *words; /* the device's */
	void *seen;  /* their copies, pinned */
	struct gf_gpu_event **known;
};

/* gpu and count are the caller's. */
int gf_exchange_flags_open(struct gf_exchange_flags *f, struct gf_error *err);
/* After all streams have ended; accepts zeros. */
void gf_exchange_flags_close(struct gf_exchange_flags *f);

/* The device's word for a step; not 0: bad. The code that uses it clears and
 * sets it. */
uint32_t *gf_exchange_flag(const struct gf_exchange_flags *f, size_t step);
/* Enqueues the answer's way to the host. */
int gf_exchange_flag_send(struct gf_exchange_flags *f, struct gf_gpu_stream *s,
			  size_t step, struct gf_error *err);
/* All of them, between steps: from the device, and to it. */
int gf_exchange_flags_copy(struct gf_exchange_flags *f, struct gf_gpu_stream *s,
			   uint32_t *words, enum gf_gpu_copy kind,
			   struct gf_error *err);
/* Waits for the answer. */
int gf_exchange_flag_read(struct gf_exchange_flags *f, size_t step, bool *bad,
			  struct gf_error *err);

#endif
