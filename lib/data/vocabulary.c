/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/*
 * Words are what white space separates; the end of a line is the word <eos>. They are counted as
 * they are met, then numbered: the most frequent first, equal ones in the order of their bytes, the
 * same numbers on every machine.
 */
#define END_OF_LINE "<eos>"
#define UNKNOWN     "<unk>"
#define FIRST_SLOTS 1024

struct word {
	const char *text; /* borrowed */
	size_t length, count;
	int32_t number; /* once ranked */
};

struct vocabulary {
	struct word *words; /* in the order in which they were met */
	size_t nwords, capacity;
	size_t *slots; /* open addressing: 1 + index into words, or 0 */
	size_t nslots;
	size_t size; /* once ranked: how many have a number of their own */
	int32_t unknown;
};

/* FNV-1a (Fowler, Noll and Vo). */
static size_t hash(const char *text, size_t length)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
	return (size_t)h;
}

/* The slot that holds the word, or the free one where it belongs. */
static size_t *slot_of(const struct vocabulary *v, const char *text, size_t length)
{
	size_t at = hash(text, length) & (v->nslots - 1);

	for (;; at = (at + 1) & (v->nslots - 1)) {
		const struct word *w;

		if (!v->slots[at])
			return &v->slots[at];
		w = &v->words[v->slots[at] - 1];
		if (w->length == length && memcmp(w->text, text, length) == 0)
			return &v->slots[at];
	}
}

/* At most half full, so that searches stay short. */
static void grow(struct vocabulary *v)
{
	free(v->slots);
	v->nslots = v->nslots ? 2 * v->nslots : FIRST_SLOTS;
	v->slots = gf_xcalloc(v->nslots, sizeof(*v->slots));
	for (size_t i = 0; i < v->nwords; i++)
		*slot_of(v, v->words[i].text, v->words[i].length) = i + 1;
}

static struct word *enter(struct vocabulary *v, const char *text, size_t length)
{
	size_t *slot;

	if (2 * (v->nwords + 1) > v->nslots)
		grow(v);
	slot = slot_of(v, text, length);
	if (!*slot) {
		struct word *w = gf_array_push(&v->words, &v->nwords, &v->capacity);

		*w = (struct word){.text = text, .length = length};
		*slot = v->nwords;
	}
	return &v->words[*slot - 1];
}

static int by_bytes(const struct word *a, const struct word *b)
{
	size_t shorter = a->length < b->length ? a->length : b->length;

	return memcmp(a->text, b->text, shorter) ?: GF_BY(a->length, b->length);
}

GF_ORDER(by_count, struct word *, GF_BY((*y)->count, (*x)->count) ?: by_bytes(*x, *y))

/* Numbers the most frequent words from 0, at most `limit` (>= 1) in all, and "<unk>" among them,
 * which stands for every other one. */
static void rank(struct vocabulary *v, size_t limit)
{
	const char *const unknown = UNKNOWN;
	struct word **order, *rest;
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

/* v->unknown for what was never counted. */
static int32_t number_of(const struct vocabulary *v, const char *text, size_t length)
{
	size_t slot = v->nslots ? *slot_of(v, text, length) : 0;

	return slot ? v->words[slot - 1].number : v->unknown;
}

/* --- a text --------------------------------------------------------------- */

struct walk {
	const char *at, *end;
};

static int blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* The next word and its length; 0 at the end. */
static size_t next_word(struct walk *w, const char **word)
{
	while (w->at < w->end && blank(*w->at))
		w->at++;
	if (w->at == w->end)
		return 0;
	if (*w->at == '\n') {
		w->at++;
		*word = END_OF_LINE;
		return strlen(END_OF_LINE);
	}
	*word = w->at;
	while (w->at < w->end && !blank(*w->at) && *w->at != '\n')
		w->at++;
	return (size_t)(w->at - *word);
}

static struct walk walk_of(const struct gf_text_parts *t, size_t part)
{
	const char *bytes = (const char *)t->bytes[part];

	return (struct walk){bytes, bytes + t->size[part]};
}

int gf_words_number(const char *folder, struct gf_text_parts *t, size_t limit, size_t *vocabulary,
		    struct gf_error *err)
{
	struct walk w = walk_of(t, GF_PART_TRAIN);
	struct vocabulary v = {0};
	const char *word;
	size_t part, capacity, n;

	(void)folder;
	(void)err;
	while ((n = next_word(&w, &word)) > 0)
		enter(&v, word, n)->count++;
	rank(&v, limit);
	for (part = 0; part < GF_PARTS; part++) {
		capacity = 0;
		w = walk_of(t, part);
		while ((n = next_word(&w, &word)) > 0)
			*gf_array_push(&t->numbers[part], &t->length[part], &capacity) =
				number_of(&v, word, n);
	}
	*vocabulary = v.size;
	free(v.words);
	free(v.slots);
	return 0;
}
