/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

#define FIRST_SLOTS 1024

/* FNV-1a (Fowler, Noll and Vo). */
static size_t hash(const char *text, size_t length)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < length; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
	return (size_t)h;
}

/* The slot that holds the word, or the free one where it belongs. */
static size_t *slot_of(const struct gf_vocabulary *v, const char *text,
		       size_t length)
{
	size_t at = hash(text, length) & (v->nslots - 1);

	for (;; at = (at + 1) & (v->nslots - 1)) {
		const struct gf_word *w;

		if (!v->slots[at])
			return &v->slots[at];
		w = &v->words[v->slots[at] - 1];
		if (w->length == length && memcmp(w->text, text, length) == 0)
			return &v->slots[at];
	}
}

/* At most half full, so that searches stay short. */
static void grow(struct gf_vocabulary *v)
{
	size_t i;

	free(v->slots);
	v->nslots = v->nslots ? 2 * v->nslots : FIRST_SLOTS;
	v->slots = gf_xcalloc(v->nslots, sizeof(*v->slots));
	for (i = 0; i < v->nwords; i++)
		*slot_of(v, v->words[i].text, v->words[i].length) = i + 1;
}

static struct gf_word *enter(struct gf_vocabulary *v, const char *text,
			     size_t length)
{
	size_t *slot;

	if (2 * (v->nwords + 1) > v->nslots)
		grow(v);
	slot = slot_of(v, text, length);
	if (!*slot) {
		struct gf_word *w =
			gf_array_push(&v->words, &v->nwords, &v->capacity);

		*w = (struct gf_word){.text = text, .length = length};
		*slot = v->nwords;
	}
	return &v->words[*slot - 1];
}

void gf_vocabulary_release(struct gf_vocabulary *v)
{
	free(v->words);
	free(v->slots);
	memset(v, 0, sizeof(*v));
}

void gf_vocabulary_count(struct gf_vocabulary *v, const char *text,
			 size_t length)
{
	enter(v, text, length)->count++;
}

static int by_bytes(const struct gf_word *a, const struct gf_word *b)
{
	size_t shorter = a->length < b->length ? a->length : b->length;

	return memcmp(a->text, b->text, shorter) ?: GF_BY(a->length, b->length);
}

GF_ORDER(by_count, struct gf_word *,
	 GF_BY((*y)->count, (*x)->count) ?: by_bytes(*x, *y))

void gf_vocabulary_rank(struct gf_vocabulary *v, size_t limit)
{
	const char *const unknown = GF_VOCABULARY_UNKNOWN;
	struct gf_word **order, *rest;
	size_t i, at = 0;

	rest = enter(v, unknown, strlen(unknown));
	order = gf_xcalloc(v->nwords, sizeof(*order));
	for (i = 0; i < v->nwords; i++)
		order[i] = &v->words[i];
	qsort(order, v->nwords, sizeof(*order), by_count);
	/* the last place is kept for <unk> until it has had its turn */
	rest->number = -1;
	for (i = 0; i < v->nwords; i++) {
		size_t places = limit - (rest->number < 0);

		if (order[i] == rest ? at < limit : at < places)
			order[i]->number = (int32_t)at++;
		else
			order[i]->number = -1;
	}
	v->size = at;
	v->unknown = rest->number;
	for (i = 0; i < v->nwords; i++)
		if (v->words[i].number < 0)
			v->words[i].number = v->unknown;
	free(order);
}

int32_t gf_vocabulary_number(const struct gf_vocabulary *v, const char *text,
			     size_t length)
{
	size_t slot = v->nslots ? *slot_of(v, text, length) : 0;

	return slot ? v->words[slot - 1].number : v->unknown;
}
