/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/registry.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"
#include "planner/factors.h"
#include "simulator/prices/price.h"
#include "simulator/sum_error.h"

#define REPLAYED_MOST 3000000 /* steps */
#define ROUNDS_MOST   8
#define MANY          1000 /* options */

struct filling {
	struct gf_menu *menu;
	size_t capacity;
	const struct gf_problem *in;
	struct gf_fabric fabric;
	struct gf_error why; /* the last algorithm that has no price */
	double least_error;  /* of those that round too much; 0: none */
};

static struct gf_stage *copy_stages(const struct gf_stage *stages, size_t n)
{
	return n ? gf_xmemdup(stages, n * sizeof(*stages)) : NULL;
}

/* One line of a way. */
static void add_option(struct filling *f, const struct gf_priced *priced,
		       const struct gf_price *price, const char *codec)
{
	double ratio = gf_codec_ratio(gf_codec_find(codec));
	struct gf_option *o = gf_array_push(&f->menu->options, &f->menu->noptions, &f->capacity);

	*o = (struct gf_option){
		.algorithm = priced->algorithm,
		.codec = codec,
		.stages = copy_stages(priced->stages, priced->nstages),
		.nstages = priced->nstages,
		.line = {price->line.from_bytes / ratio, price->line.below_bytes / ratio,
			 price->line.startup_s, price->line.per_byte_s * ratio},
		.gather = {price->line.from_bytes / ratio, price->line.below_bytes / ratio,
			   price->gather.startup_s, price->gather.per_byte_s * ratio},
		.load_per_byte_s = price->load_per_byte_s * ratio,
		.wire_ratio = ratio,
		.contention = price->contention,
		.mutual = price->mutual,
		.origin = price->origin,
		.final = f->fabric.derived != NULL,
		.halved = price->halved,
	};
}

static int add_lines(struct filling *f, struct gf_priced *priced, const char *codec)
{
	struct gf_price price;
	int rc;

	priced->codec = codec;
	priced->split = f->in->halves;
	priced->copies = f->in->copies;
	for (priced->bytes = 0; isfinite(priced->bytes); priced->bytes = price.line.below_bytes) {
		rc = gf_price_message(&f->fabric, priced, &price, &f->why);
		if (rc < 0)
			return rc;
		price.line.from_bytes = priced->bytes; /* no gap, no ulp */
		add_option(f, priced, &price, codec);
	}
	return 0;
}

/* Can the stages carry what that codec sends? A library's carry f32 alone. Between GPUs f32 goes by
 * NCCL, unless factors are given or were measured. */
static bool carries(const struct filling *f, const char *algorithm, const struct gf_stage *stages,
		    size_t nstages, const char *codec)
{
	bool plain = gf_codec_find(codec)->plain, gpus = gf_device_is_gpu(f->fabric.device);

	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES))
		return true;
	for (size_t i = 0; i < nstages; i++) {
		bool calls = gf_stage_has(stages[i].algorithm, GF_STAGE_CALL);

		if (calls ? !plain : plain && gpus && !f->in->nfactors && !f->in->fabric.network)
			return false;
	}
	return true;
}

/* Would a message like that round more than is allowed? */
static bool exceeds(struct filling *f, const char *algorithm, const struct gf_stage *stages,
		    size_t nstages, const char *codec)
{
	const struct gf_message like = {.algorithm = (char *)algorithm,
					.codec = (char *)codec,
					.stages = (struct gf_stage *)stages,
					.nstages = nstages};
	const struct gf_sum_error_of of = {.message = &like,
					   .ranks = f->fabric.ranks - f->fabric.servers,
					   .servers = f->fabric.servers,
					   .copies = f->in->copies,
					   .scattered = f->in->copies > 0};
	double error;

	if (!(f->in->max_error > 0))
		return false;
	error = gf_sim_worst_error(&of, f->in->model);
	if (error <= f->in->max_error || (isnan(error) && gf_codec_is_plain(codec)))
		return false;
	if (isnan(error))
		gf_error_set(&f->why, -ENOTSUP,
			     "--max-error: nobody knows how much %s with %s rounds on %d ranks",
			     algorithm, codec, of.ranks);
	else if (!(f->least_error > 0 && f->least_error <= error))
		gf_error_set(&f->why, -ENOTSUP,
			     "--max-error: want at most %g, the least is %.1e, by %s with %s",
			     f->in->max_error, f->least_error = error, algorithm, codec);
	return true;
}

