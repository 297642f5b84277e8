/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/optimizer.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"
#include "gf_kernels.h"

#define VECTORS "vectors"
#define NONE    "none"

/* Elements per piece of a watched step. */
#define WATCHED_ELEMS ((size_t)1 << 18)

/* --- which optimiser ------------------------------------------------------ */

const struct gf_optimizer_ops *gf_optimizer_find(const char *name, struct gf_error *err)
{
	const struct gf_optimizer_ops *ops = gf_named_find(gf_optimizers, 0, name);
	GF_RELEASED(gf_text_release) struct gf_text names = {0};

	if (ops)
		return ops;
	for (size_t i = 0; gf_optimizers[i]; i++)
		gf_text_addf(&names, "%s%s", i ? ", " : "", gf_optimizers[i]->name);
	gf_error_set(err, -EINVAL, "want an optimizer (%s), got \"%s\"", names.data, name);
	return NULL;
}

/* --- which tensors are left alone ----------------------------------------- */

static bool fits(const char *pattern, const struct gf_optim_tensor *t)
{
	if (strcmp(pattern, VECTORS) == 0)
		return t->rank <= 1;
	return fnmatch(pattern, t->name, 0) == 0;
}

/* A pattern that matches no tensor is refused as misspelt; a net without vectors is not. */
static int exclude(const char *list, const struct gf_optim_tensor *tensors, size_t ntensors,
		   bool *excluded, struct gf_error *err)
{
	char *copy = gf_xstrdup(list), *rest = copy, *pattern;
	size_t i, hits;
	int rc = 0;

	while (!rc && (pattern = strsep(&rest, ","))) {
		if (strcmp(pattern, NONE) == 0)
			continue;
		for (i = hits = 0; i < ntensors; i++) {
			if (!fits(pattern, &tensors[i]))
				continue;
			excluded[i] = true;
			hits++;
		}
		if (!hits && strcmp(pattern, VECTORS) != 0)
			rc = gf_error_set(
				err, -EINVAL,
				"--optimizer: exclude: want names of tensors, none is like \"%s\"",
				pattern);
	}
	free(copy);
	return rc;
}

/* --- preparing ------------------------------------------------------------ */

static void add_range(struct gf_optimizer *o, size_t count_elems, bool excluded, size_t *capacity)
{
	struct gf_optim_range *last = o->nranges ? &o->ranges[o->nranges - 1] : NULL;

	if (o->ops->elementwise && last && last->excluded == excluded) {
		last->count_elems += count_elems;
	} else {
		last = gf_array_push(&o->ranges, &o->nranges, capacity);
		last->first = o->count_elems;
		last->count_elems = count_elems;
		last->excluded = excluded;
	}
	o->count_elems += count_elems;
}

static int allocate(struct gf_optimizer *o, struct gf_error *err)
{
	for (size_t i = 0; o->ops->slots[i]; i++) {
		o->slot[i] = calloc(o->count_elems + 1, sizeof(float));
		if (!o->slot[i])
			return gf_error_set(err, -ENOMEM, "no memory for the %s of %zu parameters",
					    o->ops->slots[i], o->count_elems);
	}
	return 0;
}

int gf_optimizer_init(struct gf_optimizer *o, const struct gf_optim_config *config,
		      const struct gf_optim_tensor *tensors, size_t ntensors, struct gf_error *err)
{
	GF_FREED bool *excluded = gf_xcalloc(ntensors + 1, sizeof(*excluded));
	size_t capacity = 0, i;
	int rc;

	memset(o, 0, sizeof(*o));
	o->config = *config;
	o->ops = gf_optimizer_find(config->name, err);
	rc = o->ops ? 0 : -EINVAL;
	if (!rc)
		rc = exclude(config->exclude ? config->exclude : o->ops->default_exclude, tensors,
			     ntensors, excluded, err);
	for (i = 0; !rc && i < ntensors; i++)
		add_range(o, tensors[i].count_elems, excluded[i], &capacity);
	rc = rc ?: allocate(o, err);
	if (rc)
		gf_optimizer_release(o);
	return rc;
}

