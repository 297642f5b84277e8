/* SPDX-License-Identifier: BSD-3-Clause */
/* Few steps on few ranks, with the times that one gets by hand. */
#include <errno.h>
#include <stddef.h>

#include "base/array.h"
#include "collectives/schedule.h"
#include "simulator/replay/replay.h"
#include "test.h"

/* Sums of the same terms in another order. */
static const double exact = 1e-11;

#define LEVEL(size_, bandwidth, latency)                                                           \
	{                                                                                          \
		.name = "x", .size = (size_), .link = "x", .bandwidth_bytes_per_s = (bandwidth),   \
		.latency_s = (latency)                                                             \
	}

struct step {
	int rank;
	char verb; /* s send, r recv, R recv-reduce */
	int peer;
	size_t first, count;
	double want_start_s, want_end_s;
};

#define RANKS 4
#define STEPS 8

static void build(const struct step *steps, struct gf_schedule *s)
{
	int rank;
	size_t i;

	for (rank = 0; rank < RANKS; rank++)
		gf_schedule_init(&s[rank], rank, RANKS, 100);
	for (i = 0; i < STEPS && steps[i].verb; i++) {
		struct gf_range range = gf_data(steps[i].first, steps[i].count);
		struct gf_schedule *at = &s[steps[i].rank];

		if (steps[i].verb == 's')
			gf_schedule_send(at, steps[i].peer, range);
		else if (steps[i].verb == 'r')
			gf_schedule_recv(at, steps[i].peer, range);
		else
			gf_schedule_recv_reduce(at, steps[i].peer, range);
	}
	for (rank = 0; rank < RANKS; rank++)
		gf_schedule_finish(&s[rank]);
}

/* Where the steps are replayed: one byte per element and per second, latency 1, reduction 0.5 per
 * byte; ranks in pairs where there are two levels. */
struct net {
	const struct gf_cost_net *on;
	const double *slowdown, *late_s;
};

static const int flat_size = 4, pair_sizes[] = {2, 2};
static const struct gf_link_cost flat_link = {1, 1, 0.5};
static const struct gf_link_cost pair_links[] = {{1, 1, 0.5}, {3, 2, 0.5}};
static const struct gf_link_cost unlike_links[] = {{1, 1, 1}, {3, 2, 3}};
static const struct gf_cost_net flat_levels = {1, &flat_size, &flat_link};
static const struct gf_cost_net pair_levels = {2, pair_sizes, pair_links};
static const struct gf_cost_net unlike_levels = {2, pair_sizes, unlike_links};
static const double third_is_slow[] = {1, 1, 2, 1};
static const double second_is_late[] = {0, 5, 0, 0};
static const struct net flat_net = {&flat_levels};
static const struct net slow_net = {&flat_levels, third_is_slow};
static const struct net late_net = {&flat_levels, NULL, second_is_late};
static const struct net pairs_net = {&pair_levels};
static const struct net unlike_net = {&unlike_levels};

static const struct {
	const char *what;
	const struct net *net;
	struct step steps[STEPS];
} timed[] = {
	{"each level reduces at its own rate",
	 &unlike_net,
	 {{0, 's', 1, 0, 10, 0, 11},
	  {1, 'R', 0, 0, 10, 0, 21},
	  {3, 's', 2, 0, 10, 0, 11},
	  {2, 'R', 3, 0, 10, 0, 21}}},
	{"also the outer one", &unlike_net, {{0, 's', 2, 0, 10, 0, 23}, {2, 'R', 0, 0, 10, 0, 53}}},
	{"one message", &flat_net, {{0, 's', 1, 0, 10, 0, 11}, {1, 'r', 0, 0, 10, 0, 11}}},
	{"and its reduction", &flat_net, {{0, 's', 1, 0, 10, 0, 11}, {1, 'R', 0, 0, 10, 0, 16}}},
	{"both ways at once",
	 &flat_net,
	 {{0, 's', 1, 0, 10, 0, 11},
	  {1, 'r', 0, 0, 10, 0, 11},
	  {1, 's', 0, 10, 10, 0, 11},
	  {0, 'r', 1, 10, 10, 0, 11}}},
	{"two out of one rank share",
	 &flat_net,
	 {{0, 's', 1, 0, 10, 0, 21},
	  {1, 'r', 0, 0, 10, 0, 21},
	  {0, 's', 2, 0, 20, 0, 31},
	  {2, 'r', 0, 0, 20, 0, 31}}},
	{"two into one rank share",
	 &flat_net,
	 {{0, 's', 3, 0, 10, 0, 21},
	  {3, 'r', 0, 0, 10, 0, 21},
	  {1, 's', 3, 10, 10, 0, 21},
	  {3, 'r', 1, 10, 10, 0, 21}}},
	{"what one cannot use goes to the other: rank 2 is slow",
	 &slow_net,
	 /* 0 to 2 and 3 to 2 get 1/4 each, 0 to 1 the other 3/4 */
	 {{0, 's', 1, 0, 30, 0, 41},
	  {1, 'r', 0, 0, 30, 0, 41},
	  {0, 's', 2, 0, 10, 0, 41},
	  {2, 'r', 0, 0, 10, 0, 41},
	  {3, 's', 2, 10, 10, 0, 41},
	  {2, 'r', 3, 10, 10, 0, 41}}},
	{"a slow rank reduces slowly",
	 &slow_net,
	 {{0, 's', 2, 0, 10, 0, 21}, {2, 'R', 0, 0, 10, 0, 31}}},
	{"between the same two one after the other",
	 &flat_net,
	 {{0, 's', 1, 0, 10, 0, 11},
	  {0, 's', 1, 10, 10, 0, 21},
	  {1, 'r', 0, 0, 10, 0, 11},
	  {1, 'r', 0, 10, 10, 0, 21}}},
	{"a send waits for its receive",
	 &flat_net,
	 /* rank 1's receive overwrites what it sends */
	 {{1, 's', 2, 0, 10, 0, 11},
	  {2, 'r', 1, 0, 10, 0, 11},
	  {0, 's', 1, 0, 10, 0, 22},
	  {1, 'r', 0, 0, 10, 11, 22}}},
	{"not when it reduces",
	 &flat_net,
	 {{1, 's', 2, 0, 10, 0, 11},
	  {2, 'r', 1, 0, 10, 0, 11},
	  {0, 's', 1, 0, 10, 0, 11},
	  {1, 'R', 0, 0, 10, 0, 16}}},
	{"one reduction after the other",
	 &flat_net,
	 {{0, 's', 2, 0, 10, 0, 21},
	  {1, 's', 2, 10, 10, 0, 21},
	  {2, 'R', 0, 0, 10, 0, 26},
	  {2, 'R', 1, 10, 10, 0, 31}}},
	{"a late rank", &late_net, {{0, 's', 1, 0, 10, 0, 16}, {1, 'r', 0, 0, 10, 5, 16}}},
	{"inside a pair", &pairs_net, {{0, 's', 1, 0, 10, 0, 11}, {1, 'r', 0, 0, 10, 0, 11}}},
	{"between pairs", &pairs_net, {{0, 's', 2, 0, 10, 0, 23}, {2, 'r', 0, 0, 10, 0, 23}}},
	{"a pair shares its way out",
	 &pairs_net,
	 {{0, 's', 2, 0, 10, 0, 43},
	  {2, 'r', 0, 0, 10, 0, 43},
	  {1, 's', 3, 0, 10, 0, 43},
	  {3, 'r', 1, 0, 10, 0, 43}}},
};

