/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/options.h"

#include <string.h>
#include <sys/types.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "documents/algorithm_traits.h"
#include "documents/plan_rule.h"
#include "documents/stream.h"
#include "collectives/runnable.h"
#include "trainer/choose_ways.h"

/*
 * Without a measured network: small enough that a gradient of a few MiB still overlaps with
 * backward, large enough that startup costs of some 100 us stay below a tenth of the transfer on a
 * 1 Gb/s link.
 */
#define DEFAULT_THRESHOLD_BYTES 131072
/* The same bits on every rank, any number of ranks, bandwidth-optimal. */
#define DEFAULT_ALGORITHM "ring"

static char *describe(const struct gf_train_options *o)
{
	const struct gf_train_config *c = &o->config;

	return gf_xasprintf(
		"--steps %zu --checkpoint-every %zu --check-replicas %zd --bad-gradients %s "
		"--timeout %gs --target %g --test-samples %zu%s --resume %s%s%s%s%s%s",
		c->steps, c->checkpoint_every, (ssize_t)c->check_every,
		c->skip_bad ? "skip" : "end", c->timeout_s, o->target, c->test_samples,
		c->checkpoint ? " --checkpoint" : "", gf_train_resumes[c->resume],
		o->trace ? " --trace" : "", o->statistics ? " --statistics" : "",
		o->cuda_graph ? " --cuda-graph " : "",
		o->cuda_graph ? gf_train_graphs[o->cuda_graph] : "",
		o->reproducible ? " --reproducible" : "");
}

/* The options' training, on one line and without its envelope. */
static char *describe_training(const struct gf_train_options *o)
{
	char *text = gf_training_write(&o->training), *to, *from;

	from = strstr(text, "\"version\"");
	from = from ? strchr(from, '\n') : text;
	for (to = text; from && *from; from++)
		if (*from != '\n' && !(*from == ' ' && (to == text || to[-1] == ' ')))
			*to++ = *from;
	if (to > text)
		to--; /* the object's brace */
	*to = '\0';
	return text;
}

/* The kind of a checked device: "auto", "cuda" or "cpu", which also stands for the host's backends.
 * Ranks of one job must want the same. */
static const char *kind_of(const char *device)
{
	size_t index;

	if (!gf_own_gpu_read(device, &index, NULL))
		return "cuda";
	return strcmp(device, "auto") == 0 ? "auto" : "cpu";
}

int gf_train_same(struct gf_comm *comm, const struct gf_train_options *o, struct gf_error *err)
{
	GF_FREED char *training = describe_training(o), *text = describe(o);
	const struct {
		const char *what, *text;
	} said[] = {
		{"version", GF_VERSION},
		{"plan", o->plan ? o->plan : "none"},
		{"model", o->model ? o->model : "the plan's or the default"},
		{"training", o->training_file ? o->training_file : "options"},
		{"options", text},
		{"training", training},
		{"device", kind_of(o->device)},
		{"transport", gf_train_transports[o->transport]},
		{"precision", gf_dtype_names[gf_train_precisions[o->precision]]},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < GF_ARRAY_LENGTH(said); i++)
		rc = gf_comm_same_text(comm, said[i].what, said[i].text, err);
	return rc;
}

int gf_train_read(struct gf_comm *comm, int rc, const char *path, const char *format,
		  struct gf_documents *d, struct gf_error *err)
{
	size_t length = 0;
	GF_FREED char *text = NULL;

	if (!rc && comm->rank == 0)
		rc = gf_file_read(path, &text, &length, err);
	rc = gf_comm_agree(comm, rc, err);
	rc = rc ?: gf_comm_bcast_text(comm, 0, &text, &length, err);
	rc = rc ?: gf_documents_add_text(d, text, length, path ? path : "", err);
	if (!rc) {
		rc = gf_documents_require(d, format, err);
		if (rc)
			gf_error_prefix(err, "%s", path ? path : "");
	}
	return rc;
}

int gf_train_read_plan(struct gf_comm *comm, int rc, const char *path, struct gf_plan *plan,
		       struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};

	rc = gf_train_read(comm, rc, path, "gf-plan", &d, err);
	if (!rc) {
		*plan = *d.plan;
		memset(d.plan, 0, sizeof(*d.plan));
	}
	return rc;
}

/* Does a model of text read the number after a position before it answers there? With attention to
 * later positions it does, and is trained to tell numbers that it cannot see
 * (data/data_parts.h). */
static bool reads_ahead(const struct gf_model *m)
{
	bool ahead = false;

	for (size_t i = 0; i < m->nlayers; i++)
		ahead |= m->layers[i].type == GF_LAYER_ATTENTION && !m->layers[i].causal;
	return ahead && gf_model_vocabulary(m) && gf_model_positions(m) > 1;
}

