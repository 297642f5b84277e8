/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

/* Sizes, the graph, and the output; check_layers.c looks at each layer. */

static int check_size(const struct gf_shape *s, size_t max_batch,
		      struct gf_error *err)
{
	size_t elems = max_batch;

	for (size_t d = 0; d < s->rank; d++) {
		if (s->dims[d] == 0 || s->dims[d] > INT_MAX ||
		    elems > SIZE_MAX / 64 / s->dims[d])
			return gf_error_set(err, -EINVAL,
					    "want sizes that %zu samples can "
					    "have in memory",
					    max_batch);
		elems *= s->dims[d];
	}
	return s->rank > 0 ? 0
			   : gf_error_set(err, -EINVAL,
					  "want at least one dimension");
}

/* Inputs of one size, but concat adds them up. */
static int check_inputs(const struct gf_model *m, size_t l,
			struct gf_error *err)
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
			return gf_error_set(err, -EINVAL,
					    "want earlier layers as inputs");
		elems = gf_shape_elems(from < 0 ? &m->input
						: &m->layers[from].out);
		sum = concat ? sum + elems : elems;
		if (concat ? i + 1 == layer->ninputs && sum != want_elems
			   : sum != want_elems)
			return gf_error_set(err, -EINVAL,
					    "want inputs of %zu values, got "
					    "%zu",
					    want_elems, sum);
	}
	if (layer->ninputs != (layer->type == GF_LAYER_ADD ? 2
			       : any                       ? layer->ninputs
							   : 1))
		return gf_error_set(err, -EINVAL, "want other inputs, got %zu",
				    layer->ninputs);
	return 0;
}

static int check_layer(const struct gf_model *m, size_t l, size_t max_batch,
		       struct gf_error *err)
{
	const struct gf_layer *layer = &m->layers[l];
	int rc = check_size(&layer->in, max_batch, err);

	if (!rc)
		rc = check_size(&layer->out, max_batch, err);
	if (!rc && ((size_t)layer->type >= GF_LAYER_NTYPES ||
		    !gf_net_layer_checks[layer->type]))
		rc = gf_error_set(err, -ENOTSUP,
				  "no backend computes layers of this type");
	if (!rc)
		rc = check_inputs(m, l, err);
	if (!rc)
		rc = gf_net_layer_checks[layer->type](layer, err);
	for (size_t i = 0; i < layer->nparams && !rc; i++)
		rc = check_size(&m->params[layer->first_param + i].shape, 1,
				err);
	return rc;
}

int gf_net_check(const struct gf_model *m, size_t max_batch,
		 struct gf_error *err)
{
	const struct gf_layer *last;

	if (m->nlayers == 0 || max_batch == 0)
		return gf_error_set(err, -EINVAL,
				    "%s: want a layer and a sample at least",
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
				    "layer %s: want %zu outputs, one per "
				    "class, got %zu",
				    last->name, m->classes,
				    gf_shape_elems(&last->out));
	if (last->out.rank <= 2 &&
	    last->out.dims[last->out.rank - 1] != m->classes)
		return gf_error_set(err, -EINVAL,
				    "layer %s: want %zu outputs, one per "
				    "class, got %zu",
				    last->name, m->classes,
				    last->out.dims[last->out.rank - 1]);
	return 0;
}
