/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/size_sweep.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/algorithm_traits.h"
#include "profiler/contest/device_send.h"

/* What stands behind the algorithm of that trait; NULL: no such name. */
static const char *words_of(const char *name)
{
	const char *colon = strchr(name, ':');
	GF_FREED char *head = NULL;
	bool told;

	if (!colon)
		return NULL;
	head = gf_xasprintf("%.*s", (int)(colon - name), name);
	told = gf_algorithm_has(head, GF_ALGORITHM_TOLD);
	return told ? colon + 1 : NULL;
}

bool gf_contest_is_all(const char *name)
{
	return strcmp(name, "all") == 0;
}

static bool is_blocking(const char *words)
{
	return strcmp(words, gf_dialect_blocking.as_it_is) == 0;
}

bool gf_contest_told_is(const char *name)
{
	return words_of(name) != NULL;
}

/* Those of GPUs have protocols. The reason is of the library that has the algorithm, if any has
 * it. */
int gf_contest_told_check(const char *name, bool gpus, struct gf_error *err)
{
	const char *words = words_of(name);
	const struct gf_dialect *d, *nearest = NULL;
	struct gf_error why;
	struct gf_tuning v;

	if (gf_contest_is_all(words) || is_blocking(words))
		return 0;
	for (d = gf_dialects; d->name; d++) {
		if (gpus && !d->protocols)
			continue;
		if (gf_tuning_read(d, words, &v, &why) == 0)
			return 0;
		if (!nearest || (!gf_dialect_has(nearest, words) && gf_dialect_has(d, words)))
			nearest = d;
	}
	return gf_tuning_read(nearest, words, &v, err);
}

static int refuse(const struct gf_contest_allreduce_config *config, const char *name,
		  struct gf_error *err)
{
	const struct gf_contest_device *d = &config->device;
	const char *library = config->comm->library;

	if (config->element.codec || config->lanes > 1)
		return gf_error_set(err, -ENOTSUP,
				    "%s: want one message at once, without a codec, got %s", name,
				    config->lanes > 1 ? "several" : "a codec");
	if (is_blocking(words_of(name)))
		return gf_error_set(
			err, -ENOTSUP,
			"%s: want MPI between the ranks, which has a blocking all-reduce, got %s",
			name, d->nccl ? "NCCL" : config->comm->ops->name);
	if (d->gpu)
		return gf_error_set(
			err, -ENOTSUP,
			"%s: want messages by NCCL, which can be told, got them by the host: %s",
			name, d->why);
	return gf_error_set(err, -ENOTSUP,
			    "%s: want Open MPI between the ranks, which can be told, got %s", name,
			    *library ? library : config->comm->ops->name);
}

/* The dialect of the library that reduces messages here; NULL: it cannot be told how. */
static const struct gf_dialect *dialect_of(const struct gf_contest_allreduce_config *config,
					   const char *words)
{
	const struct gf_contest_device *d = &config->device;
	char library[GF_CONTEST_LIBRARY_TEXT];

	if (config->element.codec || config->lanes > 1 || (!d->nccl && !config->comm->ops->tell))
		return NULL;
	if (is_blocking(words))
		return d->nccl ? NULL : &gf_dialect_blocking;
	if (!d->nccl && d->gpu)
		return NULL;
	return gf_dialect_of(gf_contest_device_library(&config->device, config->comm, library));
}

/* Its ways, in the order of the dialect; the caller frees the list. -ENOTSUP: nothing that reduces
 * messages here can be told; -EINVAL: it has no such variant. What it cannot do here only a try
 * shows (gf_contest_allreduce_try).
 * */
static int told_ways(const char *name, const struct gf_contest_allreduce_config *config,
		     struct gf_contest_ways *ways, struct gf_error *err)
{
	const char *words = words_of(name);
	GF_FREED char *head = gf_xasprintf("%.*s", (int)(words - 1 - name), name);
	struct gf_way way = {.algorithm = gf_algorithm_find(head)};
	const struct gf_dialect *d = dialect_of(config, words);
	size_t capacity = 0, i;
	int rc = 0;

	memset(ways, 0, sizeof(*ways));
	if (!d)
		return refuse(config, name, err);
	if (!gf_contest_is_all(words)) {
		rc = gf_tuning_read(d, words, &way.tuning, err);
		if (rc == 0)
			*gf_array_push(&ways->list, &ways->count, &capacity) = way;
		return rc;
	}
	for (i = 0; gf_tuning_at(d, i, &way.tuning); i++)
		*gf_array_push(&ways->list, &ways->count, &capacity) = way;
	return 0;
}

