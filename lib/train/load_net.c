/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/load_net.h"

#include <stdlib.h>

#include "base/heap.h"
#include "cli/share.h"
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
		gf_training_fill(&config->training, &given);
		gf_training_release(&given);
	}
	free(path);
	return rc;
}

/* --model, else the model that a whole plan was made for, else the default. A
 * name in a document is a shipped model's, never a path. */
static int find_model(const struct gf_train_options *o,
		      const struct gf_plan *plan, char **path,
		      struct gf_error *err)
{
	const char *named = plan->model ? plan->model->name : "digits-cnn";
	int rc;

	if (o->model)
		return gf_cli_share("models", o->model, path, err);
	rc = gf_cli_shipped("models", named, path, err);
	if (rc && plan->model)
		gf_error_set(err, rc,
			     "the plan's model: want the name of a shipped "
			     "model, got \"%s\" (--model FILE names another)",
			     named);
	return rc;
}

static int load_model(const struct gf_train_options *o, struct gf_comm *comm,
		      struct gf_train_inputs *in, struct gf_error *err)
{
	char *path = NULL;
	int rc = comm->rank == 0 ? find_model(o, &in->plan, &path, err) : 0;

	rc = gf_train_read_model(comm, rc, path, &in->model, err);
	free(path);
	return rc;
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
	struct gf_comm *comm = config->comm;
	int rc = 0;

	config->plan = &in->plan;
	config->model = &in->model;
	config->data = &in->data;
	if (o->plan)
		rc = gf_train_read_plan(comm, o->plan, &in->plan, err);
	else
		gf_train_default_plan(&in->plan);
	if (!rc && !o->replay)
		rc = load_model(o, comm, in, err);
	if (rc)
		return rc;
	rc = gf_train_bind(&in->plan, o->replay ? NULL : &in->model,
			   comm->ranks, err);
	if (rc && o->plan)
		gf_error_prefix(err, "%s", o->plan);
	rc = gf_comm_agree(comm, rc, err);
	rc = rc ? rc : load_training(o, config, err);
	rc = rc ? rc : gf_train_complete(config, err);
	rc = rc ? rc : gf_train_options_heeded(o, &config->training, err);
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
}
