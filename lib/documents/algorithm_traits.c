/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/algorithm_traits.h"

#include <stddef.h>

#include "base/registry.h"
#include "collectives/codecs/codec.h"

#define NAME(name, traits)   #name,
#define TRAITS(name, traits) traits,

const char *const gf_coll_half_names[] = {"all_reduce", "reduce_scatter", "all_gather", NULL};

/* The lists are collectives'. Here an entry is what it begins with. */
struct gf_algorithm;
extern const struct gf_algorithm *const gf_algorithms[], *const gf_sparse_algorithms[];

const struct gf_algorithm_traits *gf_algorithm_at(size_t i)
{
	return (const struct gf_algorithm_traits *)gf_algorithms[i];
}

bool gf_algorithm_has(const char *name, unsigned traits)
{
	const struct gf_algorithm_traits *a = gf_named_find(gf_algorithms, 0, name);

	if (!a)
		a = gf_named_find(gf_sparse_algorithms, 0, name);
	return a && (a->traits & traits) == traits;
}

int gf_algorithm_check(const char *name, struct gf_error *err)
{
	static const struct gf_registry all = {gf_algorithms};

	if (gf_named_find(gf_algorithms, 0, name))
		return 0;
	return gf_registry_refuse(&all, NULL, NULL, name, err);
}

bool gf_algorithm_reproduces(const char *name, const char *codec)
{
	const struct gf_codec *c = gf_codec_find(codec);

	return c && c->block_elems == 0 &&
	       gf_algorithm_has(name,
				c->plain ? GF_ALGORITHM_ONE_ORDER : GF_ALGORITHM_ONE_ROUNDING);
}

/* clang-format off */
#define STAGES(X) \
	X(ring, GF_STAGE_BY_HOST | GF_STAGE_BY_GPU | GF_STAGE_RING) \
	X(halving, GF_STAGE_BY_HOST | GF_STAGE_BY_GPU | GF_STAGE_HALVES) \
	X(shm, GF_STAGE_BY_HOST | GF_STAGE_ONE_HOST) \
	X(mpi, GF_STAGE_BY_HOST | GF_STAGE_CALL) \
	X(nccl, GF_STAGE_BY_GPU | GF_STAGE_CALL)
/* clang-format on */

const char *const gf_stage_names[] = {STAGES(NAME) NULL};
static const unsigned stage_traits[] = {STAGES(TRAITS)};

static int find_stage(const char *name)
{
	return name ? gf_names_index(gf_stage_names, name) : -1;
}

const char *gf_stage_algorithm(const char *name)
{
	int i = find_stage(name);

	return i < 0 ? NULL : gf_stage_names[i];
}

bool gf_stage_has(const char *name, unsigned traits)
{
	int i = find_stage(name);

	return i >= 0 && (stage_traits[i] & traits) == traits;
}

bool gf_stage_takes(const char *name, int factor)
{
	return !gf_stage_has(name, GF_STAGE_HALVES) || !(factor & (factor - 1));
}

const char *gf_stage_unsaid(int factor, bool gpus)
{
	if (gpus)
		return gf_stage_algorithm("nccl");
	return gf_stage_algorithm(gf_stage_takes("halving", factor) ? "halving" : "ring");
}

int gf_stage_check(const char *name, int factor, struct gf_error *err)
{
	if (!gf_stage_algorithm(name))
		return gf_names_refuse(gf_stage_names, name, err);
	if (gf_stage_takes(name, factor))
		return 0;
	return gf_error_set(err, -EINVAL, "%s wants a power of two, got factor %d", name, factor);
}
