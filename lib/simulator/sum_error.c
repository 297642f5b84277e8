/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/sum_error.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/way.h"
#include "documents/shard.h"

static double error_by(const struct gf_sum_error_of *of, const struct gf_way *way,
		       const struct gf_algorithm *a, const struct gf_codec *codec,
		       const struct gf_value_statistics *values, double *times)
{
	const bool adds = !(a->traits & GF_ALGORITHM_ENCODED) || a != way->algorithm;
	const enum gf_dtype sums = adds && codec->adds ? codec->dtype : GF_F32;
	struct gf_way by = *way;
	struct gf_coll_args args;
	struct gf_rounding r;
	struct gf_error unread;
	int ranks = 1;

	for (size_t i = 0; i < by.nfactors; i++)
		ranks *= by.factors[i];
	if (ranks != of->ranks) /* a plan's on other ranks */
		by.nfactors = 0;
	by.algorithm = a;
	by.servers = of->servers;
	args = gf_way_args(&by, of->ranks + of->servers);
	args.count_elems = 1;
	args.elem_bytes = sizeof(float);
	args.copies = of->copies;
	args.half = of->scattered ? GF_COLL_REDUCE_SCATTER : GF_COLL_WHOLE;
	args.lossy = sums == GF_F32 && codec->error > 0;
	if (gf_rounding_of(a, &args, &r, &unread))
		return NAN;
	if (times)
		*times = sqrt(r.cut.alone / of->ranks);
	return gf_rounding_rms(&r, codec, sums, values);
}

double gf_sim_sum_error(const struct gf_sum_error_of *of, const struct gf_value_statistics *values,
			double *times)
{
	const struct gf_codec *codec = gf_codec_find(of->message->codec);
	const struct gf_algorithm *const *a;
	struct gf_error unread;
	struct gf_way way;
	double most = NAN;

	if (!codec || (codec->error > 0 && !(codec->rms > 0)) ||
	    gf_way_of_message(of->message, &way, &unread))
		return NAN;
	if (!way.algorithm->stands_for)
		return error_by(of, &way, way.algorithm, codec, values, times);
	for (a = way.algorithm->stands_for; *a; a++)
		most = fmax(most, error_by(of, &way, *a, codec, values, times));
	return most;
}

static bool goes_alike(const struct gf_message *a, const struct gf_message *b)
{
	return gf_stages_same(a->stages, a->nstages, b->stages, b->nstages) &&
	       !strcmp(a->algorithm, b->algorithm) && !strcmp(a->codec, b->codec);
}

double gf_sim_library_error(const char *codec, int ranks, bool scattered)
{
	struct gf_message like = {.codec = (char *)codec};
	const struct gf_sum_error_of of = {
		.message = &like, .ranks = ranks, .copies = 1, .scattered = scattered};
	size_t i = 0;

	while (!gf_algorithms[i]->stands_for)
		i++;
	like.algorithm = (char *)gf_algorithms[i]->name;
	return gf_sim_sum_error(&of, NULL, NULL);
}

struct gf_sum_error_of gf_sum_error_of(const struct gf_plan *p, size_t message)
{
	return (struct gf_sum_error_of){
		.message = &p->messages[message],
		.ranks = p->ranks,
		.servers = p->servers,
		.copies = gf_plan_copies(p),
		.scattered = gf_shard_is_used(&p->shard),
	};
}

double gf_sim_step_error(const struct gf_plan *p, const struct gf_value_statistics *values,
			 double *messages)
{
	double *error = gf_xcalloc(p->nmessages, sizeof(*error)), squares = 0, elems = 0, n;
	size_t i, k;

	for (i = 0; gf_selection_has(&p->selection, GF_SELECT_LOSSLESS) && i < p->nmessages; i++) {
		const struct gf_sum_error_of of = gf_sum_error_of(p, i);

		for (k = 0; k < i && !goes_alike(&p->messages[k], &p->messages[i]); k++)
			;
		error[i] = k < i ? error[k] : gf_sim_sum_error(&of, values, NULL);
		n = (double)gf_plan_message_elems(p, i);
		squares += n * error[i] * error[i];
		elems += n;
	}
	for (i = 0; messages && i < p->nmessages; i++)
		messages[i] = isnan(error[i]) ? 0 : error[i];
	free(error);
	return squares > 0 ? sqrt(squares / elems) : 0;
}

void gf_sim_predict_error(struct gf_plan *p, const struct gf_value_statistics *values)
{
	GF_FREED double *error = gf_xcalloc(p->nmessages, sizeof(*error));

	p->predicted->error = gf_sim_step_error(p, values, error);
	for (size_t i = 0; i < p->nmessages; i++)
		p->predicted->messages[i].error = error[i];
}
