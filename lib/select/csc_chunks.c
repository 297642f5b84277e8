/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks: which go out, how they are packed, and what stays of a step. */
#include "select/csc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "comm/pages.h"
#include "gf_kernels.h"

/* --- chunks ----------------------------------------------------------------
 */

size_t gf_csc_chunk_first(const struct gf_csc *c, size_t chunk)
{
	return chunk * c->chunk_elems;
}

size_t gf_csc_chunk_count(const struct gf_csc *c, size_t chunk)
{
	size_t left = c->layout->count_elems - gf_csc_chunk_first(c, chunk);

	return left < c->chunk_elems ? left : c->chunk_elems;
}

size_t gf_csc_chunk_last_tensor(const struct gf_csc *c, size_t chunk)
{
	return gf_pool_tensor_at(c->layout,
				 gf_csc_chunk_first(c, chunk) +
					 gf_csc_chunk_count(c, chunk) - 1);
}

size_t gf_csc_kept(const struct gf_csc_params *p, size_t n, size_t t)
{
	double ramp = p->warmup_steps
			      ? fmin(1, (double)t / (double)p->warmup_steps)
			      : 1;
	double kept = ceil((1 - (1 - p->keep) * ramp) * (double)n - 1e-9);

	/* the first step is dense, with or without a ramp */
	if (t == 0)
		return n;
	return kept < 1 ? 1 : (size_t)kept;
}

int gf_csc_init(struct gf_csc *c, const struct gf_plan *plan,
		const struct gf_pool *layout, double momentum, size_t depth,
		struct gf_error *err)
{
	const struct gf_csc_params *p = gf_csc_params(&plan->selection);
	size_t i;

	*c = (struct gf_csc){
		.layout = layout,
		.params = p,
		.chunk_elems = p->chunk_elems,
		.decay = (float)(isnan(p->decay) ? momentum : p->decay),
		.ranks = plan->ranks,
		.depth = depth,
	};
	if (c->chunk_elems < 1 || c->chunk_elems > layout->count_elems)
		return gf_error_set(err, -EINVAL,
				    "selection: want chunk_elems of 1 to %zu, "
				    "the model's elements, got %zu",
				    layout->count_elems, c->chunk_elems);
	c->nchunks = (layout->count_elems - 1) / c->chunk_elems + 1;
	c->history = calloc(layout->count_elems, sizeof(*c->history));
	if (!c->history)
		return gf_error_set(err, -ENOMEM,
				    "no memory for the history of %zu "
				    "gradients",
				    layout->count_elems);
	/* After a resume nothing is known. */
	c->empty = gf_xcalloc(c->nchunks, sizeof(*c->empty));
	c->important = gf_xcalloc(c->nchunks, sizeof(*c->important));
	for (i = 0; i < c->nchunks; i++)
		c->important[i] = 1;
	c->pieces = gf_xcalloc(c->nchunks + 1, sizeof(*c->pieces));
	c->flight_sent =
		gf_xcalloc(depth * c->nchunks, sizeof(*c->flight_sent));
	c->flight_next =
		gf_xcalloc(depth * c->nchunks, sizeof(*c->flight_next));
	return 0;
}

void gf_csc_release(struct gf_csc *c)
{
	free(c->history);
	free(c->empty);
	free(c->important);
	free(c->steps);
	free(c->pieces);
	free(c->flight_sent);
	free(c->flight_next);
	memset(c, 0, sizeof(*c));
}

int gf_csc_step_init(struct gf_csc_step *s, struct gf_csc *c, float *data,
		     struct gf_error *err)
{
	size_t n = c->nchunks;
	void *packed = NULL;

	*s = (struct gf_csc_step){.csc = c, .data = data};
	if (gf_pages_alloc(c->layout->count_elems * sizeof(float), &packed,
			   NULL))
		return gf_error_set(err, -ENOMEM,
				    "no memory for packed chunks");
	s->packed = packed;
	s->chosen = gf_xcalloc(n, sizeof(*s->chosen));
	s->waiting = gf_xcalloc(n, sizeof(*s->waiting));
	s->work = gf_xcalloc(n + 1, sizeof(*s->work));
	s->first_chosen = gf_xcalloc(n + 1, sizeof(*s->first_chosen));
	s->norms = gf_xcalloc(n, sizeof(*s->norms));
	s->shared = gf_xcalloc(gf_csc_shared_elems(c), sizeof(*s->shared));
	s->next = gf_xcalloc(n, sizeof(*s->next));
	s->pick = gf_xcalloc(n, sizeof(*s->pick));
	s->scratch = gf_xcalloc(2 * n, sizeof(*s->scratch));
	return 0;
}

