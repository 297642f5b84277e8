/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_ARRAY_H
#define GF_BASE_ARRAY_H

#include <stddef.h>

/*
 * Growing arrays held as three plain fields: items, count, capacity.
 *
 *	struct gf_step *step = gf_array_push(&s->steps, &s->nsteps,
 *					     &s->capacity, sizeof(*s->steps));
 *
 * Returns the new last item, zeroed; earlier pointers into the array may be dangling afterwards.
 * Aborts on exhaustion (base/heap.h).
 */
void *gf_array_push_raw(void *items_ptr, size_t *count, size_t *capacity, size_t item_bytes);

#define gf_array_push(items, count, capacity)                                                      \
	((__typeof__(*(items)))gf_array_push_raw((items), (count), (capacity), sizeof(**(items))))

/* The order of two values. Of several keys the first that differs decides: GF_BY(x->rank, y->rank)
 * ?: GF_BY(x->step, y->step). */
#define GF_BY(a, b) (((a) > (b)) - ((a) < (b)))
/* A static function for qsort, of items x and y of a type. */
#define GF_ORDER(name, type, order)                                                                \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		const __typeof__(type) *x = a, *y = b;                                             \
                                                                                                   \
		return (order);                                                                    \
	}

#define GF_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#endif
