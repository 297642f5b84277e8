/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <limits.h>
#include <string.h>

#include "base/heap.h"

/* --- checks: sizes, the graph, and the output ----------------------------- */

static int check_size(const struct gf_shape *s, size_t max_batch, struct gf_error *err)
{
	size_t elems = max_batch;

	for (size_t d = 0; d < s->rank; d++) {
		if (s->dims[d] == 0 || s->dims[d] > INT_MAX || elems > SIZE_MAX / 64 / s->dims[d])
			return gf_error_set(err, -EINVAL,
					    "want sizes that %zu samples can have in memory",
					    max_batch);
		elems *= s->dims[d];
	}
	return s->rank > 0 ? 0 : gf_error_set(err, -EINVAL, "want at least one dimension");
}

/* Inputs of one size, but concat adds them up. */
static int check_inputs(const struct gf_model *m, size_t l, struct gf_error *err)
{
	const struct gf_layer *layer = &m->layers[l];
	bool concat = layer->type == GF_LAYER_CONCAT;
	bool any = concat || layer->type == GF_LAYER_ATTENTION;
	size_t want_elems = gf_shape_elems(concat ? &layer->out : &layer->in);
	size_t sum = 0;

	for (size_t i = 0; i < layer->ninputs; i++) {
		int from = layer->inputs[i];
		size_t elems;

		if (from < -1 || from >= (int)l)
			return gf_error_set(err, -EINVAL, "want earlier layers as inputs");
		elems = gf_shape_elems(from < 0 ? &m->input : &m->layers[from].out);
		sum = concat ? sum + elems : elems;
		if (concat ? i + 1 == layer->ninputs && sum != want_elems : sum != want_elems)
			return gf_error_set(err, -EINVAL, "want inputs of %zu values, got %zu",
					    want_elems, sum);
	}
	if (layer->ninputs != (layer->type == GF_LAYER_ADD ? 2 : any ? layer->ninputs : 1))
		return gf_error_set(err, -EINVAL, "want other inputs, got %zu", layer->ninputs);
	return 0;
}

static int check_layer(const struct gf_model *m, size_t l, size_t max_batch, struct gf_error *err)
{
	const struct gf_layer *layer = &m->layers[l];
	int rc = check_size(&layer->in, max_batch, err);

	rc = rc ?: check_size(&layer->out, max_batch, err);
	if (!rc && ((size_t)layer->type >= GF_LAYER_NTYPES || !gf_net_layer_checks[layer->type]))
		rc = gf_error_set(err, -ENOTSUP, "no backend computes layers of this type");
	rc = rc ?: check_inputs(m, l, err);
	rc = rc ?: gf_net_layer_checks[layer->type](layer, err);
	for (size_t i = 0; i < layer->nparams && !rc; i++)
		rc = check_size(&m->params[layer->first_param + i].shape, 1, err);
	return rc;
}

/* Checks that every layer can be computed, naming the layer that cannot. */
static int check_model(const struct gf_model *m, size_t max_batch, struct gf_error *err)
{
	const struct gf_layer *last;

	if (m->nlayers == 0 || max_batch == 0)
		return gf_error_set(err, -EINVAL, "%s: want a layer and a sample at least",
				    m->name);
	if (check_size(&m->input, max_batch, err)) {
		gf_error_prefix(err, "input");
		return -EINVAL;
	}
	for (size_t l = 0; l < m->nlayers; l++) {
		int rc = check_layer(m, l, max_batch, err);

		if (rc) {
			gf_error_prefix(err, "layer %s", m->layers[l].name);
			return rc;
		}
	}
	last = &m->layers[m->nlayers - 1];
	if (last->out.rank > 2 && gf_shape_elems(&last->out) != m->classes)
		return gf_error_set(err, -EINVAL,
				    "layer %s: want %zu outputs, one per class, got %zu",
				    last->name, m->classes, gf_shape_elems(&last->out));
	if (last->out.rank <= 2 && last->out.dims[last->out.rank - 1] != m->classes)
		return gf_error_set(err, -EINVAL,
				    "layer %s: want %zu outputs, one per class, got %zu",
				    last->name, m->classes, last->out.dims[last->out.rank - 1]);
	return 0;
}

/* --- what every net has --------------------------------------------------- */

static void place_params(struct gf_net *net)
{
	const struct gf_model *m = net->model;
	size_t *order = gf_model_generation_order(m), at = 0;

	net->param_at = gf_xcalloc(m->nparams, sizeof(*net->param_at));
	net->param_tensor = gf_xcalloc(m->nparams, sizeof(*net->param_tensor));
	for (size_t i = 0; i < m->nparams; i++) {
		net->param_at[order[i]] = at;
		net->param_tensor[order[i]] = i;
		at += gf_shape_elems(&m->params[order[i]].shape);
	}
	free(order);
}

