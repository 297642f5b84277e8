/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/event_ring.h"

#include <assert.h>
#include <string.h>

#include "base/heap.h"

#define WARMUP_STEPS 10

void gf_timeline_init(struct gf_timeline *t, size_t ntensors, size_t nmessages)
{
	memset(t, 0, sizeof(*t));
	t->ntensors = ntensors;
	t->nmessages = nmessages;
	t->ring = gf_xcalloc(GF_TIMELINE_STEPS, sizeof(*t->ring));
	for (size_t i = 0; i < GF_TIMELINE_STEPS; i++) {
		t->ring[i].gradient_s = gf_xcalloc(ntensors, sizeof(double));
		t->ring[i].late = gf_xcalloc(2 * nmessages, sizeof(*t->ring[i].late));
		t->ring[i].messages = gf_xcalloc(3 * nmessages, sizeof(*t->ring[i].messages));
	}
}

void gf_timeline_release(struct gf_timeline *t)
{
	if (!t || !t->ring)
		return;
	for (size_t i = 0; i < GF_TIMELINE_STEPS; i++) {
		free(t->ring[i].gradient_s);
		free(t->ring[i].late);
		free(t->ring[i].messages);
	}
	free(t->ring);
	memset(t, 0, sizeof(*t));
}

struct gf_step_times *gf_timeline_next(struct gf_timeline *t, size_t step)
{
	struct gf_step_times *slot = &t->ring[t->nsteps++ % GF_TIMELINE_STEPS];

	slot->step = step;
	memset(slot->late, 0, 2 * t->nmessages * sizeof(*slot->late));
	return slot;
}

void gf_timeline_close(struct gf_timeline *t)
{
	const struct gf_step_times *s = gf_timeline_last(t);

	t->parts.load_s += s->load_s;
	t->parts.compute_s += s->backward_s - s->start_s - s->late_s - s->later_s;
	t->parts.update_s += s->end_s - s->exchanged_s - s->outer_s;
	t->parts.exposed_s += s->exchanged_s - s->backward_s + s->late_s + s->later_s + s->outer_s;
	t->parts.handling_s += s->handling_s;
}

const struct gf_step_times *gf_timeline_last(const struct gf_timeline *t)
{
	assert(t->nsteps);
	return &t->ring[(t->nsteps - 1) % GF_TIMELINE_STEPS];
}

size_t gf_timeline_count(const struct gf_timeline *t)
{
	return t->nsteps < GF_TIMELINE_STEPS ? t->nsteps : GF_TIMELINE_STEPS;
}

const struct gf_step_times *gf_timeline_at(const struct gf_timeline *t, size_t i)
{
	size_t oldest = t->nsteps - gf_timeline_count(t);

	assert(i < gf_timeline_count(t));
	return &t->ring[(oldest + i) % GF_TIMELINE_STEPS];
}

size_t gf_timeline_settled(const struct gf_timeline *t)
{
	size_t oldest = t->nsteps - gf_timeline_count(t);
	/* a run too short for a warm-up loses its first half to it */
	size_t warmup = t->nsteps >= 2 * WARMUP_STEPS ? WARMUP_STEPS : t->nsteps / 2;

	return warmup > oldest ? warmup - oldest : 0;
}
