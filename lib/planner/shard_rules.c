/* SPDX-License-Identifier: BSD-3-Clause */
/* How others cut layers into units, as their defaults say. */
#include <math.h>
#include <string.h>

#include "planner/shards.h"

/* Of a parameter's name, its layer: all but the last part. */
static size_t layer_length(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? (size_t)(dot - name) : strlen(name);
}

/* Its block: up to the first part that is a number; a layer that is in none is one by itself. */
static size_t block_length(const char *name)
{
	const size_t layer = layer_length(name);
	size_t i = 0, n;

	for (; i < layer; i += n + 1) {
		n = strcspn(name + i, ".");
		if (n && strspn(name + i, "0123456789") == n)
			return i + n;
	}
	return layer;
}

static bool begins(const struct gf_model_profile *m, size_t i, size_t (*length)(const char *name))
{
	const char *name = m->tensors[i].name, *before = i ? m->tensors[i - 1].name : NULL;

	return !before || m->tensors[i].dtype != m->tensors[i - 1].dtype ||
	       length(name) != length(before) || memcmp(name, before, length(name)) != 0;
}

bool gf_shards_layer_begins(const struct gf_model_profile *m, size_t tensor)
{
	return begins(m, tensor, layer_length);
}

bool gf_shards_block_begins(const struct gf_model_profile *m, size_t tensor)
{
	return begins(m, tensor, block_length);
}

static void cut(const struct gf_model_profile *m, struct gf_shard_draft *d,
		bool (*begins_unit)(const struct gf_model_profile *m, size_t tensor))
{
	for (size_t i = 0; i < m->ntensors; i++)
		if (i + 1 == m->ntensors || begins_unit(m, i + 1))
			d->last[d->n++] = i;
	d->ahead = 1;
}

static void draft_layers(const struct gf_model_profile *m, struct gf_shard_draft *d)
{
	cut(m, d, gf_shards_layer_begins);
}

static void draft_blocks(const struct gf_model_profile *m, struct gf_shard_draft *d)
{
	cut(m, d, gf_shards_block_begins);
}

static bool dtype_begins(const struct gf_model_profile *m, size_t i)
{
	return m->tensors[i].dtype != m->tensors[i - 1].dtype;
}

static void draft_model(const struct gf_model_profile *m, struct gf_shard_draft *d)
{
	cut(m, d, dtype_begins);
}

static double elems_of(const struct gf_model_profile *m, const struct gf_shard_draft *d,
		       size_t unit)
{
	double sum = 0;

	for (size_t i = unit ? d->last[unit - 1] + 1 : 0; i <= d->last[unit]; i++)
		sum += (double)m->tensors[i].count_elems;
	return sum;
}

/* Units that are fetched ahead as long as they are of so many elements together: in the mean. */
static size_t ahead_of(const struct gf_model_profile *m, const struct gf_shard_draft *d,
		       double elems)
{
	const double mean = (double)gf_model_profile_elems(m) / (double)d->n;

	return (size_t)fmax(1, fmin(floor(elems / mean), (double)d->n));
}

/* A layer that is used again before max_reuse_distance elements have passed is not given back, and
 * max_live_parameters limits what is there; small ones (param_persistence_threshold) always
 * stay. */
static void draft_deepspeed(const struct gf_model_profile *m, struct gf_shard_draft *d)
{
	const double prefetch = 5e7, reuse = 1e9, live = 1e9, persistent = 1e5;
	double passed = 0;

	draft_layers(m, d);
	d->ahead = ahead_of(m, d, prefetch);
	for (size_t i = 0; i < d->n; i++) {
		const double elems = elems_of(m, d, i);

		d->keep[i] = elems <= persistent ||
			     (2 * passed + elems <= reuse && passed + elems <= live);
		passed += elems;
	}
}

static void draft_megatron(const struct gf_model_profile *m, struct gf_shard_draft *d)
{
	draft_blocks(m, d);
	d->ahead = ahead_of(m, d, 5e8);
}

const struct gf_shard_rule gf_shard_rules[] = {
	/* MANUAL
	 * a unit per layer */
	{.name = "layer",
	 .description = "a unit per layer",
	 .source = "gradflow",
	 .draft = draft_layers},
	/* MANUAL
	 * a unit per block */
	{.name = "block",
	 .description = "a unit per block of layers",
	 .source = "gradflow",
	 .draft = draft_blocks},
	/* MANUAL
	 * one unit */
	{.name = "model", .description = "one unit", .source = "gradflow", .draft = draft_model},
	/* MANUAL
	 * PyTorch's fully_shard on each block: no unit is kept, and the next one is gathered */
	{.name = "fsdp2",
	 .description = "fully_shard on each block",
	 .source = "PyTorch (FSDP, Zhao et al. 2023)",
	 .whole = true,
	 .draft = draft_blocks},
	/* MANUAL
	 * DeepSpeed's stage 3: layers are gathered 5e7 elements ahead
	 * .Pq stage3_prefetch_bucket_size ;
	 * kept are those of at most 1e5 elements
	 * .Pq stage3_param_persistence_threshold ,
	 * and those that backward uses again within 1e9
	 * .Pq stage3_max_reuse_distance .
	 * Its buckets of gradients are taken for the layers' */
	{.name = "deepspeed",
	 .description = "layers, ahead and kept by elements",
	 .source = "DeepSpeed (runtime/zero/config.py)",
	 .whole = true,
	 .draft = draft_deepspeed},
	/* MANUAL
	 * Megatron-FSDP: blocks, as many ahead as have 5e8 elements
	 * .Pq suggested_communication_unit_size */
	{.name = "megatron",
	 .description = "blocks, 5e8 elements ahead",
	 .source = "Megatron-FSDP",
	 .whole = true,
	 .draft = draft_megatron},
	{NULL},
};
