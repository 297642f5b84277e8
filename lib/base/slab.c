/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slab.h"

#include <string.h>

#include "base/heap.h"

#define ITEMS 64

/* A chunk begins with where the next one is; items keep malloc's alignment. */
#define HEAD_BYTES 16

static void *linked(const void *item)
{
	void *next;

	memcpy(&next, item, sizeof(next));
	return next;
}

static void link_to(void *item, void *next)
{
	memcpy(item, &next, sizeof(next));
}

static void grow(struct gf_slab *s)
{
	char *chunk = gf_xcalloc(1, HEAD_BYTES + ITEMS * s->item_bytes);

	link_to(chunk, s->chunks);
	s->chunks = chunk;
	for (size_t i = ITEMS; i-- > 0;)
		gf_slab_give(s, chunk + HEAD_BYTES + i * s->item_bytes);
}

void gf_slab_init(struct gf_slab *s, size_t item_bytes)
{
	*s = (struct gf_slab){.item_bytes = item_bytes};
	grow(s);
}

void *gf_slab_spare(struct gf_slab *s)
{
	void *item = s->spare;

	if (item)
		s->spare = linked(item);
	return item;
}

void *gf_slab_take(struct gf_slab *s)
{
	if (!s->spare)
		grow(s);
	return gf_slab_spare(s);
}

void gf_slab_give(struct gf_slab *s, void *item)
{
	link_to(item, s->spare);
	s->spare = item;
}

void gf_slab_release(struct gf_slab *s)
{
	void *chunk, *next;

	for (chunk = s->chunks; chunk; chunk = next) {
		next = linked(chunk);
		free(chunk);
	}
	s->spare = s->chunks = NULL;
}
