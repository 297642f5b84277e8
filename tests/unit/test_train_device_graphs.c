/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes that are captured, and launched as graphs. */
#include "train_device.h"

/* The same run, with passes enqueued anew and with captured ones: stopped, where passes are
 * captured again, and resumed. */
static void compare_graphs(struct train_run *run, const char *label, bool nccl)
{
	char *want = gf_xasprintf("%s/eager-%d-%s", folder, nccl, label);
	char *got = gf_xasprintf("%s/graphs-%d-%s", folder, nccl, label);
	int r;

	run->config.checkpoint = want;
	run->config.steps = 12;
	train_on_devices(run, 21, nccl);
	EXPECT(run->rc == 0 && last.launches == 0, "%s: %s, %zu launches", label, run->err.text,
	       last.launches);
	run->config.checkpoint = got;
	run->config.place.graphs = true;
	run->config.steps = 7;
	train_on_devices(run, 22, nccl);
	/* of each pass's forward and backward, which is cut; those into a third pool have hardly
	 * come round by then */
	EXPECT(run->rc == 0 && last.launches > (run->staleness > 2 ? 5 : 2 * 5),
	       "%s: %s, %zu launches", label, run->err.text, last.launches);
	run->config.steps = 12;
	run->config.resume = true;
	train_on_devices(run, 23, nccl);
	EXPECT(run->rc == 0 && run->last_step == 12, "%s: %s", label, run->err.text);
	for (r = 0; r < run->ranks; r++)
		same_file(want, got, 12, r, label);
	free(want);
	free(got);
}

static void test_graphs(void)
{
	struct train_run run;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		run = run_of(i);
		compare_graphs(&run, cases[i].label, false);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(nccl_cases); i++) {
		run = nccl_run_of(i);
		compare_graphs(&run, nccl_cases[i].label, true);
	}
}

struct scales {
	double last, least; /* of steps */
	bool grew;
};

static int note_scale(void *ctx, const struct gf_train_row *row, struct gf_error *err)
{
	struct scales *s = ctx;

	(void)err;
	if (!(row->loss_scale > 0))
		return 0;
	s->grew |= s->last > 0 && row->loss_scale > s->last;
	s->last = row->loss_scale;
	s->least = s->least > 0 ? fmin(s->least, s->last) : s->last;
	return 0;
}

/* Nets in f16, whose loss scale begins too large, falls, and grows again: a captured pass is
 * captured anew each time, and the same steps are skipped. */
static void test_half(void)
{
	size_t i;

	for (i = 0; i < 4; i++) {
		struct train_run run = train_defaults(i < 2 ? MLP : NORMED, 2, i < 2 ? 6 : 3);
		const char *label = i < 2 ? "half" : "half-accumulated";
		struct scales scales = {0};

		run.config.half = true;
		/* two that are too large, then about every other one */
		run.config.training.scale = 0x1p19;
		run.config.training.growth_steps = 1;
		run.config.training.accumulate = i < 2 ? 1 : 2;
		run.config.watch.row = note_scale;
		run.config.watch.ctx = &scales;
		compare_graphs(&run, label, i % 2);
		EXPECT(scales.least < 0x1p19 && scales.grew, "%s: the scale fell to %g, ends at %g",
		       label, scales.least, scales.last);
	}
}

int main(void)
{
	watchdog(290);
	make_folder("test_train_device_graphs");
	test_graphs();
	test_half();
	return TEST_END();
}
