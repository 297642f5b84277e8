/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/exec/pace.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"

/* The kernel keeps about so many bytes moving by itself, both ways, while nobody calls it: a
 * socket's buffers begin at about that size and grow. Runs with longer messages are not left alone
 * at all; over TCP such a message waits for an answer before it comes. */
#define SOCKET_BYTES ((double)(256 << 10))
/* When all arrivals that may pass unseen are overdue, this share of their time is free
 * nevertheless. Some rank is late, and a long pipeline can wait a little more. */
#define OVERDUE 0.125
/* Arrivals are not so regular that a shorter pipeline could be left alone; one less is enough if a
 * rank that stays awake takes processor time from others of its host. */
#define DEEP        4
#define DEEP_BESIDE 3
/* Fewer arrivals in a run say little about its pace. */
#define ENOUGH 8

static bool is_counted(const struct gf_step *step, const bool *counts, bool send)
{
	bool sends = step->op == GF_STEP_SEND;
	bool receives = step->op == GF_STEP_RECV || step->op == GF_STEP_RECV_REDUCE;

	return (send ? sends : receives) && counts[step->peer];
}

/* Fills until[m] with its first value: the number of arrivals before which the m-th is wanted.
 * Returns how many elements arrive. */
static size_t find_wanted(struct gf_pace *p, const struct gf_schedule *s, const bool *counts,
			  uint32_t *last)
{
	uint32_t sends = 0, m = 0, latest, k;
	size_t elems = 0, i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		for (latest = 0, k = 0; k < step->ndeps; k++)
			if (last[s->deps[step->first_dep + k]] > latest)
				latest = last[s->deps[step->first_dep + k]];
		if (is_counted(step, counts, false)) {
			elems += step->range.count;
			latest = ++m > latest ? m : latest;
		} else if (is_counted(step, counts, true)) {
			k = sends > latest ? sends : latest;
			if (latest && k < p->until[latest - 1])
				p->until[latest - 1] = k;
			sends++;
		}
		last[i] = latest;
	}
	return elems;
}

static uint32_t count_arrivals(const struct gf_schedule *s, const bool *counts)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->nsteps; i++)
		n += is_counted(&s->steps[i], counts, false);
	return n;
}

void gf_pace_init(struct gf_pace *p, const struct gf_schedule *s, const bool *counts,
		  double elem_bytes, bool beside_ranks)
{
	uint32_t n = count_arrivals(s, counts), m, *last;
	double most, bytes;

	memset(p, 0, sizeof(*p));
	if (!n)
		return;
	p->until = gf_xcalloc(n, sizeof(*p->until));
	for (m = 0; m < n; m++)
		p->until[m] = n;
	last = gf_xcalloc(s->nsteps, sizeof(*last));
	bytes = (double)find_wanted(p, s, counts, last) * elem_bytes / n;
	free(last);
	for (m = n - 1; m-- > 0;)
		if (p->until[m + 1] < p->until[m])
			p->until[m] = p->until[m + 1];
	most = SOCKET_BYTES / fmax(bytes, 1);
	p->arrivals = n;
	p->deep = beside_ranks ? DEEP_BESIDE : DEEP;
	p->most = most < 2 || n < p->deep ? 0 : (uint32_t)fmin(most, n);
}

void gf_pace_release(struct gf_pace *p)
{
	free(p->until);
	memset(p, 0, sizeof(*p));
}

void gf_pace_begin(struct gf_pace *p, double now_s)
{
	p->seen = p->first_seen = 0;
	p->last_s = now_s;
}

void gf_pace_arrived(struct gf_pace *p, uint32_t n, double now_s)
{
	p->seen += n;
	p->last_s = now_s;
	if (p->first_seen)
		return;
	p->first_seen = n;
	p->first_s = now_s;
}

static double this_run_s(const struct gf_pace *p)
{
	return (p->last_s - p->first_s) / (p->seen - p->first_seen);
}

void gf_pace_end(struct gf_pace *p)
{
	double now_s;

	if (p->seen == p->first_seen)
		return;
	now_s = this_run_s(p);
	p->each_s = p->each_s > 0 ? (p->each_s + now_s) / 2 : now_s;
}

/* Arrivals that may pass unseen. */
static uint32_t ahead_of(const struct gf_pace *p)
{
	uint32_t ahead = p->until[p->seen] - p->seen;

	return ahead < p->most ? ahead : p->most;
}

bool gf_pace_may_rest(const struct gf_pace *p)
{
	return p->seen < p->arrivals && ahead_of(p) >= p->deep;
}

double gf_pace_free_s(const struct gf_pace *p, double now_s)
{
	double each_s = p->each_s, free_s;
	uint32_t ahead;

	if (!gf_pace_may_rest(p))
		return 0;
	/* the lesser: a run may have stood still for a while */
	if (p->seen - p->first_seen >= ENOUGH)
		each_s = each_s > 0 ? fmin(each_s, this_run_s(p)) : this_run_s(p);
	ahead = ahead_of(p);
	free_s = p->last_s + ahead * each_s - now_s;
	return fmax(free_s, ahead * each_s * OVERDUE);
}
