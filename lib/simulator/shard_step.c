/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/step.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"

/* A walk through the stages of compute, on one axis of work: forward, then backward. */
struct walk {
	const struct gf_sim_input *in;
	struct gf_sim_state state;
	struct gf_sim_start *starts; /* per work */
	double *start_s, *end_s;     /* per work; end_s NAN: not yet */
	double *begin_work_s;        /* per stage, and the end of compute */
	size_t next;                 /* work */
	double end_work_s;
};

/* Where each stage begins, and the last one ends; the caller frees. A stage of forward begins where
 * the first of its tensors is used, and ends where the next one begins. */
static double *stages_of(const struct gf_sim_input *in)
{
	const size_t n = in->nmessages;
	double *begin_s = gf_xcalloc(2 * n + 1, sizeof(*begin_s));
	double forward_s = in->model->forward_s, at_s = 0;

	for (size_t i = 0; i < n; i++) {
		double need_s = gf_sim_need_s(in->model, &in->messages[n - 1 - i]);

		begin_s[i] = at_s = fmin(fmax(at_s, need_s), forward_s);
	}
	for (size_t i = 0; i < n; i++)
		begin_s[n + i] =
			forward_s + (i ? in->model->tensors[in->messages[i - 1].last].ready_s : 0);
	begin_s[2 * n] = forward_s + in->model->backward_s;
	return begin_s;
}

void gf_sim_shard_gates(const struct gf_sim_input *in, double *open_s, double *need_s)
{
	GF_FREED double *begin_s = stages_of(in);

	for (size_t k = 0; k < in->nworks; k++) {
		const struct gf_shard_work *w = &in->works[k];

		open_s[k] = w->opens ? begin_s[w->opens] : 0;
		if (!w->gather)
			open_s[k] = in->model->forward_s +
				    in->model->tensors[in->messages[w->message].last].ready_s;
		need_s[k] = w->gather ? begin_s[w->stage] : INFINITY;
	}
}

struct gf_sim_start gf_sim_shard_start(const struct gf_sim_input *in, size_t i)
{
	const struct gf_shard_work *w = &in->works[i];
	struct gf_sim_message m = in->messages[w->message];
	struct gf_sim_start s;

	if (w->gather) { /* what the rest of it would be, to be loaded alike */
		m.startup_s = m.gather_startup_s;
		m.per_byte_s = m.gather_per_byte_s;
		m.gather_startup_s = m.gather_per_byte_s = 0;
		m.holds_s = 0;
	}
	s = gf_sim_start_of(in->model, &m);
	s.message = i;
	if (w->gather)
		s.issue_s = 0;
	return s;
}

static void find_starts(struct walk *w)
{
	const struct gf_sim_input *in = w->in;
	GF_FREED double *open_s = gf_xcalloc(2 * in->nworks + 1, sizeof(*open_s));

	gf_sim_shard_gates(in, open_s, open_s + in->nworks);
	for (size_t k = 0; k < in->nworks; k++) {
		w->starts[k] = gf_sim_shard_start(in, k);
		w->starts[k].work_s = open_s[k];
	}
}

/* The works that may start before compute has done work_s; then compute is there. */
static void compute_to(struct walk *w, double work_s)
{
	while (w->next < w->in->nworks &&
	       gf_sim_start_by(&w->state, &w->starts[w->next], INFINITY, work_s))
		w->next++;
	gf_sim_reach(&w->state, work_s);
}

/* Compute, which has done work_s, stands still until a gather has ended. */
static void wait_for(struct walk *w, size_t gather, double work_s)
{
	struct gf_sim_state *s = &w->state;

	if (!isnan(w->end_s[gather]))
		return;
	gf_sim_end_compute(s);
	while (isnan(w->end_s[gather])) {
		const struct gf_sim_start *m = &w->starts[w->next];

		if (w->next < w->in->nworks && m->work_s <= work_s &&
		    gf_sim_start_by(s, m, s->now_s, work_s))
			w->next++;
		else if (!gf_sim_pass_phase(s))
			break;
	}
	s->lag_s = s->now_s - work_s;
	gf_sim_begin_compute(s, w->end_work_s);
	if (s->lags)
		*gf_array_push(&s->lags->at, &s->lags->count, &s->lags->capacity) =
			(struct gf_sim_lag){s->now_s, s->lag_s};
}

