/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_POSTED_HALVES_H
#define GF_EXCHANGE_POSTED_HALVES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/layout.h"
#include "exchange/exchange.h"
#include "runtime/engine/engine.h"

/*
 * Reduce-scatters and all-gathers of a caller that moves one after the other, when it wants to: to
 * the engine each is a step of one message.
 *
 * A message of f32 moves where it lies. One of 16 bits that is only gathered moves as it is. All
 * others are unpacked to f32 for the way, and packed when they have come, so that sums are of f32;
 * they travel in their own type unless the plan's codec takes fewer bits.
 */
#define GF_HALVES_DEPTH 8 /* under way at once */

struct gf_halves_form;

struct gf_halves_slot {
	struct gf_work work;
	const struct gf_halves_form *form;
	void *data;
	float divisor;
	float *unpacked;
	size_t room; /* elements of it */
};

struct gf_halves {
	const struct gf_exchange_env *env;
	struct gf_engine *engine; /* borrowed, once it is open */
	struct gf_pool pool;      /* of the one tensor that a step waits for */
	/* How messages of one kind and size move; the engine knows them by their addresses. */
	struct gf_halves_form **forms;
	size_t nforms, capacity;
	struct gf_halves_slot slots[GF_HALVES_DEPTH];
	uint64_t begun, ended;
	_Atomic uint64_t copied_bytes;
};

struct gf_engine_hooks gf_halves_hooks(struct gf_halves *h);
void gf_halves_close(struct gf_halves *h);

#endif
