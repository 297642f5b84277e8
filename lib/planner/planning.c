/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/planning.h"

#include "base/heap.h"
#include "cli/human.h"
#include "collectives/codecs/codec.h"
#include "simulator/memory.h"

static void note_quality(struct gf_planning *s)
{
	GF_RELEASED(gf_text_release) struct gf_text line = {0};

	if (s->documents.profile)
		gf_profile_quality(s->documents.profile, &line);
	if (line.length)
		gf_text_addf(&s->notes, "the profile: %s", line.data);
	if (s->documents.profile)
		gf_profile_falls(s->documents.profile, &s->notes);
}

static void note_ranks(struct gf_planning *s)
{
	const struct gf_topology *t = s->documents.topology;
	const struct gf_network *n = s->request.fabric.network;

	if (t && n && t->ranks && n->ranks && t->ranks != n->ranks && !s->request.ranks_asked)
		gf_text_addf(&s->notes,
			     "the topology has %d ranks, the profile's network %d: planned for %d "
			     "(--ranks %d carries its costs over)\n",
			     t->ranks, n->ranks, s->request.fabric.ranks, t->ranks);
}

/* A measurement and nominal rates are never alike. By so much they are those of other machines, or
 * a rate is one network interface's where a host has several. */
#define APART 1.5

/* What a byte takes between neighbours in a ring of all ranks, as measured and by the levels. */
static void note_distance(struct gf_planning *s)
{
	const struct gf_topology *t = s->documents.topology;
	struct gf_fabric measured = s->request.fabric, nominal = measured;
	struct gf_link_cost as_measured, by_levels;
	double apart;

	if (!t || !measured.network || !measured.network->nallreduce ||
	    measured.network->ranks != t->ranks || t->ranks < 2)
		return;
	measured.ranks = nominal.ranks = t->ranks;
	measured.levels = NULL;
	measured.nlevels = 0;
	nominal.network = NULL;
	if (gf_price_link(&measured, GF_DERIVED_BYTES / t->ranks, &as_measured, NULL) ||
	    gf_price_link(&nominal, GF_DERIVED_BYTES / t->ranks, &by_levels, NULL) ||
	    !(as_measured.beta_s_per_byte > 0))
		return;
	apart = by_levels.beta_s_per_byte / as_measured.beta_s_per_byte;
	if (apart <= APART && apart >= 1 / APART)
		return;
	gf_text_addf(&s->notes,
		     "the profile's network is %.3g x as %s as the topology: %s between "
		     "neighbours, not %s; the profile counts\n",
		     apart > 1 ? apart : 1 / apart, apart > 1 ? "fast" : "slow",
		     gf_human_link(1 / as_measured.beta_s_per_byte).text,
		     gf_human_link(1 / by_levels.beta_s_per_byte).text);
}

/* What an option says of an estimate would be ignored. */
static int without_model(const struct gf_rates *r, size_t batch, const char *found,
			 struct gf_error *err)
{
	const char *option = r->gpu               ? "gpu"
			     : r->precision >= 0  ? "precision"
			     : r->flops_per_s > 0 ? "flops"
			     : batch              ? "batch"
						  : NULL;

	if (!option)
		return 0;
	return gf_error_set(err, -EINVAL, "--%s: want a model to estimate, found %s", option,
			    found);
}

/* The layers' times, from those of whole passes. */
static int spread(struct gf_planning *s, const struct gf_passes *passes, struct gf_error *err)
{
	int rc = gf_passes_spread(passes, s->documents.model, GF_SHARES_ROOFLINE, &s->estimated,
				  err);

	if (rc < 0)
		return rc;
	s->request.model = s->estimated;
	gf_text_addf(&s->notes, "times of %s's layers are shares of the profile's passes\n",
		     passes->model);
	return 0;
}

/* On a GPU codecs go as fast as its memory (docs/gpu.md). A send reads f32, writes what goes on the
 * wire, and keeps what receivers will decode; a receiver adds what it decodes. What a profile
 * measured counts more. */
static void assume_codecs(struct gf_planning *s, double bytes_per_s)
{
	struct gf_processing *p = &s->assumed;

	p->codecs = gf_xcalloc(GF_CODECS, sizeof(*p->codecs));
	for (size_t i = 0; i < GF_CODECS; i++) {
		struct gf_codec_cost *c = &p->codecs[p->ncodecs];
		double wire = gf_codec_ratio(&gf_codecs[i]);

		if (gf_codecs[i].plain)
			continue;
		c->of.name = gf_xstrdup(gf_codecs[i].name);
		c->of.device = gf_xstrdup(s->estimated->device);
		c->of.assumed = true;
		c->encode_s_per_byte = 2 * (1 + wire) / bytes_per_s;
		c->decode_s_per_byte = (2 + wire) / bytes_per_s;
		p->ncodecs++;
	}
	if (s->request.fabric.processing)
		gf_processing_add(p, s->request.fabric.processing);
	s->request.fabric.processing = p;
}

/* What described codecs cost beside messages of this device; nothing where their names do not
 * say. */
static void add_described(struct gf_planning *s, const char *const *codecs)
{
	struct gf_processing one = {.ncodecs = 1};
	const struct gf_codec *codec;

	for (; codecs && *codecs; codecs++) {
		codec = gf_codec_find(*codecs);
		if (!codec || !gf_codec_is_described(codec) ||
		    codec->encode_s_per_byte + codec->decode_s_per_byte == 0)
			continue;
		one.codecs = &(struct gf_codec_cost){
			.of = {.name = (char *)codec->name, .device = s->request.model->device},
			.encode_s_per_byte = codec->encode_s_per_byte,
			.decode_s_per_byte = codec->decode_s_per_byte,
		};
		gf_processing_add(&s->described, &one);
	}
}