static const char *const *codecs_of(const struct gf_problem *in)
{
	static const char *const plain[] = {"f32", NULL};

	return in->codecs ? in->codecs : plain;
}

/* One algorithm, one decomposition, every codec. */
static void add(struct filling *f, const char *algorithm, const struct gf_stage *stages,
		size_t nstages)
{
	const char *const *codecs = codecs_of(f->in);
	const struct gf_algorithm *a = gf_algorithm_find(algorithm);
	struct gf_priced priced = {algorithm, stages, nstages, 0, NULL, 0};

	if (f->in->copies > 1 && !gf_algorithm_has(algorithm, GF_ALGORITHM_COPIES)) {
		gf_error_set(&f->why, -ENOTSUP, "%s leaves no copies between its halves",
			     algorithm);
		return;
	}
	if (f->in->halves && (!a || !a->owned)) {
		gf_error_set(&f->why, -ENOTSUP, "%s does not come in two halves", algorithm);
		return;
	}
	for (size_t i = 0; codecs[i]; i++) {
		if (f->in->reproducible && !gf_algorithm_reproduces(algorithm, codecs[i])) {
			gf_error_set(&f->why, -ENOTSUP,
				     "--reproducible: %s with %s adds in an order that depends on "
				     "the message",
				     algorithm, codecs[i]);
			continue;
		}
		if (exceeds(f, algorithm, stages, nstages, codecs[i]))
			continue;
		if (!carries(f, algorithm, stages, nstages, codecs[i])) {
			gf_error_set(
				&f->why, -ENOTSUP,
				"--codecs: want f32 with a stage that is a library's call, got %s",
				codecs[i]);
			continue;
		}
		if (!gf_algorithm_has(algorithm, GF_ALGORITHM_ENCODED) &&
		    !gf_codec_find(codecs[i])->adds) {
			GF_FREED char *names = gf_codec_names(true, "");

			gf_error_set(&f->why, -ENOTSUP,
				     "want %s with algorithm %s, which cannot sum encoded data",
				     names, algorithm);
			continue;
		}
		if (add_lines(f, &priced, codecs[i]) < 0)
			return;
	}
}

struct decomposing {
	struct filling *filling;
	const char *algorithm;
};

static void add_decomposition(void *ctx, const struct gf_stage *stages, size_t nstages)
{
	struct decomposing *d = ctx;

	add(d->filling, d->algorithm, stages, nstages);
}

/* Does the entry say that its algorithm was measured? Those of all-reduces in f32 do. Where there
 * are none, those of an allowed codec do. Where halves alone were measured and are wanted, those of
 * reduce-scatters do. */
static bool counts(const struct gf_problem *in, const struct gf_allreduce_cost *c)
{
	const struct gf_network *n = in->fabric.network;
	bool split = in->halves;

	for (size_t i = 0; i < n->nallreduce; i++) {
		if (gf_allreduce_plain(&n->allreduce[i]))
			return gf_allreduce_plain(c);
		split &= n->allreduce[i].collective != GF_COLL_WHOLE;
	}
	return c->collective == (split ? GF_COLL_REDUCE_SCATTER : GF_COLL_WHOLE) &&
	       gf_names_index(codecs_of(in), gf_allreduce_codec(c)) >= 0;
}

/* NULL: any algorithm. */
static bool measured(const struct gf_problem *in, const char *algorithm)
{
	const struct gf_network *n = in->fabric.network;

	for (size_t i = 0; n && i < n->nallreduce && in->copies <= 1; i++)
		if (counts(in, &n->allreduce[i]) &&
		    (!algorithm || strcmp(n->allreduce[i].algorithm, algorithm) == 0))
			return true;
	return false;
}

