/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/values.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* A leaf: left 0. Rounded: right is ROUNDED + its message's content. */
struct gf_term {
	uint32_t left, right;
	int twice;
};

#define ROUNDED (UINT32_C(1) << 31)

struct gf_message_content {
	struct gf_run *runs;
	size_t nruns, count_elems;
	uint64_t hash;
};

static uint64_t *members(const struct gf_terms *t, uint32_t term)
{
	return t->members + (size_t)term * t->words;
}

static uint32_t new_term(struct gf_terms *t, uint32_t left, uint32_t right)
{
	size_t before = t->capacity;
	struct gf_term *term = gf_array_push(&t->terms, &t->count, &t->capacity);
	uint32_t id = (uint32_t)(t->count - 1);

	*term = (struct gf_term){left, right, -1};
	if (t->capacity != before)
		t->members =
			gf_xreallocarray(t->members, t->capacity, t->words * sizeof(*t->members));
	memset(members(t, id), 0, t->words * sizeof(*t->members));
	return id;
}

void gf_terms_init(struct gf_terms *t, int ranks)
{
	*t = (struct gf_terms){
		.ranks = ranks,
		.words = ((size_t)ranks + 63) / 64,
		.table_size = 1024,
	};
	t->table = gf_xcalloc(t->table_size, sizeof(*t->table));
	new_term(t, 0, 0); /* GF_TERM_NOTHING */
	for (int r = 0; r < ranks; r++) {
		uint32_t id = new_term(t, 0, 0);

		members(t, id)[r / 64] |= UINT64_C(1) << r % 64;
	}
}

void gf_terms_release(struct gf_terms *t)
{
	for (size_t i = 0; i < t->ncontents; i++)
		free(t->contents[i].runs);
	free(t->contents);
	free(t->terms);
	free(t->members);
	free(t->table);
	*t = (struct gf_terms){0};
}

uint32_t gf_terms_rank(struct gf_terms *t, int rank)
{
	assert(rank >= 0 && rank < t->ranks);
	return (uint32_t)rank + 1;
}

uint32_t gf_terms_result(struct gf_terms *t, int count)
{
	uint32_t id = new_term(t, 0, 0);

	for (int r = 0; r < count; r++)
		members(t, id)[r / 64] |= UINT64_C(1) << r % 64;
	return id;
}

static size_t slot(const struct gf_terms *t, uint32_t left, uint32_t right)
{
	uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
	size_t i = (hash >> 20) & (t->table_size - 1);

	while (t->table[i] &&
	       (t->terms[t->table[i]].left != left || t->terms[t->table[i]].right != right))
		i = (i + 1) & (t->table_size - 1);
	return i;
}

static void grow_table(struct gf_terms *t)
{
	free(t->table);
	t->table_size *= 2;
	t->table = gf_xcalloc(t->table_size, sizeof(*t->table));
	for (uint32_t id = 1; id < t->count; id++)
		if (t->terms[id].left)
			t->table[slot(t, t->terms[id].left, t->terms[id].right)] = id;
}

uint32_t gf_terms_sum(struct gf_terms *t, uint32_t a, uint32_t b)
{
	uint32_t left = a < b ? a : b, right = a < b ? b : a, id;
	size_t i = slot(t, left, right), w;
	int twice;

	assert(left != GF_TERM_NOTHING);
	if (t->table[i])
		return t->table[i];
	id = new_term(t, left, right);
	t->table[i] = id;
	twice = t->terms[left].twice;
	if (twice < 0)
		twice = t->terms[right].twice;
	for (w = 0; w < t->words; w++) {
		uint64_t both = members(t, left)[w] & members(t, right)[w];

		if (both && twice < 0)
			twice = (int)w * 64 + __builtin_ctzll(both);
		members(t, id)[w] = members(t, left)[w] | members(t, right)[w];
	}
	t->terms[id].twice = twice;
	if (2 * t->count > t->table_size)
		grow_table(t);
	return id;
}

/* Is a message as a whole the result of rounding these same elements? */
static bool is_round(const struct gf_terms *t, const struct gf_run *runs, size_t nruns,
		     size_t count_elems)
{
	uint32_t content = t->terms[runs[0].term].right;
	const struct gf_message_content *c;

	for (size_t i = 0; i < nruns; i++)
		if (!t->terms[runs[i].term].left || content < ROUNDED ||
		    t->terms[runs[i].term].right != content)
			return false;
	c = &t->contents[content - ROUNDED];
	return c->count_elems == count_elems && c->runs[0].origin == runs[0].origin;
}

static uint64_t hash_runs(const struct gf_run *runs, size_t nruns)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < nruns; i++)
		hash = (hash ^ runs[i].first ^ runs[i].origin << 20 ^
			(uint64_t)runs[i].term << 40) *
		       0x9e3779b97f4a7c15u;
	return hash;
}

static bool same_runs(const struct gf_run *a, const struct gf_run *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].first != b[i].first || a[i].origin != b[i].origin ||
		    a[i].term != b[i].term)
			return false;
	return true;
}

/* The number of a message's content, equal contents having one. */
static uint32_t content_of(struct gf_terms *t, const struct gf_run *runs, size_t nruns,
			   size_t count_elems)
{
	uint64_t hash = hash_runs(runs, nruns);
	struct gf_message_content *c;

	for (size_t i = t->ncontents; i-- > 0;) {
		c = &t->contents[i];
		if (c->hash == hash && c->nruns == nruns && c->count_elems == count_elems &&
		    same_runs(c->runs, runs, nruns))
			return (uint32_t)i;
	}
	c = gf_array_push(&t->contents, &t->ncontents, &t->contents_capacity);
	*c = (struct gf_message_content){gf_xmemdup(runs, nruns * sizeof(*runs)), nruns,
					 count_elems, hash};
	return (uint32_t)(t->ncontents - 1);
}

void gf_terms_round(struct gf_terms *t, struct gf_run *runs, size_t nruns, size_t count_elems)
{
	uint32_t content, id, term;
	size_t i, k;

	if (is_round(t, runs, nruns, count_elems))
		return;
	content = ROUNDED + content_of(t, runs, nruns, count_elems);
	for (i = 0; i < nruns; i++) {
		term = runs[i].term;
		k = slot(t, term, content);
		if (!t->table[k]) {
			id = new_term(t, term, content);
			t->table[k] = id;
			t->terms[id].twice = t->terms[term].twice;
			memcpy(members(t, id), members(t, term), t->words * sizeof(*t->members));
			if (2 * t->count > t->table_size)
				grow_table(t);
			runs[i].term = id;
		} else {
			runs[i].term = t->table[k];
		}
	}
}

int gf_terms_twice(const struct gf_terms *t, uint32_t term)
{
	return t->terms[term].twice;
}

bool gf_terms_contains(const struct gf_terms *t, uint32_t term, int rank)
{
	return members(t, term)[rank / 64] >> rank % 64 & 1;
}
