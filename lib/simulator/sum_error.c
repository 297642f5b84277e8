/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/sum_error.h"

#include <math.h>

#include "base/heap.h"
#include "collectives/way.h"
#include "documents/shard.h"

/* How a message is rounded, whatever its values; codec NULL: unknown. */
struct rounding {
	const struct gf_codec *codec;
	enum gf_dtype sums;
	struct gf_rounding counts;
};

static double rms(const struct rounding *r, const struct gf_value_statistics *values)
{
	return r->codec ? gf_rounding_rms(&r->counts, r->codec, r->sums, values) : NAN;
}

static double common(const struct gf_gradient *g)
{
	return fmax(g->correlation, 0);
}

/* Gradients are rounded to 16 bits before they are summed in these. */
static void add_casts(struct gf_rounding *r)
{
	const double n = r->ranks;

	r->coded.alone += n;
	r->cut.alone += n;
	r->cut.pairs += n * (n - 1);
}

static struct rounding rounding_by(const struct gf_sum_error_of *of, const struct gf_way *way,
				   const struct gf_algorithm *a, const struct gf_codec *codec)
{
	const bool adds = !(a->traits & GF_ALGORITHM_ENCODED) || a != way->algorithm;
	struct rounding r = {codec, adds && codec->adds ? codec->dtype : GF_F32, {0}};
	struct gf_way by = *way;
	struct gf_coll_args args;
	struct gf_error unread;

	by.algorithm = a;
	by.servers = of->servers;
	args = gf_way_args(&by, of->ranks + of->servers);
	args.count_elems = 1;
	args.elem_bytes = sizeof(float);
	args.copies = of->copies;
	args.half = of->scattered ? GF_COLL_REDUCE_SCATTER : GF_COLL_WHOLE;
	args.lossy = r.sums == GF_F32 && codec->error > 0;
	if (gf_rounding_of(a, &args, &r.counts, &unread))
		r.codec = NULL;
	else if (r.sums != GF_F32)
		add_casts(&r.counts);
	return r;
}

static struct rounding rounding_of(const struct gf_sum_error_of *of)
{
	const struct gf_codec *codec = gf_codec_find(of->message->codec);
	const struct gf_algorithm *const *a;
	struct rounding most = {0}, by;
	struct gf_error unread;
	struct gf_way way;

	if (!codec || (codec->error > 0 && !(codec->rms > 0)) ||
	    gf_way_of_message(of->message, &way, &unread))
		return most;
	if (!way.algorithm->stands_for)
		return rounding_by(of, &way, way.algorithm, codec);
	for (a = way.algorithm->stands_for; *a; a++) {
		by = rounding_by(of, &way, *a, codec);
		if (!(rms(&most, NULL) >= rms(&by, NULL)) && by.codec)
			most = by;
	}
	return most;
}

double gf_sim_sum_error(const struct gf_sum_error_of *of, const struct gf_value_statistics *values,
			double *times)
{
	const struct rounding r = rounding_of(of);

	if (times && r.codec)
		*times = sqrt(r.counts.cut.alone / of->ranks);
	return rms(&r, values);
}

double gf_sim_worst_error(const struct gf_sum_error_of *of, const struct gf_model_profile *m)
{
	const struct rounding r = rounding_of(of);
	struct gf_value_statistics least = {.correlation = 1}, most = {0};
	bool all = m != NULL, any = false;
	double worst = NAN;

	for (size_t i = 0; m && i < m->ntensors; i++) {
		const struct gf_gradient *g = m->tensors[i].gradient;

		all &= g != NULL;
		if (!g || !(g->rms > 0))
			continue;
		any = true;
		least.correlation = fmin(least.correlation, common(g));
		most.correlation = fmax(most.correlation, common(g));
		least.peak = most.peak = fmax(most.peak, g->peak);
	}
	/* the error of a mixture of tensors is at most that of one of these */
	if (any)
		worst = fmax(rms(&r, &least), rms(&r, &most));
	return all && any ? worst : fmax(worst, rms(&r, NULL));
}