static void trace_paths(struct gf_net *net)
{
	const struct gf_model *m = net->model;

	net->consumers = gf_xcalloc(m->nlayers, sizeof(*net->consumers));
	net->on_path = gf_xcalloc(m->nlayers, sizeof(*net->on_path));
	net->has_gradient = gf_xcalloc(m->nlayers, sizeof(*net->has_gradient));
	net->on_path[m->nlayers - 1] = true;
	for (size_t l = m->nlayers; l-- > 0;)
		for (size_t i = 0; i < m->layers[l].ninputs; i++) {
			int from = m->layers[l].inputs[i];

			if (from < 0 || !net->on_path[l])
				continue;
			net->consumers[from]++;
			net->on_path[from] = true;
		}
	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_layer *layer = &m->layers[l];
		bool has = gf_layer_uses(layer) > 0 && !layer->frozen;

		for (size_t i = 0; i < layer->ninputs; i++)
			if (layer->inputs[i] >= 0)
				has |= net->has_gradient[layer->inputs[i]];
		net->has_gradient[l] = has && net->on_path[l];
	}
}

/* Backward meets the layers last to first. */
static void trace_shared(struct gf_net *net)
{
	const struct gf_model *m = net->model;
	GF_FREED bool *begun = gf_xcalloc(m->nparams + 1, sizeof(*begun));

	net->adds = gf_xcalloc(m->nlayers, sizeof(*net->adds));
	for (size_t l = m->nlayers; l-- > 0;) {
		const struct gf_layer *layer = &m->layers[l];
		size_t first;

		if (!gf_layer_uses(layer))
			continue;
		first = gf_layer_use(layer, 0);
		net->adds[l] = begun[first];
		begun[first] |= net->has_gradient[l];
	}
}

static void place_running(struct gf_net *net)
{
	const struct gf_model *m = net->model;

	net->running_at = gf_xcalloc(m->nlayers, sizeof(*net->running_at));
	for (size_t l = 0; l < m->nlayers; l++) {
		net->running_at[l] = net->nrunning;
		if (m->layers[l].type == GF_LAYER_BATCHNORM)
			net->nrunning += 2 * m->layers[l].out.dims[0];
	}
	net->running = gf_xcalloc(net->nrunning + 1, sizeof(*net->running));
	for (size_t l = 0; l < m->nlayers; l++) {
		size_t channels = m->layers[l].out.dims[0];

		if (m->layers[l].type != GF_LAYER_BATCHNORM)
			continue;
		for (size_t c = 0; c < channels; c++)
			net->running[net->running_at[l] + channels + c] = 1;
	}
}

int gf_net_init(struct gf_net *net, const struct gf_model *m, size_t max_batch,
		const struct gf_net_options *options, struct gf_error *err)
{
	int rc = check_model(m, max_batch, err);
	const struct gf_shape *last;

	if (rc)
		return rc;
	*net = (struct gf_net){
		.model = m,
		.max_batch = max_batch,
		.threads = options->threads,
		.precision = options->precision,
		.in_place = options->in_place,
		.loss_scale = 1,
	};
	place_params(net);
	trace_paths(net);
	trace_shared(net);
	place_running(net);
	last = &m->layers[m->nlayers - 1].out;
	net->positions = gf_model_positions(m);
	net->labels = options->labels ? options->labels : net->positions;
	net->logits = gf_xcalloc(max_batch * gf_shape_elems(last), sizeof(float));
	net->dlogits = gf_xcalloc(max_batch * gf_shape_elems(last), sizeof(float));
	net->layer_memory = gf_xcalloc(m->nlayers, sizeof(*net->layer_memory));
	net->memory.workspace_bytes =
		(net->nrunning + 2 * max_batch * gf_shape_elems(last)) * sizeof(float);
	return 0;
}

void gf_net_release(struct gf_net *net)
{
	free(net->param_at);
	free(net->param_tensor);
	free(net->adds);
	free(net->consumers);
	free(net->on_path);
	free(net->has_gradient);
	free(net->running_at);
	free(net->running);
	free(net->logits);
	free(net->dlogits);
	free(net->layer_memory);
	memset(net, 0, sizeof(*net));
}

struct gf_net_memory gf_net_memory(const struct gf_net *net)
{
	return net->memory;
}

struct gf_net_memory gf_net_layer_memory(const struct gf_net *net, size_t layer)
{
	return net->layer_memory[layer];
}

void gf_net_memory_add(struct gf_net_memory *to, const struct gf_net_memory *m, bool less)
{
	const size_t sign = less ? SIZE_MAX : 1; /* modulo 2^64 */

	to->weights_bytes += sign * m->weights_bytes;
	to->activations_bytes += sign * m->activations_bytes;
	to->gradients_bytes += sign * m->gradients_bytes;
	to->workspace_bytes += sign * m->workspace_bytes;
}

