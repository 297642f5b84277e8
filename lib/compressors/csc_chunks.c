/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks: which go out, how they are packed, and what stays of a step. */
#include "compressors/csc.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "transport/pages.h"

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

size_t gf_csc_place(const struct gf_csc *c, size_t i)
{
	return i * c->chunk_elems + i / c->pack_chunks * c->gap_elems;
}

size_t gf_csc_chunk_last_tensor(const struct gf_csc *c, size_t chunk)
{
	return gf_pool_tensor_at(c->layout,
				 gf_csc_chunk_first(c, chunk) + gf_csc_chunk_count(c, chunk) - 1);
}

size_t gf_csc_shared_elems(const struct gf_csc *c)
{
	return c->nchunks + GF_CSC_BAD_PARTS * (size_t)c->ranks;
}

static void init_step(struct gf_csc_step *s, struct gf_csc *c, float *data, size_t nmessages)
{
	size_t n = c->nchunks;

	s->csc = c;
	s->data = data;
	s->chosen = gf_xcalloc(n, sizeof(*s->chosen));
	s->waiting = gf_xcalloc(n, sizeof(*s->waiting));
	s->work = gf_xcalloc(n + 1, sizeof(*s->work));
	s->list = gf_xcalloc(n + nmessages + 1, sizeof(*s->list));
	s->first_chosen = gf_xcalloc(n + 1, sizeof(*s->first_chosen));
	s->norms = gf_xcalloc(n, sizeof(*s->norms));
	s->shared = gf_xcalloc(gf_csc_shared_elems(c), sizeof(*s->shared));
	s->next = gf_xcalloc(n, sizeof(*s->next));
	s->pick = gf_xcalloc(n, sizeof(*s->pick));
	s->scratch = gf_xcalloc(2 * n, sizeof(*s->scratch));
}

static void release_step(struct gf_csc_step *s)
{
	if (s->own_packed)
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
}

int gf_csc_init(struct gf_csc *c, const struct gf_select_env *env, struct gf_error *err)
{
	const struct gf_csc_params *p = env->plan->selection.params;
	const struct gf_pool *layout = &env->pools[0];

	*c = (struct gf_csc){
		.layout = layout,
		.params = p,
		.chunk_elems = p->chunk_elems,
		/* what waits decays as in the optimiser's velocity, and without one does not */
		.decay = !isnan(p->decay)    ? (float)p->decay
			 : env->momentum > 0 ? (float)env->momentum
					     : 1,
		.ranks = env->plan->ranks,
		.means = env->scaled,
		.depth = env->depth,
	};
	c->nchunks = (layout->count_elems - 1) / c->chunk_elems + 1;
	c->pack_chunks = env->plan->threshold_bytes / (c->chunk_elems * sizeof(float)) + 1;
	c->history = calloc(layout->count_elems, sizeof(*c->history));
	if (!c->history)
		return gf_error_set(err, -ENOMEM, "no memory for the history of %zu gradients",
				    layout->count_elems);
	/* After a resume nothing is known. */
	c->empty = gf_xcalloc(c->nchunks, sizeof(*c->empty));
	c->important = gf_xcalloc(c->nchunks, sizeof(*c->important));
	for (size_t i = 0; i < c->nchunks; i++)
		c->important[i] = 1;
	c->pieces = gf_xcalloc(c->nchunks + 1, sizeof(*c->pieces));
	c->flight_sent = gf_xcalloc(c->depth * c->nchunks, sizeof(*c->flight_sent));
	c->flight_next = gf_xcalloc(c->depth * c->nchunks, sizeof(*c->flight_next));
	c->steps = gf_xcalloc(c->depth, sizeof(*c->steps));
	for (size_t i = 0; i < c->depth; i++)
		init_step(&c->steps[i], c, env->pools[i].data, env->plan->nmessages);
	return 0;
}

void gf_csc_release(struct gf_csc *c)
{
	for (size_t i = 0; c->steps && i < c->depth; i++)
		release_step(&c->steps[i]);
	free(c->steps);
	free(c->history);
	free(c->empty);
	free(c->important);
	free(c->pieces);
	free(c->flight_sent);
	free(c->flight_next);
	free(c->sizes);
	memset(c, 0, sizeof(*c));
}

/* --- packed messages -------------------------------------------------------
 */

/* The plan's message that a tensor is in. */
static const struct gf_message *message_at(const struct gf_plan *plan, size_t tensor)
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

