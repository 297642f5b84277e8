/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of a sweep that need no ranks: options that contradict each other, and options that
 * nothing in the sweep would heed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/registry.h"
#include "collectives/algorithm.h"
#include "documents/algorithm_traits.h"
#include "profiler/autotune/own_gpu.h"
#include "profiler/contest/size_sweep.h"

static const size_t default_min_bytes = 1024, default_max_bytes = 64 << 20, default_step_factor = 2;

static int fill_sizes(struct gf_contest_sweep *s, struct gf_error *err)
{
	if (s->step_factor && s->step_bytes)
		return gf_error_set(err, -EINVAL,
				    "--step-factor and --step-bytes: want one of them, got both");
	s->sized = s->step_factor || s->step_bytes || s->min_bytes != GF_SWEEP_UNSAID ||
		   s->max_bytes != GF_SWEEP_UNSAID;
	if (s->min_bytes == GF_SWEEP_UNSAID)
		s->min_bytes = default_min_bytes;
	if (s->max_bytes == GF_SWEEP_UNSAID)
		s->max_bytes = default_max_bytes;
	if (!s->step_factor)
		s->step_factor = default_step_factor;
	return 0;
}

static int check_sizes(const struct gf_contest_sweep *s, size_t elem_bytes, struct gf_error *err)
{
	size_t n;

	if (s->min_bytes < elem_bytes)
		return gf_error_set(err, -EINVAL,
				    "--min-bytes: want at least %zu bytes, one element, got %zu",
				    elem_bytes, s->min_bytes);
	if (s->max_bytes < s->min_bytes)
		return gf_error_set(err, -EINVAL,
				    "--max-bytes: want at least the %zu of --min-bytes, got %zu",
				    s->min_bytes, s->max_bytes);
	if (s->max_bytes > (size_t)1 << 62)
		return gf_error_set(err, -EINVAL, "--max-bytes: want at most 2^62, got %zu",
				    s->max_bytes);
	free(gf_contest_sweep_counts(s, elem_bytes, 0, &n));
	if (n > GF_SWEEP_SIZES)
		return gf_error_set(err, -EINVAL,
				    "--step-bytes: want at most %d sizes from %zu to %zu, got more",
				    GF_SWEEP_SIZES, s->min_bytes, s->max_bytes);
	return 0;
}

static bool is_sparse(const char *name)
{
	return gf_algorithm_has(name, GF_ALGORITHM_SETS);
}

static bool is_staged(const char *name)
{
	return gf_algorithm_has(name, GF_ALGORITHM_STAGES);
}

static bool takes_factors(const char *name)
{
	return gf_algorithm_has(name, GF_ALGORITHM_LEVELS);
}

/* By our own executor, and not as sparse sets. */
static bool is_cut(const char *name)
{
	const struct gf_algorithm *a = gf_algorithm_find(name);

	return !is_sparse(name) && !gf_contest_told_is(name) && (!a || a->build);
}

static bool is_dense(const char *name)
{
	return !is_sparse(name) && !gf_contest_told_is(name);
}

/* Is there one in the list of which that is so? */
static bool any(const struct gf_contest_sweep *s, bool (*is)(const char *name))
{
	for (size_t i = 0; s->algorithms[i]; i++)
		if (is(s->algorithms[i]))
			return true;
	return false;
}

bool gf_contest_sweep_tells(const struct gf_contest_sweep *s)
{
	return any(s, gf_contest_told_is);
}

static int check_ruled(const struct gf_contest_sweep *s,
		       const struct gf_contest_allreduce_config *config, struct gf_error *err)
{
	if (!s->ruled)
		return 0;
	if (!any(s, is_dense))
		return gf_error_set(err, -EINVAL,
				    "want an algorithm that sends all values, got none");
	if (config->segment_bytes % sizeof(float))
		return gf_error_set(
			err, -EINVAL,
			"want segments of whole elements of 4 bytes (--segment), got %zu bytes",
			config->segment_bytes);
	return gf_contest_gradients(&config->element, err);
}

static bool is_variant(const char *name)
{
	const char *words = strchr(name, ':');

	return words && strcmp(words + 1, gf_dialect_blocking.as_it_is) != 0;
}

/* What is of all-reduces alone. */
static int check_collective(const struct gf_contest_sweep *s,
			    const struct gf_contest_allreduce_config *config, struct gf_error *err)
{
	const bool gathers = config->collective == GF_COLL_ALL_GATHER;
	const struct {
		bool given;
		const char *option, *why;
	} cases[] = {
		{s->planned, "--plan", "plans and rules are of all-reduces"},
		{s->ruled, "--best", "a rule is of all-reduces"},
		{s->density > 0, "--density", "sparse sets are reduced whole"},
		{any(s, is_variant), "--algorithms library:VARIANT",
		 "libraries are told of all-reduces alone; library:blocking goes"},
		{gathers && s->op != GF_OP_SUM, "--op", "nothing is reduced"},
		{gathers && config->errors, "--error", "nothing is added"},
	};

	for (size_t i = 0; config->collective && i < GF_ARRAY_LENGTH(cases); i++)
		if (cases[i].given)
			return gf_error_set(err, -EINVAL, "%s: want none with --collective %s: %s",
					    cases[i].option, gf_coll_half_names[config->collective],
					    cases[i].why);
	return 0;
}

