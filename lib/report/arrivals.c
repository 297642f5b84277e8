/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "report/report_parts.h"

/* A rank's part of a message. */
struct part {
	const struct gf_import_job_message *of;
	size_t rank; /* an index */
};

/* A message that all traced ranks of its group have. */
struct met {
	enum gf_collective_kind kind;
	int ranks;
	size_t size_bytes;
	double time_s, waited_s;
};

struct mets {
	struct met *all;
	size_t count, capacity;
	/* Per rank and message: how long all others waited for it alone. */
	double **alone_s;
};

static double time_s(const struct part *p)
{
	return p->of->end_s - p->of->start_s;
}

/* Parts of one message together, that of the rank that came last first. */
GF_ORDER(by_message, struct part,
	 GF_BY(x->of->group, y->of->group)
	 ?: GF_BY(x->of->sequence, y->of->sequence)
	 ?: GF_BY(x->of->kind, y->of->kind)
	 ?: GF_BY(time_s(x), time_s(y)) ?: GF_BY(x->rank, y->rank))

GF_ORDER(by_size, struct met,
	 GF_BY(x->kind, y->kind) ?: GF_BY(x->ranks, y->ranks)
	 ?: GF_BY(x->size_bytes, y->size_bytes) ?: GF_BY(x->time_s, y->time_s))

/* How many parts the message has that begins here. */
static size_t parts_of(const struct part *p, const struct part *end)
{
	const struct part *q = p + 1;

	while (q < end && q->of->group == p->of->group &&
	       q->of->sequence == p->of->sequence && q->of->kind == p->of->kind)
		q++;
	return (size_t)(q - p);
}

/* Which message last had a part of each rank. */
struct stamps {
	size_t *of, last;
};

/* Does each part belong to another rank? */
static bool apart(const struct part *p, size_t n, struct stamps *s)
{
	size_t i;

	s->last++;
	for (i = 0; i < n && s->of[p[i].rank] < s->last; i++)
		s->of[p[i].rank] = s->last;
	return i == n;
}

/* Those of a group that are traced: as many as its best matched message has. */
static size_t traced_of(const struct part *p, const struct part *end,
			struct stamps *s)
{
	const struct part *at;
	size_t most = 1, n;

	for (at = p; at < end && at->of->group == p->of->group; at += n) {
		n = parts_of(at, end);
		if (n > most && apart(at, n, s))
			most = n;
	}
	return most;
}

static void meet(struct gf_report_whole *r, struct mets *m,
		 const struct part *p, size_t n)
{
	struct met *to = gf_array_push(&m->all, &m->count, &m->capacity);
	size_t i;

	to->kind = p->of->kind;
	to->ranks = p->of->ranks;
	to->size_bytes = p->of->size_bytes;
	to->time_s = time_s(p);
	for (i = 1; i < n; i++)
		to->waited_s += (time_s(&p[i]) - time_s(p)) / (double)(n - 1);
	if (n > 1) {
		r->ranks[p->rank].last++;
		m->alone_s[p->rank][p->of - r->job->ranks[p->rank].messages] =
			time_s(&p[1]) - time_s(p);
		r->matched++;
	}
}

static void sum_sizes(struct gf_report_whole *r, struct mets *m)
{
	double *times = gf_xcalloc(m->count + 1, sizeof(*times));
	size_t i, n;

	if (m->count)
		qsort(m->all, m->count, sizeof(*m->all), by_size);
	r->sizes = gf_xcalloc(m->count + 1, sizeof(*r->sizes));
	for (i = 0; i < m->count; i += n) {
		const struct met *first = &m->all[i];
		struct gf_report_size *to = &r->sizes[r->nsizes++];

		for (n = 0; i + n < m->count && first[n].kind == first->kind &&
			    first[n].ranks == first->ranks &&
			    first[n].size_bytes == first->size_bytes;
		     n++) {
			times[n] = first[n].time_s;
			to->waited_s += first[n].waited_s;
		}
		to->waited_s /= (double)n;
		to->kind = first->kind;
		to->ranks = first->ranks;
		to->size_bytes = first->size_bytes;
		to->count = n;
		to->times = gf_report_times(times, n);
		to->expected_s = NAN;
	}
	free(times);
}

