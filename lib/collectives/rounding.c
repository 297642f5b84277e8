/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/rounding.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"

/* An element of a buffer: so many contributions, and what was rounded in them. */
struct value {
	double n, k, kk; /* k: encodings of all contributions together; kk: sum of their squares */
	struct gf_rounded coded, added;
	bool rounded; /* another encoding changes nothing */
};

/* What a rank has sent. */
struct parcel {
	struct parcel *next;
	int from;
	size_t count;
	struct value values[];
};
/* ... to one rank, in order. */
struct queue {
	struct parcel *first, **last;
};

struct walk {
	const struct gf_schedule *s; /* per rank */
	int ranks;
	struct value **buffers; /* per rank: DATA, then SCRATCH */
	size_t *next;           /* per rank: its next step */
	struct queue *queues;   /* per rank: on the way to it */
};

static void add_rounded(struct gf_rounded *to, double n)
{
	to->alone += n;
	to->pairs += n * (n - 1);
}

static void encode(struct value *v)
{
	if (v->rounded || !(v->n > 0))
		return;
	add_rounded(&v->coded, v->n);
	v->kk += 2 * v->k + v->n;
	v->k += v->n;
	v->rounded = true;
}

static void sum(struct value *to, const struct value *from)
{
	const bool adds = to->n > 0 && from->n > 0;

	to->n += from->n;
	to->k += from->k;
	to->kk += from->kk;
	to->coded.alone += from->coded.alone;
	to->coded.pairs += from->coded.pairs;
	to->added.alone += from->added.alone;
	to->added.pairs += from->added.pairs;
	if (adds)
		add_rounded(&to->added, to->n);
	to->rounded = false;
}

/* --- the walk ----------------------------------------------------------------- */

static struct value *at(const struct walk *w, int rank, struct gf_range range)
{
	return w->buffers[rank] + range.first +
	       (range.buffer == GF_BUFFER_SCRATCH ? w->s[rank].count_elems : 0);
}

static void send(struct walk *w, int rank, const struct gf_step *step)
{
	struct queue *q = &w->queues[step->peer];
	struct value *from = at(w, rank, step->range);
	struct parcel *p = gf_xmalloc(sizeof(*p) + step->range.count * sizeof(*from));

	for (size_t i = 0; w->s[rank].lossy && i < step->range.count; i++)
		encode(&from[i]);
	memcpy(p->values, from, step->range.count * sizeof(*from));
	p->from = rank;
	p->count = step->range.count;
	p->next = NULL;
	*(q->first ? q->last : &q->first) = p;
	q->last = &p->next;
}

/* false: it has not been sent yet. */
static bool receive(struct walk *w, int rank, const struct gf_step *step)
{
	struct queue *q = &w->queues[rank];
	struct value *to = at(w, rank, step->range);
	struct parcel **link = &q->first, *p;

	while (*link && (*link)->from != step->peer)
		link = &(*link)->next;
	p = *link;
	if (!p)
		return false;
	for (size_t i = 0; i < p->count; i++)
		if (step->op == GF_STEP_RECV)
			to[i] = p->values[i];
		else
			sum(&to[i], &p->values[i]);
	*link = p->next;
	if (!p->next)
		q->last = link;
	free(p);
	return true;
}

static bool take(struct walk *w, int rank, const struct gf_step *step)
{
	struct value *to = at(w, rank, step->range);
	const struct value *from = at(w, rank, step->from);

	switch (step->op) {
	case GF_STEP_SEND:
		send(w, rank, step);
		return true;
	case GF_STEP_RECV:
	case GF_STEP_RECV_REDUCE:
		return receive(w, rank, step);
	default:
		break;
	}
	for (size_t i = 0; i < step->range.count; i++)
		if (step->op == GF_STEP_COPY)
			to[i] = from[i];
		else if (step->op == GF_STEP_REDUCE)
			sum(&to[i], &from[i]);
		else if (step->op == GF_STEP_ROUND)
			encode(&to[i]);
	return true;
}

/* Each rank in program order, until it waits; a proved schedule ends so. */
static void run(struct walk *w)
{
	bool moved = true;
	int rank;

	while (moved)
		for (moved = false, rank = 0; rank < w->ranks; rank++)
			while (w->next[rank] < w->s[rank].nsteps &&
			       take(w, rank, &w->s[rank].steps[w->next[rank]])) {
				w->next[rank]++;
				moved = true;
			}
}

/* --- the result --------------------------------------------------------------- */

