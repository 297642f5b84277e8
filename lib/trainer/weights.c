/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/trainer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "checkpoints/safetensors.h"

/* Of batch norm, as PyTorch names them. */
static const char *const statistics[] = {"mean", "var"};

static bool same_shape(const struct gf_stored_tensor *t, const struct gf_shape *shape)
{
	size_t i;

	for (i = 0; i < shape->rank && t->rank == shape->rank; i++)
		if (t->dims[i] != shape->dims[i])
			return false;
	return t->rank == shape->rank;
}

static void add_dims(struct gf_text *text, const size_t *dims, size_t rank)
{
	size_t i;

	for (i = 0; i < rank; i++)
		gf_text_addf(text, "%s%zu", i ? " x " : "", dims[i]);
	if (!rank)
		gf_text_addf(text, "one number");
}

static int refuse_shape(const struct gf_safetensors *s, const struct gf_stored_tensor *t,
			const struct gf_shape *shape, struct gf_error *err)
{
	struct gf_text want = {0}, got = {0};
	int rc;

	add_dims(&want, shape->dims, shape->rank);
	add_dims(&got, t->dims, t->rank);
	rc = gf_error_set(err, -EINVAL, "%s: %s: want %s, got %s", s->path, t->name, want.data,
			  got.data);
	gf_text_release(&want);
	gf_text_release(&got);
	return rc;
}

/* An LSTM named "rnn.1" is layer 1 of a module "rnn": rnn.weight_ih_l1. Another is a module of one
 * layer. */
static char *torch_name(const struct gf_model *m, const struct gf_param *p)
{
	const struct gf_layer *l = &m->layers[p->layer];
	const char *kind = p->name + strlen(l->name) + 1;
	const char *number = strrchr(l->name, '.');

	if (l->type != GF_LAYER_LSTM)
		return gf_xstrdup(p->name);
	if (number && number[1] && !number[1 + strspn(number + 1, "0123456789")])
		return gf_xasprintf("%.*s.%s_l%s", (int)(number - l->name), l->name, kind,
				    number + 1);
	return gf_xasprintf("%s_l0", p->name);
}

static const struct gf_stored_tensor *find_param(const struct gf_safetensors *s,
						 const struct gf_model *m, const struct gf_param *p)
{
	char *names[] = {gf_xstrdup(p->name), torch_name(m, p), gf_xasprintf("%s_l0", p->name)};
	const struct gf_stored_tensor *t = NULL;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		t = t ? t : gf_safetensors_find(s, names[i]);
		free(names[i]);
	}
	return t;
}

static int load(const struct gf_safetensors *s, const struct gf_stored_tensor *t, const char *name,
		const struct gf_shape *shape, float *out, struct gf_error *err)
{
	if (!t)
		return gf_error_set(err, -EINVAL, "%s: the model's %s is missing", s->path, name);
	if (!same_shape(t, shape))
		return refuse_shape(s, t, shape, err);
	return gf_safetensors_load(s, t->name, "F32", gf_shape_elems(shape), out, err);
}

static int load_params(const struct gf_safetensors *s, const struct gf_model *m, float *at,
		       struct gf_error *err)
{
	size_t *order = gf_model_generation_order(m), i;
	int rc = 0;

	for (i = 0; !rc && i < m->nparams; i++) {
		const struct gf_param *p = &m->params[order[i]];

		rc = load(s, find_param(s, m, p), p->name, &p->shape, at, err);
		at += gf_shape_elems(&p->shape);
	}
	free(order);
	return rc;
}

static int load_running(const struct gf_safetensors *s, const struct gf_model *m, float *at,
			struct gf_error *err)
{
	size_t i, k;
	int rc = 0;

	for (i = 0; i < m->nlayers; i++) {
		const struct gf_layer *l = &m->layers[i];
		const struct gf_shape shape = {1, {l->in.dims[0]}};

		for (k = 0; k < 2 && l->type == GF_LAYER_BATCHNORM && !rc; k++) {
			char *name = gf_xasprintf("%s.running_%s", l->name, statistics[k]);

			rc = load(s, gf_safetensors_find(s, name), name, &shape, at, err);
			at += shape.dims[0];
			free(name);
		}
	}
	return rc;
}

int gf_weights_read(const char *path, const struct gf_model *m, float *params, float *running,
		    struct gf_error *err)
{
	struct gf_safetensors s = {0};
	int rc = gf_safetensors_open(path, &s, err);

	rc = rc ? rc : load_params(&s, m, params, err);
	rc = rc ? rc : load_running(&s, m, running, err);
	gf_safetensors_close(&s);
	return rc;
}