bool gf_contest_told_named(const char *const *names, const struct gf_way *way)
{
	struct gf_tuning v;
	const char *words;

	for (; *names; names++) {
		words = words_of(*names);
		if (words && !gf_contest_is_all(words) &&
		    gf_tuning_read(way->tuning.dialect, words, &v, NULL) == 0 &&
		    gf_tuning_same(&v, &way->tuning))
			return true;
	}
	return false;
}

/* --- sizes ----------------------------------------------------------------
 */

static size_t next_size(const struct gf_contest_sweep *s, size_t size)
{
	if (s->step_bytes)
		return size > SIZE_MAX - s->step_bytes ? SIZE_MAX : size + s->step_bytes;
	return size > SIZE_MAX / s->step_factor ? SIZE_MAX : size * s->step_factor;
}

size_t *gf_contest_sweep_counts(const struct gf_contest_sweep *s, size_t elem_bytes, int parts,
				size_t *ncounts)
{
	const size_t unit = parts ? (size_t)parts * (GF_SWEEP_PART_BYTES / elem_bytes) : 1;
	size_t *counts = NULL, capacity = 0, n = 0, size, count;

	for (size = s->min_bytes; size <= s->max_bytes && n <= GF_SWEEP_SIZES;
	     size = next_size(s, size)) {
		count = size / elem_bytes / unit * unit;
		if (count > (n ? counts[n - 1] : 0))
			*gf_array_push(&counts, &n, &capacity) = count;
		if (size == SIZE_MAX)
			break;
	}
	*ncounts = n;
	return counts;
}

/* --- algorithms -----------------------------------------------------------
 */

int gf_contest_sweep_decomposition(const struct gf_contest_sweep *s, struct gf_way *way,
				   struct gf_error *err)
{
	GF_FREED struct gf_stage *stages = NULL;
	size_t n = 0, i;
	int rc = s->factors ? gf_stages_parse(s->factors, &stages, &n, err) : 0;

	if (rc == 0 && n > GF_WAY_FACTORS)
		rc = gf_error_set(err, -EINVAL, "want at most %d of them", GF_WAY_FACTORS);
	for (i = 0; i < n && rc == 0; i++) {
		way->factors[i] = stages[i].factor;
		/* said of all, or left open */
		way->stages[i] = stages[i].algorithm;
		if (!way->stages[i] != !way->stages[0])
			rc = gf_error_set(err, -EINVAL, "want a stage for all of them or for none");
	}
	way->nfactors = n;
	if (rc)
		gf_error_prefix(err, "--factors");
	return rc;
}

/* The ways that are gathered, name by name. */
struct gathering {
	struct gf_contest_ways ways;
	size_t capacity;
	const struct gf_contest_allreduce_config *config;
	size_t count_elems;
	struct gf_way decomposition; /* factors and stages, no algorithm */
	struct gf_layout even;       /* of a half */
	double density;
};

static int add(struct gathering *g, const struct gf_algorithm *a, struct gf_error *err)
{
	struct gf_way way = {.algorithm = a};
	int rc = 0;

	if (a && gf_way_takes_factors(a)) {
		way = g->decomposition;
		way.algorithm = a;
	}
	if (a && gf_algorithm_has(a->name, GF_ALGORITHM_SETS))
		way.density = g->density;
	if (a && !a->build && g->config->proofs)
		rc = gf_error_set(err, -ENOTSUP,
				  "%s has no steps of its own, which could be proved", a->name);
	else if (a && g->config->device.nccl)
		rc = gf_contest_send_check(
			&(struct gf_burst_message){
				.way = way,
				.half = g->config->collective,
				.owners = &g->even,
				.element = g->config->element,
				.count_elems = g->count_elems,
			},
			g->config->comm, err);
	else if (a)
		rc = gf_choose_check(&way, g->config->comm, &g->config->element,
				     g->config->collective, g->count_elems, err);
	if (rc == 0)
		*gf_array_push(&g->ways.list, &g->ways.count, &g->capacity) = way;
	return rc;
}

/* A library's variants, which are tried later. */
static int add_told(struct gathering *g, const char *name, struct gf_error *err)
{
	struct gf_contest_ways told;
	int rc = g->config->proofs
			 ? gf_error_set(err, -ENOTSUP,
					"%s has no steps of its own, which could be proved", name)
			 : told_ways(name, g->config, &told, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < told.count; i++)
		*gf_array_push(&g->ways.list, &g->ways.count, &g->capacity) = told.list[i];
	free(told.list);
	return 0;
}

static void add_all(struct gathering *g, const struct gf_algorithm *const *table,
		    struct gf_text *remarks)
{
	struct gf_error why;

