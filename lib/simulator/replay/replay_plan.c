/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/replay_plan.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "simulator/pipeline.h"
#include "simulator/predict.h"

/* What processors do for the traffic's i-th message. */
static void add_processing(const struct gf_replay_setting *s, size_t i,
			   struct gf_replay_message *to)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_fabric *f = &s->variant.fabric;
	const struct gf_sim_message *m = &s->traffic.messages[i];
	const struct gf_message *like = gf_traffic_like(p, s->traffic.plan_message[i]);
	const struct gf_codec_cost *codec = gf_fabric_codec(f, like->codec);
	struct gf_wire wires[GF_WIRES_MOST];

	if (codec) {
		to->encode_s = sizeof(float) * codec->encode_s_per_byte;
		to->decode_s = sizeof(float) * codec->decode_s_per_byte;
	}
	if (s->traffic.plan_message[i] == p->nmessages)
		return;
	gf_plan_wires(p, m->first, m->last, wires);
	to->before_s = gf_selecting_s(f, p, m->first, m->last);
	if (codec && wires[0].kind == GF_WIRE_REDUCE)
		to->before_s += codec->scale_s_per_byte * wires[0].share * wires[0].size_bytes;
	if (m->half == GF_HALF_SPLIT)
		to->before_s /= 2;
	if (wires[0].kind != GF_WIRE_REDUCE)
		to->before_s += s->traffic.call_s + gf_price_codings_s(f, &wires[0], like->codec);
}

struct forward {
	double *end_s;  /* per rank */
	double slowest; /* the slowest rank's factor */
	double slowest_end_s;
	struct gf_sim_gather *gathers;
	size_t ngathers;
};

/* How long the all-gathers of the step before take alone, one after the other.
 */
static int gather(struct gf_replay_setting *s, struct gf_sim_gather *gathers, size_t n,
		  struct gf_error *err)
{
	struct gf_replay_input in = gf_replay_setting_input(s);
	GF_FREED double *begin_s = gf_xcalloc((size_t)in.ranks, sizeof(*begin_s));
	struct gf_replay_compute compute = {.forward_end_s = begin_s, .slowdown = 1, .lanes = 1};
	struct gf_replayed_message *made = gf_xcalloc(n + 1, sizeof(*made));
	GF_FREED struct gf_replay_message *messages = gf_xcalloc(n + 1, sizeof(*messages));
	GF_RELEASED(gf_replay_result_release) struct gf_replay_result times = {0};
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		size_t from = gathers[i].message;

		rc = gf_replayed_message_init(&made[i], s, from, GF_COLL_ALL_GATHER, err);
		messages[i] = (struct gf_replay_message){
			.ranks = made[i].ranks,
			.element = made[i].element,
			.mode = GF_MODE_NORMAL,
		};
		add_processing(s, from, &messages[i]);
	}
	in.messages = messages;
	in.nmessages = n;
	in.compute = &compute;
	rc = rc ?: gf_replay(&in, &times, err);
	for (size_t i = 0; i < n && rc == 0; i++) {
		double takes_s = times.message_end_s[i] - times.message_start_s[i];

		gathers[i].startup_s = fmin(gathers[i].startup_s, takes_s);
		gathers[i].drain_s = takes_s - gathers[i].startup_s;
	}
	gf_replayed_messages_free(made, n, in.ranks);
	return rc;
}

static int replay(const struct gf_replay_setting *s, const struct forward *f,
		  struct gf_replayed *out, struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_input step = gf_plan_input(p, &s->traffic);
	const double issues_s = gf_sim_issues_s(&step);
	struct gf_replay_compute compute = {
		.forward_end_s = f->end_s,
		.backward_s = p->model->backward_s + issues_s,
		.slowdown = fmax(p->model->overlap_slowdown, 1),
		.lanes = p->lanes,
		.factor = s->factor,
	};
	struct gf_replay_input in = gf_replay_setting_input(s);
	GF_FREED struct gf_replay_message *messages =
		gf_xcalloc(out->nmessages + 1, sizeof(*messages));
	double issued_s = 0;

	for (size_t i = 0; i < out->nmessages; i++) {
		const struct gf_sim_message *m = &s->traffic.messages[i];

		messages[i] = (struct gf_replay_message){
			.ranks = out->messages[i].ranks,
			.element = out->messages[i].element,
			.mode = m->mode,
			.work_s = gf_sim_ready_work_s(p->model, m, issued_s, issues_s),
			.mutual = m->mutual,
			.startup_s = m->startup_s,
		};
		add_processing(s, i, &messages[i]);
		issued_s += gf_sim_issue_s(p->model, m);
	}
	in.messages = messages;
	in.nmessages = out->nmessages;
	in.compute = &compute;
	return gf_replay(&in, &out->times, err);
}

