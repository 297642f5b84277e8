/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include "base/rng.h"

/* Sample i in epoch e draws from stream MASK + e * count + i of the seed. */
static const uint64_t streams[GF_PARTS] = {
	[GF_PART_TRAIN] = 0x4d41534b00000000u,
	[GF_PART_TEST] = 0x4d41534c00000000u,
};

#define SHARE_PERCENT 15
/* Out of 10 that are masked. */
#define TO_MASK 8
#define TO_ANY  1

void gf_mask_init(struct gf_dataset *d)
{
	d->masked = (SHARE_PERCENT * d->positions + 50) / 100;
	if (d->masked == 0)
		d->masked = 1;
}

static float masked(const struct gf_dataset *d, struct gf_rng *rng, float value)
{
	const size_t mask = d->vocabulary;
	const uint64_t way = gf_rng_below(rng, 10);

	if (way < TO_MASK)
		return (float)mask;
	return way < TO_MASK + TO_ANY ? (float)gf_rng_below(rng, mask) : value;
}

void gf_mask_sample(const struct gf_dataset *d, enum gf_part part,
		    uint64_t seed, size_t epoch, size_t index, float *values,
		    int32_t *labels)
{
	size_t left = d->masked, i;
	struct gf_rng rng;

	if (!d->masked)
		return;
	if (part == GF_PART_TEST)
		epoch = 0;
	gf_rng_init(&rng, seed, streams[part] + epoch * d->count[part] + index);
	/* each choice of `masked` positions is as likely as any other */
	for (i = 0; i < d->positions; i++) {
		labels[i] = GF_NO_LABEL;
		if (gf_rng_below(&rng, d->positions - i) >= left)
			continue;
		left--;
		labels[i] = (int32_t)values[i];
		values[i] = masked(d, &rng, values[i]);
	}
}
