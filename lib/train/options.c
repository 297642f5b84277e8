/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/options.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/timeout.h"
#include "base/units.h"
#include "cli/table.h"
#include "optim/optimizer.h"
#include "select/select.h"

const enum gf_dtype gf_train_precisions[] = {GF_F32, GF_F16, GF_BF16};

void gf_train_options_init(struct gf_train_options *o)
{
	*o = (struct gf_train_options){
		.device = "auto",
		.log_every = 1,
		.config = {.check_every = SIZE_MAX, .timeout_s = GF_TIMEOUT_S},
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

/* "--OPTION: want --optimizer A, B or C, got D" */
static int refuse_setting(const char *option, unsigned setting, const char *got,
			  struct gf_error *err)
{
	struct gf_text names = {0};
	size_t i, left = 0;
	int rc;

	for (i = 0; gf_optimizers[i]; i++)
		left += (gf_optimizers[i]->settings & setting) != 0;
	for (i = 0; gf_optimizers[i]; i++)
		if (gf_optimizers[i]->settings & setting)
			gf_text_addf(&names, "%s%s", gf_optimizers[i]->name,
				     --left > 1  ? ", "
				     : left == 1 ? " or "
						 : "");
	rc = gf_error_set(err, -EINVAL, "--%s: want --optimizer %s, got %s",
			  option, names.data, got);
	gf_text_release(&names);
	return rc;
}

static int optimizer_heeds(const struct gf_training *given, const char *name,
			   struct gf_error *err)
{
	const struct {
		const char *option;
		double value;
		unsigned setting;
	} of[] = {
		{"momentum", given->momentum, GF_OPTIM_MOMENTUM},
		{"beta1", given->beta1, GF_OPTIM_BETAS},
		{"beta2", given->beta2, GF_OPTIM_BETAS},
		{"eta", given->eta, GF_OPTIM_ETA},
		{"epsilon", given->epsilon, GF_OPTIM_EPSILON},
	};
	const struct gf_optimizer_ops *ops = gf_optimizer_find(name, err);
	size_t i;

	for (i = 0; ops && i < GF_ARRAY_LENGTH(of); i++)
		if (!isnan(of[i].value) && !(ops->settings & of[i].setting))
			return refuse_setting(of[i].option, of[i].setting, name,
					      err);
	return ops ? 0 : -EINVAL;
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
		{"drop-epochs", t->ndrops > 0, "schedule", "step", schedule},
		{"drop-factor", !isnan(t->drop_factor), "schedule", "step",
		 schedule},
		{"power", !isnan(t->power), "schedule", "poly", schedule},
		{"floor", !isnan(t->floor), "schedule", "cosine", schedule},
	};
	size_t i;
	int rc = optimizer_heeds(t, complete->optimizer, err);

	if (rc)
		return rc;
	for (i = 0; i < GF_ARRAY_LENGTH(of); i++)
		if (of[i].given && strcmp(of[i].wanted, of[i].got) != 0)
			return gf_error_set(err, -EINVAL,
					    "--%s: want --%s %s, got %s",
					    of[i].option, of[i].of,
					    of[i].wanted, of[i].got);
	return 0;
}

int gf_train_options_finish(struct gf_train_options *o, struct gf_error *err)
{
	int rc;

	if (o->replay && o->transport == GF_TRANSPORT_NCCL)
		return gf_error_set(err, -EINVAL,
				    "--replay: want --transport mpi, ucx or "
				    "auto, got nccl: there are no gradients "
				    "of GPUs");
	o->config.half = gf_train_precisions[o->precision] == GF_F16;
	rc = gf_train_place_check(o->device, err);
	return rc || !o->loss_scale
		       ? rc
		       : read_scale(o->loss_scale, &o->training, err);
}

struct gf_train_wish gf_train_options_wish(const struct gf_train_options *o)
{
	return (struct gf_train_wish){
		.device = o->device,
		.threads = (int)o->threads,
		.precision = gf_train_precisions[o->precision],
		.transport = (enum gf_train_transport)o->transport,
	};
}

/* --- what there is -------------------------------------------------------- */

static void add_row(struct gf_table *t, const char *name, const char *text)
{
	gf_table_begin(t, 2);
	gf_table_cell(t, "  %s", name);
	gf_table_cell(t, "%s", text);
}

char *gf_train_list(void)
{
	static const char *const schedules[] = {
		"the peak to the end",
		"down to 0 in a straight line",
		"down to 0 along half a cosine",
		"multiplied by a factor at some epochs",
		"down to 0, as the share that is left to a power",
	};
	struct gf_table t = {0};
	struct gf_text out = {0};
	size_t i;

	gf_text_addf(&out, "selections (of the plan):\n");
	for (i = 0; gf_selections[i].name; i++)
		add_row(&t, gf_selections[i].name,
			gf_select_plan_find(gf_selections[i].name)
				->description);
	gf_table_print(&t, &out);
	gf_table_release(&t);
	gf_text_addf(&out, "optimizers:\n");
	for (i = 0; gf_optimizers[i]; i++)
		add_row(&t, gf_optimizers[i]->name,
			gf_optimizers[i]->description);
	gf_table_print(&t, &out);
	gf_table_release(&t);
	gf_text_addf(&out, "schedules:\n");
	for (i = 0; gf_schedule_names[i]; i++)
		add_row(&t, gf_schedule_names[i], schedules[i]);
	gf_table_print(&t, &out);
	gf_table_release(&t);
	return gf_text_take(&out);
}