void gf_csc_step_release(struct gf_csc_step *s)
{
	gf_pages_free(s->packed);
	free(s->chosen);
	free(s->waiting);
	free(s->work);
	free(s->list);
	free(s->first_chosen);
	free(s->norms);
	free(s->shared);
	free(s->next);
	free(s->pick);
	free(s->scratch);
	memset(s, 0, sizeof(*s));
}

/* --- packed messages -------------------------------------------------------
 */

/* The plan's message that a tensor is in. */
static const struct gf_message *message_at(const struct gf_plan *plan,
					   size_t tensor)
{
	size_t low = 0, high = plan->nmessages, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (plan->messages[middle].first <= tensor)
			low = middle;
		else
			high = middle;
	}
	return &plan->messages[low];
}

static void close_message(struct gf_csc_step *s, const struct gf_plan *plan,
			  size_t last_chosen)
{
	const struct gf_csc *c = s->csc;
	struct gf_work *w = &s->work[s->nwork];
	size_t first = s->chosen[s->first_chosen[s->nwork]];
	size_t before = gf_csc_chunk_first(c, 1) * s->first_chosen[s->nwork];

	w->first = gf_pool_tensor_at(c->layout, gf_csc_chunk_first(c, first));
	w->last = gf_csc_chunk_last_tensor(c, s->chosen[last_chosen]);
	w->how = message_at(plan, w->last);
	w->half = GF_COLL_WHOLE;
	w->simultaneous = w->how->mode == GF_MODE_SIMULTANEOUS;
	w->at_end = w->how->release == GF_RELEASE_BACKWARD_END;
	w->data = s->packed + before;
	/* only the pool's last chunk is short */
	w->count_elems =
		(last_chosen - s->first_chosen[s->nwork]) * c->chunk_elems +
		gf_csc_chunk_count(c, s->chosen[last_chosen]);
	s->first_chosen[++s->nwork] = last_chosen + 1;
}

static void cut(struct gf_csc_step *s, const struct gf_plan *plan)
{
	size_t waiting_bytes = 0, i;

	s->nwork = 0;
	for (i = 0; i < s->nchosen; i++) {
		waiting_bytes += gf_csc_chunk_count(s->csc, s->chosen[i]) *
				 sizeof(float);
		if (waiting_bytes <= plan->threshold_bytes &&
		    i + 1 < s->nchosen)
			continue;
		close_message(s, plan, i);
		waiting_bytes = 0;
	}
}

void gf_csc_begin(struct gf_csc_step *s, const struct gf_plan *plan,
		  size_t number)
{
	const struct gf_csc *c = s->csc;
	size_t i;

	s->number = number;
	s->nchosen = s->nwaiting = s->taken = s->nwork = 0;
	for (i = 0; i < c->nchunks; i++) {
		if (c->important[i])
			s->chosen[s->nchosen++] = (uint32_t)i;
		else
			s->waiting[s->nwaiting++] = (uint32_t)i;
	}
	s->dense = !s->nwaiting;
	if (!s->dense)
		cut(s, plan);
}

void gf_csc_pack(struct gf_csc_step *s, size_t message)
{
	const struct gf_csc *c = s->csc;
	float *to = s->work[message].data;
	size_t i, n, first;

	for (i = s->first_chosen[message]; i < s->first_chosen[message + 1];
	     i++, to += n) {
		n = gf_csc_chunk_count(c, s->chosen[i]);
		first = gf_csc_chunk_first(c, s->chosen[i]);
		memcpy(to, s->data + first, n * sizeof(*to));
		if (!c->empty[s->chosen[i]])
			gf_kernels()->add_f32(to, c->history + first, n);
	}
}

void gf_csc_take_up(struct gf_csc_step *s, size_t first, size_t count)
{
	const struct gf_csc *c = s->csc;
	size_t end = first + count, chunk, n;

	for (; first < end; first += n) {
		chunk = first / c->chunk_elems;
		n = gf_csc_chunk_first(c, chunk) +
		    gf_csc_chunk_count(c, chunk) - first;
		if (n > end - first)
			n = end - first;
		if (!c->empty[chunk])
			gf_kernels()->add_f32(s->data + first,
					      c->history + first, n);
	}
}

/* --- the end of a step -----------------------------------------------------
 */

void gf_csc_choose(struct gf_csc_step *s)
{
	const struct gf_csc *c = s->csc;
	size_t kept = gf_csc_kept(c->params, c->nchunks, s->number + 1), i;
	struct gf_topk top = {
		.values = s->shared,
		.count = c->nchunks,
		.k = kept,
		.index = s->pick,
		.scratch = s->scratch,
	};

	gf_kernels()->topk_f32(&top);
	memset(s->next, 0, c->nchunks * sizeof(*s->next));
	for (i = 0; i < kept; i++)
		s->next[s->pick[i]] = 1;
}

