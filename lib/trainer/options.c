/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/options.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/timeout.h"
#include "base/units.h"
#include "cli/share.h"
#include "cli/table.h"
#include "compressors/select.h"
#include "profiler/autotune/ways.h"
#include "trainer/optim/optimizer.h"

const enum gf_dtype gf_train_precisions[] = {GF_F32, GF_F16, GF_BF16};

const char *const gf_train_graphs[] = {"auto", "on", "off", NULL};
const char *const gf_train_resumes[] = {"no", "same", "any", NULL};

void gf_train_options_init(struct gf_train_options *o)
{
	*o = (struct gf_train_options){
		.device = "auto",
		.optimizer = -1,
		.log_every = 1,
		.config = {.check_every = SIZE_MAX, .timeout_s = GF_TIMEOUT_S},
	};
	gf_training_init(&o->training);
}

/* A name of a mode that needs no number, or the number of a static scale. */
static int read_scale(const char *text, struct gf_training *t, struct gf_error *err)
{
	static const enum gf_scaling named[] = {GF_SCALING_AUTO, GF_SCALING_NONE,
						GF_SCALING_DYNAMIC};
	int exponent;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(named); i++) {
		if (strcmp(text, gf_scaling_names[named[i]]) == 0) {
			t->scaling = (int)named[i];
			return 0;
		}
	}
	if (gf_units_real(text, 0x1p-40, 0x1p40, &t->scale, NULL) ||
	    frexp(t->scale, &exponent) != 0.5)
		return gf_error_set(
			err, -EINVAL,
			"--loss-scale: want auto, none, dynamic or a power of two, got \"%s\"",
			text);
	t->scaling = GF_SCALING_STATIC;
	return 0;
}

/* Numbers that some optimisers or one schedule use. */
#define AT(field) offsetof(struct gf_training, field)
static const struct use {
	const char *key;
	size_t offset;
	unsigned setting; /* of optimisers; 0: a schedule's */
	int schedule;
} uses[] = {
	{"momentum", AT(momentum), GF_OPTIM_MOMENTUM},
	{"beta1", AT(beta1), GF_OPTIM_BETAS},
	{"beta2", AT(beta2), GF_OPTIM_BETAS},
	{"eta", AT(eta), GF_OPTIM_ETA},
	{"epsilon", AT(epsilon), GF_OPTIM_EPSILON},
	{"drop_factor", AT(drop_factor), 0, GF_SCHEDULE_STEP},
	{"power", AT(power), 0, GF_SCHEDULE_POLY},
	{"floor", AT(floor), 0, GF_SCHEDULE_COSINE},
};
static const struct use drops = {"drop_epochs", 0, 0, GF_SCHEDULE_STEP};
#undef AT

/* An optimiser or a schedule that is not named may be any. */
static bool is_used(const struct use *u, const struct gf_optimizer_ops *ops, int schedule)
{
	return u->setting ? !ops || ops->settings & u->setting
			  : schedule < 0 || schedule == u->schedule;
}

/* "--schedule: power: want poly, got cosine", or in the words of a document */
static int refuse_use(const struct use *u, const struct gf_training *t, bool document,
		      struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text names = {0};
	size_t i, left = 0;

	for (i = 0; u->setting && gf_optimizers[i]; i++)
		left += (gf_optimizers[i]->settings & u->setting) != 0;
	for (i = 0; u->setting && gf_optimizers[i]; i++)
		if (gf_optimizers[i]->settings & u->setting)
			gf_text_addf(&names, "%s%s", gf_optimizers[i]->name,
				     --left > 1  ? ", "
				     : left == 1 ? " or "
						 : "");
	gf_error_set(err, -EINVAL, "%s%s: want %s%s, got %s",
		     document     ? u->setting ? "/optimizer/" : "/rate/"
		     : u->setting ? "--optimizer: "
				  : "--schedule: ",
		     u->key, document ? u->setting ? "optimizer " : "schedule " : "",
		     u->setting ? names.data : gf_schedule_names[u->schedule],
		     u->setting ? t->optimizer : gf_schedule_names[t->schedule]);
	return -EINVAL;
}

/* Does that training, by its optimiser and schedule, use all numbers given? */
static int heeds(const struct gf_training *given, const struct gf_training *by, bool document,
		 struct gf_error *err)
{
	const struct gf_optimizer_ops *ops = NULL;

	if (by->optimizer && !(ops = gf_optimizer_find(by->optimizer, err)))
		return -EINVAL;
	for (size_t i = 0; i < GF_ARRAY_LENGTH(uses); i++)
		if (!isnan(*(const double *)((const char *)given + uses[i].offset)) &&
		    !is_used(&uses[i], ops, by->schedule))
			return refuse_use(&uses[i], by, document, err);
	if (given->ndrops && !is_used(&drops, ops, by->schedule))
		return refuse_use(&drops, by, document, err);
	return 0;
}

