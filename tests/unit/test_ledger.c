/* SPDX-License-Identifier: BSD-3-Clause */
/* Which step it is, after each of a list of events. */
#include <errno.h>

#include "base/array.h"
#include "exchange/exchange_parts.h"
#include "test.h"

/* Events: b a step begins; l its messages are listed, L: they were before;
 * a the next arrives; t one is taken; n its end is learnt; digits: that many steps were in flight
 * in a checkpoint that is read now. */
static const struct {
	const char *events;
	size_t depth, waiting, newest_slot, oldest_slot, oldest_age;
	bool due, due_full, arrival, lesson, restored; /* of the oldest */
	uint64_t own;                                  /* of the newest */
} cases[] = {
	/* one step at a time: each is taken before the next */
	{"b", 1, 1, 0, 0, 0, true, true, true, false, false, 0},
	{"blL", 1, 1, 0, 0, 0, true, true, true, false, false, 0},
	{"bla", 1, 1, 0, 0, 0, true, true, false, false, false, 0},
	{"blatblatbla", 1, 1, 0, 0, 0, true, true, false, true, false, 2},
	/* three under way: two begin before the first is due */
	{"b", 3, 1, 0, 0, 0, true, false, true, false, false, 0},
	{"bb", 3, 2, 1, 0, 1, true, false, true, false, false, 1},
	{"bbb", 3, 3, 2, 0, 2, true, true, true, false, false, 2},
	{"bbbatb", 3, 3, 0, 1, 2, true, true, true, true, false, 3},
	/* the host is ahead: what was taken is learnt of later */
	{"bltbl", 2, 1, 1, 1, 0, true, false, true, true, false, 1},
	{"bltnbl", 2, 1, 1, 1, 0, true, false, true, false, false, 1},
	/* from a checkpoint: those in flight end in the last slots, and the next begins in the
	 * first */
	{"0b", 3, 1, 0, 0, 0, true, false, true, false, false, 0},
	{"2b", 3, 3, 0, 1, 2, true, true, true, false, true, 0},
	{"2btb", 3, 3, 1, 2, 2, true, true, true, true, true, 1},
	{"2bttb", 3, 2, 1, 0, 1, true, false, true, true, false, 1},
	{"bbt1b", 2, 2, 0, 1, 1, true, true, true, false, true, 0},
};

static void play(struct gf_ledger *l, const char *events)
{
	struct gf_error err = {""};
	size_t begun = 0;

	for (; *events; events++) {
		switch (*events) {
		case 'b':
			EXPECT(gf_ledger_begin(l, 100 + begun) == l->begun - 1, "index");
			EXPECT(l->number == 100 + begun++, "number");
			break;
		case 'l':
			EXPECT(gf_ledger_list(l), "listed before");
			break;
		case 'L':
			EXPECT(!gf_ledger_list(l), "listed twice");
			break;
		case 'a':
			gf_ledger_arrive(l);
			break;
		case 't':
			gf_ledger_take(l);
			break;
		case 'n':
			gf_ledger_learn(l);
			break;
		default:
			EXPECT(!gf_ledger_restore(l, (uint64_t)(*events - '0'), &err), "%s",
			       err.text);
		}
	}
}

static void test_events(void)
{
	size_t i, index;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_ledger l;
		size_t oldest, newest;

		gf_ledger_init(&l, cases[i].depth);
		play(&l, cases[i].events);
		oldest = l.taken;
		newest = l.begun - 1;
		EXPECT(gf_ledger_waiting(&l) == cases[i].waiting, "%s: %zu", cases[i].events,
		       gf_ledger_waiting(&l));
		EXPECT(gf_ledger_slot(&l, newest) == cases[i].newest_slot &&
			       gf_ledger_slot(&l, oldest) == cases[i].oldest_slot,
		       "%s: slots %zu, %zu", cases[i].events, gf_ledger_slot(&l, newest),
		       gf_ledger_slot(&l, oldest));
		EXPECT(gf_ledger_age(&l, oldest) == cases[i].oldest_age, "%s: age %zu",
		       cases[i].events, gf_ledger_age(&l, oldest));
		EXPECT(gf_ledger_is_due(&l, false) == cases[i].due &&
			       gf_ledger_is_due(&l, true) == cases[i].due_full,
		       "%s: due", cases[i].events);
		EXPECT(gf_ledger_next_arrival(&l, l.begun, &index) == cases[i].arrival &&
			       index == l.arrived,
		       "%s: arrival", cases[i].events);
		EXPECT(gf_ledger_next_lesson(&l, &index) == cases[i].lesson && index == l.learnt,
		       "%s: lesson", cases[i].events);
		EXPECT(gf_ledger_is_restored(&l, oldest) == cases[i].restored, "%s: restored",
		       cases[i].events);
		EXPECT(gf_ledger_own(&l, newest) == cases[i].own, "%s: own", cases[i].events);
	}
}

static void test_too_many(void)
{
	struct gf_ledger l;
	struct gf_error err = {""};

	gf_ledger_init(&l, 2);
	EXPECT(gf_ledger_restore(&l, 2, &err) == -EINVAL, "two in one");
	EXPECT_TEXT(err.text, "the checkpoint: want at most 1 gradients in flight, got 2");
}

int main(void)
{
	test_events();
	test_too_many();
	return TEST_END();
}