/* hg: 0 where a chunk went out, what it had times decay where it waited. */
void gf_csc_commit(struct gf_csc_step *s)
{
	struct gf_csc *c = s->csc;
	size_t i, n, first;

	for (i = 0; i < s->nchosen; i++) {
		if (!c->empty[s->chosen[i]])
			memset(c->history + gf_csc_chunk_first(c, s->chosen[i]),
			       0,
			       gf_csc_chunk_count(c, s->chosen[i]) *
				       sizeof(float));
		c->empty[s->chosen[i]] = true;
	}
	for (i = 0; i < s->nwaiting; i++) {
		n = gf_csc_chunk_count(c, s->waiting[i]);
		first = gf_csc_chunk_first(c, s->waiting[i]);
		gf_kernels()->axpby_f32(c->decay, s->data + first, 0,
					c->history + first, n);
		c->empty[s->waiting[i]] = false;
	}
}

void gf_csc_adopt(struct gf_csc_step *s)
{
	memcpy(s->csc->important, s->next, s->csc->nchunks * sizeof(*s->next));
}

/* The pool's elements that are important, from chosen chunk *i on: *place is
 * where they are in `packed`; 0: there are no more. */
static size_t next_range(const struct gf_csc_step *s, size_t *i, size_t *place,
			 size_t *first)
{
	const struct gf_csc *c = s->csc;
	size_t count = 0;

	if (*i == s->nchosen)
		return 0;
	*first = gf_csc_chunk_first(c, s->chosen[*i]);
	*place = *i * c->chunk_elems;
	do
		count += gf_csc_chunk_count(c, s->chosen[(*i)++]);
	while (*i < s->nchosen && s->chosen[*i] == s->chosen[*i - 1] + 1);
	return count;
}

size_t gf_csc_pieces(const struct gf_csc_step *s, const float *packed,
		     struct gf_optim_piece *pieces)
{
	size_t i = 0, place, n = 0;

	while ((pieces[n].count_elems =
			next_range(s, &i, &place, &pieces[n].first)))
		pieces[n++].grad = packed + place;
	return n;
}

/* --- checkpoints ---------------------------------------------------------- */

void gf_csc_state(struct gf_csc *c, struct gf_state *list)
{
	const struct gf_shape shape = {1, {c->layout->count_elems}};
	const size_t words = (c->depth - 1) * c->nchunks;

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("csc.history"), &shape,
		     c->history)
		->rule = GF_STATE_SUM;
	gf_state_add_words(list, GF_STATE_SHARED, "csc.important", "U64",
			   c->important, c->nchunks);
	if (!words)
		return;
	gf_state_add_words(list, GF_STATE_SHARED, "csc.flight.sent", "U64",
			   c->flight_sent, words);
	gf_state_add_words(list, GF_STATE_SHARED, "csc.flight.next", "U64",
			   c->flight_next, words);
}

void gf_csc_keep(const struct gf_csc_step *s, size_t age, float *values)
{
	const struct gf_csc *c = s->csc;
	uint64_t *sent = c->flight_sent + age * c->nchunks;
	uint64_t *next = c->flight_next + age * c->nchunks;
	size_t index = 0, place, first, n, i;

	memset(values, 0, c->layout->count_elems * sizeof(*values));
	memset(sent, 0, c->nchunks * sizeof(*sent));
	for (i = 0; i < s->nchosen; i++)
		sent[s->chosen[i]] = 1;
	while ((n = next_range(s, &index, &place, &first)))
		memcpy(values + first,
		       s->dense ? s->data + first : s->packed + place,
		       n * sizeof(*values));
	if (s->bad) /* it chose nothing */
		memset(next, 0, c->nchunks * sizeof(*next));
	else
		memcpy(next, s->next, c->nchunks * sizeof(*next));
}

void gf_csc_restore(struct gf_csc_step *s, size_t age, const float *values)
{
	const struct gf_csc *c = s->csc;
	const uint64_t *sent = c->flight_sent + age * c->nchunks;
	const uint64_t *next = c->flight_next + age * c->nchunks;
	size_t index = 0, place, first, n, i;

	s->nchosen = 0;
	for (i = 0; i < c->nchunks; i++)
		if (sent[i])
			s->chosen[s->nchosen++] = (uint32_t)i;
	s->nwaiting = c->nchunks - s->nchosen;
	s->dense = !s->nwaiting;
	while ((n = next_range(s, &index, &place, &first)))
		memcpy(s->dense ? s->data + first : s->packed + place,
		       values + first, n * sizeof(*values));
	memcpy(s->next, next, c->nchunks * sizeof(*next));
}
