/* SPDX-License-Identifier: BSD-3-Clause */
#include "gradflow.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "comm/pages.h"
#include "doc/stream.h"
#include "embed/job.h"
#include "train/train.h"

#define API __attribute__((visibility("default")))

static _Thread_local struct gf_error last;

API const char *gradflow_error(void)
{
	return last.text;
}

API const char *gradflow_version(void)
{
	return GF_VERSION;
}

/* --- open ---------------------------------------------------------------- */

/* What the ranks would else find out in the middle of a step. */
static int same_options(struct gradflow *g, const struct gradflow_options *o)
{
	char *training = gf_training_write(&g->training);
	char *numbers = gf_xasprintf("epoch_steps %zu, timeout_s %g",
				     o->epoch_steps, o->timeout_s);
	const struct {
		const char *what, *text;
	} said[] = {
		{"version", GF_VERSION},
		{"training", training},
		{"plan", o->plan ? o->plan : "none"},
		{"options", numbers},
		{"ways", o->ways ? o->ways : "none"},
	};
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < GF_ARRAY_LENGTH(said); i++)
		rc = gf_comm_same_text(g->comm, said[i].what, said[i].text,
				       &last);
	free(training);
	free(numbers);
	return rc;
}

static int read_training(struct gradflow *g, const char *text)
{
	struct gf_documents d = {0};
	int rc = 0;

	gf_training_init(&g->training);
	if (text)
		rc = gf_documents_add_text(&d, text, strlen(text), "training",
					   &last);
	if (!rc && text && !d.training)
		rc = gf_error_set(&last, -EINVAL,
				  "training: want a gf-training document, "
				  "found none");
	if (!rc && text)
		gf_training_copy(&g->training, d.training);
	gf_documents_release(&d);
	/* what gf-train takes suits its own models */
	if (!rc)
		rc = gf_train_complete_plain(&g->training, &last);
	return rc;
}

static int open_all(struct gradflow *g, const struct gradflow_tensor *given,
		    const struct gradflow_options *options)
{
	struct gradflow_tensor *tensors = NULL;
	struct gradflow_options o = {0};
	int rc = gf_embed_take_options(options, &o, &last);

	g->epoch_steps = o.epoch_steps;
	g->timeout_s = o.timeout_s;
	rc = rc ? rc
		: gf_embed_take_tensors(given, g->ntensors, o.tensor_size,
					&tensors, &last);
	rc = rc ? rc : gf_embed_check(tensors, g->ntensors, &last);
	rc = rc ? rc : read_training(g, o.training);
	/* one rank's mistake is every rank's failure, told alike */
	rc = gf_comm_agree(g->comm, rc, &last);
	rc = rc ? rc : same_options(g, &o);
	rc = rc ? rc : gf_embed_bind(g, tensors, &o, &last);
	free(tensors);
	return rc ? rc : gf_embed_start(g, &last);
}

API int gradflow_open(const struct gradflow_tensor *tensors, size_t ntensors,
		      const struct gradflow_options *options,
		      struct gradflow **out)
{
	struct gradflow *g = gf_xcalloc(1, sizeof(*g));
	int rc;

