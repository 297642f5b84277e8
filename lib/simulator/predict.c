/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/predict.h"

#include <math.h>

#include "base/heap.h"
#include "simulator/memory.h"
#include "simulator/period_time.h"
#include "simulator/pipeline.h"

struct gf_fabric gf_plan_fabric(const struct gf_plan *p)
{
	return (struct gf_fabric){
		.network = p->network,
		.levels = p->levels,
		.nlevels = p->nlevels,
		.ranks = p->ranks + p->servers,
		.servers = p->servers,
		.processing = &p->processing,
		.device = p->model ? p->model->device : NULL,
	};
}

void gf_plan_take_fabric(struct gf_plan *p, const struct gf_fabric *f)
{
	p->ranks = f->ranks - f->servers;
	p->servers = f->servers;
	p->network = f->network ? gf_network_copy(f->network) : NULL;
	p->levels = f->levels ? gf_levels_copy(f->levels, f->nlevels) : NULL;
	p->nlevels = f->nlevels;
	if (f->processing)
		gf_processing_add(&p->processing, f->processing);
}

size_t gf_plan_wires(const struct gf_plan *p, size_t first, size_t last,
		     struct gf_wire wires[GF_WIRES_MOST])
{
	const size_t elems = gf_selection_has(&p->selection, GF_SELECT_PIECES)
				     ? gf_model_profile_elems(p->model)
				     : 0;

	return gf_selection_wire(&p->selection, &p->model->tensors[first], last - first + 1, elems,
				 wires);
}

size_t gf_wire_elems(const struct gf_wire *wire)
{
	if (wire->share == 1)
		return (size_t)wire->count_elems;
	return (size_t)fmax(1, round(wire->count_elems * wire->share));
}

double gf_plan_update_share(const struct gf_plan *p)
{
	struct gf_wire wires[GF_WIRES_MOST];

	if (gf_shard_is_used(&p->shard))
		return 1.0 / p->shard.group_ranks;
	if (!gf_selection_has(&p->selection, GF_SELECT_PIECES) || !p->model->ntensors)
		return 1;
	gf_plan_wires(p, 0, p->model->ntensors - 1, wires);
	return wires[0].share;
}

double gf_plan_update_s(const struct gf_plan *p)
{
	return gf_plan_update_share(p) * p->model->update_s;
}

double gf_plan_compute_s(const struct gf_plan *p)
{
	return p->model->forward_s + p->model->backward_s + gf_plan_update_s(p);
}

struct gf_sim_input gf_plan_input(const struct gf_plan *p, const struct gf_traffic *t)
{
	return (struct gf_sim_input){
		.model = p->model,
		.messages = t->messages,
		.nmessages = t->nmessages,
		.lanes = p->lanes,
		.update_s = gf_plan_update_s(p),
		.serial = gf_selection_is_serial(&p->selection),
		.works = t->works,
		.nworks = t->nworks,
	};
}

void gf_sim_pipeline(const struct gf_plan *p, double exchange_s, struct gf_sim_result *out)
{
	/* in compute_s's order: what is exposed is never below 0 */
	out->iteration_s = fmax(gf_plan_compute_s(p), exchange_s);
	out->exposed_comm_s = out->iteration_s - out->compute_s;
}

/* One message at a time, and nothing that slows backward: the network is as long busy in every step
 * as in one by itself. */
static double exchange_s(const struct gf_plan *p, const struct gf_sim_input *in,
			 const struct gf_sim_result *lone)
{
	if (in->lanes > 1 || gf_sim_slows(in))
		return gf_pipeline_pace_s(in, p->staleness);
	return fmax(gf_sim_busy_s(lone->messages, in->nmessages),
		    lone->compute_s + gf_sim_issues_s(in) + gf_sim_held_late_s(in));
}

/* The step, and what a rank holds in it where the plan tells that. */
static void predict_step(const struct gf_plan *p, const struct gf_sim_input *in,
			 struct gf_sim_result *out)
{
	const struct gf_memory_setting setting = {p->model, &p->shard, &p->memory,
						  gf_plan_is_coded(p), p->staleness};
	struct gf_sim_shard_times times, *wanted = out->shards;

	if (!gf_plan_tells_memory(p)) {
		gf_sim_step(in, out);
		return;
	}
	times = gf_sim_shard_times_new(in);
	out->shards = wanted ? wanted : &times;
	gf_sim_step(in, out);
	gf_sim_memory(&setting, in, in->works ? out->shards : NULL, &out->memory);
	out->shards = wanted;
	free(times.start_s);
}

int gf_predict_traffic(const struct gf_plan *p, const struct gf_traffic *t,
		       struct gf_sim_result *out, struct gf_error *err)
{
	struct gf_sim_input in = gf_plan_input(p, t);
	struct gf_predicted_message *wanted = out->messages;

	out->messages = gf_xcalloc(t->nmessages + 1, sizeof(*out->messages));
	predict_step(p, &in, out);
	if (p->staleness > 1 && isfinite(out->iteration_s))
		gf_sim_pipeline(p, exchange_s(p, &in, out), out);
	for (size_t i = 0; wanted && i < p->nmessages; i++)
		wanted[i] = out->messages[t->carrier[i]];
	free(out->messages);
	out->messages = wanted;
	if (isfinite(out->iteration_s))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want times and sizes whose sum is a number, got a step of %g s",
			    out->iteration_s);
}

int gf_predict_plan(const struct gf_plan *p, const struct gf_fabric *f, struct gf_sim_result *out,
		    struct gf_error *err)
{
	struct gf_period_time time;
	GF_RELEASED(gf_traffic_release) struct gf_traffic t = {0};
	int rc;

	if (!gf_period_has(&p->period, GF_PERIOD_EVERY))
		return gf_predict_period(p, f, out, &time, err);
	rc = gf_traffic_init(&t, p, f, err);
	return rc ?: gf_predict_traffic(p, &t, out, err);
}

int gf_predict_gradients(const struct gf_plan *p, const struct gf_fabric *f,
			 struct gf_sim_result *out, double *gradient_s, struct gf_error *err)
{
	struct gf_sim_result step = {0};
	GF_RELEASED(gf_traffic_release) struct gf_traffic t = {0};
	int rc = gf_traffic_init(&t, p, f, err);

	rc = rc ?: gf_predict_traffic(p, &t, out, err);
	if (rc == 0) {
		const struct gf_sim_input in = gf_plan_input(p, &t);

		step.messages = gf_xcalloc(t.nmessages + 1, sizeof(*step.messages));
		gf_sim_step(&in, &step);
		gf_sim_gradients(&in, &step, gradient_s);
		free(step.messages);
	}
	return rc;
}

int gf_plan_predict(struct gf_plan *p, struct gf_derived *derived, struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(p);
	struct gf_sim_result result = {0};
	struct gf_prediction *out = p->predicted;
	int rc;

	if (!out) {
		p->predicted = out = gf_xcalloc(1, sizeof(*out));
		out->nmessages = p->nmessages;
		out->messages = gf_xcalloc(p->nmessages, sizeof(*out->messages));
	}
	fabric.derived = derived;
	result.messages = out->messages;
	rc = gf_predict_plan(p, &fabric, &result, err);
	if (rc < 0)
		return rc;
	out->iteration_s = result.iteration_s;
	out->compute_s = result.compute_s;
	out->exposed_comm_s = result.exposed_comm_s;
	out->memory = result.memory;
	return 0;
}
