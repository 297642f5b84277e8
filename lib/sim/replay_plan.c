/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sim/variant.h"

/* What is replayed, and on what. */
struct stage_set {
	int *factors;
	const char **algorithms;
};

struct setting {
	struct gf_variant variant;
	struct gf_traffic traffic;
	struct gf_level *levels;
	size_t nlevels;
	double reduce_s_per_byte, *level_reduce; /* the most; per level */
	double *factor; /* per rank, servers included */
};

/* --- the network ---------------------------------------------------------- */

/* Nominal figures, replaced by what was measured under the same name. */
static void take_levels(struct setting *s)
{
	const struct gf_fabric *f = &s->variant.fabric;
	size_t i;

	s->levels = gf_levels_copy(f->levels, f->nlevels);
	s->nlevels = f->nlevels;
	s->level_reduce = gf_xcalloc(s->nlevels, sizeof(*s->level_reduce));
	for (i = 0; i < s->nlevels; i++) {
		const struct gf_level_cost *c =
			gf_network_level(f->network, s->levels[i].name);

		if (!c)
			continue;
		s->levels[i].latency_s = c->alpha_s;
		if (c->beta_s_per_byte > 0)
			s->levels[i].bandwidth_bytes_per_s =
				1 / c->beta_s_per_byte;
		s->level_reduce[i] = c->reduce_s_per_byte;
		s->reduce_s_per_byte =
			fmax(s->reduce_s_per_byte, c->reduce_s_per_byte);
	}
}

static int take_uniform(struct setting *s, struct gf_text *notes,
			struct gf_error *err)
{
	const struct gf_fabric *f = &s->variant.fabric;
	struct gf_link_cost link;
	int rc = gf_price_link(f, &link, err);

	if (rc < 0)
		return rc;
	s->levels = gf_xcalloc(1, sizeof(*s->levels));
	s->nlevels = 1;
	s->levels[0].name = gf_xstrdup("net");
	s->levels[0].link = gf_xstrdup("net");
	s->levels[0].size = (size_t)f->ranks;
	s->levels[0].latency_s = link.alpha_s;
	s->levels[0].bandwidth_bytes_per_s =
		link.beta_s_per_byte > 0 ? 1 / link.beta_s_per_byte : 1e30;
	s->reduce_s_per_byte = link.gamma_s_per_byte;
	gf_text_addf(notes, "no topology is known: replayed on a uniform "
			    "network that costs a ring what was measured\n");
	return 0;
}

/* --- the schedules -------------------------------------------------------- */

static double elems_of(const struct gf_plan *p, const struct gf_sim_message *m)
{
	double elems = 0;
	size_t i;

	for (i = m->first; i <= m->last; i++)
		elems += (double)p->model->tensors[i].count_elems;
	if (p->selection.method == GF_SELECT_CSC)
		elems = fmax(1, round(elems * p->selection.keep));
	return elems;
}

/* What algorithm, with what arguments; args' arrays are the set's. */
static const struct gf_algorithm *arguments(const struct setting *s, size_t i,
					    struct stage_set *set,
					    struct gf_coll_args *args)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_message *m = &s->traffic.messages[i];
	const struct gf_message *from =
		&p->messages[s->traffic.plan_message[i]];
	bool topk = p->selection.method == GF_SELECT_TOPK;
	size_t k;

	*args = (struct gf_coll_args){
		.ranks = s->variant.fabric.ranks,
		.elem_bytes = 4,
		.nfactors = from->nstages,
	};
	if (topk || p->selection.method == GF_SELECT_GTOPK) {
		args->count_elems = topk ? (size_t)args->ranks : 1;
		args->half = topk ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
		args->nfactors = 0;
		return gf_sparse_find(topk ? "topk" : "gtopk");
	}
	args->count_elems = (size_t)elems_of(p, m);
	set->factors = gf_xcalloc(from->nstages + 1, sizeof(*set->factors));
	set->algorithms =
		gf_xcalloc(from->nstages + 1, sizeof(*set->algorithms));
	for (k = 0; k < from->nstages; k++) {
		set->factors[k] = from->stages[k].factor;
		set->algorithms[k] = from->stages[k].algorithm;
	}
	if (from->nstages) {
		args->factors = set->factors;
		args->stage_algorithms = set->algorithms;
	}
	if (strcmp(from->algorithm, "ps") == 0)
		args->servers = s->variant.fabric.servers;
	if (m->half == GF_HALF_SPLIT)
		args->half = GF_COLL_REDUCE_SCATTER;
	return gf_algorithm_find(from->algorithm);
}

