/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "collectives/algorithm.h"
#include "runtime/exec/pace.h"
#include "test.h"
#include "transport/backoff.h"

enum { RANKS = 4, PARTS = 8, SEGMENT = 8192, ROUNDS = 2 * (RANKS - 1), LESSONS = 12 };
static const double kib = 1024, tolerance = 1e-9;

/* A ring whose parts have PARTS segments of SEGMENT elements. */
static void make_ring(struct gf_schedule *s)
{
	struct gf_coll_args args = {
		.ranks = RANKS,
		.count_elems = RANKS * PARTS * SEGMENT,
		.elem_bytes = 4,
		.segment_elems = SEGMENT,
	};
	struct gf_error err = {""};

	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, 1, s, &err), "%s",
	       err.text);
}

static void make_pace(struct gf_pace *p, double segment_bytes, bool beside_ranks)
{
	static const bool all[RANKS] = {true, true, true, true};
	struct gf_schedule s = {0};

	make_ring(&s);
	gf_pace_init(p, &s, all, segment_bytes / SEGMENT, beside_ranks);
	gf_schedule_release(&s);
}

static void test_until(void)
{
	struct gf_pace p;
	uint32_t m, want;

	make_pace(&p, 32 * kib, false);
	EXPECT(p.arrivals == ROUNDS * PARTS, "%u arrivals", p.arrivals);
	for (m = 0; m < p.arrivals; m++) {
		want = m + PARTS < p.arrivals ? m + PARTS : p.arrivals;
		EXPECT(p.until[m] == want, "after %u: want %u, got %u", m, want, p.until[m]);
	}
	gf_pace_release(&p);
}

/* Nobody counts: nothing is known, nothing is free. */
static void test_none(void)
{
	static const bool none[RANKS] = {false};
	struct gf_schedule s = {0};
	struct gf_pace p;

	make_ring(&s);
	gf_pace_init(&p, &s, none, 4, false);
	gf_pace_begin(&p, 0);
	EXPECT(p.arrivals == 0 && gf_pace_free_s(&p, 1) == 0, "%u arrivals", p.arrivals);
	gf_pace_end(&p);
	gf_pace_release(&p);
	gf_schedule_release(&s);
}

/* One run, an arrival a second. */
static void learn(struct gf_pace *p)
{
	uint32_t m;

	gf_pace_begin(p, 0);
	for (m = 0; m < p->arrivals; m++)
		gf_pace_arrived(p, 1, m + 1);
	gf_pace_end(p);
	gf_pace_begin(p, 0);
}

static void test_free(void)
{
	static const struct {
		double segment_bytes, now_s, free_s;
		uint32_t seen;
		bool beside_ranks;
	} cases[] = {
		{32 * kib, 0, 8, 0},       {32 * kib, 5, 3, 0},        {32 * kib, 7.9, 1, 0},
		{32 * kib, 90, 1, 0}, /* overdue */
		{32 * kib, 0, 8, 16},      {32 * kib, 0, 4, 44},       {32 * kib, 0, 0, 45},
		{32 * kib, 0, 0, 48},      {64 * kib, 0, 4, 0},        {200 * kib, 0, 0, 0},
		{200 * kib, 0, 0, 16},     {32 * kib, 0, 3, 45, true}, {32 * kib, 0, 0, 46, true},
		{64 * kib, 0, 4, 0, true},
	};
	struct gf_pace p;
	double free_s;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		make_pace(&p, cases[i].segment_bytes, cases[i].beside_ranks);
		gf_pace_begin(&p, 0);
		EXPECT(gf_pace_free_s(&p, 0) == 0, "nothing is known yet");
		learn(&p);
		if (cases[i].seen)
			gf_pace_arrived(&p, cases[i].seen, 0);
		free_s = gf_pace_free_s(&p, cases[i].now_s);
		EXPECT(free_s > cases[i].free_s - tolerance && free_s < cases[i].free_s + tolerance,
		       "case %zu: want %g s, got %g s", i, cases[i].free_s, free_s);
		gf_pace_release(&p);
	}
}

/*
 * A ring whose ranks all do the same: segment k goes out when the link is free and segment k -
 * PARTS was seen, and is with the next rank each_s later. A rank that may not sleep sees everything
 * at once; one that sleeps wakes late_s late. Returns when the last one is seen.
 */
static double simulate(struct gf_pace *p, struct gf_backoff *backoff, double each_s, double late_s,
		       unsigned *looks)
{
	double arrives[ROUNDS * PARTS], link_s = 0, now_s = 0, free_s, sleep_s;
	uint32_t sent = 0, seen = 0, news;

	gf_pace_begin(p, 0);
	for (*looks = 0; seen < p->arrivals; (*looks)++) {
		for (news = 0; seen + news < sent && arrives[seen + news] <= now_s + tolerance;)
			news++;
		seen += news;
		if (news)
			gf_pace_arrived(p, news, now_s);
		for (; sent < p->arrivals && sent < seen + PARTS; sent++) {
			link_s = (link_s > now_s ? link_s : now_s) + each_s;
			arrives[sent] = link_s;
		}
		if (seen == p->arrivals)
			break;
		free_s = gf_pace_free_s(p, now_s);
		if (gf_backoff_worth(backoff, free_s)) {
			sleep_s = gf_backoff_next_free(backoff, free_s);
			gf_backoff_slept(backoff, sleep_s, sleep_s + late_s);
			now_s += sleep_s + late_s;
		} else if (now_s < arrives[seen])
			now_s = arrives[seen];
	}
	gf_pace_end(p);
	return now_s;
}

/* Sleeping costs no time, few looks are taken, a link that is suddenly twice as fast is used, and
 * so it is where sleeps end late, once that is known. */
static void test_speed(void)
{
	static const struct {
		double before_s, each_s, late_s, slower;
		unsigned looks; /* at most */
	} cases[] = {
		{2.8e-4, 2.8e-4, 0, 1.01, 30},   {2.8e-4, 1.4e-4, 0, 1.01, 40},
		{1.4e-4, 2.8e-4, 0, 1.01, 45},   {1e-3, 1e-3, 0, 1.01, 80},
		{1e-5, 1e-5, 0, 1.01, 60},       {2.8e-4, 2.8e-4, 1e-3, 1.01, 40},
		{2.8e-4, 2.8e-4, 3e-3, 1.1, 60},
	};
	struct gf_backoff backoff;
	struct gf_pace p;
	unsigned looks;
	double total_s, ideal_s;
	size_t i;
	int k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		make_pace(&p, 32 * kib, false);
		backoff = (struct gf_backoff){.beside_compute = true, .precise = true};
		for (k = 0; k < LESSONS; k++)
			simulate(&p, &backoff, cases[i].before_s, cases[i].late_s, &looks);
		total_s = simulate(&p, &backoff, cases[i].each_s, cases[i].late_s, &looks);
		ideal_s = ROUNDS * PARTS * cases[i].each_s;
		EXPECT(total_s < ideal_s * cases[i].slower, "case %zu: %g s, want %g s", i, total_s,
		       ideal_s);
		EXPECT(looks <= cases[i].looks, "case %zu: %u looks", i, looks);
		gf_pace_release(&p);
	}
}

int main(void)
{
	test_until();
	test_none();
	test_free();
	test_speed();
	return TEST_END();
}