static void close_message(struct gf_csc_step *s, const struct gf_plan *plan, size_t last_chosen)
{
	const struct gf_csc *c = s->csc;
	struct gf_work *w = &s->work[s->nwork];
	size_t first = s->chosen[s->first_chosen[s->nwork]];

	w->first = gf_pool_tensor_at(c->layout, gf_csc_chunk_first(c, first));
	w->last = gf_csc_chunk_last_tensor(c, s->chosen[last_chosen]);
	w->how = message_at(plan, w->last);
	w->half = GF_COLL_WHOLE;
	w->simultaneous = w->how->mode == GF_MODE_SIMULTANEOUS;
	w->at_end = w->how->release == GF_RELEASE_BACKWARD_END;
	w->data = s->packed + gf_csc_place(c, s->first_chosen[s->nwork]);
	/* only the pool's last chunk is short */
	w->count_elems = (last_chosen - s->first_chosen[s->nwork]) * c->chunk_elems +
			 gf_csc_chunk_count(c, s->chosen[last_chosen]);
	s->first_chosen[++s->nwork] = last_chosen + 1;
}

static void cut(struct gf_csc_step *s, const struct gf_plan *plan)
{
	size_t waiting_bytes = 0, i;

	s->nwork = 0;
	for (i = 0; i < s->nchosen; i++) {
		waiting_bytes += gf_csc_chunk_count(s->csc, s->chosen[i]) * sizeof(float);
		if (waiting_bytes <= plan->threshold_bytes && i + 1 < s->nchosen)
			continue;
		close_message(s, plan, i);
		waiting_bytes = 0;
	}
}

static void divide(struct gf_csc_step *t, const struct gf_plan *plan, size_t number)
{
	const struct gf_csc *c = t->csc;

	t->number = number;
	t->nchosen = t->nwaiting = t->taken = t->nwork = 0;
	for (size_t i = 0; i < c->nchunks; i++) {
		if (c->important[i])
			t->chosen[t->nchosen++] = (uint32_t)i;
		else
			t->waiting[t->nwaiting++] = (uint32_t)i;
	}
	t->dense = !t->nwaiting;
	if (!t->dense)
		cut(t, plan);
}

void gf_csc_begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_work *from;

	divide(t, s->env.plan, step - 1);
	from = t->dense ? s->plan_work[slot] : t->work;
	t->nlist = t->dense ? s->nplan_work : t->nwork;
	memcpy(t->list, from, t->nlist * sizeof(*t->list));
	t->list[t->nlist++] = (struct gf_work){
		.last = pool->ntensors - 1,
		.after = GF_AFTER_ALL,
		.at_end = true,
		.how = &gf_select_own_message,
		.data = t->shared,
		.count_elems = gf_csc_shared_elems(t->csc),
		.name = "norms of chunks",
	};
	*list = t->list;
	*n = t->nlist;
}

/* The pool's elements that are important, from chosen chunk *i on: *place is where they are in
 * `packed`; 0: there are no more. */
static size_t next_range(const struct gf_csc_step *s, size_t *i, size_t *place, size_t *first)
{
	const struct gf_csc *c = s->csc;
	size_t count = 0;

	if (*i == s->nchosen)
		return 0;
	*first = gf_csc_chunk_first(c, s->chosen[*i]);
	*place = s->dense ? *first : gf_csc_place(c, *i);
	do
		count += gf_csc_chunk_count(c, s->chosen[(*i)++]);
	while (*i < s->nchosen && s->chosen[*i] == s->chosen[*i - 1] + 1 &&
	       (s->dense || !c->gap_elems || *i % c->pack_chunks));
	return count;
}

size_t gf_csc_pieces(const struct gf_csc_step *s)
{
	/* of a dense step the places are those in the pool */
	const float *sums = s->dense ? s->data : s->packed;
	struct gf_optim_piece *pieces = s->csc->pieces;
	size_t i = 0, place, n = 0;

	while ((pieces[n].count_elems = next_range(s, &i, &place, &pieces[n].first)))
		pieces[n++].grad = sums + place;
	return n;
}

void gf_csc_sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	out->pieces = t->csc->pieces;
	out->npieces = gf_csc_pieces(t);
}

void gf_csc_adopt(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	memcpy(t->csc->important, t->next, t->csc->nchunks * sizeof(*t->next));
}

/* --- the sizes that packed messages can have ------------------------------ */

/* Every step sends other chunks, but how many it sends is known: so an engine that has to prepare
 * for a size can do so before the first step. */

static void expect_size(struct gf_csc *c, const struct gf_message *how, size_t n)
{
	struct gf_work *w;

	if (!n)
		return;
	w = gf_array_push(&c->sizes, &c->nsizes, &c->sizes_capacity);
	*w = (struct gf_work){.how = how, .count_elems = n};
}

/* Expects `nchunks` chunks in one of the plan's messages, also with the pool's short chunk as the
 * last of them. */
