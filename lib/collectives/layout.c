/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/layout.h"

#include <assert.h>

#include "base/array.h"
#include "base/heap.h"

GF_ORDER(by_first, struct gf_layout_piece, GF_BY(x->first, y->first) ?: GF_BY(x->count, y->count))

struct gf_layout gf_layout_even(int ranks, size_t count_elems)
{
	struct gf_layout_piece *pieces = gf_xcalloc((size_t)ranks, sizeof(*pieces));

	for (int rank = 0; rank < ranks; rank++) {
		struct gf_range part = gf_range_part(gf_data(0, count_elems), ranks, rank);

		pieces[rank] = (struct gf_layout_piece){rank, part.first, part.count};
	}
	return (struct gf_layout){pieces, (size_t)ranks};
}

int gf_layout_check(const struct gf_layout *layout, int ranks, size_t count_elems,
		    struct gf_error *err)
{
	GF_FREED struct gf_layout_piece *sorted = gf_xcalloc(layout->npieces, sizeof(*sorted));
	size_t i, end = 0;
	int rc = 0;

	for (i = 0; i < layout->npieces && !rc; i++) {
		sorted[i] = layout->pieces[i];
		if (sorted[i].rank < 0 || sorted[i].rank >= ranks)
			rc = gf_error_set(err, -EINVAL, "piece %zu: want rank 0 to %d, got %d", i,
					  ranks - 1, sorted[i].rank);
	}
	if (!rc && layout->npieces)
		qsort(sorted, layout->npieces, sizeof(*sorted), by_first);
	for (i = 0; i < layout->npieces && !rc; i++) {
		if (sorted[i].first != end || sorted[i].count > count_elems - end)
			rc = gf_error_set(err, -EINVAL,
					  "rank %d's piece: want one from element %zu on of %zu, "
					  "got [%zu..%zu)",
					  sorted[i].rank, end, count_elems, sorted[i].first,
					  sorted[i].first + sorted[i].count);
		end += sorted[i].count;
	}
	if (!rc && end != count_elems)
		rc = gf_error_set(err, -EINVAL, "want pieces of %zu elements together, got %zu",
				  count_elems, end);
	return rc;
}

size_t gf_layout_most(const struct gf_layout *layout, int ranks)
{
	size_t *counts = gf_xcalloc((size_t)ranks, sizeof(*counts)), most = 0, i;

	for (i = 0; i < layout->npieces; i++) {
		size_t *count = &counts[layout->pieces[i].rank];

		*count += layout->pieces[i].count;
		most = *count > most ? *count : most;
	}
	free(counts);
	return most;
}

/* --- one message's elements in the place of another's -------------------------- */

/* Elements [from, from + count) of the algorithm's message are [to, to + count) of the caller's. */
struct stretch {
	size_t from, to, count;
	int owner;
};

struct map {
	struct stretch *stretches; /* by `from` */
	size_t n;
	bool lossy;
};

GF_ORDER(by_from, struct stretch, GF_BY(x->from, y->from))

static void map_init(struct map *m, const struct gf_layout *layout, const struct gf_range *parts,
		     const struct gf_schedule *s)
{
	size_t *used = gf_xcalloc((size_t)s->ranks, sizeof(*used)), i;

	*m = (struct map){gf_xcalloc(layout->npieces, sizeof(*m->stretches)), 0, s->lossy};
	for (i = 0; i < layout->npieces; i++) {
		const struct gf_layout_piece *p = &layout->pieces[i];

		if (!p->count)
			continue;
		m->stretches[m->n++] = (struct stretch){parts[p->rank].first + used[p->rank],
							p->first, p->count, p->rank};
		used[p->rank] += p->count;
		assert(used[p->rank] <= parts[p->rank].count);
	}
	if (m->n)
		qsort(m->stretches, m->n, sizeof(*m->stretches), by_from);
	free(used);
}

/* The first stretch that ends beyond the place. */
static size_t stretch_at(const struct map *m, size_t place)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->stretches[middle].from + m->stretches[middle].count <= place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Appends the step once for each piece that it touches. Sender and receiver cut alike, since they
 * have the same map and name the same range. */
static void rewrite(const struct map *m, const struct gf_step *step, uint32_t after,
		    struct gf_schedule *s)
{
	const size_t first = step->range.first, end = first + step->range.count;
	struct gf_range piece = gf_data(0, 0);
	int owner = -1;

	assert(step->range.buffer == GF_BUFFER_DATA && !step->from.count && !gf_step_calls(step));
	for (size_t i = stretch_at(m, first); i < m->n && m->stretches[i].from < end; i++) {
		const struct stretch *at = &m->stretches[i];
		const size_t skipped = first > at->from ? first - at->from : 0;
		const size_t beyond = at->from + at->count > end ? at->from + at->count - end : 0;
		struct gf_range next = gf_data(at->to + skipped, at->count - skipped - beyond);

		if (next.first == piece.first + piece.count && (!m->lossy || owner == at->owner)) {
			piece.count += next.count;
			continue;
		}
		gf_schedule_repeat(s, step, piece, after);
		piece = next;
		owner = at->owner;
	}
	gf_schedule_repeat(s, step, piece, after);
}

void gf_layout_apply(const struct gf_layout *layout, const struct gf_range *parts,
		     size_t count_elems, int owner, struct gf_schedule *s)
{
	uint32_t *last = gf_xcalloc(s->nsteps + 1, sizeof(*last)); /* 1 + the last step so far */
	struct gf_schedule made;
	struct map m;

	map_init(&m, layout, parts, s);
	gf_schedule_init(&made, s->rank, s->ranks, count_elems);
	made.lossy = s->lossy;
	for (size_t i = 0; i < s->nsteps; i++) {
		rewrite(&m, &s->steps[i], last[s->steps[i].after], &made);
		last[i + 1] = (uint32_t)made.nsteps;
	}
	for (size_t i = 0; i < layout->npieces; i++)
		if (layout->pieces[i].rank == owner)
			gf_schedule_own(&made,
					gf_data(layout->pieces[i].first, layout->pieces[i].count));
	free(m.stretches);
	free(last);
	gf_schedule_release(s);
	*s = made;
}
