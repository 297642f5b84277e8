/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounding of sums over 512 ranks, as it is predicted by variances: the same schedules walked
 * with random numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "collectives/codecs/encode.h"
#include "collectives/rounding.h"
#include "collectives/way.h"
#include "test.h"

#define RANKS 512
#define ELEMS ((size_t)RANKS)

struct parcel {
	int from;
	size_t count;
	float *values;
};
struct inbox {
	struct parcel *parcels; /* in order */
	size_t count, capacity;
};
struct walk {
	struct gf_schedule s[RANKS];
	float *buffers[RANKS];
	struct inbox inbox[RANKS];
	const struct gf_codec *codec;
	bool lossy; /* values are encoded on their way; else sums are of the codec's type */
};

static float *at(struct walk *w, int rank, struct gf_range r)
{
	return w->buffers[rank] + r.first +
	       (r.buffer == GF_BUFFER_SCRATCH ? w->s[rank].count_elems : 0);
}

static void add(const struct walk *w, float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
	if (!w->lossy)
		gf_codec_round(w->codec, to, n);
}

static void send(struct walk *w, int rank, const struct gf_step *step)
{
	struct inbox *to = &w->inbox[step->peer];
	const size_t n = step->range.count;
	float *values = at(w, rank, step->range);
	struct parcel *p = gf_array_push(&to->parcels, &to->count, &to->capacity);

	if (w->lossy)
		gf_codec_round(w->codec, values, n);
	*p = (struct parcel){rank, n, gf_xmemdup(values, n * sizeof(*values))};
}

/* false: it has not been sent yet. */
static bool receive(struct walk *w, int rank, const struct gf_step *step)
{
	struct inbox *in = &w->inbox[rank];
	float *to = at(w, rank, step->range);
	size_t i = 0;

	while (i < in->count && in->parcels[i].from != step->peer)
		i++;
	if (i == in->count)
		return false;
	if (step->op == GF_STEP_RECV)
		memcpy(to, in->parcels[i].values, in->parcels[i].count * sizeof(*to));
	else
		add(w, to, in->parcels[i].values, in->parcels[i].count);
	free(in->parcels[i].values);
	in->count--;
	memmove(&in->parcels[i], &in->parcels[i + 1], (in->count - i) * sizeof(*in->parcels));
	return true;
}

static bool take(struct walk *w, int rank, const struct gf_step *step)
{
	const size_t n = step->range.count;
	float *to = at(w, rank, step->range);

	if (step->op == GF_STEP_SEND)
		send(w, rank, step);
	else if (step->op == GF_STEP_RECV || step->op == GF_STEP_RECV_REDUCE)
		return receive(w, rank, step);
	else if (step->op == GF_STEP_COPY)
		memcpy(to, at(w, rank, step->from), n * sizeof(*to));
	else if (step->op == GF_STEP_REDUCE)
		add(w, to, at(w, rank, step->from), n);
	else if (step->op == GF_STEP_ROUND && w->lossy)
		gf_codec_round(w->codec, to, n);
	return true;
}

static void run(struct walk *w)
{
	size_t next[RANKS] = {0};
	bool moved = true;

	while (moved) {
		moved = false;
		for (int r = 0; r < RANKS; r++)
			while (next[r] < w->s[r].nsteps && take(w, r, &w->s[r].steps[next[r]])) {
				next[r]++;
				moved = true;
			}
	}
	for (int r = 0; r < RANKS; r++)
		EXPECT(next[r] == w->s[r].nsteps && !w->inbox[r].count, "rank %d has not ended", r);
}

/* Normal values; exact: their sums. */
static void fill(struct walk *w, double *exact)
{
	for (int r = 0; r < RANKS; r++) {
		const size_t n = w->s[r].count_elems + w->s[r].scratch_elems;
		struct gf_rng rng;

		gf_rng_init(&rng, 7, (uint64_t)r);
		w->buffers[r] = gf_xcalloc(n + 1, sizeof(**w->buffers));
		for (size_t i = 0; i < ELEMS; i++)
			w->buffers[r][i] = (float)gf_rng_normal(&rng);
		if (!w->lossy)
			gf_codec_round(w->codec, w->buffers[r], ELEMS);
		for (size_t i = 0; i < ELEMS; i++)
			exact[i] += w->buffers[r][i];
	}
}

static struct gf_coll_args args_of(const struct gf_algorithm *a, struct gf_way *way, bool lossy)
{
	struct gf_coll_args args;