static void count(struct gf_rounding *r, const struct value *v, size_t elems)
{
	const double share = 1 / (double)elems;

	r->coded.alone += v->coded.alone * share;
	r->coded.pairs += v->coded.pairs * share;
	r->added.alone += v->added.alone * share;
	r->added.pairs += v->added.pairs * share;
	r->cut.alone += v->kk * share;
	r->cut.pairs += (v->k * v->k - v->kk) * share;
}

/* Rank 0 has all of the result, or each rank its own part, of which there may be copies. */
static void collect(const struct walk *w, enum gf_coll_half half, struct gf_rounding *r)
{
	const bool whole = half == GF_COLL_WHOLE;
	size_t elems = whole ? w->s[0].count_elems : 0;

	for (size_t i = 0; whole && i < elems; i++)
		count(r, &w->buffers[0][i], elems);
	for (int rank = 0; !whole && rank < w->ranks; rank++)
		for (size_t i = 0; i < w->s[rank].nowned; i++)
			elems += w->s[rank].owned[i].count;
	for (int rank = 0; !whole && rank < w->ranks; rank++)
		for (size_t i = 0; i < w->s[rank].nowned; i++)
			for (size_t k = 0; k < w->s[rank].owned[i].count; k++)
				count(r, at(w, rank, w->s[rank].owned[i]) + k, elems);
}

static void walk(struct gf_schedule *s, int ranks, enum gf_coll_half half, struct gf_rounding *r)
{
	struct walk w = {.s = s, .ranks = ranks};

	w.buffers = gf_xcalloc((size_t)ranks, sizeof(*w.buffers));
	w.next = gf_xcalloc((size_t)ranks, sizeof(*w.next));
	w.queues = gf_xcalloc((size_t)ranks, sizeof(*w.queues));
	for (int rank = 0; rank < ranks; rank++) {
		w.buffers[rank] = gf_xcalloc(s[rank].count_elems + s[rank].scratch_elems + 1,
					     sizeof(**w.buffers));
		for (size_t i = 0; rank < s[rank].contributors && i < s[rank].count_elems; i++)
			w.buffers[rank][i].n = 1;
	}
	run(&w);
	collect(&w, half, r);
	for (int rank = 0; rank < ranks; rank++)
		free(w.buffers[rank]);
	free(w.buffers);
	free(w.next);
	free(w.queues);
}

/* Fewer where each costs more. */
static size_t elems_for(size_t ranks)
{
	const size_t most = 16, fewer = most * 512 / ranks;

	return ranks < most ? ranks : fewer < most ? fewer : most;
}

int gf_rounding_of(const struct gf_algorithm *a, const struct gf_coll_args *args,
		   struct gf_rounding *r, struct gf_error *err)
{
	struct gf_coll_args of = *args;
	GF_FREED struct gf_schedule *s = NULL;
	int rank, built, rc = 0;

	*r = (struct gf_rounding){.ranks = args->ranks - args->servers};
	if (args->half == GF_COLL_ALL_GATHER || args->ranks < 2)
		return 0;
	if (args->ranks > GF_ROUNDING_RANKS_MOST)
		return gf_error_set(err, -ENOTSUP, "want at most %d ranks, got %d",
				    GF_ROUNDING_RANKS_MOST, args->ranks);
	of.count_elems = elems_for((size_t)args->ranks);
	of.owners = NULL;
	of.segment_elems = 0;
	of.calls = false;
	s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	for (built = 0; built < args->ranks && !rc; built += !rc)
		rc = gf_algorithm_schedule(a, &of, built, &s[built], err);
	if (!rc)
		walk(s, args->ranks, args->half, r);
	for (rank = 0; rank < built; rank++)
		gf_schedule_release(&s[rank]);
	return rc;
}

static double weigh(struct gf_rounded r, double correlation)
{
	return r.alone + r.pairs * correlation;
}

/* Rounded to nearest, a number of so many bits of fraction is off by that share of a normal value,
 * in the root of the mean square. */
static double nearest(int fraction_bits)
{
	return 0.2125 * ldexp(1, -fraction_bits);
}

double gf_rounding_rms(const struct gf_rounding *r, const struct gf_codec *codec,
		       enum gf_dtype sums, const struct gf_value_statistics *values)
{
	static const int bits[] = {[GF_F32] = 23, [GF_F64] = 52, [GF_F16] = 10, [GF_BF16] = 7};
	const double c = values ? values->correlation : 0, n = r->ranks;
	const double wider =
		values && values->peak > 0 && codec->peak > 0 ? values->peak / codec->peak : 1;
	const double off = codec->rms * wider, cut = codec->cut, adding = nearest(bits[sums]);

	return sqrt((weigh(r->coded, c) * off * off + weigh(r->cut, c) * cut * cut +
		     weigh(r->added, c) * adding * adding) /
		    (n + n * (n - 1) * c));
}