	*out = NULL;
	gf_training_init(&g->training);
	rc = gf_comm_open(NULL, &g->comm, &last);
	if (rc) {
		free(g);
		return rc;
	}
	g->ntensors = ntensors;
	rc = open_all(g, tensors, options);
	if (rc) {
		gradflow_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

API void gradflow_close(struct gradflow *g)
{
	size_t i;

	if (!g)
		return;
	/* Ranks are lost, and the engine's thread may yet write. */
	if (g->comm->broken)
		return;
	/* what has left is waited for: the other ranks have part in it */
	if (g->begun)
		gf_method_backward_end(&g->method);
	gf_method_close(&g->method);
	gf_state_release(&g->state);
	gf_plan_release(&g->plan);
	gf_training_release(&g->training);
	gf_pages_free(g->params);
	free(g->shapes);
	free(g->order);
	free(g->offset);
	free(g->codecs);
	free(g->asked);
	free(g->ways);
	free(g->said);
	for (i = 0; i < g->nfolders; i++)
		free(g->folders[i]);
	free(g->folders);
	gf_comm_close(g->comm);
	free(g);
}

/* --- what is there ------------------------------------------------------- */

API int gradflow_rank(const struct gradflow *g)
{
	return g->comm->rank;
}

API int gradflow_ranks(const struct gradflow *g)
{
	return g->comm->ranks;
}

API int gradflow_local_rank(const struct gradflow *g)
{
	return g->comm->local_rank;
}

API const char *gradflow_ways(const struct gradflow *g)
{
	return g->ways;
}

API size_t gradflow_place(const struct gradflow *g, size_t tensor)
{
	return tensor < g->ntensors ? g->offset[g->order[tensor]] : SIZE_MAX;
}

API float *gradflow_parameters(struct gradflow *g)
{
	return g->params;
}

API size_t gradflow_count(const struct gradflow *g)
{
	return g->offset[g->ntensors];
}

API uint64_t gradflow_steps(const struct gradflow *g)
{
	return g->steps;
}

API uint64_t gradflow_sent_bytes(struct gradflow *g)
{
	if (!g->failed)
		g->sent_bytes += gf_method_sent_bytes(&g->method);
	return g->sent_bytes;
}

/* --- steps --------------------------------------------------------------- */

/* What failed once fails for good, for the same reason. */
static int keep(struct gradflow *g, int rc)
{
	if (rc && !g->failed) {
		g->failed = rc < 0 ? rc : -EDOM;
		g->why = last;
	}
	return g->failed;
}

static int failed(const struct gradflow *g)
{
	if (g->failed)
		last = g->why;
	return g->failed;
}

/* Is a step under way, as that call wants it? */
static int within_step(const struct gradflow *g, const char *call)
{
	if (g->failed)
		return failed(g);
	return g->begun ? 0
			: gf_error_set(&last, -EINVAL,
				       "%s, step %zu: want gradflow_begin "
				       "first",
				       call, (size_t)g->steps + 1);
}

static int between_steps(const struct gradflow *g, const char *call)
{
	if (g->failed)
		return failed(g);
	return g->begun ? gf_error_set(&last, -EINVAL,
				       "%s: want it between steps, got it "
				       "within step %zu",
				       call, (size_t)g->steps + 1)
			: 0;
}

API int gradflow_start(struct gradflow *g)
{
	struct gf_team team = gf_method_team(&g->method);
	int rc = between_steps(g, "gradflow_start");

	return rc ? rc
		  : keep(g, gf_team_bcast(&team, g->params,
					  gradflow_count(g) * sizeof(float),
					  &last));
}

API float *gradflow_begin(struct gradflow *g)
{
	if (between_steps(g, "gradflow_begin"))
		return NULL;
	g->begun = true;
	return gf_method_begin(&g->method, (size_t)g->steps + 1);
}

API int gradflow_ready(struct gradflow *g, size_t tensor)
{
	int rc = within_step(g, "gradflow_ready");

	if (rc)
		return rc;
	if (tensor >= g->ntensors)
		return gf_error_set(&last, -EINVAL,
				    "gradflow_ready: want a tensor below %zu, "
				    "got %zu",
				    g->ntensors, tensor);
	gf_method_ready(&g->method, g->order[tensor]);
	return 0;
}

API int gradflow_step(struct gradflow *g, double rate)
{
	size_t step = (size_t)g->steps + 1;
	int rc = within_step(g, "gradflow_step");

	if (rc)
		return rc;
	g->begun = false;
	gf_method_backward_end(&g->method);
	rc = keep(g, gf_method_exchange(&g->method, step, &last));
	if (rc)
		return rc;
	gf_method_update(&g->method, step, rate);
	g->steps++;
	return 0;
}

API int gradflow_save(struct gradflow *g, const char *folder)
{
	int rc = between_steps(g, "gradflow_save");

	return rc ? rc : gf_embed_save(g, folder, &last);
}

API int gradflow_load(struct gradflow *g, const char *folder)
{
	int rc = between_steps(g, "gradflow_load");

	return rc ? rc : gf_embed_load(g, folder, &last);
}