void gf_optimizer_release(struct gf_optimizer *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < GF_OPTIM_SLOTS; i++)
		free(o->slot[i]);
	free(o->ranges);
	memset(o, 0, sizeof(*o));
}

/* --- a step --------------------------------------------------------------- */

double gf_optimizer_norm(const struct gf_optimizer *o, float scale, const float *grad)
{
	return fabs((double)scale) * sqrt(gf_kernels()->sum_squares_f32(grad, o->count_elems));
}

/* A watched range goes in pieces, where it may, so that what is done with the first of them
 * overlaps the rest. */
static void step_range(struct gf_optimizer *o, struct gf_optim_part part,
		       const struct gf_optim_range *r)
{
	const bool cut = o->watch.changed && o->ops->elementwise;
	size_t first = r->first, left = r->count_elems, k;

	for (; left; first += part.count_elems, left -= part.count_elems) {
		struct gf_optim_part p = part;

		p.count_elems = part.count_elems =
			cut && left > WATCHED_ELEMS ? WATCHED_ELEMS : left;
		p.grad += first;
		p.weight += first;
		for (k = 0; o->ops->slots[k]; k++)
			p.slot[k] = o->slot[k] + first;
		o->ops->step(&o->config, &p);
		if (o->watch.changed)
			o->watch.changed(o->watch.ctx, first, p.count_elems);
	}
}

static void step_ranges(struct gf_optimizer *o, const struct gf_optim_part *all, size_t first,
			size_t count_elems)
{
	size_t end = first + count_elems, i;

	for (i = 0; i < o->nranges; i++) {
		struct gf_optim_range r = o->ranges[i];
		struct gf_optim_part part = *all;
		size_t r_end = r.first + r.count_elems;

		part.excluded = r.excluded;
		part.steps = o->steps;
		part.squares = all->squares ? all->squares + 2 * i : NULL;
		r.first = r.first > first ? r.first : first;
		r_end = r_end < end ? r_end : end;
		if (r_end <= r.first)
			continue;
		r.count_elems = r_end - r.first;
		step_range(o, part, &r);
	}
}

void gf_optimizer_squares(const struct gf_optimizer *o, const float *grad, const float *weight,
			  size_t first, size_t count_elems, double *squares)
{
	const struct gf_kernels *k = gf_kernels();
	size_t end = first + count_elems, i;

	for (i = 0; i < o->nranges; i++) {
		const struct gf_optim_range *r = &o->ranges[i];
		size_t from = r->first > first ? r->first : first;
		size_t to = r->first + r->count_elems < end ? r->first + r->count_elems : end;

		if (to <= from)
			continue;
		squares[2 * i] += k->sum_squares_f32(weight + from, to - from);
		squares[2 * i + 1] += k->sum_squares_f32(grad + from, to - from);
	}
}

float gf_optimizer_clipped(const struct gf_optimizer *o, float scale, const double *squares)
{
	double sum = 0, norm;

	for (size_t i = 0; i < o->nranges; i++)
		sum += squares[2 * i + 1];
	norm = fabs((double)scale) * sqrt(sum);
	return o->config.clip_norm > 0 && norm > o->config.clip_norm
		       ? (float)((double)scale * (o->config.clip_norm / norm))
		       : scale;
}

void gf_optimizer_begin(struct gf_optimizer *o)
{
	o->steps++;
}

void gf_optimizer_step_some(struct gf_optimizer *o, const struct gf_optim_part *all, size_t first,
			    size_t count_elems)
{
	step_ranges(o, all, first, count_elems);
}

void gf_optimizer_step(struct gf_optimizer *o, double lr, float scale, const float *grad,
		       float *weight)
{
	struct gf_optim_part all = {.lr = lr, .scale = scale, .grad = grad, .weight = weight};
	double norm = 0;

	if (o->config.clip_norm > 0)
		norm = gf_optimizer_norm(o, scale, grad);
	if (norm > o->config.clip_norm)
		all.scale = (float)((double)scale * (o->config.clip_norm / norm));
	gf_optimizer_begin(o);
	step_ranges(o, &all, 0, o->count_elems);
}