static void describe(struct gf_planning *s)
{
	if (!s->request.model)
		return;
	add_described(s, s->request.codecs);
	add_described(s, s->request.outer_codecs);
	if (!s->described.ncodecs)
		return;
	if (s->request.fabric.processing)
		gf_processing_add(&s->described, s->request.fabric.processing);
	s->request.fabric.processing = &s->described;
}

/* Estimated times of an architecture, as the request's model; *made belongs to the caller. rate:
 * the words for the estimate's rate. -EINVAL: a profile's model is there, too. */
static int estimate_model(struct gf_request *r, const struct gf_model *model,
			  const struct gf_estimate *in, const char *rate,
			  struct gf_model_profile **made, struct gf_text *notes,
			  struct gf_error *err)
{
	int rc;

	if (r->model)
		return gf_error_set(err, -EINVAL,
				    "want one model, got %s to estimate beside %s with its times",
				    model->name, r->model->name);
	rc = gf_model_estimate(model, in, made, err);
	if (rc < 0)
		return rc;
	r->model = *made;
	gf_estimate_note(model, in, rate, notes);
	return 0;
}

static int estimate(struct gf_planning *s, const struct gf_rates *rates, size_t batch,
		    struct gf_error *err)
{
	struct gf_estimate in = {.batch = batch ? batch : GF_BATCH_DEFAULT};
	GF_RELEASED(gf_text_release) struct gf_text rate = {0};
	const struct gf_profile *profile = s->documents.profile;
	int rc;

	if (profile && profile->passes) {
		rc = without_model(rates, batch, "one with times", err);
		return rc ?: spread(s, profile->passes, err);
	}
	if (!s->documents.model)
		return without_model(rates, batch, "none", err);
	rc = gf_rates_take(rates, s->documents.topology, &in, &rate, &s->open, err);
	if (rc == 0 && !batch)
		gf_text_addf(&s->open, "%s%zu samples per rank (--batch)",
			     s->open.length ? ", " : "", in.batch);
	if (rc == 0)
		rc = estimate_model(&s->request, s->documents.model, &in, rate.data, &s->estimated,
				    &s->notes, err);
	if (rc == 0 && in.memory_bytes_per_s > 0)
		assume_codecs(s, in.memory_bytes_per_s);
	return rc;
}

static int refine(struct gf_planning *s, const char *trace, struct gf_error *err)
{
	int rc = 0;

	if (s->documents.plan && !gf_period_has(&s->documents.plan->period, GF_PERIOD_EVERY))
		return gf_error_set(err, -EINVAL, "--refine: want a plan without a period, got %s",
				    gf_period_name(&s->documents.plan->period));
	if (s->documents.plan && gf_shard_is_used(&s->documents.plan->shard))
		return gf_error_set(err, -EINVAL,
				    "--refine: want a plan without shards, whose traces say what "
				    "all-reduces take, got %s",
				    gf_shard_plans_names[s->documents.plan->shard.method]);
	rc = gf_refine_trace(s->documents.plan, trace, &s->refined, &s->notes, err);

	if (rc < 0)
		return rc;
	s->request.model = s->refined.model;
	s->request.fabric.network = s->refined.network;
	s->request.fabric.processing = &s->refined.processing;
	s->request.profile_digest = NULL;
	gf_request_follow(&s->request, &s->axes, s->documents.plan, s->codecs);
	return 0;
}

/* The request's model, to be changed. */
static struct gf_model_profile *own_model(struct gf_planning *s)
{
	struct gf_model_profile *m = gf_model_profile_copy(s->request.model);

	gf_model_profile_free(s->accumulated);
	s->request.model = s->accumulated = m;
	return m;
}

static int accumulate(struct gf_planning *s, size_t n, struct gf_error *err)
{
	if (!s->request.model)
		return gf_error_set(err, -EINVAL,
				    "--accumulate: want a model with its times, found none");
	gf_model_accumulate(own_model(s), n);
	return 0;
}

/* Backward makes activations again. */
static int recompute(struct gf_planning *s, struct gf_error *err)
{
	const struct gf_plan *given = s->documents.plan;

	if (!s->request.model)
		return gf_error_set(err, -EINVAL,
				    "--memory: recompute: want a model with its times, found none");
	if (given && s->request.model == given->model && given->memory.recompute)
		return 0; /* does so already */
	gf_sim_recompute(own_model(s));
	return 0;
}

int gf_planning_begin(struct gf_planning *s, const struct gf_planning_times *times,
		      struct gf_error *err)
{
	int rc;

	s->request.axes = &s->axes;
	gf_request_documents(&s->request, &s->documents);
	s->request.fabric.replays = &s->replays;
	note_quality(s);
	note_ranks(s);
	note_distance(s);
	rc = estimate(s, times->rates, times->batch, err);
	if (rc == 0 && times->trace)
		rc = refine(s, times->trace, err);
	if (rc == 0 && s->axes.memory.recompute)
		rc = recompute(s, err);
	if (rc == 0 && times->accumulate)
		rc = accumulate(s, times->accumulate, err);
	if (rc == 0)
		describe(s);
	return rc;
}

void gf_planning_release(struct gf_planning *s)
{
	gf_text_release(&s->notes);
	gf_text_release(&s->open);
	gf_refined_release(&s->refined);
	gf_processing_release(&s->assumed);
	gf_processing_release(&s->described);
	gf_model_profile_free(s->estimated);
	gf_model_profile_free(s->accumulated);
	gf_replays_release(&s->replays);
	gf_documents_release(&s->documents);
}