static bool prime(int n)
{
	for (long long d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

/* Can the factors that the user gave be carried out here, as far as is known?
 */
static bool can_run(struct filling *f, const char *algorithm)
{
	const struct gf_problem *in = f->in;
	const char *device = f->fabric.device;
	const unsigned here = gf_device_is_gpu(device)               ? GF_STAGE_BY_GPU
			      : device && strcmp(device, "cpu") == 0 ? GF_STAGE_BY_HOST
								     : 0; /* it may be either */

	if (gf_stages_check(algorithm, in->factors, in->nfactors, &f->why) ||
	    gf_stages_check_hosts(in->factors, in->nfactors, in->fabric.levels, in->fabric.nlevels,
				  &f->why)) {
		gf_error_prefix(&f->why, "--factors");
		return false;
	}
	for (size_t i = 0; i < in->nfactors; i++) {
		const char *name = in->factors[i].algorithm;

		if (name && !gf_stage_has(name, here)) {
			gf_error_set(&f->why, -ENOTSUP,
				     "--factors: stage %zu: %s does not run on device %s, as the "
				     "profile has it",
				     i, name, device);
			return false;
		}
	}
	return true;
}

static void add_decompositions(struct filling *f, const char *algorithm)
{
	const struct gf_problem *in = f->in;
	bool two = gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS);
	struct gf_factor_rules rules = {
		.ranks = f->fabric.ranks,
		.levels = in->fabric.levels,
		.nlevels = in->fabric.nlevels,
		.fewest = two ? 2 : 0,
		.most = two ? 2 : 4,
		.rings_only = !gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES),
		.gpus = gf_device_is_gpu(f->fabric.device),
		.fixed = in->factors,
		.nfixed = in->nfactors,
	};

	if (!can_run(f, algorithm))
		return;
	/* asked for, a prime number of ranks is one stage */
	if (!two && in->algorithm && prime(rules.ranks))
		rules.fewest = 1;
	gf_factors_each(&rules, add_decomposition, &(struct decomposing){f, algorithm});
	if (!two && in->algorithm && rules.ranks == 1)
		add(f, algorithm, NULL, 0);
}

static void add_derived(struct filling *f, const char *algorithm)
{
	if (gf_algorithm_has(algorithm, GF_ALGORITHM_LEVELS))
		add_decompositions(f, algorithm);
	else
		add(f, algorithm, NULL, 0);
}

/* Does it have the stages that the user gave, as far as they are given? */
static bool as_given(const struct filling *f, const struct gf_allreduce_cost *c)
{
	const struct gf_problem *in = f->in;

	for (size_t i = 0; i < c->nstages && i < in->nfactors; i++)
		if (c->stages[i].factor != in->factors[i].factor ||
		    (in->factors[i].algorithm &&
		     strcmp(c->stages[i].algorithm, in->factors[i].algorithm)))
			return false;
	return c->nstages == in->nfactors;
}

/* The entries of an algorithm, with all stages that were measured, are run as they were measured.
 * On another number of ranks the first counts alone. Factors that were not measured are derived. */
static void add_measured(struct filling *f, const char *algorithm)
{
	const struct gf_network *n = f->fabric.network;
	bool same = n->ranks == f->fabric.ranks, any = false;

	for (size_t i = 0; i < n->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &n->allreduce[i];

		if (!counts(f->in, c) || strcmp(c->algorithm, algorithm) != 0 || (any && !same) ||
		    (f->in->nfactors && !(same && as_given(f, c))))
			continue;
		add(f, c->algorithm, c->stages, same ? c->nstages : 0);
		any = true;
	}
	if (!any)
		add_derived(f, algorithm);
}

/* Is it the network's first entry of its algorithm? */
static bool is_first(const struct gf_problem *in, size_t i)
{
	const struct gf_network *n = in->fabric.network;
	size_t k = 0;

	while (k < i && (!counts(in, &n->allreduce[k]) ||
			 strcmp(n->allreduce[k].algorithm, n->allreduce[i].algorithm) != 0))
		k++;
	return k == i;
}

