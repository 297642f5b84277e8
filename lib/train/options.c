/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/options.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/table.h"
#include "optim/optimizer.h"
#include "train/exchange.h"
#include "train/place.h"

static const char *const bad_gradient_names[] = {"end", "skip", NULL};

#define AT(field) offsetof(struct gf_train_options, field)

static const char *const precision_names[] = {"f32", "f16", "bf16", NULL};

const struct gf_setting gf_train_settings[] = {
	{"plan", "FILE", 1, GF_SETTING_TEXT, AT(plan),
	 "exchange gradients by this plan"},
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "a shipped model or a file (the plan's, or digits-cnn)"},
	{"data", "DIR", 1, GF_SETTING_TEXT, AT(data),
	 "a folder, FORMAT:FOLDER, synthetic or synthetic:N (digits)"},
	{"training", "NAME", 1, GF_SETTING_TEXT, AT(training_file),
	 "how to train: a shipped document or a file; options go before it"},
	{"augment", "LIST", 1, GF_SETTING_TEXT, AT(training.augment),
	 "change training images: flip, crop:N, or both (none)"},
	{"epochs", "N", 2, GF_SETTING_WHOLE, AT(training.epochs),
	 "passes over the training data (10)", 1, 1e9},
	{"steps", "N", 2, GF_SETTING_WHOLE, AT(steps),
	 "stop after N steps in all (a replay: 50)", 1, 1e12},
	{"batch", "N", 2, GF_SETTING_WHOLE, AT(training.batch),
	 "samples per rank that are computed at once (the plan's, or 16)", 1,
	 1e9},
	{"accumulate", "N", 2, GF_SETTING_WHOLE, AT(training.accumulate),
	 "exchange the mean gradient of N batches once (1)", 1, 1e9},
	{"optimizer", "NAME", 2, GF_SETTING_TEXT, AT(training.optimizer),
	 "sgd, nesterov or lars (sgd)"},
	{"lr", "RATE", 2, GF_SETTING_REAL, AT(training.rate),
	 "peak learning rate (0.1 for a global batch of 64, scaled)", 0, 1e9},
	{"lr-batch", "N", 2, GF_SETTING_REAL, AT(training.rate_batch),
	 "RATE is meant for a global batch of N: scale it to this run's", 1,
	 1e12},
	{"momentum", "M", 2, GF_SETTING_REAL, AT(training.momentum),
	 "of the optimizer (0.9)", 0, 1},
	{"weight-decay", "D", 2, GF_SETTING_REAL, AT(training.weight_decay),
	 "of the optimizer (5e-3)", 0, 1e9},
	{"eta", "E", 2, GF_SETTING_REAL, AT(training.eta),
	 "LARS's trust coefficient (0.02)", 0, 1e9},
	{"exclude", "LIST", 2, GF_SETTING_TEXT, AT(training.exclude),
	 "tensors without decay and trust ratio: vectors, none, or patterns "
	 "(lars: vectors, else none)"},
	{"clip-norm", "N", 2, GF_SETTING_REAL, AT(training.clip_norm),
	 "scale a gradient down to this norm, 0: never (0)", 0, 1e9},
	{"warmup", "EPOCHS", 2, GF_SETTING_REAL, AT(training.warmup_epochs),
	 "raise the rate to its peak over so many epochs (1)", 0, 1e9},
	{"schedule", "NAME", 2, GF_SETTING_CHOICE, AT(training.schedule),
	 "the rate after that: constant, linear, cosine, step or poly "
	 "(cosine)",
	 .names = gf_schedule_names},
	{"drop-epochs", "LIST", 2, GF_SETTING_REALS, AT(training.drop_epochs),
	 "of schedule step: the epochs after which the rate drops", 0, 1e9,
	 .offset2 = AT(training.ndrops)},
	{"drop-factor", "F", 2, GF_SETTING_REAL, AT(training.drop_factor),
	 "of schedule step: by this (0.1)", 0, 1},
	{"power", "P", 2, GF_SETTING_REAL, AT(training.power),
	 "of schedule poly (2)", 0, 100},
	{"loss-scale", "S", 2, GF_SETTING_TEXT, AT(loss_scale),
	 "of gradients on the wire: none, dynamic, a power of two, or auto: "
	 "dynamic with codec f16 (auto)"},
	{"seed", "N", 2, GF_SETTING_WHOLE, AT(training.seed),
	 "of weights and data order (1)", 0, 1e15},
	{"checkpoint", "DIR", 3, GF_SETTING_TEXT, AT(checkpoint),
	 "write checkpoints there"},
	{"checkpoint-every", "N", 3, GF_SETTING_WHOLE, AT(checkpoint_every),
	 "every N steps and at the end (every epoch)", 1, 1e12},
	{"resume", NULL, 3, GF_SETTING_FLAG, AT(resume),
	 "go on from the last complete checkpoint"},
	{"reshard", NULL, 3, GF_SETTING_FLAG, AT(reshard),
	 "with --resume: also from one that another number of ranks wrote"},
	{"bad-gradients", "WHAT", 3, GF_SETTING_CHOICE, AT(bad_gradients),
	 "of a gradient that is infinite or not a number: end the run, or skip "
	 "the step (end)",
	 .names = bad_gradient_names},
	{"check-replicas", "N", 3, GF_SETTING_WHOLE, AT(check_every),
	 "compare parameters and momentum of all ranks every N steps, 0: never "
	 "(100 if the plan uses the MPI library's all-reduce, else 0)",
	 0, 1e12},
	{"log", "FILE", 4, GF_SETTING_TEXT, AT(log),
	 "write losses and accuracies as JSON Lines"},
	{"trace", "FILE", 4, GF_SETTING_TEXT, AT(trace),
	 "write a Chrome trace of all ranks' last steps and the prediction"},
	{"target", "A", 4, GF_SETTING_REAL, AT(target),
	 "exit 1 if the test accuracy ends below A (0 to 1)", 0, 1},
	{"list", NULL, 4, GF_SETTING_FLAG, AT(list),
	 "list selections, optimizers and schedules"},
	{"print-training", NULL, 4, GF_SETTING_FLAG, AT(print_training),
	 "print how this would train, as a document, and stop"},
	{"timeout", "TIME", 5, GF_SETTING_TIME, AT(timeout_s),
	 "give up when a rank does not answer for so long (60s)"},
	{"threads", "N", 5, GF_SETTING_WHOLE, AT(threads),
	 "compute threads per rank (its share of the cores)", 1, 4096},
	{"device", "NAME", 5, GF_SETTING_TEXT, AT(device),
	 "auto, cpu, cuda, cuda:N, or the name of a backend (auto)"},
	{"precision", "TYPE", 5, GF_SETTING_CHOICE, AT(precision),
	 "of weights and activations on a GPU: f32, f16 or bf16 (f32)",
	 .names = precision_names},
	{"transport", "NAME", 5, GF_SETTING_CHOICE, AT(transport),
	 "how gradients of GPUs go: nccl, mpi (by the host), or auto (auto)",
	 .names = gf_train_transports},
	{"cuda-graph", NULL, 5, GF_SETTING_FLAG, AT(cuda_graph),
	 "capture a GPU's passes into graphs, and launch these"},
	{"replay", NULL, 5, GF_SETTING_FLAG, AT(replay),
	 "sleep while the plan's model would compute; communicate for real"},
};