/* One message's schedules for all ranks; -E2BIG once `steps` is too many. */
static int build(const struct setting *s, size_t i, enum gf_coll_half half,
		 struct gf_replayed_message *to, double *steps,
		 struct gf_error *err)
{
	struct stage_set set = {0};
	struct gf_coll_args args;
	const struct gf_algorithm *a = arguments(s, i, &set, &args);
	const struct gf_sim_message *m = &s->traffic.messages[i];
	int rank, rc = 0;

	if (half == GF_COLL_ALL_GATHER)
		args.half = half;
	*to = (struct gf_replayed_message){
		.plan_message = s->traffic.plan_message[i],
		.first = m->first,
		.last = m->last,
		.bytes = (size_t)fmin(m->bytes, 0x1p62),
		.half = m->half,
		.elems = args.count_elems,
		.ranks = gf_xcalloc((size_t)args.ranks, sizeof(*to->ranks)),
	};
	/* of a sparse selection an element is one rank's whole set */
	to->bytes_per_elem =
		s->variant.plan.selection.method == GF_SELECT_TOPK ||
				s->variant.plan.selection.method ==
					GF_SELECT_GTOPK
			? m->bytes
			: m->bytes / (double)args.count_elems;
	for (rank = 0; rank < args.ranks && rc == 0; rank++) {
		rc = a ? gf_algorithm_schedule(a, &args, rank, &to->ranks[rank],
					       err)
		       : gf_error_set(err, -ENOTSUP,
				      "its algorithm has no steps here");
		if (rc < 0) {
			gf_error_prefix(err, "message %zu", i);
			break;
		}
		/* the first rank speaks for all before they are built */
		if (rank == 0 &&
		    *steps + (double)to->ranks[0].nsteps * args.ranks >
			    GF_REPLAY_STEPS_MOST)
			rc = -E2BIG;
		*steps += (double)to->ranks[rank].nsteps;
	}
	free(set.factors);
	free(set.algorithms);
	return rc;
}

static void release_messages(struct gf_replayed_message *m, size_t n, int ranks)
{
	size_t i;
	int rank;

	for (i = 0; i < n; i++) {
		for (rank = 0; m[i].ranks && rank < ranks; rank++)
			gf_schedule_release(&m[i].ranks[rank]);
		free(m[i].ranks);
	}
	free(m);
}

/* --- the replay ----------------------------------------------------------- */

static double release_work_s(const struct gf_plan *p,
			     const struct gf_sim_message *m)
{
	return m->release == GF_RELEASE_BACKWARD_END
		       ? p->model->backward_s
		       : p->model->tensors[m->last].ready_s;
}

static struct gf_replay_input input_of(const struct setting *s)
{
	return (struct gf_replay_input){
		.ranks = s->variant.fabric.ranks,
		.levels = s->levels,
		.nlevels = s->nlevels,
		.reduce_s_per_byte = s->reduce_s_per_byte,
		.level_reduce_s_per_byte = s->level_reduce,
	};
}

/* The all-gathers of the step before, one after the other from the start of
 * forward, last message first; when forward, which waits for them, has ended.
 */
