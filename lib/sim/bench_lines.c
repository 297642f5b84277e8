/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replayed cost as lines. As long as the order of events stays, every time in
 * a replay is a line over the message's size; so a cost is a chain of lines.
 * They are found by turns of tangents and of the points where these meet. This
 * is exact where the cost is the greatest of a few lines. It is not where
 * another order of events changes the shares of a link; the search then ends at
 * DEPTH.
 */
#include <math.h>

#include "base/array.h"
#include "sim/bench.h"

#define TOLERANCE 1e-3 /* of lines against replays */
#define FORM      1e-9 /* of closed forms: sums in another order */
#define FORM_AT   7    /* sizes */
#define MUCH      1e3
#define DEPTH     5

struct fit {
	struct gf_replay_bench *bench;
	struct gf_derived_line *lines;
	size_t nlines, capacity;
};

static double at(const struct gf_derived_line *l, double bytes)
{
	return l->startup_s + l->per_byte_s * bytes;
}

static bool agree(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fmax(a, b);
}

/* From its from_bytes on; a cost does not fall as messages grow. */
static void add_line(struct fit *f, struct gf_derived_line l)
{
	const struct gf_derived_line *before =
		f->nlines ? &f->lines[f->nlines - 1] : NULL;

	if (before && before->startup_s == l.startup_s &&
	    before->per_byte_s == l.per_byte_s)
		return;
	if (before)
		l.startup_s =
			fmax(l.startup_s, at(before, l.from_bytes) -
						  l.per_byte_s * l.from_bytes);
	*gf_array_push(&f->lines, &f->nlines, &f->capacity) = l;
}

static struct gf_derived_line through(double from, double from_s, double to,
				      double to_s)
{
	double slope = fmax(0, (to_s - from_s) / (to - from));

	/* no startup is negative */
	slope = fmin(slope, from_s / from);
	return (struct gf_derived_line){from, from_s - slope * from, slope};
}

/* The line that a message of that size follows. */
static struct gf_derived_line tangent(struct gf_replay_bench *b, double bytes)
{
	double longer = bytes * (1 + 0x1p-10);

	return through(bytes, gf_replay_bench_s(b, bytes, 1), longer,
		       gf_replay_bench_s(b, longer, 1));
}

/* Between the sizes where `low` and `high` are tangents. */
static void fit(struct fit *f, struct gf_derived_line low,
		struct gf_derived_line high, int depth)
{
	struct gf_derived_line middle;
	double from = low.from_bytes, to = high.from_bytes, meet;

	add_line(f, low);
	if (agree(at(&low, to), at(&high, to), TOLERANCE) &&
	    agree(at(&low, from), at(&high, from), TOLERANCE))
		return;
	meet = (low.startup_s - high.startup_s) /
	       (high.per_byte_s - low.per_byte_s);
	if (!(meet > from && meet < to))
		meet = sqrt(from * to);
	middle = tangent(f->bench, meet);
	if (agree(at(&low, meet), at(&middle, meet), TOLERANCE) &&
	    agree(at(&high, meet), at(&middle, meet), TOLERANCE)) {
		high.from_bytes = meet;
		add_line(f, high);
	} else if (depth) {
		fit(f, low, middle, depth - 1);
		fit(f, middle, high, depth - 1);
	} else {
		add_line(f, through(from, at(&low, from), to, at(&high, to)));
	}
}

static bool form_holds(struct gf_replay_bench *b, double least, double most)
{
	struct gf_coll_args args = b->args;
	double elems = (double)args.count_elems, bytes;
	int i;

	for (i = 0; i < FORM_AT; i++) {
		bytes = least * pow(most / least, i / (FORM_AT - 1.));
		args.elem_bytes = (size_t)fmin(ceil(bytes / elems), 0x1p40);
		bytes = (double)args.elem_bytes * elems;
		if (!agree(b->algorithm->cost_s(&args, b->net),
			   gf_replay_bench_s(b, bytes, 1), FORM))
			return false;
	}
	return true;
}

struct gf_derived_line *gf_replay_bench_lines(struct gf_replay_bench *b,
					      size_t *nlines)
{
	struct fit f = {.bench = b};
	double least = INFINITY, most = 0;
	struct gf_derived_line high;
	bool jumps = false;
	size_t i;

	for (i = 0; i < b->on.nlevels; i++) {
		double bytes = b->levels[i].latency_s *
			       b->levels[i].bandwidth_bytes_per_s;

		if (bytes > 0)
			least = fmin(least, bytes);
		most = fmax(most, bytes);
		jumps |= b->lines[i].nlarger > 0;
	}
	*nlines = 0;
	if (!(most > 0))
		least = most = 1;
	/* from startups alone to transfers alone */
	least /= MUCH;
	most *= MUCH * b->args.ranks;
	if (jumps || form_holds(b, least, most))
		return NULL;
	high = tangent(b, most);
	fit(&f, tangent(b, least), high, DEPTH);
	if (!agree(at(&f.lines[f.nlines - 1], most), at(&high, most),
		   TOLERANCE))
		add_line(&f, high);
	f.lines[0].from_bytes = 0;
	*nlines = f.nlines;
	return f.lines;
}