static void expect_packs(struct gf_selector *s, const struct gf_message *how, size_t nchunks)
{
	struct gf_csc *c = gf_csc_of(s);
	const size_t whole = nchunks * c->chunk_elems;
	const size_t last = gf_csc_chunk_count(c, c->nchunks - 1);

	expect_size(c, how, whole);
	if (whole && last < c->chunk_elems)
		expect_size(c, how, whole - c->chunk_elems + last);
}

/* A message closes when more than the threshold waits (gf_csc_begin): all but the last of a step
 * have as many chunks. */
static void expect_count(struct gf_selector *s, size_t nchunks)
{
	const struct gf_plan *plan = s->env.plan;
	struct gf_csc *c = gf_csc_of(s);
	const size_t most = c->pack_chunks;

	if (nchunks == c->nchunks) /* the plan's own messages */
		return;
	for (size_t i = 0; i < plan->nmessages; i++) {
		if (nchunks >= most)
			expect_packs(s, &plan->messages[i], most);
		expect_packs(s, &plan->messages[i], nchunks % most);
	}
}

/* Expects the sizes of every step of the ramp. A ramp of more steps than chunks passes every count,
 * and may have any number of steps. */
static void expect_ramp(struct gf_selector *s)
{
	struct gf_csc *c = gf_csc_of(s);
	const size_t n = c->nchunks;
	const bool every = c->params->warmup_steps >= n;
	const size_t steps = every ? n - gf_csc_kept(c->params, n, c->params->warmup_steps + 1)
				   : c->params->warmup_steps + 1;
	size_t step, kept, before = n;

	for (step = 1; step <= steps; step++) {
		kept = every ? n - step : gf_csc_kept(c->params, n, step);
		if (kept != before)
			expect_count(s, kept);
		before = kept;
	}
	expect_size(c, &gf_select_own_message, gf_csc_shared_elems(c));
}

static size_t count_marks(const struct gf_csc *c, const uint64_t *marks)
{
	size_t count = 0, i;

	for (i = 0; i < c->nchunks; i++)
		count += marks[i] != 0;
	return count;
}

/* After a resume the next chunks are those of the run that wrote the checkpoint, which may have
 * kept other numbers of them. */
const struct gf_work *gf_csc_expect(struct gf_selector *s, size_t *n)
{
	struct gf_csc *c = gf_csc_of(s);
	size_t age, count;

	c->nsizes = 0;
	expect_ramp(s);
	expect_count(s, count_marks(c, c->important));
	for (age = 0; age + 1 < c->depth; age++) {
		count = count_marks(c, c->flight_next + age * c->nchunks);
		if (count)
			expect_count(s, count);
	}
	*n = c->nsizes;
	return c->sizes;
}

/* --- checkpoints ---------------------------------------------------------- */

void gf_csc_state(struct gf_selector *s, struct gf_state *list)
{
	struct gf_csc *c = gf_csc_of(s);
	const struct gf_shape shape = {1, {c->layout->count_elems}};
	const size_t words = (c->depth - 1) * c->nchunks;

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("csc.history"), &shape, c->history)->rule =
		GF_STATE_SUM;
	gf_state_add_words(list, GF_STATE_SHARED, "csc.important", "U64", c->important, c->nchunks);
	if (!words)
		return;
	gf_state_add_words(list, GF_STATE_SHARED, "csc.flight.sent", "U64", c->flight_sent, words);
	gf_state_add_words(list, GF_STATE_SHARED, "csc.flight.next", "U64", c->flight_next, words);
}

void gf_csc_note(const struct gf_csc_step *t, size_t age, bool bad)
{
	const struct gf_csc *c = t->csc;
	uint64_t *sent = c->flight_sent + age * c->nchunks;
	uint64_t *next = c->flight_next + age * c->nchunks;

	memset(sent, 0, c->nchunks * sizeof(*sent));
	for (size_t i = 0; i < t->nchosen; i++)
		sent[t->chosen[i]] = 1;
	if (bad) /* it chose nothing */
		memset(next, 0, c->nchunks * sizeof(*next));
	else
		memcpy(next, t->next, c->nchunks * sizeof(*next));
}

void gf_csc_recall(struct gf_csc_step *t, size_t age)
{
	const struct gf_csc *c = t->csc;
	const uint64_t *sent = c->flight_sent + age * c->nchunks;
	const uint64_t *next = c->flight_next + age * c->nchunks;

	t->nchosen = 0;
	for (size_t i = 0; i < c->nchunks; i++)
		if (sent[i])
			t->chosen[t->nchosen++] = (uint32_t)i;
	t->nwaiting = c->nchunks - t->nchosen;
	t->dense = !t->nwaiting;
	memcpy(t->next, next, c->nchunks * sizeof(*next));
}
