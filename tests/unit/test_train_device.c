/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients staged to the host: the bits of a run on the host. */
#include "selections.h"
#include "train_device.h"

static void test_same_bits(void)
{
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(i);
		struct gf_train_row host;
		char *want, *got;

		want = gf_xasprintf("%s/%s", folder, cases[i].label);
		got = gf_xasprintf("%s-device", want);
		run.config.checkpoint = want;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", cases[i].label, run.err.text);
		host = run.test;

		/* stopped in the middle of an epoch, too */
		run.config.checkpoint = got;
		run.config.steps = 7;
		train_on_devices(&run, (unsigned)i + 1, false);
		EXPECT(run.rc == 0 && run.last_step == 7, "%s: %s", cases[i].label, run.err.text);
		run.config.steps = 0;
		run.config.resume = true;
		train_on_devices(&run, (unsigned)i + 100, false);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", cases[i].label, run.err.text);
		EXPECT(run.test.correct == host.correct && run.test.loss == host.loss,
		       "%s: want %zu, %g, got %zu, %g", cases[i].label, host.correct, host.loss,
		       run.test.correct, run.test.loss);
		for (r = 0; r < cases[i].ranks; r++)
			same_file(want, got, 20, r, cases[i].label);
		free(want);
		free(got);
	}
}

/* Ends alike everywhere, in the words of a run on the host. */
static void test_divergence(void)
{
	size_t i;

	for (i = 0; i < 2 * GF_ARRAY_LENGTH(divergent); i++) {
		struct train_run run = train_defaults(MLP, 3, 4);
		struct gf_error host;

		run.selection = test_selection(divergent[i % GF_ARRAY_LENGTH(divergent)]);
		run.staleness = 1 + (int)(i / GF_ARRAY_LENGTH(divergent));
		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		train(&run);
		host = run.err;
		EXPECT(run.rc == 1, "got %d", run.rc);
		train_on_devices(&run, 3, false);
		EXPECT(run.rc == 1, "got %d", run.rc);
		EXPECT_TEXT(run.err.text, host.text);
	}
}

/* What comes to the host, step after step: whole gradients, or, from GPU to GPU, the loss and the
 * chunks that were chosen. */
static void test_traffic(void)
{
	/* in 5 steps of 103 gradients */
	const size_t whole = 5 * (size_t)103 * 4, few = 5 * 64;
	const struct {
		const char *selection;
		bool nccl;
		int staleness;
	} traffic[] = {
		{"plain", false, 1},        {"gathered: few", false, 1}, {"plain", true, 1},
		{"gathered: few", true, 1}, {"merged: few", true, 2},    {"pieces: fine", true, 1},
	};
	size_t before, came, i;

	for (i = 0; i < GF_ARRAY_LENGTH(traffic); i++) {
		struct train_run run = train_defaults(MLP, 1, 6);

		run.selection = test_selection(traffic[i].selection);
		run.staleness = traffic[i].staleness;
		run.config.steps = 2;
		train_on_devices(&run, 1, traffic[i].nccl);
		before = last.to_host_bytes;
		run.config.steps = 7;
		train_on_devices(&run, 2, traffic[i].nccl);
		EXPECT(run.rc == 0 && run.last_step == 7, "%s", run.err.text);
		came = last.to_host_bytes - before;
		EXPECT(traffic[i].nccl ? came <= few : came >= whole,
		       "%zu: selection %s: %zu bytes", i, traffic[i].selection, came);
	}
}

/* Nothing in a step waits for a whole stream. */
static void test_syncs(void)
{
	const struct {
		bool nccl;
		size_t accumulate;
		int staleness;
		const char *selection;
	} runs[] = {
		{false, 1, 1},
		{true, 1, 1},
		{false, 2, 1},
		{true, 2, 1},
		{false, 2, 2, "merged: tenth"},
		{true, 1, 3},
		{true, 2, 2},
		{true, 1, 2, "merged: tenth"},
		{true, 1, 1, "pieces: fine"},
		{true, 1, 2, "pieces: fine"},
		{false, 1, 2, "pieces: fine"},
	};
	size_t few, i;

	for (i = 0; i < GF_ARRAY_LENGTH(runs); i++) {
		struct train_run run = train_defaults(NORMED, 2, 3);

		run.config.training.accumulate = runs[i].accumulate;
		run.staleness = runs[i].staleness;
		run.selection = test_selection(runs[i].selection);
		run.config.steps = 2;
		train_on_devices(&run, 1, runs[i].nccl);
		few = last.syncs;
		run.config.steps = 9;
		train_on_devices(&run, 2, runs[i].nccl);
		EXPECT(run.rc == 0 && run.last_step == 9 && last.syncs == few,
		       "%zu: 2 steps: %zu, 9 steps: %zu", i, few, last.syncs);
	}
}

int main(void)
{
	watchdog(290);
	make_folder("test_train_device");
	test_same_bits();
	test_divergence();
	test_traffic();
	test_syncs();
	return TEST_END();
}