static int refuse_name(const char *name, struct gf_error *err)
{
	const struct gf_registry of[] = {{gf_algorithms}, {gf_sparse_algorithms}};
	const struct gf_named *e;
	const char *names[64] = {"auto", "all"};
	size_t n = 2, i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(of); i++)
		for (k = 0; (e = gf_registry_at(&of[i], k)); k++)
			if (n < GF_ARRAY_LENGTH(names) - 1)
				names[n++] = e->name;
	gf_names_refuse(names, name, err);
	gf_error_prefix(err, "--algorithms");
	return -EINVAL;
}

static int check_name(const struct gf_contest_sweep *s,
		      const struct gf_contest_allreduce_config *config, const char *name,
		      struct gf_error *err)
{
	const char *device = config->device.name;
	size_t gpu;
	int rc;

	if (strcmp(name, "auto") == 0 || gf_contest_is_all(name))
		return 0;
	if (gf_contest_told_is(name)) {
		rc = gf_contest_told_check(name, device && gf_own_gpu_read(device, &gpu, NULL) == 0,
					   err);
		if (rc)
			gf_error_prefix(err, "--algorithms: %s", name);
		return rc;
	}
	if (!gf_algorithm_find(name) && !is_sparse(name))
		return refuse_name(name, err);
	if (any(s, gf_contest_is_all))
		return gf_error_set(
			err, -EINVAL,
			"--algorithms: want all or names, got all, which has \"%s\" in it", name);
	if (is_sparse(name) && !(s->density > 0))
		return gf_error_set(err, -EINVAL, "--algorithms: %s wants a --density", name);
	return 0;
}

/* An option that no algorithm of the list heeds. */
static int check_heeded(const struct gf_contest_sweep *s,
			const struct gf_contest_allreduce_config *config, struct gf_error *err)
{
	bool all = any(s, gf_contest_is_all);

	if (s->factors && !all && !any(s, takes_factors))
		return gf_error_set(err, -EINVAL,
				    "--factors: want blueconnect, hierarchical or all in "
				    "--algorithms, got none that goes by factors");
	if (s->factors && strchr(s->factors, ':') && !all && !any(s, is_staged))
		return gf_error_set(err, -EINVAL,
				    "--factors: want blueconnect or all in --algorithms, got none "
				    "that goes by stages");
	if (s->density > 0 && !all && !any(s, is_sparse))
		return gf_error_set(
			err, -EINVAL,
			"--density: want gather, gtopk or all in --algorithms, got none "
			"that sends a share");
	if (config->segment_bytes && !any(s, is_cut))
		return gf_error_set(err, -EINVAL,
				    "--segment: want an algorithm whose transfers are cut in "
				    "--algorithms, got none");
	if (s->density > 0 && config->lanes > 1)
		return gf_error_set(err, -EINVAL, "--lanes: want 1 with --density, got %d",
				    config->lanes);
	return 0;
}

static int named(struct gf_error *err, const char *option, int rc)
{
	if (rc < 0)
		gf_error_prefix(err, "%s", option);
	return rc;
}

static int fill_element(const struct gf_contest_sweep *s,
			struct gf_contest_allreduce_config *config, struct gf_error *err)
{
	struct gf_element *e = &config->element;
	int rc = named(
		err, "--codecs",
		gf_contest_element((enum gf_dtype)s->dtype, (enum gf_op)s->op, s->codec, e, err));

	if (rc || !config->errors)
		return rc;
	return named(err, "--error", gf_sum_error_check(e->dtype, e->op, err));
}

int gf_contest_sweep_finish(struct gf_contest_sweep *s, struct gf_contest_allreduce_config *config,
			    struct gf_error *err)
{
	struct gf_way way = {0};
	int rc = fill_element(s, config, err);

	rc = rc ?: named(err, "--device", gf_contest_device_check(&config->device, err));
	rc = rc ?: fill_sizes(s, err);
	rc = rc ?: check_sizes(s, config->element.size_bytes, err);
	rc = rc ?: gf_contest_sweep_decomposition(s, &way, err);
	for (size_t i = 0; s->algorithms[i] && rc == 0; i++)
		rc = check_name(s, config, s->algorithms[i], err);
	rc = rc ?: check_heeded(s, config, err);
	rc = rc ?: check_collective(s, config, err);
	rc = rc ?: named(err, "--best", check_ruled(s, config, err));
	if (rc == 0 && config->spoil && !config->checks)
		rc = gf_error_set(err, -EINVAL, "--spoil goes with --check");
	return rc;
}
