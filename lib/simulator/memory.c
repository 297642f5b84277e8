/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/memory.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"

/* What changes at a moment, bytes. */
struct change {
	double at_s;
	double gathered, gradients, activations;
};

struct changes {
	struct change *at;
	size_t n;
};

static void add(struct changes *c, double at_s, double gathered, double gradients,
		double activations)
{
	c->at[c->n++] = (struct change){at_s, gathered, gradients, activations};
}

/* What ends at a moment makes room for what begins then. */
static double more(const struct change *c)
{
	return c->gathered + c->gradients + c->activations;
}

GF_ORDER(earlier, struct change, GF_BY(x->at_s, y->at_s) ?: GF_BY(more(x), more(y)))

/* Of tensors first..last: bytes, elements, activations. */
struct sizes {
	double bytes, elems, activations;
};

static struct sizes sizes_of(const struct gf_model_profile *model, size_t first, size_t last)
{
	struct sizes s = {0, 0, 0};

	for (size_t i = first; i <= last; i++) {
		s.bytes += (double)gf_tensor_bytes(&model->tensors[i]);
		s.elems += (double)model->tensors[i].count_elems;
		s.activations += (double)model->tensors[i].activation_bytes;
	}
	return s;
}

/* The end of the segment of recomputation that begins with tensor `first`: about 1 / sqrt(n) of all
 * activations. */
static size_t segment_end(const struct gf_model_profile *model, size_t first, double all_bytes)
{
	const double most = all_bytes / fmax(1, sqrt((double)model->ntensors));
	double sum = 0;
	size_t i = first;

	for (; i < model->ntensors; i++) {
		sum += (double)model->tensors[i].activation_bytes;
		if (sum >= most)
			return i;
	}
	return i - 1;
}

static double recomputed_bytes(const struct gf_model_profile *model)
{
	const double all_bytes = (double)gf_model_profile_activations(model);
	double kept = 0, most = 0;
	size_t first, last;

	for (first = 0; first < model->ntensors; first = last + 1) {
		struct sizes s;

		last = segment_end(model, first, all_bytes);
		s = sizes_of(model, first, last);
		kept += (double)model->tensors[last].activation_bytes; /* where forward enters */
		most = fmax(most, s.activations);
	}
	return fmin(kept + most, all_bytes);
}

void gf_sim_recompute(struct gf_model_profile *model)
{
	const double all_bytes = (double)gf_model_profile_activations(model);
	const double forward_s = gf_model_forward_s(model); /* of a pass */
	double before_s = 0;
	size_t first, last, i;

	for (first = 0; first < model->ntensors; first = last + 1) {
		last = segment_end(model, first, all_bytes);
		before_s = forward_s -
			   (last + 1 < model->ntensors ? gf_sim_need_of_s(model, last) : 0);
		for (i = first; i <= last; i++)
			model->tensors[i].need_s = gf_sim_need_of_s(model, i);
		for (i = first; i <= last; i++)
			model->tensors[i].ready_s += fmin(fmax(before_s, 0), forward_s);
	}
	model->forward_s += (double)(gf_model_micro_batches(model) - 1) * forward_s;
	model->backward_s += forward_s;
}

/* Gathered units, from the start of a gather to the end of the stage up to which it stays. */
static void add_gathers(const struct gf_sim_input *in, const struct gf_sim_shard_times *t,
			double others, struct changes *c)
{
	const size_t n = in->nmessages;
	GF_FREED bool *again = gf_xcalloc(n + 1, sizeof(*again));

	for (size_t k = 0; k < in->nworks; k++)
		if (in->works[k].gather && in->works[k].stage >= n)
			again[in->works[k].message] = true;
	for (size_t k = 0; k < in->nworks; k++) {
		const struct gf_shard_work *w = &in->works[k];
		const struct gf_sim_message *m = &in->messages[w->message];
		const double bytes = others * sizes_of(in->model, m->first, m->last).bytes;
		const size_t until = w->stage < n && !again[w->message] ? n + w->message : w->stage;

		if (!w->gather)
			continue;
		add(c, t->start_s[k], bytes, 0, 0);
		add(c, t->done_s[until], -bytes, 0, 0);
	}
}