static int gather(const struct setting *s, double slowest, double *steps,
		  double *forward_end_s, struct gf_error *err)
{
	const struct gf_traffic *t = &s->traffic;
	const struct gf_model_profile *model = s->variant.plan.model;
	struct gf_replay_compute compute = {.slowdown = 1, .lanes = 1};
	struct gf_replay_input in = input_of(s);
	struct gf_replayed_message *gathers =
		gf_xcalloc(t->nmessages + 1, sizeof(*gathers));
	struct gf_replay_message *messages =
		gf_xcalloc(t->nmessages + 1, sizeof(*messages));
	size_t *from = gf_xcalloc(t->nmessages + 1, sizeof(*from)), n = 0, i;
	struct gf_replay_result times;
	double late = 0;
	int rc = 0;

	for (i = t->nmessages; i-- > 0 && rc == 0;) {
		if (t->messages[i].half != GF_HALF_SPLIT)
			continue;
		from[n] = i;
		rc = build(s, i, GF_COLL_ALL_GATHER, &gathers[n], steps, err);
		messages[n] = (struct gf_replay_message){
			.ranks = gathers[n].ranks,
			.elem_bytes = gathers[n].bytes_per_elem,
			.mode = GF_MODE_NORMAL,
		};
		n++;
	}
	in.messages = messages;
	in.nmessages = n;
	in.compute = &compute;
	if (rc == 0)
		rc = gf_replay(&in, &times, err);
	if (rc == 0) {
		for (i = 0; i < n; i++)
			late = fmax(
				late,
				times.message_end_s[i] -
					slowest *
						gf_sim_need_s(
							model,
							&t->messages[from[i]]));
		gf_replay_result_release(&times);
	}
	/* of a rank that is not slow: replay multiplies by the factor */
	*forward_end_s = model->forward_s + (late > 0 ? late / slowest : 0);
	release_messages(gathers, n, in.ranks);
	free(messages);
	free(from);
	return rc;
}

static int replay(const struct setting *s, double forward_end_s,
		  struct gf_replayed *out, struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	struct gf_replay_compute compute = {
		.forward_end_s = forward_end_s,
		.backward_s = p->model->backward_s,
		.slowdown = fmax(p->model->overlap_slowdown, 1),
		.lanes = p->lanes,
		.factor = s->factor,
	};
	struct gf_replay_input in = input_of(s);
	struct gf_replay_message *messages =
		gf_xcalloc(out->nmessages + 1, sizeof(*messages));
	size_t i;
	int rc;

	for (i = 0; i < out->nmessages; i++)
		messages[i] = (struct gf_replay_message){
			.ranks = out->messages[i].ranks,
			.elem_bytes = out->messages[i].bytes_per_elem,
			.mode = s->traffic.messages[i].mode,
			.work_s = release_work_s(p, &s->traffic.messages[i]),
		};
	in.messages = messages;
	in.nmessages = out->nmessages;
	in.compute = &compute;
	rc = gf_replay(&in, &out->times, err);
	free(messages);
	return rc;
}

/* --- what comes out of it ------------------------------------------------- */

/* The step model's reading of given starts and ends, slowest rank's. */
static void conclude(const struct setting *s, double forward_end_s,
		     double slowest, struct gf_replayed *out)
{
	const struct gf_plan *p = &s->variant.plan;
	struct gf_model_profile *model = p->model;
	struct gf_sim_input in = {model, s->traffic.messages, out->nmessages,
				  p->lanes};
	struct gf_sim_result r = {.forward_end_s = forward_end_s * slowest};
	struct gf_model_profile scaled = *model; /* the slowest rank's */
	struct gf_plan slow = *p;
	struct gf_outcome *o = &out->outcome;
	size_t i;

	slow.model = &scaled;
	r.messages = gf_xcalloc(out->nmessages + 1, sizeof(*r.messages));
	for (i = 0; i < out->nmessages; i++) {
		r.messages[i].start_s = out->times.message_start_s[i];
		r.messages[i].end_s = out->times.message_end_s[i];
	}
	gf_sim_conclude(&in, slowest, &r);
	/* each rank is only slowed by what it takes part in */
	r.backward_end_s = out->times.backward_end_s;
	r.iteration_s =
		fmax(out->times.end_s, r.backward_end_s) + model->update_s;
	r.exposed_comm_s = r.iteration_s - r.compute_s;
	scaled.forward_s *= slowest;
	scaled.backward_s *= slowest;
	gf_sim_pipeline(&slow, out->nmessages, &r);
	for (i = 0; i < out->nmessages; i++) {
		out->messages[i].ready_s = r.messages[i].ready_s;
		out->messages[i].start_s = r.messages[i].start_s;
		out->messages[i].end_s = r.messages[i].end_s;
	}
	*o = out->model;
	o->messages = gf_xcalloc(p->nmessages + 1, sizeof(*o->messages));
	for (i = 0; i < p->nmessages; i++)
		o->messages[i] = r.messages[s->traffic.carrier[i]];
	gf_outcome_finish(o, p, &r);
	free(r.messages);
}