/* -EINVAL: the optimiser, the schedule or the mode of loss_scale that a document names has no use
 * for another of its keys. */
static int document_heeded(const struct gf_training *t, struct gf_error *err)
{
	const char *mode = t->scaling >= 0 ? gf_scaling_names[t->scaling] : "";

	if (t->scaling == GF_SCALING_NONE && !isnan(t->scale))
		return gf_error_set(err, -EINVAL,
				    "/loss_scale/initial: want a mode that scales, got %s", mode);
	if ((t->scaling == GF_SCALING_NONE || t->scaling == GF_SCALING_STATIC) && t->growth_steps)
		return gf_error_set(err, -EINVAL,
				    "/loss_scale/growth_steps: want mode dynamic or auto, got %s",
				    mode);
	return heeds(t, t, true, err);
}

char *gf_train_document(const struct gf_training *t)
{
	const struct gf_optimizer_ops *ops = gf_optimizer_find(t->optimizer, NULL);
	struct gf_training used = *t;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(uses); i++)
		if (!is_used(&uses[i], ops, t->schedule))
			*(double *)((char *)&used + uses[i].offset) = NAN;
	if (!is_used(&drops, ops, t->schedule))
		used.ndrops = 0;
	if (t->scaling == GF_SCALING_NONE)
		used.scale = NAN;
	if (t->scaling == GF_SCALING_NONE || t->scaling == GF_SCALING_STATIC)
		used.growth_steps = 0;
	return gf_training_write(&used);
}

