/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms that take the same steps: found, measured once. */
#include "base/array.h"
#include "base/heap.h"
#include "profiler/network.h"
#include "profiler/network_parts.h"
#include "ranks.h"
#include "test.h"

static const char *const names[] = {"ring",   "rhd",          "butterfly",  "tree",
				    "linear", "hierarchical", "blueconnect"};
enum { NAMES = GF_ARRAY_LENGTH(names) };

/* By hand: on two ranks both halves of these are one exchange of half the message, a butterfly
 * exchanges the whole once, and a tree is its root. On four, halving and blueconnect (by default
 * 2x2) meet in the same order. */
static const struct {
	int ranks;
	size_t twins[NAMES];
} cases[] = {
	{2, {0, 0, 2, 3, 3, 0, 0}},
	{4, {0, 1, 2, 3, 4, 5, 1}},
};

static void find(struct gf_comm *comm, void *ctx)
{
	const size_t *want = ctx;
	struct gf_network net = {
		.allreduce = gf_xcalloc(NAMES, sizeof(*net.allreduce)),
		.nallreduce = NAMES,
	};
	struct gf_error err = {""};
	size_t *twins, i;

	for (i = 0; i < NAMES; i++)
		net.allreduce[i].algorithm = gf_xstrdup(names[i]);
	EXPECT(!gf_measure_twins(comm, &net, &twins, &err), "%s", err.text);
	for (i = 0; i < NAMES; i++)
		EXPECT(twins[i] == want[i], "%d ranks, %s: %zu, want %zu", comm->ranks, names[i],
		       twins[i], want[i]);
	free(twins);
	for (i = 0; i < NAMES; i++)
		free(net.allreduce[i].algorithm);
	free(net.allreduce);
}

/* Twins have the same figures in a profile, and a remark names them. */
static void measure(struct gf_comm *comm, void *ctx)
{
	static const char *const both[] = {"ring", "rhd", NULL};
	const struct gf_measure_network config = {
		.comm = comm,
		.algorithms = both,
		.min_bytes = 1024,
		.max_bytes = 65536,
		.threads = 1,
		.lanes = 2,
		.time_s = 1e-3,
		.budget_s = 0.5,
		.timeout_s = 60,
	};
	struct gf_network *net = NULL;
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	(void)ctx;
	EXPECT(!gf_measure_network(&config, &net, &remarks, &err), "%s", err.text);
	EXPECT(strcmp(net->allreduce[1].algorithm, "rhd") == 0, "%s", net->allreduce[1].algorithm);
	EXPECT(net->allreduce[0].startup_s == net->allreduce[1].startup_s &&
		       net->allreduce[0].per_byte_s == net->allreduce[1].per_byte_s &&
		       net->allreduce[1].fit.npoints == net->allreduce[0].fit.npoints,
	       "twins differ");
	EXPECT(strstr(remarks.data, "\trhd takes the same steps as ring"), "remarks: %s",
	       remarks.data);
	gf_network_free(net);
	gf_text_release(&remarks);
}

int main(void)
{
	size_t i;

	watchdog(120);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		on_ranks(cases[i].ranks, find, (void *)cases[i].twins);
	on_ranks(2, measure, NULL);
	return TEST_END();
}