static void add_all(struct filling *f)
{
	const struct gf_problem *in = f->in;
	const struct gf_network *n = in->fabric.network;
	/* what was measured is not mixed with what a data sheet says */
	bool derive = !measured(in, NULL) || (in->algorithm && !measured(in, in->algorithm));
	bool mixed = measured(in, NULL) && gf_fabric_is_mixed(&f->fabric);

	for (size_t i = 0; n && i < n->nallreduce && in->copies <= 1; i++)
		if (counts(in, &n->allreduce[i]) && is_first(in, i) &&
		    (!in->algorithm || strcmp(in->algorithm, n->allreduce[i].algorithm) == 0))
			add_measured(f, n->allreduce[i].algorithm);
	for (size_t i = 0; derive && gf_algorithms[i]; i++) {
		const char *name = gf_algorithms[i]->name;
		bool wanted = in->algorithm ? strcmp(in->algorithm, name) == 0
					    : !gf_algorithm_has(name, GF_ALGORITHM_ON_REQUEST);

		if (!wanted || measured(in, name))
			continue;
		if (mixed && gf_algorithms[i]->stands_for)
			gf_error_set(&f->why, -ENOTSUP,
				     "want a measured all_reduce by %s beside those of other "
				     "algorithms, found none",
				     name);
		else
			add_derived(f, name);
	}
}

/* All lines of the option's way, with its codec, as they are replayed. Returns the place of the
 * first that they replace. */
static size_t replay_way(struct filling *f, size_t option)
{
	struct gf_menu *m = f->menu;
	struct gf_option way;
	struct gf_priced priced;
	size_t first = option, after = option + 1;

	while (m->options[first].line.from_bytes > 0)
		first--;
	while (isfinite(m->options[after - 1].line.below_bytes))
		after++;
	way = m->options[first];
	way.stages = copy_stages(way.stages, way.nstages);
	for (option = first; option < after; option++)
		free(m->options[option].stages);
	memmove(&m->options[first], &m->options[after],
		(m->noptions - after) * sizeof(*m->options));
	m->noptions -= after - first;
	priced = (struct gf_priced){way.algorithm, way.stages, way.nstages, 0, NULL, 0};
	add_lines(f, &priced, way.codec);
	free(way.stages);
	return first;
}

GF_ORDER(descending, size_t, GF_BY(*y, *x))

/* Replays what of an envelope of these options has not been; false: all of it has. The last ways go
 * first, for the places of those before them stay. */
static bool replay_some(struct filling *f, const struct gf_menu *of)
{
	struct gf_menu *m = f->menu;
	size_t n = of->nenvelope, k, before = m->noptions;
	GF_FREED size_t *ways = gf_xmemdup(of->envelope, n * sizeof(*ways));
	bool some = false;

	qsort(ways, n, sizeof(*ways), descending);
	for (k = 0; k < n; k++) {
		const struct gf_option *o = &m->options[ways[k]];

		if (ways[k] >= before || o->final || o->origin != GF_PRICE_DERIVED ||
		    m->derived->nreplayed > REPLAYED_MOST)
			continue;
		before = replay_way(f, ways[k]);
		some = true;
	}
	return some;
}

/* What is the cheapest for a message, and for a half of one. */
static bool replay_round(struct filling *f)
{
	bool some = replay_some(f, f->menu);
	enum gf_coll_half half = GF_COLL_REDUCE_SCATTER;
	struct gf_menu part;

	for (; f->in->halves && half <= GF_COLL_ALL_GATHER; half++) {
		gf_menu_half(f->menu, half, &part);
		some |= replay_some(f, &part);
		gf_menu_part_release(&part);
	}
	return some;
}

/*
 * Closed forms are a first guess: what is the cheapest by them for some size is replayed, and what
 * then is, until all of the envelope has been, with halves also that of each half. The rest is not,
 * for replays take time; it keeps its closed form, and gamma_n = n. Replays that are there already
 * count as well: whatever the order in which a task's policies are asked, they choose from one
 * menu.
 */