int gf_train_open_data(struct gf_comm *comm, const char *path, const struct gf_model *model,
		       size_t seed, struct gf_dataset *data, struct gf_error *err)
{
	struct gf_dataset_want want = {
		.input = model->input,
		.classes = model->classes,
		.positions = gf_model_positions(model),
		.vocabulary = gf_model_vocabulary(model),
		.masked = reads_ahead(model),
		.seed = seed,
	};
	int rc = gf_dataset_open(path, &want, data, err);
	GF_FREED char *counts = NULL;

	rc = gf_comm_agree(comm, rc, err);
	if (rc)
		return rc;
	/* an epoch has as many steps on every rank */
	counts = gf_xasprintf("%zu training and %zu test samples", data->count[GF_PART_TRAIN],
			      data->count[GF_PART_TEST]);
	return gf_comm_same_text(comm, "data", counts, err);
}

/* In halves, for it is bandwidth-optimal then. */
static const char *reproducible_algorithm(void)
{
	const struct gf_algorithm_traits *a;
	size_t i = 0;

	do
		a = gf_algorithm_at(i++);
	while (!(a->traits & GF_ALGORITHM_HALVES) || !gf_algorithm_reproduces(a->name, "f32"));
	return a->name;
}

void gf_train_default_plan(struct gf_plan *rule, bool reproducible)
{
	struct gf_rule *r = gf_xcalloc(1, sizeof(*r));

	r->threshold_bytes = DEFAULT_THRESHOLD_BYTES;
	r->lanes = 1;
	r->algorithms = gf_xcalloc(1, sizeof(*r->algorithms));
	r->nalgorithms = 1;
	r->algorithms[0].algorithm =
		gf_xstrdup(reproducible ? reproducible_algorithm() : DEFAULT_ALGORITHM);
	memset(rule, 0, sizeof(*rule));
	rule->producer = gf_xstrdup("gf-train " GF_VERSION);
	rule->system = gf_xstrdup("auto");
	rule->policy = gf_xstrdup("threshold");
	rule->lanes = 1;
	rule->staleness = 1;
	rule->reproducible = reproducible;
	rule->rule = r;
}

/* The model as a profile that knows no times. */
static struct gf_model_profile *list_tensors(const struct gf_model *model)
{
	struct gf_model_profile *out = gf_model_profile_untimed(model->name, model->ntrained);
	size_t *order = gf_model_generation_order(model), i;

	for (i = 0; i < model->ntrained; i++) {
		const struct gf_param *p = &model->params[order[i]];

		out->tensors[i].name = gf_xstrdup(p->name);
		out->tensors[i].count_elems = gf_shape_elems(&p->shape);
		gf_tensor_set_shape(&out->tensors[i], p->shape.dims, p->shape.rank);
	}
	free(order);
	return out;
}

int gf_train_fit(struct gf_plan *plan, const struct gf_model_profile *model, int ranks,
		 struct gf_error *err)
{
	struct gf_plan whole;
	int rc;

	if (!plan->rule)
		return gf_plan_fit(plan, model, ranks, err);
	rc = gf_plan_bind(plan, model, ranks, &whole, err);
	if (!rc) {
		gf_plan_release(plan);
		*plan = whole;
	}
	return rc;
}

/* A unit stays gathered if a later layer shares a weight of it. */
static void keep_shared(struct gf_plan *plan, const struct gf_model *model)
{
	size_t *order = gf_model_generation_order(model), l, t, i;

	for (l = 0; l < model->nlayers; l++)
		for (i = 0; i < plan->nmessages && model->layers[l].tied; i++)
			for (t = plan->messages[i].first; t <= plan->messages[i].last; t++)
				plan->messages[i].keep |=
					order[t] == gf_layer_use(&model->layers[l], 0);
	free(order);
}

int gf_train_bind(struct gf_plan *plan, const struct gf_model *model, int ranks,
		  struct gf_error *err)
{
	struct gf_model_profile *tensors = NULL;
	bool rule = plan->rule;
	int rc;

	if (!model && !plan->model)
		return gf_error_set(err, -EINVAL,
				    "want a plan with a model's times to replay, got a rule");
	if (model)
		tensors = list_tensors(model);
	rc = gf_train_fit(plan, model ? tensors : plan->model, ranks, err);
	gf_model_profile_free(tensors);
	if (!rc && model && gf_shard_has(&plan->shard, GF_SHARD_PARAMETERS))
		keep_shared(plan, model);
	/* a whole plan names its algorithms: nothing is open in it */
	if (!rc && !(rule && gf_train_is_open(plan)))
		rc = gf_plan_runnable(plan, err);
	return rc;
}