static void add_gradients(const struct gf_sim_input *in, const struct gf_sim_shard_times *t,
			  double others, struct changes *c)
{
	for (size_t k = 0; k < in->nworks; k++) {
		const struct gf_shard_work *w = &in->works[k];
		const struct gf_sim_message *m = &in->messages[w->message];
		const double bytes = others * sizes_of(in->model, m->first, m->last).bytes;

		if (w->gather)
			continue;
		add(c, t->begin_s[in->nmessages + w->message], 0, bytes, 0);
		add(c, t->end_s[k], 0, -bytes, 0);
	}
}

static void add_activations(const struct gf_sim_input *in, const struct gf_sim_shard_times *t,
			    struct changes *c)
{
	const size_t n = in->nmessages;

	for (size_t i = 0; i < n; i++) {
		const struct gf_sim_message *m = &in->messages[i];
		const double bytes = sizes_of(in->model, m->first, m->last).activations;

		add(c, t->begin_s[n - 1 - i], 0, 0, bytes);
		add(c, t->done_s[n + i], 0, 0, -bytes);
	}
}

/* Adds the changes up; `use` gets what is there when it is the most. */
static void find_peak(const struct changes *c, struct gf_memory_use *use)
{
	struct change now = {0}, most = {0};
	double sum, peak = -1;

	for (size_t i = 0; i < c->n; i++) {
		now.gathered += c->at[i].gathered;
		now.gradients += c->at[i].gradients;
		now.activations += c->at[i].activations;
		sum = now.gathered + now.gradients + now.activations;
		if (sum <= peak)
			continue;
		peak = sum;
		most = now;
	}
	use->gathered_bytes = round(most.gathered);
	use->gradients_bytes += round(most.gradients);
	use->activations_bytes += round(most.activations);
}

void gf_sim_memory(const struct gf_memory_setting *s, const struct gf_sim_input *in,
		   const struct gf_sim_shard_times *t, struct gf_memory_use *use)
{
	const struct sizes all = sizes_of(s->model, 0, s->model->ntensors - 1);
	const bool units = gf_shard_has(s->shard, GF_SHARD_PARAMETERS);
	const bool scattered = gf_shard_has(s->shard, GF_SHARD_GRADIENTS);
	const bool sharded = gf_shard_is_used(s->shard);
	const double part = sharded ? 1.0 / s->shard->group_ranks : 1;
	struct changes c = {gf_xcalloc(4 * in->nworks + 4 * in->nmessages + 4, sizeof(*c.at)), 0};

	*use = (struct gf_memory_use){
		.parameters_bytes = round(all.bytes * (units ? part : 1) +
					  (sharded && s->coded ? 4 * all.elems * part : 0)),
		.gradients_bytes = round(all.bytes * ((scattered ? part : s->staleness) +
						      (gf_model_micro_batches(s->model) > 1))),
		.state_bytes = round(s->memory->state_bytes * all.elems * part),
	};
	if (s->memory->recompute)
		use->activations_bytes = round(recomputed_bytes(s->model));
	else if (!t)
		use->activations_bytes = all.activations;
	if (t && units)
		add_gathers(in, t, 1 - part, &c);
	if (t && scattered)
		add_gradients(in, t, 1 - part, &c);
	if (t && !s->memory->recompute)
		add_activations(in, t, &c);
	qsort(c.at, c.n, sizeof(*c.at), earlier);
	find_peak(&c, use);
	free(c.at);
	use->peak_bytes = use->parameters_bytes + use->gradients_bytes + use->state_bytes +
			  use->gathered_bytes + use->buffers_bytes + use->activations_bytes;
}
