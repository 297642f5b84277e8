/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "lane/program_parts.h"

/* Kernels want their vectors aligned. */
#define ALIGN 256

void gf_lane_wire_release(struct gf_lane_wire *w)
{
	free(w->places);
	memset(w, 0, sizeof(*w));
}

/* The first gap that is large enough. */
size_t gf_lane_wire_take(struct gf_lane_wire *w, struct gf_lane_place place,
			 size_t size_bytes)
{
	size_t i;

	size_bytes += ALIGN - 1;
	size_bytes -= size_bytes % ALIGN;
	place.at = 0;
	for (i = 0; i < w->nplaces; i++) {
		if (w->places[i].at - place.at >= size_bytes)
			break;
		place.at = w->places[i].end;
	}
	place.end = place.at + size_bytes;
	gf_array_push(&w->places, &w->nplaces, &w->capacity);
	memmove(&w->places[i + 1], &w->places[i],
		(w->nplaces - 1 - i) * sizeof(place));
	w->places[i] = place;
	if (place.end > w->most_bytes)
		w->most_bytes = place.end;
	return place.at;
}

const struct gf_lane_place *gf_lane_wire_find(const struct gf_lane_wire *w,
					      struct gf_range range,
					      uint32_t step)
{
	size_t i;

	for (i = 0; i < w->nplaces; i++) {
		const struct gf_lane_place *p = &w->places[i];

		if (p->range.count && gf_range_same(p->range, range) &&
		    p->until >= step)
			return p;
	}
	return NULL;
}

void gf_lane_wire_pass(struct gf_lane_wire *w, uint32_t step)
{
	size_t i, kept = 0;

	for (i = 0; i < w->nplaces; i++)
		if (w->places[i].until >= step)
			w->places[kept++] = w->places[i];
	w->nplaces = kept;
}