/* The gather that a stage waits for; nworks: none. */
static size_t *find_gathers(const struct gf_sim_input *in)
{
	size_t *gather = gf_xcalloc(2 * in->nmessages + 1, sizeof(*gather)), k;

	for (k = 0; k < 2 * in->nmessages; k++)
		gather[k] = in->nworks;
	for (k = 0; k < in->nworks; k++)
		if (in->works[k].gather)
			gather[in->works[k].stage] = k;
	return gather;
}

static void conclude(const struct walk *w, const double *made_s, struct gf_sim_result *out)
{
	const struct gf_model_profile *model = w->in->model;
	double last_s = out->backward_end_s;

	for (size_t k = 0; k < w->in->nworks; k++) {
		last_s = fmax(last_s, w->end_s[k]);
		if (!w->in->works[k].gather)
			out->messages[w->in->works[k].message] = (struct gf_predicted_message){
				.ready_s = made_s[w->in->works[k].message],
				.start_s = w->start_s[k],
				.end_s = w->end_s[k],
			};
	}
	out->iteration_s = last_s + w->in->update_s;
	out->compute_s = model->forward_s + model->backward_s + w->in->update_s;
	out->exposed_comm_s = out->iteration_s - out->compute_s;
}

static void walk_stages(struct walk *w, double *made_s, struct gf_sim_result *out)
{
	const size_t n = w->in->nmessages;
	size_t *gather = find_gathers(w->in), stage;
	struct gf_sim_shard_times *times = out->shards;

	gf_sim_begin_compute(&w->state, w->end_work_s);
	compute_to(w, w->begin_work_s[0]);
	for (stage = 0; stage < 2 * n; stage++) {
		if (gather[stage] < w->in->nworks)
			wait_for(w, gather[stage], w->begin_work_s[stage]);
		if (times)
			times->begin_s[stage] = w->state.now_s;
		compute_to(w, w->begin_work_s[stage + 1]);
		if (times)
			times->done_s[stage] = w->state.now_s;
		if (stage + 1 == n)
			out->forward_end_s = w->state.now_s;
		if (stage >= n)
			made_s[stage - n] = w->state.now_s;
	}
	out->backward_end_s = w->state.now_s;
	gf_sim_end_compute(&w->state);
	for (; w->next < w->in->nworks; w->next++)
		gf_sim_start(&w->state, &w->starts[w->next]);
	gf_sim_finish(&w->state);
	free(gather);
}

struct gf_sim_shard_times gf_sim_shard_times_new(const struct gf_sim_input *in)
{
	const size_t stages = 2 * in->nmessages, n = in->nworks;
	double *room = in->works ? gf_xcalloc(2 * (n + stages) + 1, sizeof(*room)) : NULL;

	if (!room)
		return (struct gf_sim_shard_times){0};
	return (struct gf_sim_shard_times){room, room + n, room + 2 * n, room + 2 * n + stages};
}

void gf_sim_shard_step(const struct gf_sim_input *in, struct gf_sim_result *out)
{
	const size_t n = in->nworks + 1;
	struct gf_sim_shard_times *times = out->shards;
	struct walk w = {.in = in};
	GF_FREED double *made_s = gf_xcalloc(in->nmessages + 1, sizeof(*made_s));

	w.starts = gf_xcalloc(n, sizeof(*w.starts));
	w.start_s = times ? times->start_s : gf_xcalloc(n, sizeof(double));
	w.end_s = times ? times->end_s : gf_xcalloc(n, sizeof(double));
	w.begin_work_s = stages_of(in);
	w.end_work_s = w.begin_work_s[2 * in->nmessages];
	for (size_t k = 0; k < in->nworks; k++)
		w.end_s[k] = NAN;
	find_starts(&w);
	w.state = (struct gf_sim_state){
		.slowdown = fmax(in->model->overlap_slowdown, 1),
		.lanes = (int)fmin(fmax(in->lanes, 1), (double)in->nworks + 1),
		.start_s = w.start_s,
		.end_s = w.end_s,
	};
	w.state.flights = gf_xcalloc((size_t)w.state.lanes + 1, sizeof(*w.state.flights));
	walk_stages(&w, made_s, out);
	conclude(&w, made_s, out);
	free(w.state.flights);
	free(w.begin_work_s);
	free(w.starts);
	if (!times) {
		free(w.start_s);
		free(w.end_s);
	}
}
