/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/layer_times.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"

const char *const gf_shares_names[] = {"roofline", "flops", "even", NULL};

/* One layer's cost in FLOPs, or its bytes as the FLOPs of the same time. */
struct work {
	double forward, backward;
};

static double elems_moved(const struct gf_model *m, const struct gf_layer *l, double batch)
{
	double samples = (double)gf_shape_elems(&l->out), params = 0;

	for (size_t i = 0; i < l->ninputs; i++) {
		int from = l->inputs[i];

		samples += (double)gf_shape_elems(from < 0 ? &m->input : &m->layers[from].out);
	}
	for (size_t i = 0; i < l->nparams; i++)
		params += (double)gf_shape_elems(&m->params[l->first_param + i].shape);
	/* a look-up touches the rows it needs */
	if (l->type == GF_LAYER_EMBEDDING)
		params = 0;
	return batch * samples + params;
}

static struct work work_of(const struct gf_model *m, const struct gf_layer *l,
			   const struct gf_estimate *in)
{
	double batch = (double)in->batch;
	double bytes =
		(in->element_bytes ? (double)in->element_bytes : 4) * elems_moved(m, l, batch);
	double floor =
		bytes * (in->memory_bytes_per_s > 0 ? in->flops_per_s / in->memory_bytes_per_s
						    : GF_ESTIMATE_BALANCE);

	return (struct work){
		.forward = fmax(batch * l->forward_flops, floor),
		/* no gradient comes to what nothing is trained before */
		.backward = l->trained ? fmax(batch * l->backward_flops, 2 * floor) : 0,
	};
}

/* The measure, in any unit, by which a layer takes its part of a pass; `work` is the layer's by the
 * roofline. */
static struct work share_of(const struct gf_layer *l, enum gf_shares shares, struct work work)
{
	double trained = l->frozen ? 0 : (double)l->nparams;

	if (shares == GF_SHARES_EVEN)
		return (struct work){trained, trained};
	if (shares == GF_SHARES_FLOPS)
		return (struct work){l->forward_flops, l->trained ? l->backward_flops : 0};
	return work;
}

static int check(const struct gf_model *m, const struct gf_estimate *in, struct gf_error *err)
{
	if (!m->ntrained)
		return gf_error_set(err, -EINVAL,
				    "want a model with parameters to train, got none");
	if (!in->batch)
		return gf_error_set(err, -EINVAL, "want a batch of at least 1, got 0");
	if (in->flops_per_s > 0 && isfinite(in->flops_per_s))
		return 0;
	if (in->flops_per_s != 0)
		return gf_error_set(err, -EINVAL, "want a rate > 0 FLOPs/s, got %g",
				    in->flops_per_s);
	if (!(in->forward_s >= 0 && in->backward_s > 0) ||
	    !isfinite(in->forward_s + in->backward_s))
		return gf_error_set(err, -EINVAL,
				    "want a rate, or a forward time >= 0 and a backward time > 0, "
				    "got %g and %g",
				    in->forward_s, in->backward_s);
	return 0;
}

/* Seconds per layer, from work. */
static struct work *layer_times(const struct gf_model *m, const struct gf_estimate *in)
{
	struct work *times = gf_xcalloc(m->nlayers, sizeof(*times));
	struct work whole = {0}, shares = {0};

	for (size_t i = 0; i < m->nlayers; i++) {
		struct work work = work_of(m, &m->layers[i], in);

		times[i] = share_of(&m->layers[i], in->shares, work);
		shares.forward += times[i].forward;
		shares.backward += times[i].backward;
		whole.forward += work.forward;
		whole.backward += work.backward;
	}
	if (in->flops_per_s > 0) {
		whole.forward /= in->flops_per_s;
		whole.backward /= in->flops_per_s;
	} else {
		whole = (struct work){in->forward_s, in->backward_s};
	}
	for (size_t i = 0; i < m->nlayers; i++) {
		if (shares.forward > 0)
			times[i].forward *= whole.forward / shares.forward;
		if (shares.backward > 0)
			times[i].backward *= whole.backward / shares.backward;
	}
	return times;
}