	*way = (struct gf_way){.algorithm = a};
	if (gf_way_takes_factors(a)) {
		way->nfactors = 2;
		way->factors[0] = 8;
		way->factors[1] = RANKS / 8;
	}
	args = gf_way_args(way, RANKS);
	args.count_elems = ELEMS;
	args.elem_bytes = sizeof(float);
	args.lossy = lossy;
	return args;
}

static void compare(const struct gf_algorithm *a, const struct gf_codec *codec, bool lossy)
{
	struct gf_way way;
	const struct gf_coll_args args = args_of(a, &way, lossy);
	struct walk *w = gf_xcalloc(1, sizeof(*w));
	double *exact = gf_xcalloc(ELEMS, sizeof(*exact)), errors = 0, squares = 0, rms, predicted;
	struct gf_error err = {""};
	struct gf_rounding rounding;

	w->codec = codec;
	w->lossy = lossy;
	for (int r = 0; r < RANKS; r++)
		EXPECT(gf_algorithm_schedule(a, &args, r, &w->s[r], &err) == 0, "%s", err.text);
	fill(w, exact);
	run(w);
	for (size_t i = 0; i < ELEMS; i++) {
		errors += (w->buffers[0][i] - exact[i]) * (w->buffers[0][i] - exact[i]);
		squares += exact[i] * exact[i];
	}
	rms = sqrt(errors / squares);
	EXPECT(gf_rounding_of(a, &args, &rounding, &err) == 0, "%s", err.text);
	predicted = gf_rounding_rms(&rounding, codec, lossy ? GF_F32 : codec->dtype, NULL);
	/* errors as large as that do not just add up */
	EXPECT(predicted > 0.3 ? rms > 0.3
			       : fabs(rms / predicted - 1) < (codec->cut > codec->rms ? 0.25 : 0.2),
	       "%s, %s %s: %g, predicted %g", a->name, lossy ? "codec" : "sums in", codec->name,
	       rms, predicted);
	for (int r = 0; r < RANKS; r++) {
		gf_schedule_release(&w->s[r]);
		free(w->buffers[r]);
		free(w->inbox[r].parcels);
	}
	free(exact);
	free(w);
}

/* An element of a reduce-scatter counts once, however many copies of it are left: its sum has the
 * additions of an all-reduce, and no more encodings. */
static void copies(const struct gf_algorithm *a)
{
	struct gf_way way = {.algorithm = a, .nfactors = 3, .factors = {4, 2, 2}};
	struct gf_coll_args args = gf_way_args(&way, 16);
	struct gf_rounding whole, part;
	struct gf_error err = {""};

	args.count_elems = 16;
	args.elem_bytes = sizeof(float);
	args.lossy = true;
	EXPECT(gf_rounding_of(a, &args, &whole, &err) == 0, "%s", err.text);
	args.half = GF_COLL_REDUCE_SCATTER;
	for (args.copies = 1; args.copies <= 4; args.copies *= 2) {
		EXPECT(gf_rounding_of(a, &args, &part, &err) == 0, "%s", err.text);
		EXPECT(fabs(part.added.alone / whole.added.alone - 1) < 0.1,
		       "%s, %d copies: additions %g, of the whole %g", a->name, args.copies,
		       part.added.alone, whole.added.alone);
		EXPECT(part.coded.alone > 0.5 * whole.coded.alone &&
			       part.coded.alone <= whole.coded.alone,
		       "%s, %d copies: encodings %g, of the whole %g", a->name, args.copies,
		       part.coded.alone, whole.coded.alone);
	}
}

int main(void)
{
	const struct gf_algorithm *a;
	const struct gf_codec *c;
	size_t i;

	for (i = 0; (a = gf_algorithms[i]); i++)
		if (a->traits & GF_ALGORITHM_COPIES)
			copies(a);
	for (i = 0; (a = gf_algorithms[i]); i++) {
		struct gf_way way;
		const struct gf_coll_args args = args_of(a, &way, true);
		struct gf_error err = {""};

		if (!a->build || !test_tries(i, 2) || gf_algorithm_can(a, &args, &err))
			continue;
		/* blocks of a part are smaller than those of a message, and have smaller scales */
		for (c = gf_codecs; c->name; c++) {
			if (c->rms > 0 && !c->block_elems)
				compare(a, c, true);
			if (c->adds && c->rms > 0)
				compare(a, c, false);
		}
	}
	return TEST_END();
}
