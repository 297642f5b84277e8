/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sizes that packed messages can have. Every step sends other chunks, but
 * how many it sends is known: so an engine that has to prepare for a size can
 * do so before the first step.
 */
#include "base/array.h"
#include "select/csc.h"

static void expect_size(struct gf_csc *c, const struct gf_message *how,
			size_t n)
{
	struct gf_work *w;

	if (!n)
		return;
	w = gf_array_push(&c->sizes, &c->nsizes, &c->sizes_capacity);
	*w = (struct gf_work){.how = how, .count_elems = n};
}

/* Expects `nchunks` chunks in one of the plan's messages, also with the pool's
 * short chunk as the last of them. */
static void expect_packs(struct gf_selector *s, const struct gf_message *how,
			 size_t nchunks)
{
	struct gf_csc *c = gf_csc_of(s);
	const size_t whole = nchunks * c->chunk_elems;
	const size_t last = gf_csc_chunk_count(c, c->nchunks - 1);

	expect_size(c, how, whole);
	if (whole && last < c->chunk_elems)
		expect_size(c, how, whole - c->chunk_elems + last);
}

/* A message closes when more than the threshold waits (gf_csc_begin): all but
 * the last of a step have as many chunks. */
static void expect_count(struct gf_selector *s, size_t nchunks)
{
	const struct gf_plan *plan = s->env.plan;
	struct gf_csc *c = gf_csc_of(s);
	const size_t most = c->pack_chunks;
	size_t i;

	if (nchunks == c->nchunks) /* the plan's own messages */
		return;
	for (i = 0; i < plan->nmessages; i++) {
		if (nchunks >= most)
			expect_packs(s, &plan->messages[i], most);
		expect_packs(s, &plan->messages[i], nchunks % most);
	}
}

/* Expects the sizes of every step of the ramp. A ramp of more steps than chunks
 * passes every count, and may have any number of steps. */
static void expect_ramp(struct gf_selector *s)
{
	struct gf_csc *c = gf_csc_of(s);
	const size_t n = c->nchunks;
	const bool every = c->params->warmup_steps >= n;
	const size_t steps =
		every ? n - gf_csc_kept(c->params, n,
					c->params->warmup_steps + 1)
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

/* After a resume the next chunks are those of the run that wrote the
 * checkpoint, which may have kept other numbers of them. */
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
