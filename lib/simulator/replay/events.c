/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/events.h"

#include <stdlib.h>

#include "base/array.h"

static bool before(const struct gf_event *a, const struct gf_event *b)
{
	return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

void gf_events_add(struct gf_events *q, struct gf_event event)
{
	size_t i;

	event.order = q->added++;
	gf_array_push(&q->heap, &q->count, &q->capacity);
	for (i = q->count - 1; i && before(&event, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = event;
}

const struct gf_event *gf_events_first(const struct gf_events *q)
{
	return q->count ? q->heap : NULL;
}

bool gf_events_take(struct gf_events *q, struct gf_event *event)
{
	struct gf_event last;
	size_t i = 0, child;

	if (!q->count)
		return false;
	*event = q->heap[0];
	last = q->heap[--q->count];
	while ((child = 2 * i + 1) < q->count) {
		if (child + 1 < q->count && before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}

void gf_events_release(struct gf_events *q)
{
	free(q->heap);
	*q = (struct gf_events){0};
}
