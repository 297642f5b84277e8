/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <math.h>

#include "gf_kernels.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/sgd.h"

/* The elements that a piece and a range have in common: how many, and the first. */
static size_t common(const struct gf_optim_range *r, const struct gf_optim_piece *p, size_t *from)
{
	size_t r_end = r->first + r->count_elems;
	size_t p_end = p->first + p->count_elems;
	size_t end = r_end < p_end ? r_end : p_end;

	*from = r->first > p->first ? r->first : p->first;
	return end > *from ? end - *from : 0;
}

static const float *grad_at(const struct gf_optim_piece *p, size_t element)
{
	return p->grad + (element - p->first);
}

/* The pieces that have some of a range: first to end - 1. */
struct span {
	const struct gf_optim_piece *first, *end;
};

static struct span next_span(const struct gf_optim_range *r, const struct gf_optim_piece *from,
			     const struct gf_optim_piece *end)
{
	struct span s;

	while (from < end && from->first + from->count_elems <= r->first)
		from++;
	for (s.first = s.end = from; s.end < end && s.end->first < r->first + r->count_elems;
	     s.end++)
		;
	return s;
}

static double ratio_of(const struct gf_optimizer *o, const struct gf_optim_range *r,
		       const struct span *s, float scale, const float *weight)
{
	const struct gf_kernels *k = gf_kernels();
	const struct gf_optim_piece *p;
	double weights = 0, grads = 0;
	size_t from, n;

	if (!o->ops->ratio || r->excluded)
		return 1;
	for (p = s->first; p < s->end; p++) {
		n = common(r, p, &from);
		weights += k->sum_squares_f32(weight + from, n);
		grads += k->sum_squares_f32(grad_at(p, from), n);
	}
	return o->ops->ratio(&o->config, sqrt(weights), fabs((double)scale) * sqrt(grads));
}

/* The rate goes where u is made: lr*q*scale*grad + lr*q*d*w. */
static void step_range(struct gf_optimizer *o, const struct gf_optim_range *r, const struct span *s,
		       double lr, float scale, float *weight)
{
	double rate = lr * ratio_of(o, r, s, scale, weight);
	const struct gf_sgd folded = gf_sgd_folded(&(struct gf_sgd){
		.lr = rate,
		.momentum = o->config.momentum,
		.weight_decay = r->excluded ? 0 : o->config.weight_decay,
		.nesterov = o->ops->nesterov,
	});
	const struct gf_optim_piece *p;
	size_t from, n;

	for (p = s->first; p < s->end; p++) {
		n = common(r, p, &from);
		gf_sgd_update(&folded, (float)rate * scale, grad_at(p, from), weight + from,
			      o->slot[0] + from, n);
		if (o->watch.changed)
			o->watch.changed(o->watch.ctx, from, n);
	}
}

void gf_optimizer_each_piece(const struct gf_optimizer *o, const struct gf_optim_piece *pieces,
			     size_t npieces,
			     void (*each)(void *ctx, const struct gf_optim_common *c), void *ctx)
{
	struct span s = {pieces, pieces};
	const struct gf_optim_piece *p;

	for (size_t i = 0; i < o->nranges; i++) {
		const struct gf_optim_range *r = &o->ranges[i];
		struct gf_optim_common c = {.excluded = r->excluded};

		s = next_span(r, s.first, pieces + npieces);
		for (p = s.first; p < s.end; p++) {
			c.count_elems = common(r, p, &c.first);
			c.grad = grad_at(p, c.first);
			each(ctx, &c);
		}
	}
}

static float clipped(const struct gf_optimizer *o, float scale, const struct gf_optim_piece *pieces,
		     size_t npieces)
{
	double squares = 0, norm;

	if (o->config.clip_norm <= 0)
		return scale;
	for (size_t i = 0; i < npieces; i++)
		squares += gf_kernels()->sum_squares_f32(pieces[i].grad, pieces[i].count_elems);
	norm = fabs((double)scale) * sqrt(squares);
	if (norm <= o->config.clip_norm)
		return scale;
	return (float)((double)scale * (o->config.clip_norm / norm));
}

void gf_optimizer_step_pieces(struct gf_optimizer *o, double lr, float scale,
			      const struct gf_optim_piece *pieces, size_t npieces, float *weight)
{
	struct span s = {pieces, pieces};

	assert(o->ops->velocity);
	scale = clipped(o, scale, pieces, npieces);
	gf_optimizer_begin(o);
	for (size_t i = 0; i < o->nranges; i++) {
		s = next_span(&o->ranges[i], s.first, pieces + npieces);
		step_range(o, &o->ranges[i], &s, lr, scale, weight);
	}
}