double gf_sim_library_error(const char *codec, int ranks, bool scattered,
			    const struct gf_model_profile *m)
{
	struct gf_message like = {.codec = (char *)codec};
	const struct gf_sum_error_of of = {
		.message = &like, .ranks = ranks, .copies = 1, .scattered = scattered};
	size_t i = 0;

	while (!gf_algorithms[i]->stands_for)
		i++;
	like.algorithm = (char *)gf_algorithms[i]->name;
	return gf_sim_worst_error(&of, m);
}

struct gf_sum_error_of gf_sum_error_of(const struct gf_plan *p, size_t message)
{
	return (struct gf_sum_error_of){
		.message = &p->messages[message],
		.ranks = gf_plan_group_ranks(p),
		.servers = p->servers,
		.copies = gf_plan_copies(p),
		.scattered = gf_shard_is_used(&p->shard),
	};
}

/* Blocks of a codec, one after the other, as tensors fill them. */
struct blocks {
	double squares;      /* of the largest of each block, times its elements */
	double most, filled; /* of the one that is not full */
};

static void fill(struct blocks *b, double elems, double most)
{
	const double size = GF_GRADIENT_PEAK_ELEMS, n = fmin(elems, size - b->filled);
	const double rest = elems - n, whole = floor(rest / size) * size;

	b->most = fmax(b->most, most);
	b->filled += n;
	if (b->filled < size)
		return;
	b->squares += size * b->most * b->most + whole * most * most;
	b->filled = rest - whole;
	b->most = b->filled > 0 ? most : 0;
}

static const struct gf_value_statistics *statistics_of(const struct gf_model_profile *m,
						       size_t first, size_t last,
						       struct gf_value_statistics *room)
{
	double squares = 0, shared = 0;
	struct blocks blocks = {0};

	for (size_t i = first; i <= last; i++) {
		const struct gf_gradient *g = m->tensors[i].gradient;
		const double elems = (double)m->tensors[i].count_elems;
		double weight;

		if (!g)
			return NULL;
		weight = elems * g->rms * g->rms;
		squares += weight;
		shared += weight * common(g);
		fill(&blocks, elems, g->rms * g->peak);
	}
	if (!(squares > 0))
		return NULL;
	blocks.squares += blocks.filled * blocks.most * blocks.most;
	*room = (struct gf_value_statistics){shared / squares, sqrt(blocks.squares / squares)};
	return room;
}

/* The sum of the squares of the message's exact means; unless all are known, of equal ones. */
static double squares_of(const struct gf_plan *p, size_t message, bool known)
{
	const struct gf_message *m = &p->messages[message];
	double sum = 0;

	for (size_t i = m->first; i <= m->last; i++) {
		const struct gf_tensor *t = &p->model->tensors[i];
		const double c = known ? common(t->gradient) : 0;
		const double rms = known ? t->gradient->rms : 1;

		sum += (double)t->count_elems * rms * rms * (1 + (gf_plan_group_ranks(p) - 1) * c);
	}
	return sum;
}

double gf_sim_step_error(const struct gf_plan *p, double *messages)
{
	GF_FREED struct rounding *r = gf_xcalloc(p->nmessages, sizeof(*r));
	double errors = 0, squares = 0;
	struct gf_value_statistics room;
	const bool known = statistics_of(p->model, 0, p->model->ntensors - 1, &room);
	size_t i, k;

	for (i = 0; gf_selection_has(&p->selection, GF_SELECT_LOSSLESS) && i < p->nmessages; i++) {
		const struct gf_sum_error_of of = gf_sum_error_of(p, i);
		const struct gf_message *m = of.message;
		const double weight = squares_of(p, i, known);
		double error;

		for (k = 0; k < i && !gf_message_goes_as(&p->messages[k], m); k++)
			;
		r[i] = k < i ? r[k] : rounding_of(&of);
		error = rms(&r[i], statistics_of(p->model, m->first, m->last, &room));
		errors += weight * error * error;
		squares += weight;
		if (messages && !isnan(error))
			messages[i] = error;
	}
	return errors > 0 ? sqrt(errors / squares) : 0;
}

void gf_sim_predict_error(struct gf_plan *p)
{
	GF_FREED double *error = gf_xcalloc(p->nmessages, sizeof(*error));

	p->predicted->error = gf_sim_step_error(p, error);
	for (size_t i = 0; i < p->nmessages; i++)
		p->predicted->messages[i].error = error[i];
}