static void check_steps(const char *what, const struct step *steps,
			const struct gf_replay_result *result)
{
	size_t seen[RANKS] = {0}, k;

	for (k = 0; k < STEPS && steps[k].verb; k++) {
		const struct step *want = &steps[k];
		const struct gf_replay_times *got =
			&result->steps[0][want->rank][seen[want->rank]++];

		EXPECT_NEAR(got->start_s, want->want_start_s, exact, "%s: start of step %zu", what,
			    k);
		EXPECT_NEAR(got->end_s, want->want_end_s, exact, "%s: end of step %zu", what, k);
	}
}

static void test_times(void)
{
	size_t i;
	int rank;

	for (i = 0; i < GF_ARRAY_LENGTH(timed); i++) {
		const char *what = timed[i].what;
		const struct net *net = timed[i].net;
		struct gf_schedule s[RANKS];
		struct gf_replay_message message = {s, {.bytes = 1}, 0};
		struct gf_replay_input in = {
			.ranks = RANKS,
			.net = net->on,
			.messages = &message,
			.nmessages = 1,
			.slowdown = net->slowdown,
			.late_s = net->late_s,
		};
		struct gf_replay_result result;
		struct gf_error err = {""};

		build(timed[i].steps, s);
		EXPECT(!gf_replay(&in, &result, &err), "%s: %s", what, err.text);
		check_steps(what, timed[i].steps, &result);
		gf_replay_result_release(&result);
		for (rank = 0; rank < RANKS; rank++)
			gf_schedule_release(&s[rank]);
	}
}

static void test_refused(void)
{
	static const struct step unmatched[STEPS] = {{0, 's', 1, 0, 10, 0, 0}};
	/* both receive over what they send, and wait for each other */
	static const struct step stuck[STEPS] = {{0, 's', 1, 0, 10, 0, 0},
						 {0, 'r', 1, 0, 10, 0, 0},
						 {1, 's', 0, 0, 10, 0, 0},
						 {1, 'r', 0, 0, 10, 0, 0}};
	static const struct {
		const struct step *steps;
		const char *want;
	} cases[] = {
		{unmatched, "rank 0 sends 1 messages to rank 1, which receives 0"},
		{stuck, "message 0: a step of rank 0 waits for ever"},
	};
	size_t i;
	int rank;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_schedule s[RANKS];
		struct gf_replay_message message = {s, {.bytes = 1}, 0};
		struct gf_replay_input in = {
			.ranks = RANKS,
			.net = &flat_levels,
			.messages = &message,
			.nmessages = 1,
		};
		struct gf_replay_result result = {.end_s = 7};
		struct gf_error err = {""};

		build(cases[i].steps, s);
		EXPECT(gf_replay(&in, &result, &err) == -EINVAL, "case %zu", i);
		EXPECT_TEXT(err.text, cases[i].want);
		EXPECT(result.end_s == 7, "untouched");
		for (rank = 0; rank < RANKS; rank++)
			gf_schedule_release(&s[rank]);
	}
}

int main(void)
{
	test_times();
	test_refused();
	return TEST_END();
}