static void replay_envelope(struct filling *f)
{
	struct gf_menu *m = f->menu;
	int lanes = f->in->lanes ? f->in->lanes : 2, round = 0;

	/* more lanes than messages have no use */
	if (f->in->model)
		lanes = (int)fmin(lanes, (double)f->in->model->ntensors);
	m->derived = f->in->fabric.derived ? f->in->fabric.derived : &m->own;
	if (m->derived->lanes < lanes)
		m->derived->lanes = lanes;
	m->derived->nreplayed = 0;
	m->derived->count++;
	f->fabric.derived = m->derived;
	do
		gf_menu_find_envelope(m);
	while (round++ < ROUNDS_MOST && replay_round(f));
}

int gf_menu_check_codecs(const struct gf_problem *in, struct gf_error *err)
{
	const char *option = in->codecs_option ? in->codecs_option : "--codecs";
	static const struct gf_registry codecs = {gf_codecs, sizeof(*gf_codecs), NULL};

	for (size_t i = 0; in->codecs && in->codecs[i]; i++) {
		const struct gf_codec *codec = gf_codec_find(in->codecs[i]);

		if (!codec && strchr(in->codecs[i], ':')) {
			int rc = gf_codec_describe(in->codecs[i], &codec, err);

			gf_error_prefix(err, "%s", option);
			return rc;
		}
		if (!codec)
			return gf_registry_refuse(&codecs, option, NULL, in->codecs[i], err);
		if (gf_codec_ratio(codec) == 1 || !in->model)
			continue;
		for (size_t k = 0; k < in->model->ntensors; k++)
			if (in->model->tensors[k].dtype != GF_F32)
				return gf_error_set(
					err, -EINVAL,
					"%s: want f32 gradients for %s, got %s in tensor %s",
					option, in->codecs[i],
					gf_dtype_names[in->model->tensors[k].dtype],
					in->model->tensors[k].name);
	}
	return 0;
}

int gf_menu_init(struct gf_menu *m, const struct gf_problem *in, struct gf_error *err)
{
	struct filling f = {
		.menu = m,
		.in = in,
		.fabric = in->fabric,
	};
	bool empty = !in->algorithm && !in->fabric.levels &&
		     !(in->fabric.network && in->fabric.network->nallreduce);
	static const struct gf_registry algorithms = {gf_algorithms, 0, NULL};
	int rc = gf_menu_check_codecs(in, err);

	memset(m, 0, sizeof(*m));
	if (rc < 0)
		return rc;
	f.fabric.derived = NULL; /* until options are final */
	f.fabric.device = in->model ? in->model->device : NULL;
	if (in->algorithm && !gf_algorithm_find(in->algorithm) && !measured(in, in->algorithm))
		return gf_registry_refuse(&algorithms, "--algorithms", NULL, in->algorithm, err);
	add_all(&f);
	if (m->noptions == 0) {
		gf_menu_release(m);
		return gf_error_set(
			err, -ENOTSUP, "%s",
			f.why.text[0] && !empty
				? f.why.text
				: "want a measured network or a topology, found neither");
	}
	if (m->noptions > MANY)
		gf_menu_drop_far(m);
	replay_envelope(&f);
	gf_menu_finish(m);
	return 0;
}

void gf_menu_part_release(struct gf_menu *part)
{
	free(part->options);
	free(part->envelope);
	free(part->choices);
	free(part->floors);
	free(part->from_bytes);
	free(part->least_s);
	memset(part, 0, sizeof(*part));
}

void gf_menu_release(struct gf_menu *m)
{
	for (size_t i = 0; i < m->noptions; i++)
		free(m->options[i].stages);
	gf_derived_release(&m->own);
	gf_menu_part_release(m);
}

void gf_option_tell(const struct gf_option *o, struct gf_message *m)
{
	m->algorithm = gf_xstrdup(o->algorithm);
	m->codec = gf_xstrdup(o->codec);
	m->stages = gf_stages_copy(o->stages, o->nstages);
	m->nstages = o->nstages;
}