/* A replay computes nothing, and learns nothing. */
const struct gf_setting_rule gf_train_rules[] = {
	{"list", NULL, "*"},
	{"replay", NULL,
	 "model data training augment epochs batch accumulate optimizer lr "
	 "lr-batch momentum weight-decay eta exclude clip-norm warmup schedule "
	 "drop-epochs drop-factor power loss-scale seed checkpoint "
	 "checkpoint-every resume reshard bad-gradients check-replicas log "
	 "target print-training threads device precision transport "
	 "cuda-graph"},
};

const size_t gf_train_nrules = GF_ARRAY_LENGTH(gf_train_rules);

const enum gf_dtype gf_train_precisions[] = {GF_F32, GF_F16, GF_BF16};

const size_t gf_train_nsettings = GF_ARRAY_LENGTH(gf_train_settings);

void gf_train_options_init(struct gf_train_options *o)
{
	*o = (struct gf_train_options){
		.device = "auto",
		.check_every = SIZE_MAX,
		.timeout_s = 60,
	};
	gf_training_init(&o->training);
}

void gf_train_options_release(struct gf_train_options *o)
{
	free(o->training.drop_epochs);
	o->training.drop_epochs = NULL;
}

/* A name of a mode that needs no number, or the number of a static scale. */
static int read_scale(const char *text, struct gf_training *t,
		      struct gf_error *err)
{
	static const enum gf_scaling named[] = {
		GF_SCALING_AUTO, GF_SCALING_NONE, GF_SCALING_DYNAMIC};
	int exponent;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(named); i++) {
		if (strcmp(text, gf_scaling_names[named[i]]) == 0) {
			t->scaling = (int)named[i];
			return 0;
		}
	}
	if (gf_units_real(text, 0x1p-40, 0x1p40, &t->scale, NULL) ||
	    frexp(t->scale, &exponent) != 0.5)
		return gf_error_set(err, -EINVAL,
				    "--loss-scale: want auto, none, dynamic "
				    "or a power of two, got \"%s\"",
				    text);
	t->scaling = GF_SCALING_STATIC;
	return 0;
}

