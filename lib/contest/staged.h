/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_STAGED_H
#define GF_CONTEST_STAGED_H

#include <stddef.h>

#include "base/error.h"
#include "contest/device_send.h"
#include "engine/burst.h"

/*
 * Messages that lie on a GPU and are reduced by the host, on training's stage
 * (engine/stage.h): each is copied to pinned memory. A message starts when its
 * copy is there and all messages before it have started. When it has ended it
 * is copied up again, while others are on their way. Long messages are cut into
 * parts that go by themselves, so that the copies of one message, too, run
 * beside its reduction.
 */
#define GF_STAGED_PART_BYTES ((size_t)4 << 20)

struct gf_bench_staged_config {
	struct gf_comm *comm; /* all borrowed */
	struct gf_watch *watch;
	struct gf_device_bench *device;
	void *host; /* pinned, of as many bytes, rounded up to 4 */
	const struct gf_burst_message *messages;
	size_t nmessages;
	int lanes;
	size_t segment_bytes;
	double timeout_s;  /* for a copy to end; 0: no limit */
	size_t part_bytes; /* 0: GF_STAGED_PART_BYTES */
};

struct gf_bench_staged;

/* Collective, as gf_burst_new. */
int gf_bench_staged_new(const struct gf_bench_staged_config *config,
			struct gf_bench_staged **s, struct gf_error *err);
/* NULL is allowed. */
void gf_bench_staged_free(struct gf_bench_staged *s);

/* Reduces what lies in the device's memory, there; refill: the inputs are put
 * in place first. *time_s, by the host's clock, until the last copy is up. */
int gf_bench_staged_run(struct gf_bench_staged *s, bool refill, double *time_s,
			struct gf_error *err);

/* The parts' own; borrowed. */
struct gf_burst *gf_bench_staged_burst(const struct gf_bench_staged *s);

#endif