/* Numbers that an embedding looks up must be in its table. */
static int check_numbers(const struct gf_net *net, const float *input, size_t batch,
			 struct gf_error *err)
{
	const struct gf_model *m = net->model;

	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_layer *layer = &m->layers[l];
		size_t count = batch * gf_shape_elems(&layer->in);

		if (layer->type != GF_LAYER_EMBEDDING || layer->positional)
			continue;
		for (size_t i = 0; i < count; i++)
			if (!(input[i] >= 0 && input[i] < (float)layer->entries))
				return gf_net_bad_number(net, l, i, input[i], err);
	}
	return 0;
}

int gf_net_bad_number(const struct gf_net *net, size_t layer, size_t at, float number,
		      struct gf_error *err)
{
	const struct gf_layer *l = &net->model->layers[layer];

	return gf_error_set(
		err, -EINVAL,
		"layer %s: sample %zu: want numbers of at least 0 and below %zu, got %g", l->name,
		at / gf_shape_elems(&l->in), l->entries, (double)number);
}

int gf_net_begin_forward(struct gf_net *net, const float *input, size_t batch, int training,
			 struct gf_error *err)
{
	int rc;

	net->stage = GF_NET_IDLE;
	if (batch == 0 || batch > net->max_batch)
		return gf_error_set(err, -EINVAL, "batch: want 1 to %zu samples, got %zu",
				    net->max_batch, batch);
	rc = input ? check_numbers(net, input, batch, err) : 0;
	if (rc)
		return rc;
	net->stage = GF_NET_FORWARD;
	net->batch = batch;
	net->training = training;
	return 0;
}

int gf_net_begin_loss(struct gf_net *net, struct gf_error *err)
{
	if (net->stage == GF_NET_FORWARD)
		return 0;
	return gf_error_set(err, -EINVAL, "loss: want a forward pass before it");
}

int gf_net_begin_backward(struct gf_net *net, struct gf_error *err)
{
	if (net->stage != GF_NET_LOSS || !net->training)
		return gf_error_set(
			err, -EINVAL,
			"backward: want a forward pass in training and its loss before it");
	net->stage = GF_NET_IDLE;
	return 0;
}

void gf_net_set_need(struct gf_net *net, void (*on_need)(void *ctx, size_t tensor), void *ctx)
{
	net->on_need = on_need;
	net->need_ctx = ctx;
}

void gf_net_need(const struct gf_net *net, size_t layer)
{
	const struct gf_layer *l = &net->model->layers[layer];

	if (!net->on_need || l->frozen)
		return;
	for (size_t i = 0; i < gf_layer_uses(l); i++)
		net->on_need(net->need_ctx, net->param_tensor[gf_layer_use(l, i)]);
}

void gf_net_emit(const struct gf_net *net, size_t layer, void (*on_grad)(void *ctx, size_t tensor),
		 void *ctx)
{
	const struct gf_layer *l = &net->model->layers[layer];

	if (!on_grad || l->frozen)
		return;
	for (size_t i = l->nparams; i-- > 0;)
		on_grad(ctx, net->param_tensor[l->first_param + i]);
}

void gf_net_zero_gradients(const struct gf_net *net, float *grads, size_t l)
{
	const struct gf_layer *layer = &net->model->layers[l];

	for (size_t i = gf_net_first_own(net, l); i < gf_layer_uses(layer) && !layer->frozen; i++) {
		size_t p = gf_layer_use(layer, i);

		memset(grads + net->param_at[p], 0,
		       gf_shape_elems(&net->model->params[p].shape) * sizeof(float));
	}
}

void gf_net_set_samples(struct gf_net *net, uint64_t seed, uint64_t first)
{
	net->dropout_seed = seed;
	net->first_sample = first;
	if (net->tell)
		net->tell(net);
}

void gf_net_set_loss_scale(struct gf_net *net, float scale)
{
	net->loss_scale = scale;
	if (net->tell)
		net->tell(net);
}

float *gf_net_running(struct gf_net *net, size_t *count)
{
	*count = net->nrunning;
	return net->nrunning ? net->running : NULL;
}

void gf_net_update_running(const struct gf_net *net, size_t layer, const float *mean,
			   const float *variance, size_t samples)
{
	const struct gf_layer *l = &net->model->layers[layer];
	size_t channels = l->out.dims[0];
	float *to_mean = net->running + net->running_at[layer];
	float *to_variance = to_mean + channels;
	float a = (float)l->momentum, b = 1 - a;
	float unbias = samples > 1 ? (float)samples / (float)(samples - 1) : 1;

	for (size_t c = 0; c < channels; c++) {
		to_mean[c] = b * to_mean[c] + a * mean[c];
		to_variance[c] = b * to_variance[c] + a * unbias * variance[c];
	}
}