static int check_files(const struct gf_train_options *o, const char *output,
		       struct gf_error *err)
{
	const struct gf_file_wish files[] = {
		{"--log", o->log},
		{"--trace", o->trace},
		{"--output", output},
	};

	return gf_file_apart(files, GF_ARRAY_LENGTH(files), err);
}

int gf_train_options_heeded(const struct gf_train_options *o,
			    const struct gf_training *complete,
			    struct gf_error *err)
{
	const struct gf_training *t = &o->training;
	const char *schedule = gf_schedule_names[complete->schedule];
	const struct {
		const char *option;
		bool given;
		const char *of, *wanted, *got;
	} of[] = {
		{"eta", !isnan(t->eta), "optimizer", "lars",
		 complete->optimizer},
		{"drop-epochs", t->ndrops > 0, "schedule", "step", schedule},
		{"drop-factor", !isnan(t->drop_factor), "schedule", "step",
		 schedule},
		{"power", !isnan(t->power), "schedule", "poly", schedule},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(of); i++)
		if (of[i].given && strcmp(of[i].wanted, of[i].got) != 0)
			return gf_error_set(err, -EINVAL,
					    "--%s: want --%s %s, got %s",
					    of[i].option, of[i].of,
					    of[i].wanted, of[i].got);
	return 0;
}

int gf_train_options_finish(struct gf_train_options *o, const char *output,
			    struct gf_error *err)
{
	int rc;

	if (o->replay && !o->plan)
		return gf_error_set(err, -EINVAL,
				    "--replay: want --plan, for its times");
	if (o->resume && !o->checkpoint)
		return gf_error_set(err, -EINVAL,
				    "--resume: want --checkpoint DIR");
	if (o->reshard && !o->resume)
		return gf_error_set(err, -EINVAL, "--reshard: want --resume");
	if (o->checkpoint_every && !o->checkpoint)
		return gf_error_set(err, -EINVAL,
				    "--checkpoint-every: want --checkpoint "
				    "DIR");
	if (!isnan(o->training.rate_batch) && isnan(o->training.rate) &&
	    !o->training_file)
		return gf_error_set(err, -EINVAL,
				    "--lr-batch: want --lr, which it scales");
	rc = gf_train_place_check(o->device, err);
	rc = rc ? rc : check_files(o, output, err);
	if (rc)
		return rc;
	return o->loss_scale ? read_scale(o->loss_scale, &o->training, err) : 0;
}

/* --- what there is -------------------------------------------------------- */

static void add_row(struct gf_table *t, const char *name, const char *text)
{
	gf_table_begin(t, 2);
	gf_table_cell(t, "  %s", name);
	gf_table_cell(t, "%s", text);
}

void gf_train_list(struct gf_text *out)
{
	static const char *const schedules[] = {
		"the peak to the end",
		"down to 0 in a straight line",
		"down to 0 along half a cosine",
		"multiplied by a factor at some epochs",
		"down to 0, as the share that is left to a power",
	};
	struct gf_table t = {0};
	size_t i;

	gf_text_addf(out, "selections (of the plan):\n");
	for (i = 0; gf_exchanges[i]; i++)
		add_row(&t, gf_exchanges[i]->name,
			gf_exchanges[i]->description);
	gf_table_print(&t, out);
	gf_table_release(&t);
	gf_text_addf(out, "optimizers:\n");
	for (i = 0; gf_optimizers[i]; i++)
		add_row(&t, gf_optimizers[i]->name,
			gf_optimizers[i]->description);
	gf_table_print(&t, out);
	gf_table_release(&t);
	gf_text_addf(out, "schedules:\n");
	for (i = 0; gf_schedule_names[i]; i++)
		add_row(&t, gf_schedule_names[i], schedules[i]);
	gf_table_print(&t, out);
	gf_table_release(&t);
}