int gf_train_options_finish(struct gf_train_options *o, struct gf_error *err)
{
	int rc;

	if (o->replay && o->transport == GF_TRANSPORT_NCCL)
		return gf_error_set(err, -EINVAL,
				    "--replay: want --transport mpi, ucx or auto, got nccl: there "
				    "are no gradients of GPUs");
	if (!isnan(o->training.rate_batch) && isnan(o->training.rate) && !o->training_file)
		return gf_error_set(err, -EINVAL,
				    "--schedule: for_batch goes with --lr or --training");
	if (o->optimizer >= 0)
		o->training.optimizer = (char *)gf_optimizers[o->optimizer]->name;
	o->config.place.graphs = o->cuda_graph == GF_TRAIN_GRAPHS_ON;
	o->config.no_graphs = o->cuda_graph == GF_TRAIN_GRAPHS_OFF;
	o->config.half = gf_train_precisions[o->precision] == GF_F16;
	rc = gf_train_place_check(o->device, err);
	return rc || !o->loss_scale ? rc : read_scale(o->loss_scale, &o->training, err);
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

/* --- documents and data --------------------------------------------------- */

/* Options override the document of --training. */
static int load_training(const struct gf_train_options *o, struct gf_train_config *config,
			 struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	GF_FREED char *path = NULL;
	int rc = 0;

	gf_training_copy(&config->training, &o->training);
	if (!o->training_file)
		return 0;
	if (config->comm->rank == 0)
		rc = gf_cli_share("training", o->training_file, &path, err);
	rc = gf_train_read(config->comm, rc, path, "gf-training", &d, err);
	if (!rc) {
		rc = document_heeded(d.training, err);
		if (rc)
			gf_error_prefix(err, "%s", o->training_file);
		gf_training_fill(&config->training, d.training);
	}
	return rc;
}

/* A name in a document is that of something shipped, never a path. */
static int find_named(const char *document, const char *what, const char *name, char **path,
		      struct gf_error *err)
{
	GF_FREED char *folder = gf_xasprintf("%ss", what);
	int rc = gf_cli_shipped(folder, name, path, err);

	if (rc)
		rc = gf_error_set(
			err, -EINVAL,
			"the %s's %s: want the name of a shipped %s, got \"%s\" (--%s FILE "
			"names another)",
			document, what, what, name, what);
	return rc;
}

/* --plan, else the training's, else the default. */
static int load_plan(const struct gf_train_options *o, struct gf_comm *comm,
		     const struct gf_training *t, struct gf_plan *plan, struct gf_error *err)
{
	GF_FREED char *path = NULL;
	int rc = 0;

	if (!o->plan && !t->plan) {
		gf_train_default_plan(plan, o->reproducible);
		return 0;
	}
	if (o->plan)
		path = gf_xstrdup(o->plan);
	else if (comm->rank == 0)
		rc = find_named("training", "plan", t->plan, &path, err);
	rc = gf_train_read_plan(comm, rc, path, plan, err);
	if (rc == 0 && o->reproducible && !plan->reproducible)
		rc = gf_error_set(err, -EINVAL,
				  "--reproducible: want a plan of gf-plan --reproducible, got %s",
				  o->plan ? o->plan : t->plan);
	return rc;
}

/* --model, else the model that a whole plan was made for, else the training's, else the default. */
static int find_model(const struct gf_train_options *o, const struct gf_training *t,
		      const struct gf_plan *plan, char **path, struct gf_error *err)
{
	const char *planned = plan->model ? plan->model->name : NULL;

	if (o->model)
		return gf_cli_share("models", o->model, path, err);
	if (planned && t->model && strcmp(planned, t->model) != 0)
		return gf_error_set(err, -EINVAL,
				    "want a plan for the training's model %s, got one for %s "
				    "(--model names the one to train)",
				    t->model, planned);
	if (planned)
		return find_named("plan", "model", planned, path, err);
	if (t->model)
		return find_named("training", "model", t->model, path, err);
	return gf_cli_shipped("models", "digits-cnn", path, err);
}

static int load_model(const struct gf_train_options *o, struct gf_comm *comm,
		      const struct gf_training *t, struct gf_train_inputs *in, struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	GF_FREED char *path = NULL;
	int rc = 0;

	if (comm->rank == 0)
		rc = find_model(o, t, &in->plan, &path, err);
	rc = gf_train_read(comm, rc, path, "gf-model", &d, err);
	if (!rc) {
		in->model = *d.model;
		memset(d.model, 0, sizeof(*d.model));
	}
	return rc;
}

/* What the options name takes the place of what the training names. */
static void forget(char **name, const char *option)
{
	if (!option)
		return;
	free(*name);
	*name = NULL;
}

static int load_data(const struct gf_train_options *o, const struct gf_train_config *config,
		     struct gf_train_inputs *in, struct gf_error *err)
{
	const char *name = o->data ? o->data : "digits";
	const char *folder = gf_dataset_folder(name);
	GF_FREED char *found = NULL, *path = NULL;

	/* what is no folder may still be the name of a made-up set */
	gf_cli_share("data", folder, &found, NULL);
	path = gf_xasprintf("%.*s%s", (int)(folder - name), name, found ? found : folder);
	return gf_train_open_data(config->comm, path, &in->model, config->training.seed, &in->data,
				  err);
}

int gf_train_load(const struct gf_train_options *o, struct gf_train_config *config,
		  struct gf_train_inputs *in, struct gf_error *err)
{
	struct gf_training *t = &config->training;
	struct gf_comm *comm = config->comm;
	const char *from;
	int rc;

	config->plan = &in->plan;
	config->model = &in->model;
	config->data = &in->data;
	rc = load_training(o, config, err);
	rc = rc ?: load_plan(o, comm, t, &in->plan, err);
	if (!rc && !o->replay)
		rc = load_model(o, comm, t, in, err);
	rc = rc ?: gf_choose_place(comm, &in->plan, false, err);
	if (rc)
		return rc;
	rc = gf_train_bind(&in->plan, o->replay ? NULL : &in->model, comm->ranks, err);
	from = o->plan ? o->plan : t->plan;
	if (rc && from)
		gf_error_prefix(err, "%s", from);
	rc = gf_comm_agree(comm, rc, err);
	forget(&t->plan, o->plan);
	forget(&t->model, o->model);
	rc = rc ?: gf_train_complete(config, err);
	rc = rc ?: heeds(&o->training, t, false, err);
	return rc || o->print_training || o->replay ? rc : load_data(o, config, in, err);
}

void gf_train_unload(struct gf_train_config *config, struct gf_train_inputs *in)
{
	gf_dataset_close(&in->data);
	gf_model_release(&in->model);
	gf_plan_release(&in->plan);
	gf_training_release(&config->training);
	free(config->remark);
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
	GF_RELEASED(gf_table_release) struct gf_table t = {0};
	struct gf_text out = {0};

	gf_text_addf(&out, "selections (of the plan):\n");
	for (size_t i = 0; gf_select_plans[i]; i++)
		if (gf_selection_runs(gf_select_plans[i]))
			add_row(&t, gf_select_plans[i]->name, gf_select_plans[i]->description);
	gf_table_print_in(&t, 0, &out);
	gf_table_release(&t);
	gf_text_addf(&out, "optimizers:\n");
	for (size_t i = 0; gf_optimizers[i]; i++)
		add_row(&t, gf_optimizers[i]->name, gf_optimizers[i]->description);
	gf_table_print_in(&t, 0, &out);
	gf_table_release(&t);
	gf_text_addf(&out, "schedules:\n");
	for (size_t i = 0; gf_schedule_names[i]; i++)
		add_row(&t, gf_schedule_names[i], schedules[i]);
	gf_table_print_in(&t, 0, &out);
	return gf_text_take(&out);
}
