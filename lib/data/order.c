/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"

#define NO_EPOCH SIZE_MAX
/* Epoch e shuffles with stream ORDER + e of the seed. */
#define STREAM_ORDER 0x4f52444552000000u

void gf_order_init(struct gf_order *o, size_t count, uint64_t seed,
		   bool consecutive)
{
	o->permutation = gf_xcalloc(count ? count : 1, sizeof(size_t));
	o->count = count;
	o->epoch = NO_EPOCH;
	o->seed = seed;
	o->consecutive = consecutive;
}

void gf_order_release(struct gf_order *o)
{
	if (!o)
		return;
	free(o->permutation);
	memset(o, 0, sizeof(*o));
}

size_t gf_order_steps(const struct gf_order *o, int ranks, size_t batch)
{
	assert(ranks > 0 && batch > 0);
	return o->count / (size_t)ranks / batch;
}

/* From the identity, so that an epoch does not depend on those before it. */
static void shuffle(struct gf_order *o, size_t epoch)
{
	struct gf_rng rng;
	size_t i;

	for (i = 0; i < o->count; i++)
		o->permutation[i] = i;
	gf_rng_init(&rng, o->seed, STREAM_ORDER + epoch);
	gf_rng_shuffle(&rng, o->permutation, o->count);
	o->epoch = epoch;
}

static const size_t *take_rows(struct gf_order *o, size_t step, int ranks,
			       int rank, size_t batch)
{
	size_t steps = gf_order_steps(o, ranks, batch), i;

	for (i = 0; i < batch; i++)
		o->permutation[i] = ((size_t)rank * batch + i) * steps + step;
	return o->permutation;
}

const size_t *gf_order_slice(struct gf_order *o, size_t epoch, size_t step,
			     int ranks, int rank, size_t batch)
{
	assert(step < gf_order_steps(o, ranks, batch) && rank < ranks);
	if (o->consecutive)
		return take_rows(o, step, ranks, rank, batch);
	if (o->epoch != epoch)
		shuffle(o, epoch);
	return o->permutation + (step * (size_t)ranks + (size_t)rank) * batch;
}

void gf_order_share(size_t samples, int ranks, int rank, size_t *first,
		    size_t *count)
{
	size_t each = samples / (size_t)ranks, over = samples % (size_t)ranks;
	size_t r = (size_t)rank;

	*first = r * each + (r < over ? r : over);
	*count = each + (r < over ? 1 : 0);
}