static void fill_tensors(const struct gf_model *m, enum gf_dtype dtype, const double *ready_s,
			 const double *need_s, struct gf_model_profile *p)
{
	size_t *order = gf_model_generation_order(m), i;

	p->tensors = gf_xcalloc(m->ntrained, sizeof(*p->tensors));
	p->ntensors = m->ntrained;
	for (i = 0; i < m->ntrained; i++) {
		const struct gf_param *from = &m->params[order[i]];
		struct gf_tensor *t = &p->tensors[i];

		t->name = gf_xstrdup(from->name);
		t->count_elems = gf_shape_elems(&from->shape);
		gf_tensor_set_shape(t, from->shape.dims, from->shape.rank);
		t->dtype = dtype;
		t->ready_s = ready_s[from->layer];
		t->need_s = need_s[from->layer];
	}
	free(order);
}

int gf_model_estimate(const struct gf_model *m, const struct gf_estimate *in,
		      struct gf_model_profile **profile, struct gf_error *err)
{
	struct gf_model_profile *p;
	GF_FREED double *ready_s = NULL, *need_s = NULL, *kept = NULL;
	GF_FREED struct work *times = NULL;
	int rc = check(m, in, err);

	if (rc)
		return rc;
	times = layer_times(m, in);
	ready_s = gf_xcalloc(m->nlayers, sizeof(*ready_s));
	need_s = gf_xcalloc(m->nlayers, sizeof(*need_s));
	p = gf_xcalloc(1, sizeof(*p));
	for (size_t i = 0; i < m->nlayers; i++) {
		need_s[i] = p->forward_s;
		p->forward_s += times[i].forward;
	}
	for (size_t i = m->nlayers; i-- > 0;) {
		p->backward_s += times[i].backward;
		ready_s[i] = p->backward_s;
	}
	fill_tensors(m, in->gradients, ready_s, need_s, p);
	kept = gf_xcalloc(m->nlayers, sizeof(*kept));
	gf_model_activations(m, in->batch, in->element_bytes ? in->element_bytes : 4, kept);
	gf_model_keep(m, kept, p);
	for (size_t i = 0; in->shares == GF_SHARES_EVEN && i < p->ntensors; i++)
		p->tensors[i].ready_s = p->backward_s * (double)(i + 1) / (double)p->ntensors;
	p->name = gf_xstrdup(m->name);
	p->device = gf_xstrdup(GF_DEVICE_ESTIMATE);
	p->batch_per_rank = in->batch;
	p->overlap_slowdown = 1;
	*profile = p;
	return 0;
}

/* "64 tokens", "3 x 224 x 224" */
static void add_shape(const struct gf_model *m, struct gf_text *out)
{
	for (size_t i = 0; i < m->input.rank; i++)
		gf_text_addf(out, "%s%zu", i ? " x " : "", m->input.dims[i]);
	if (m->layers[0].type == GF_LAYER_EMBEDDING)
		gf_text_addf(out, " tokens");
}

void gf_estimate_note(const struct gf_model *m, const struct gf_estimate *in, const char *rate,
		      struct gf_text *notes)
{
	gf_text_addf(notes, "times of %s are estimated: %zu sample%s of ", m->name, in->batch,
		     in->batch == 1 ? "" : "s");
	add_shape(m, notes);
	gf_text_addf(notes, " %s\n", rate);
}

int gf_passes_spread(const struct gf_passes *passes, const struct gf_model *m,
		     enum gf_shares shares, struct gf_model_profile **profile, struct gf_error *err)
{
	const struct gf_estimate in = {
		.batch = passes->batch_per_rank,
		.forward_s = passes->forward_s,
		.backward_s = passes->backward_s,
		.shares = shares,
	};
	int rc;

	if (strcmp(m->name, passes->model) != 0)
		return gf_error_set(err, -EINVAL,
				    "want the model %s, whose passes the profile has, got %s",
				    passes->model, m->name);
	rc = gf_model_estimate(m, &in, profile, err);
	if (!rc && passes->accumulate)
		gf_model_accumulate(*profile, passes->accumulate);
	return rc;
}
