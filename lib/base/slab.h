/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_SLAB_H
#define GF_BASE_SLAB_H

#include <stddef.h>

/*
 * Items of one size, used again and again: allocated many at a time, so that as long as their
 * number stays within reason nothing is allocated any more. Not for several threads.
 */
struct gf_slab {
	size_t item_bytes; /* a multiple of what the items must be aligned to */
	void *spare;       /* linked through their first bytes */
	void *chunks;
};

/* With the first items. */
void gf_slab_init(struct gf_slab *s, size_t item_bytes);
/* Zeroed when it is new; else as it was given back but for its first pointer's worth of bytes. */
void *gf_slab_take(struct gf_slab *s);
void gf_slab_give(struct gf_slab *s, void *item);
/* A spare item, as gf_slab_take; NULL if there is none. */
void *gf_slab_spare(struct gf_slab *s);
/* All items with it, given back or not. */
void gf_slab_release(struct gf_slab *s);

#endif