/* By how much a rank is late in messages [first, end). Of messages for which
 * the others wait at the same time, they waited out none before they came to
 * the next: the longest wait counts. */
static double late_s(const struct gf_import_job_message *m,
		     const double *alone_s, size_t first, size_t end)
{
	double longest_s = 0, sum_s = 0, from_s = INFINITY;

	while (end-- > first) {
		if (!(alone_s[end] > 0))
			continue;
		if (m[end].start_s <= from_s) {
			sum_s += longest_s;
			longest_s = 0;
		}
		longest_s = fmax(longest_s, alone_s[end]);
		from_s = fmin(from_s, m[end].start_s - alone_s[end]);
	}
	return sum_s + longest_s;
}

/* Of the steps that all ranks have, or of messages where there are no steps. */
static void find_latest(struct gf_report_whole *r, const struct mets *m)
{
	double all_s = 0, whole_s = r->parts[GF_REPORT_STEP].median_s;
	size_t i, k;

	for (i = 0; i < r->nranks; i++) {
		const struct gf_import_job_rank *of = &r->job->ranks[i];
		double *to = &r->ranks[i].late_s;

		for (k = of->nsteps - r->nsteps; k < of->nsteps; k++)
			*to += late_s(of->messages, m->alone_s[i],
				      of->steps[k].first,
				      of->steps[k].first + of->steps[k].count) /
			       (double)r->nsteps;
		for (k = 0; k < of->nmessages && !r->nsteps; k++)
			*to += m->alone_s[i][k] / (double)r->matched;
		all_s += *to;
		if (*to > r->ranks[r->latest].late_s)
			r->latest = i;
	}
	for (i = 0; i < m->count && !r->nsteps; i++)
		whole_s = (i ? whole_s : 0) +
			  (m->all[i].time_s + m->all[i].waited_s) /
				  (double)m->count;
	r->late = r->nranks &&
		  r->ranks[r->latest].late_s > fmax(GF_REPORT_LATE * whole_s,
						    GF_REPORT_ALONE * all_s);
}

void gf_report_arrivals(struct gf_report_whole *r)
{
	const struct gf_import_job *job = r->job;
	struct part *parts, *at, *end;
	struct stamps stamps = {gf_xcalloc(job->nranks + 1, sizeof(*stamps.of)),
				0};
	struct mets m = {
		.alone_s = gf_xcalloc(job->nranks + 1, sizeof(*m.alone_s))};
	size_t i, k, n = 0, traced = 1;

	for (i = 0; i < job->nranks; i++) {
		n += job->ranks[i].nmessages;
		m.alone_s[i] = gf_xcalloc(job->ranks[i].nmessages + 1,
					  sizeof(**m.alone_s));
	}
	parts = at = gf_xcalloc(n + 1, sizeof(*parts));
	for (i = 0; i < job->nranks; i++)
		for (k = 0; k < job->ranks[i].nmessages; k++)
			*at++ = (struct part){&job->ranks[i].messages[k], i};
	end = at;
	qsort(parts, n, sizeof(*parts), by_message);
	for (at = parts; at < end; at += n) {
		n = parts_of(at, end);
		if (at == parts || at->of->group != at[-1].of->group)
			traced = traced_of(at, end, &stamps);
		if (n == traced && apart(at, n, &stamps))
			meet(r, &m, at, n);
		else
			r->unmatched++;
		if (at->of->ranks > r->of_ranks)
			r->of_ranks = at->of->ranks;
	}
	find_latest(r, &m);
	sum_sizes(r, &m);
	for (i = 0; i < job->nranks; i++)
		free(m.alone_s[i]);
	free(m.alone_s);
	free(stamps.of);
	free(parts);
	free(m.all);
}