/* The step model's reading of given starts and ends, slowest rank's. */
static void conclude(const struct gf_replay_setting *s, const struct forward *f,
		     struct gf_replayed *out)
{
	const struct gf_plan *p = &s->variant.plan;
	struct gf_model_profile *model = p->model;
	struct gf_sim_input in = gf_plan_input(p, &s->traffic);
	struct gf_sim_result r = {.forward_end_s = f->slowest_end_s,
				  .memory.peak_bytes = out->model.memory_bytes};
	struct gf_model_profile scaled = *model; /* the slowest rank's */
	struct gf_plan slow = *p;
	struct gf_outcome *o = &out->outcome;

	slow.model = &scaled;
	r.messages = gf_xcalloc(out->nmessages + 1, sizeof(*r.messages));
	for (size_t i = 0; i < out->nmessages; i++) {
		r.messages[i].start_s = out->times.message_start_s[i];
		r.messages[i].end_s = out->times.message_end_s[i];
	}
	gf_sim_conclude(&in, f->slowest, &r);
	/* each rank is only slowed by what it takes part in */
	r.backward_end_s = out->times.backward_end_s;
	r.iteration_s = fmax(out->times.end_s, r.backward_end_s) + in.update_s;
	r.exposed_comm_s = r.iteration_s - r.compute_s;
	scaled.forward_s *= f->slowest;
	scaled.backward_s = f->slowest * (model->backward_s + gf_sim_issues_s(&in));
	if (p->staleness > 1)
		gf_sim_pipeline(&slow, gf_sim_busy_s(r.messages, out->nmessages), &r);
	*o = out->model;
	o->messages = gf_xcalloc(p->nmessages + 1, sizeof(*o->messages));
	for (size_t i = 0; i < p->nmessages; i++)
		o->messages[i] = r.messages[s->traffic.carrier[i]];
	o->iteration_s = r.iteration_s;
	gf_outcome_finish(o, p, &r);
	if (p->staleness > 1) {
		out->model.timeline = NULL; /* is the outcome's now */
	} else if (o->timeline) {
		o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
		gf_gantt_step(o->timeline, &in, &r, f->gathers, f->ngathers);
	}
	free(r.messages);
}

/* --- shards ------------------------------------------------------------------ */

/* Compute's work of issuing messages that are ready before that work. */
static double issued_s(const struct gf_sim_input *step, const double *gates, double work_s)
{
	double sum_s = 0;

	for (size_t i = 0; i < step->nworks; i++)
		if (!step->works[i].gather && gates[i] < work_s)
			sum_s += gf_sim_issue_s(step->model,
						&step->messages[step->works[i].message]);
	return sum_s;
}

/* All of a step's compute is the replay's backward, from the step's start. */
static int replay_works(const struct gf_replay_setting *s, struct gf_replayed *out,
			struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_input step = gf_plan_input(p, &s->traffic);
	struct gf_replay_input in = gf_replay_setting_input(s);
	GF_FREED double *begin_s = gf_xcalloc((size_t)in.ranks, sizeof(*begin_s));
	GF_FREED double *gates = gf_xcalloc(2 * step.nworks + 1, sizeof(*gates));
	struct gf_replay_compute compute = {
		.forward_end_s = begin_s,
		.slowdown = fmax(p->model->overlap_slowdown, 1),
		.lanes = p->lanes,
		.factor = s->factor,
	};
	GF_FREED struct gf_replay_message *messages =
		gf_xcalloc(step.nworks + 1, sizeof(*messages));

	gf_sim_shard_gates(&step, gates, gates + step.nworks);
	compute.backward_s = p->model->forward_s + p->model->backward_s + gf_sim_issues_s(&step);
	for (size_t i = 0; i < step.nworks; i++) {
		const struct gf_shard_work *w = &step.works[i];
		const struct gf_sim_start start = gf_sim_shard_start(&step, i);
		const double need_s = gates[step.nworks + i];

		messages[i] = (struct gf_replay_message){
			.ranks = out->messages[i].ranks,
			.element = out->messages[i].element,
			.mode = start.mode,
			.work_s = gates[i] + issued_s(&step, gates, gates[i]),
			.needed_s = w->gather ? need_s + issued_s(&step, gates, need_s) : 0,
			.mutual = start.mutual,
			.startup_s = start.startup_s,
		};
		/* what the first stage needs is needed at the start */
		if (w->gather && !(messages[i].needed_s > 0))
			messages[i].needed_s = DBL_MIN;
		add_processing(s, w->message, &messages[i]);
	}
	in.messages = messages;
	in.nmessages = step.nworks;
	in.compute = &compute;
	return gf_replay(&in, &out->times, err);
}

