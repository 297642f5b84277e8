/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "base/array.h"

/*
 * Can this model be computed? lib/doc has inferred the shapes; a model can be
 * well-formed and still ask for what no backend does.
 */
typedef int check_fn(const struct gf_layer *l, struct gf_error *err);

static int want(int ok, struct gf_error *err, const char *what)
{
	return ok ? 0 : gf_error_set(err, -EINVAL, "want %s", what);
}

static int want_image(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank == 3 && l->out.rank == 3)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want an input of channels, height and width, got "
			    "%zu dimensions",
			    l->in.rank);
}

static int window(const struct gf_layer *l, struct gf_error *err)
{
	const size_t kernel[] = {l->kernel, l->kernel_w};
	const size_t pad[] = {l->pad, l->pad_w};
	int rc = want_image(l, err);

	if (!rc)
		rc = want(l->kernel > 0 && l->kernel_w > 0 && l->stride > 0,
			  err, "a kernel and a stride of at least 1");
	for (size_t d = 0; d < 2 && !rc; d++) {
		size_t padded = l->in.dims[1 + d] + 2 * pad[d];

		if (pad[d] > INT_MAX || padded < kernel[d])
			rc = gf_error_set(err, -EINVAL,
					  "want a kernel of at most the padded "
					  "input, %zu, got %zu",
					  padded, kernel[d]);
		else
			rc = want(l->out.dims[1 + d] ==
					  (padded - kernel[d]) / l->stride + 1,
				  err, "the output that the window gives");
	}
	return rc;
}

static int conv(const struct gf_layer *l, struct gf_error *err)
{
	int rc = window(l, err);

	if (rc)
		return rc;
	if (l->groups == 0 || l->in.dims[0] % l->groups ||
	    l->filters % l->groups)
		return gf_error_set(err, -EINVAL,
				    "want groups that divide %zu and %zu "
				    "channels, got %zu",
				    l->in.dims[0], l->filters, l->groups);
	return want(l->out.dims[0] == l->filters, err,
		    "as many output channels as filters");
}

static int pool(const struct gf_layer *l, struct gf_error *err)
{
	int rc = window(l, err);

	if (rc)
		return rc;
	/* Otherwise a window could see nothing but padding. */
	if (l->pad >= l->kernel || l->pad_w >= l->kernel_w)
		return want(0, err, "a pad below the kernel");
	return want(l->in.dims[0] == l->out.dims[0], err,
		    "as many output channels as inputs");
}

static int globalpool(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank != 3)
		return want_image(l, err);
	return want(l->out.rank == 1 && l->out.dims[0] == l->in.dims[0], err,
		    "one output per channel");
}

static int fc(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank == 2) /* each position on its own */
		return want(l->out.rank == 2 &&
				    l->out.dims[0] == l->in.dims[0] &&
				    l->out.dims[1] == l->filters,
			    err, "an output per position");
	return want(l->out.rank == 1 && l->out.dims[0] == l->filters, err,
		    "a flat output");
}

static int same(const struct gf_layer *l, struct gf_error *err)
{
	return want(gf_shape_elems(&l->in) == gf_shape_elems(&l->out), err,
		    "an output of the input's shape");
}

static int batchnorm(const struct gf_layer *l, struct gf_error *err)
{
	int rc = same(l, err);

	if (rc)
		return rc;
	if (l->in.rank != 1 && l->in.rank != 3)
		return gf_error_set(err, -EINVAL,
				    "want 1 or 3 dimensions, got %zu",
				    l->in.rank);
	return want(l->epsilon > 0 && l->momentum >= 0 && l->momentum <= 1, err,
		    "epsilon > 0 and momentum in 0 to 1");
}

static check_fn *const checks[] = {
	[GF_LAYER_CONV] = conv,    [GF_LAYER_BATCHNORM] = batchnorm,
	[GF_LAYER_RELU] = same,    [GF_LAYER_MAXPOOL] = pool,
	[GF_LAYER_AVGPOOL] = pool, [GF_LAYER_GLOBALPOOL] = globalpool,
	[GF_LAYER_FC] = fc,        [GF_LAYER_ADD] = same,
};

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
	return want(s->rank > 0, err, "at least one dimension");
}

static int check_inputs(const struct gf_model *m, size_t l,
			struct gf_error *err)
{
	for (int i = 0; i < 2; i++) {
		int from = m->layers[l].from[i];
		const struct gf_shape *s;

		if (from == -2 && i == 1)
			continue;
		if (from < -1 || from >= (int)l)
			return want(0, err, "an earlier layer as input");
		s = from < 0 ? &m->input : &m->layers[from].out;
		if (gf_shape_elems(s) != gf_shape_elems(&m->layers[l].in))
			return gf_error_set(err, -EINVAL,
					    "want inputs of %zu values, got "
					    "%zu",
					    gf_shape_elems(&m->layers[l].in),
					    gf_shape_elems(s));
	}
	return want((m->layers[l].from[1] != -2) ==
			    (m->layers[l].type == GF_LAYER_ADD),
		    err, "two inputs for add and one for other layers");
}

static int check_layer(const struct gf_model *m, size_t l, size_t max_batch,
		       struct gf_error *err)
{
	const struct gf_layer *layer = &m->layers[l];
	int rc = check_size(&layer->in, max_batch, err);

	if (!rc)
		rc = check_size(&layer->out, max_batch, err);
	if (!rc && ((size_t)layer->type >= GF_ARRAY_LENGTH(checks) ||
		    !checks[layer->type]))
		rc = gf_error_set(err, -ENOTSUP,
				  "no backend computes layers of this type");
	if (!rc)
		rc = check_inputs(m, l, err);
	if (!rc)
		rc = checks[layer->type](layer, err);
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
