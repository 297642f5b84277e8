/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/heap.h"
#include "cli/share.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "planner/policy.h"

struct gf_setup_times gf_setup_split(double total_s)
{
	return (struct gf_setup_times){total_s / 3, total_s * 2 / 3, false};
}

/* A document of share/<kind>; path (for messages) and root are the caller's. */
static int load(const char *kind, const char *name, char **path,
		struct gf_json **root, struct gf_error *err)
{
	char *text = NULL;
	size_t size;
	int rc = gf_cli_share(kind, name, path, err);

	if (!rc)
		rc = gf_file_read(*path, &text, &size, err);
	if (!rc)
		rc = gf_json_parse(text, size, *path, root, err);
	free(text);
	return rc;
}

int gf_setup_topology(const char *name, struct gf_topology *out,
		      struct gf_error *err)
{
	struct gf_json *root = NULL;
	char *path = NULL;
	int rc = load("topologies", name, &path, &root, err);

	if (!rc)
		rc = gf_topology_read(root, path, out, err);
	gf_json_free(root);
	free(path);
	return rc;
}

static int load_model(const char *name, struct gf_model *m,
		      struct gf_error *err)
{
	struct gf_json *root = NULL;
	char *path = NULL;
	int rc = load("models", name, &path, &root, err);

	if (!rc)
		rc = gf_model_read(root, path, m, err);
	gf_json_free(root);
	free(path);
	return rc;
}

/* The share of backward that is done when each layer is. */
static double *layer_shares(const struct gf_model *m)
{
	double *share = gf_xcalloc(m->nlayers + 1, sizeof(*share));
	double done = 0;
	size_t i;

	for (i = m->nlayers; i-- > 0;) {
		done += m->layers[i].backward_flops;
		share[i] = done;
	}
	for (i = 0; i < m->nlayers; i++)
		share[i] /= done;
	return share;
}

int gf_setup_model(const char *name, const struct gf_setup_times *times,
		   enum gf_dtype dtype, struct gf_model_profile **out,
		   struct gf_error *err)
{
	struct gf_model_profile *p;
	struct gf_model m;
	size_t *order, i;
	double *share;
	int rc = load_model(name, &m, err);

	if (rc)
		return rc;
	share = layer_shares(&m);
	order = gf_model_generation_order(&m);
	p = gf_xcalloc(1, sizeof(*p));
	p->name = gf_xstrdup(m.name);
	p->device = gf_xstrdup("estimated");
	p->forward_s = times->forward_s;
	p->backward_s = times->backward_s;
	p->overlap_slowdown = 1;
	p->tensors = gf_xcalloc(m.nparams, sizeof(*p->tensors));
	p->ntensors = m.nparams;
	for (i = 0; i < m.nparams; i++) {
		const struct gf_param *param = &m.params[order[i]];

		p->tensors[i].name = gf_xstrdup(param->name);
		p->tensors[i].count_elems = gf_shape_elems(&param->shape);
		p->tensors[i].dtype = dtype;
		p->tensors[i].ready_s =
			times->backward_s *
			(times->even ? (double)(i + 1) / (double)m.nparams
				     : share[param->layer]);
		p->tensors[i].need_s = NAN;
	}
	*out = p;
	free(order);
	free(share);
	gf_model_release(&m);
	return 0;
}

int gf_setup_bytes(const char *name, bool convolutions, double *bytes,
		   struct gf_error *err)
{
	struct gf_model m;
	size_t i;
	int rc = load_model(name, &m, err);

	if (rc)
		return rc;
	*bytes = 0;
	for (i = 0; i < m.nparams; i++)
		if (!convolutions ||
		    m.layers[m.params[i].layer].type == GF_LAYER_CONV)
			*bytes +=
				4 * (double)gf_shape_elems(&m.params[i].shape);
	gf_model_release(&m);
	return 0;
}

struct gf_network *gf_setup_network(int ranks, double startup_s,
				    double per_byte_s)
{
	struct gf_network *n = gf_xcalloc(1, sizeof(*n));

	n->ranks = ranks;
	n->allreduce = gf_xcalloc(1, sizeof(*n->allreduce));
	n->nallreduce = 1;
	n->allreduce[0].algorithm = gf_xstrdup("ring");
	n->allreduce[0].startup_s = startup_s;
	n->allreduce[0].per_byte_s = per_byte_s;
	return n;
}

int gf_setup_predict(const struct gf_model_profile *model,
		     const struct gf_network *network,
		     const struct gf_policy *policy, int lanes,
		     struct gf_setup_result *out, struct gf_error *err)
{
	struct gf_problem problem = {.model = model,
				     .network = network,
				     .ranks = network->ranks,
				     .lanes = lanes};
	struct gf_plan plan;
	int rc;

	rc = gf_policy_run(policy, &problem, &plan, err);
	if (rc) {
		gf_error_prefix(err, "%s, %s", model->name, policy->name);
		return rc;
	}
	out->iteration_s = plan.predicted->iteration_s;
	out->lower_bound_s = plan.predicted->lower_bound_s;
	out->messages = plan.nmessages;
	gf_plan_release(&plan);
	return 0;
}