static void conclude_works(const struct gf_replay_setting *s, struct gf_replayed *out)
{
	const struct gf_plan *p = &s->variant.plan;
	struct gf_sim_result r = {.forward_end_s = out->model.forward_end_s};
	struct gf_outcome *o = &out->outcome;

	*o = out->model;
	out->model.timeline = NULL; /* is the outcome's now */
	o->messages = gf_xcalloc(p->nmessages + 1, sizeof(*o->messages));
	for (size_t i = 0; i < out->nmessages; i++) {
		const double start_s = out->times.message_start_s[i];

		if (!s->traffic.works[i].gather)
			o->messages[s->traffic.works[i].message] =
				(struct gf_predicted_message){.ready_s = start_s,
							      .start_s = start_s,
							      .end_s = out->times.message_end_s[i]};
	}
	r.backward_end_s = out->times.backward_end_s;
	r.iteration_s = fmax(out->times.end_s, r.backward_end_s) + gf_plan_update_s(p);
	r.memory.peak_bytes = out->model.memory_bytes;
	o->iteration_s = r.iteration_s;
	gf_outcome_finish(o, p, &r);
}

static int run_works(struct gf_replay_setting *s, struct gf_replayed *out, struct gf_error *err)
{
	const struct gf_traffic *t = &s->traffic;
	int rc = 0;

	out->ranks = s->variant.fabric.ranks;
	out->messages = gf_xcalloc(t->nworks + 1, sizeof(*out->messages));
	for (size_t i = 0; i < t->nworks && rc == 0; i++) {
		rc = gf_replayed_message_init(
			&out->messages[i], s, t->works[i].message,
			t->works[i].gather ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE, err);
		out->nmessages++;
	}
	rc = rc ?: replay_works(s, out, err);
	if (rc == 0)
		conclude_works(s, out);
	return rc;
}

static int run(struct gf_replay_setting *s, const struct gf_what_if *w, struct gf_replayed *out,
	       struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	struct gf_sim_input in = gf_plan_input(p, &s->traffic);
	struct forward f = {
		.slowest = gf_what_if_slowest(w, p->ranks),
		.gathers = gf_xcalloc(in.nmessages + 1, sizeof(*f.gathers)),
	};
	int rc = 0;

	out->ranks = s->variant.fabric.ranks;
	f.end_s = gf_xcalloc((size_t)out->ranks, sizeof(*f.end_s));
	out->messages = gf_xcalloc(in.nmessages + 1, sizeof(*out->messages));
	for (size_t i = 0; i < in.nmessages && rc == 0; i++) {
		rc = gf_replayed_message_init(&out->messages[i], s, i, GF_COLL_WHOLE, err);
		out->nmessages++;
	}
	f.ngathers = gf_sim_gathers(&in, f.gathers);
	if (rc == 0 && f.ngathers > 0)
		rc = gather(s, f.gathers, f.ngathers, err);
	for (size_t i = 0; i < (size_t)out->ranks; i++)
		f.end_s[i] = gf_sim_forward_end_s(&in, s->factor[i], f.gathers, f.ngathers);
	f.slowest_end_s = gf_sim_forward_end_s(&in, f.slowest, f.gathers, f.ngathers);
	rc = rc ?: replay(s, &f, out, err);
	if (rc == 0)
		conclude(s, &f, out);
	free(f.gathers);
	free(f.end_s);
	return rc;
}

int gf_replay_plan(const struct gf_plan *p, const struct gf_what_if *w, struct gf_replayed *out,
		   struct gf_text *notes, struct gf_error *err)
{
	GF_RELEASED(gf_replay_setting_release) struct gf_replay_setting s = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = gf_what_if(p, w, &out->model, err);
	if (rc < 0)
		return rc;
	rc = gf_replay_setting_init(&s, p, w, notes, err);
	rc = rc ?: (s.traffic.works ? run_works(&s, out, err) : run(&s, w, out, err));
	if (rc == -E2BIG) {
		gf_text_addf(
			notes,
			"more than %g steps are not replayed: these are the closed forms' times\n",
			GF_REPLAY_STEPS_MOST);
		gf_replayed_messages_free(out->messages, out->nmessages, out->ranks);
		out->messages = NULL;
		out->nmessages = 0;
	} else if (rc < 0) {
		gf_replayed_release(out);
	}
	return rc;
}

void gf_replayed_release(struct gf_replayed *r)
{
	gf_replayed_messages_free(r->messages, r->nmessages, r->ranks);
	gf_replay_result_release(&r->times);
	gf_outcome_release(&r->model);
	gf_outcome_release(&r->outcome);
	memset(r, 0, sizeof(*r));
}