static int prepare(struct setting *s, const struct gf_plan *p,
		   const struct gf_what_if *w, struct gf_text *notes,
		   struct gf_error *err)
{
	int rc = gf_variant_init(&s->variant, p, w, err), i;
	size_t k;

	if (rc == 0)
		rc = gf_traffic_init(&s->traffic, &s->variant.plan,
				     &s->variant.fabric, err);
	if (rc < 0)
		return rc;
	if (s->variant.fabric.nlevels > 0)
		take_levels(s);
	else
		rc = take_uniform(s, notes, err);
	s->factor =
		gf_xcalloc((size_t)s->variant.fabric.ranks, sizeof(*s->factor));
	for (i = 0; i < s->variant.fabric.ranks; i++)
		s->factor[i] = 1;
	for (k = 0; k < w->nslow; k++)
		s->factor[w->slow[k].rank] = w->slow[k].factor;
	return rc;
}

static void release_setting(struct setting *s)
{
	gf_traffic_release(&s->traffic);
	gf_levels_free(s->levels, s->nlevels);
	free(s->level_reduce);
	free(s->factor);
	gf_variant_release(&s->variant);
}

static int run(const struct setting *s, const struct gf_what_if *w,
	       struct gf_replayed *out, struct gf_error *err)
{
	double forward_end_s = s->variant.plan.model->forward_s, steps = 0;
	double slowest = gf_what_if_slowest(w, s->variant.plan.ranks);
	bool split = false;
	size_t i;
	int rc = 0;

	out->ranks = s->variant.fabric.ranks;
	out->messages =
		gf_xcalloc(s->traffic.nmessages + 1, sizeof(*out->messages));
	for (i = 0; i < s->traffic.nmessages && rc == 0; i++) {
		split |= s->traffic.messages[i].half == GF_HALF_SPLIT;
		rc = build(s, i, GF_COLL_WHOLE, &out->messages[i], &steps, err);
		out->nmessages++;
	}
	if (rc == 0 && split)
		rc = gather(s, slowest, &steps, &forward_end_s, err);
	if (rc == 0)
		rc = replay(s, forward_end_s, out, err);
	if (rc == 0)
		conclude(s, forward_end_s, slowest, out);
	return rc;
}

int gf_replay_plan(const struct gf_plan *p, const struct gf_what_if *w,
		   struct gf_replayed *out, struct gf_text *notes,
		   struct gf_error *err)
{
	struct setting s = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = gf_what_if(p, w, &out->model, err);
	if (rc < 0)
		return rc;
	rc = prepare(&s, p, w, notes, err);
	if (rc == 0)
		rc = run(&s, w, out, err);
	release_setting(&s);
	if (rc == -E2BIG) {
		release_messages(out->messages, out->nmessages, out->ranks);
		out->messages = NULL;
		out->nmessages = 0;
	} else if (rc < 0) {
		gf_replayed_release(out);
	}
	return rc;
}

void gf_replayed_release(struct gf_replayed *r)
{
	release_messages(r->messages, r->nmessages, r->ranks);
	gf_replay_result_release(&r->times);
	gf_outcome_release(&r->model);
	gf_outcome_release(&r->outcome);
	memset(r, 0, sizeof(*r));
}