	for (; *table; table++)
		if (add(g, *table, &why) < 0 ||
		    (gf_algorithm_has((*table)->name, GF_ALGORITHM_TOLD) &&
		     add_told(g, "library:blocking", &why) < 0))
			gf_text_addf(remarks, "left out: %s\n", why.text);
}

/* Said of all algorithms: auto and all would leave out in silence those that take factors. */
static int check_product(const struct gf_way *way, int ranks, struct gf_error *err)
{
	double product = 1;

	for (size_t i = 0; i < way->nfactors; i++)
		product *= way->factors[i];
	if (product != ranks)
		return gf_error_set(err, -EINVAL,
				    "--factors: want a product of %d (the ranks), got %.0f", ranks,
				    product);
	return 0;
}

int gf_contest_sweep_ways(const struct gf_contest_sweep *s,
			  const struct gf_contest_allreduce_config *config, size_t count_elems,
			  struct gf_contest_ways *ways, struct gf_text *remarks,
			  struct gf_error *err)
{
	struct gathering g = {.config = config, .count_elems = count_elems, .density = s->density};
	int rc = gf_contest_sweep_decomposition(s, &g.decomposition, err);

	if (rc == 0 && s->factors)
		rc = check_product(&g.decomposition, config->comm->ranks, err);
	else if (rc == 0)
		rc = gf_choose_layout(config->comm, &g.decomposition.nfactors,
				      g.decomposition.factors, err);
	if (config->collective)
		g.even = gf_layout_even(config->comm->ranks, count_elems);
	for (size_t i = 0; s->algorithms[i] && rc == 0; i++) {
		const char *name = s->algorithms[i];

		if (gf_contest_is_all(name)) {
			add_all(&g, gf_algorithms, remarks);
			if (s->density > 0 && config->lanes == 1)
				add_all(&g, gf_sparse_algorithms, remarks);
		} else if (gf_contest_told_is(name)) {
			rc = add_told(&g, name, err);
		} else {
			rc = add(&g, gf_algorithm_find(name) ?: gf_sparse_find(name), err);
		}
	}
	free((void *)g.even.pieces);
	if (rc == 0 && g.ways.count == 0)
		rc = gf_error_set(err, -ENOTSUP, "no algorithm can run on %d ranks here",
				  config->comm->ranks);
	if (rc)
		free(g.ways.list);
	else
		*ways = g.ways;
	return rc;
}

/* --- agreement ------------------------------------------------------------
 */

static char *describe(const struct gf_contest_sweep *s, const struct gf_contest_allreduce_config *c)
{
	struct gf_text t = {0};

	if (c->collective)
		gf_text_addf(&t, "%s, ", gf_coll_half_names[c->collective]);
	gf_text_addf(&t, "%s of %s", gf_op_names[c->element.op], gf_dtype_names[c->element.dtype]);
	for (size_t i = 0; s->algorithms[i]; i++)
		gf_text_addf(&t, "%s %s", i ? "," : " by", s->algorithms[i]);
	gf_text_addf(&t,
		     "%s%s%s%s, codec %s, %d lanes, segments of %zu, %d + %d repeats, %d "
		     "checks, across %s, density %g%s",
		     c->device.name ? ", device " : "", c->device.name ? c->device.name : "",
		     s->factors ? ", factors " : "", s->factors ? s->factors : "",
		     c->element.codec ? c->element.codec->name : "none", c->lanes, c->segment_bytes,
		     c->warmup, c->repeats, c->checks, gf_contest_across_names[c->across],
		     s->density, c->errors ? ", errors" : "");
	if (c->timeline)
		gf_text_addf(&t, ", a trace");
	if (c->proofs)
		gf_text_addf(&t, ", schedules proved");
	return gf_text_take(&t);
}

int gf_contest_sweep_same(const struct gf_contest_sweep *s,
			  const struct gf_contest_allreduce_config *config, const char *plan,
			  struct gf_error *err)
{
	GF_FREED char *sizes = gf_xasprintf("%zu to %zu bytes by %s%zu", s->min_bytes, s->max_bytes,
					    s->step_bytes ? "+" : "x",
					    s->step_bytes ? s->step_bytes : s->step_factor);
	GF_FREED char *options = describe(s, config);
	int rc = gf_comm_same_text(config->comm, "version", GF_VERSION, err);

	rc = rc ?: gf_comm_same_text(config->comm, "plan", plan ? plan : "none", err);
	rc = rc ?: gf_comm_same_text(config->comm, "sizes", sizes, err);
	return rc ?: gf_comm_same_text(config->comm, "options", options, err);
}
