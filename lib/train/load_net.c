/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cli/share.h"
#include "choose/ways.h"
#include "train/assign.h"

/* Options override the document of --training. */
static int load_training(const struct gf_train_options *o,
			 struct gf_train_config *config, struct gf_error *err)
{
	struct gf_training given;
	char *path = NULL;
	int rc = 0;

	gf_training_copy(&config->training, &o->training);
	if (!o->training_file)
		return 0;
	if (config->comm->rank == 0)
		rc = gf_cli_share("training", o->training_file, &path, err);
	rc = gf_train_read_training(config->comm, rc, path, &given, err);
	if (!rc) {
		rc = gf_train_document_heeded(&given, err);
		if (rc)
			gf_error_prefix(err, "%s", o->training_file);
		gf_training_fill(&config->training, &given);
		gf_training_release(&given);
	}
	free(path);
	return rc;
}

/* A name in a document is that of something shipped, never a path. */
static int find_named(const char *document, const char *what, const char *name,
		      char **path, struct gf_error *err)
{
	char *folder = gf_xasprintf("%ss", what);
	int rc = gf_cli_shipped(folder, name, path, err);

	free(folder);
	if (rc)
		gf_error_set(err, rc,
			     "the %s's %s: want the name of a shipped %s, got "
			     "\"%s\" (--%s FILE names another)",
			     document, what, what, name, what);
	return rc;
}

/* --plan, else the training's, else the default. */
static int load_plan(const struct gf_train_options *o, struct gf_comm *comm,
		     const struct gf_training *t, struct gf_plan *plan,
		     struct gf_error *err)
{
	char *path = NULL;
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
	free(path);
	if (rc == 0 && o->reproducible && !plan->reproducible)
		rc = gf_error_set(err, -EINVAL,
				  "--reproducible: want a plan of gf-plan "
				  "--reproducible, got %s",
				  o->plan ? o->plan : t->plan);
	return rc;
}

/* --model, else the model that a whole plan was made for, else the training's,
 * else the default. */
static int find_model(const struct gf_train_options *o,
		      const struct gf_training *t, const struct gf_plan *plan,
		      char **path, struct gf_error *err)
{
	const char *planned = plan->model ? plan->model->name : NULL;

	if (o->model)
		return gf_cli_share("models", o->model, path, err);
	if (planned && t->model && strcmp(planned, t->model) != 0)
		return gf_error_set(err, -EINVAL,
				    "want a plan for the training's model %s, "
				    "got one for %s (--model names the one to "
				    "train)",
				    t->model, planned);
	if (planned)
		return find_named("plan", "model", planned, path, err);
	if (t->model)
		return find_named("training", "model", t->model, path, err);
	return gf_cli_shipped("models", "digits-cnn", path, err);
}

static int load_model(const struct gf_train_options *o, struct gf_comm *comm,
		      const struct gf_training *t, struct gf_train_inputs *in,
		      struct gf_error *err)
{
	char *path = NULL;
	int rc = 0;

	if (comm->rank == 0)
		rc = find_model(o, t, &in->plan, &path, err);
	rc = gf_train_read_model(comm, rc, path, &in->model, err);
	free(path);
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

static int load_data(const struct gf_train_options *o,
		     const struct gf_train_config *config,
		     struct gf_train_inputs *in, struct gf_error *err)
{
	const char *name = o->data ? o->data : "digits";
	const char *folder = gf_dataset_folder(name);
	char *found = NULL, *path;
	int rc;

	/* what is no folder may still be the name of a made-up set */
	gf_cli_share("data", folder, &found, NULL);
	path = gf_xasprintf("%.*s%s", (int)(folder - name), name,
			    found ? found : folder);
	rc = gf_train_open_data(config->comm, path, &in->model,
				config->training.seed, &in->data, err);
	free(found);
	free(path);
	return rc;
}

int gf_train_load(const struct gf_train_options *o,
		  struct gf_train_config *config, struct gf_train_inputs *in,
		  struct gf_error *err)
{
	struct gf_training *t = &config->training;
	struct gf_comm *comm = config->comm;
	const char *from;
	int rc;

	config->plan = &in->plan;
	config->model = &in->model;
	config->data = &in->data;
	rc = load_training(o, config, err);
	rc = rc ? rc : load_plan(o, comm, t, &in->plan, err);
	if (!rc && !o->replay)
		rc = load_model(o, comm, t, in, err);
	if (rc)
		return rc;
	rc = gf_choose_place(comm, &in->plan, false, err);
	if (rc)
		return rc;
	rc = gf_train_bind(&in->plan, o->replay ? NULL : &in->model,
			   comm->ranks, err);
	from = o->plan ? o->plan : t->plan;
	if (rc && from)
		gf_error_prefix(err, "%s", from);
	rc = gf_comm_agree(comm, rc, err);
	forget(&t->plan, o->plan);
	forget(&t->model, o->model);
	rc = rc ? rc : gf_train_complete(config, err);
	rc = rc ? rc : gf_train_options_heeded(o, t, err);
	if (rc || o->print_training || o->replay)
		return rc;
	return load_data(o, config, in, err);
}

void gf_train_unload(struct gf_train_config *config, struct gf_train_inputs *in)
{
	gf_dataset_close(&in->data);
	gf_model_release(&in->model);
	gf_plan_release(&in->plan);
	gf_training_release(&config->training);
	free(config->remark);
}
