/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients that go from GPU to GPU: what a run on the host comes to. */
#include "selections.h"
#include "train_device.h"

/* Sets that are gathered are filled up to lines of memory, small ones too. */
static bool are_lines(const struct train_run *run, uint64_t bytes)
{
	return gf_selection_has(&run->selection, GF_SELECT_SETS) && run->sent_bytes > bytes &&
	       run->sent_bytes % 128 == 0;
}

/* As a run on the host; stopped and resumed to the same bits. */
static void test_nccl(void)
{
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(nccl_cases); i++) {
		struct train_run run = nccl_run_of(i);
		char *want, *got, *stopped;
		uint64_t sent_bytes, dense_bytes;

		want = gf_xasprintf("%s/nccl-%s", folder, nccl_cases[i].label);
		got = gf_xasprintf("%s-device", want);
		stopped = gf_xasprintf("%s-stopped", want);
		run.config.checkpoint = want;
		train(&run);
		EXPECT(run.rc == 0, "%s: %s", nccl_cases[i].label, run.err.text);
		sent_bytes = run.sent_bytes;
		dense_bytes = run.dense_bytes;
		run.config.checkpoint = got;
		train_on_devices(&run, (unsigned)i + 1, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", nccl_cases[i].label,
		       run.err.text);
		EXPECT((sent_bytes > 0) == (run.ranks > 1) &&
			       (run.sent_bytes == sent_bytes || are_lines(&run, sent_bytes)) &&
			       run.dense_bytes == dense_bytes,
		       "%s: want %zu of %zu bytes, got %zu of %zu", nccl_cases[i].label,
		       (size_t)sent_bytes, (size_t)dense_bytes, (size_t)run.sent_bytes,
		       (size_t)run.dense_bytes);
		near_file(want, got, nccl_cases[i].tolerance, nccl_cases[i].label);
		for (r = 0; r < nccl_cases[i].ranks; r++)
			if (!gf_selection_has(&run.selection, GF_SELECT_LOSSLESS) &&
			    nccl_cases[i].tolerance == 0)
				same_file(want, got, 20, r, nccl_cases[i].label);

		run.config.checkpoint = stopped;
		run.config.steps = 7;
		train_on_devices(&run, (unsigned)i + 50, true);
		run.config.steps = 0;
		run.config.resume = true;
		train_on_devices(&run, (unsigned)i + 60, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", nccl_cases[i].label,
		       run.err.text);
		for (r = 0; r < nccl_cases[i].ranks; r++)
			same_file(got, stopped, 20, r, nccl_cases[i].label);
		free(want);
		free(got);
		free(stopped);
	}
}

/* Resumed by a plan that keeps other numbers of chunks, in a ramp that may be longer than any run:
 * what is chosen already goes, as on the host. */
static void test_nccl_other_keep(void)
{
	static const char *const then[] = {"pieces: small", "pieces: most", "pieces: long"};
	size_t i;

	for (i = 0; i < 2 * GF_ARRAY_LENGTH(then); i++) {
		char *want = gf_xasprintf("%s/keep-%zu-host", folder, i);
		char *got = gf_xasprintf("%s/keep-%zu", folder, i);
		int nccl, r;

		for (nccl = 0; nccl < 2; nccl++) {
			struct train_run run = train_defaults(MLP, 2, 6);

			run.staleness = 1 + (int)(i % 2);
			run.selection = test_selection("pieces: more");
			run.config.checkpoint = nccl ? got : want;
			run.config.steps = 7;
			train(&run);
			EXPECT(run.rc == 0, "%zu: %s", i, run.err.text);
			run.selection = test_selection(then[i / 2]);
			run.config.steps = 0;
			run.config.resume = true;
			if (nccl)
				train_on_devices(&run, (unsigned)i + 1, true);
			else
				train(&run);
			EXPECT(run.rc == 0, "%zu: %s", i, run.err.text);
		}
		for (r = 0; r < 2; r++)
			same_file(want, got, 20, r, "other keep");
		free(want);
		free(got);
	}
}

/* Copies of the parameters go from memory that is not pinned, too. */
static void test_unpinned(void)
{
	static const struct fake_faults no_pins = {.no_pins = true};
	struct train_run run = train_defaults(MLP, 2, 3);

	train_with(&run, 3, true, &no_pins);
	EXPECT(run.rc == 0 && run.last_step > 0, "%s", run.err.text);
}

/* The step that diverged is named one step late, on all ranks alike; what it would have changed is
 * not. */
static void test_nccl_divergence(void)
{
	const char *at;
	struct gf_error host;
	size_t i;

	for (i = 0; i < 2 * GF_ARRAY_LENGTH(divergent); i++) {
		struct train_run run = train_defaults(MLP, 3, 4);

		run.selection = test_selection(divergent[i % GF_ARRAY_LENGTH(divergent)]);
		run.staleness = 1 + (int)(i / GF_ARRAY_LENGTH(divergent));
		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		train(&run);
		host = run.err;
		train_on_devices(&run, 5, true);
		EXPECT(run.rc == 1, "%zu: got %d", i, run.rc);
		at = strstr(host.text, "in step ");
		EXPECT(at && strstr(run.err.text, "in step ") &&
			       strncmp(strstr(run.err.text, "in step "), at, 9) == 0,
		       "%zu: want %s, got %s", i, host.text, run.err.text);
	}
}

/* Plans that cannot go from GPU to GPU, and operations that NCCL does not have: alike on all ranks,
 * with everything given back. */
static void test_nccl_refusals(void)
{
	const struct {
		const char *text;
		int rc;
		const char *optimizer;
		bool graphs;
		const char *selection;
		struct fake_faults faults;
	} refused[] = {
		{"\"lars\" of some of the gradients is not computed on GPUs", -ENOTSUP, "lars",
		 .selection = "pieces: small"},
		{"fake captures no graphs of what it is given", -ENOTSUP, "sgd", .graphs = true,
		 .faults = {.no_graphs = true}},
		{"both use GPU 0000:17:00.0", -EINVAL, "sgd", .faults = {.one_gpu = true}},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(refused); i++) {
		struct train_run run = train_defaults(MLP, 2, 3);

		run.config.training.optimizer = (char *)refused[i].optimizer;
		run.config.place.graphs = refused[i].graphs;
		run.selection = test_selection(refused[i].selection);
		train_with(&run, 1, true, &refused[i].faults);
		EXPECT(run.rc == refused[i].rc && strstr(run.err.text, refused[i].text),
		       "want %d, %s; got %d, %s", refused[i].rc, refused[i].text, run.rc,
		       run.err.text);
	}
}

int main(void)
{
	watchdog(290);
	make_folder("test_train_device_nccl");
	test_nccl();
	test_nccl_other_keep();
	test_unpinned();
	test_nccl_divergence();
	test_nccl_refusals();
	return TEST_END();
}
