/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/emit.h"

#include <errno.h>
#include <string.h>

#include "json/json.h"

static void head(const struct gf_plan *p, const char *what, struct gf_text *out)
{
	gf_text_addf(out, "# gradflow: %s, policy %s", what,
		     p->policy ? p->policy : "unknown");
	if (p->model)
		gf_text_addf(out, ", model %s, %d ranks, %zu messages",
			     p->model->name, p->ranks, p->nmessages);
	gf_text_addf(out, "\n");
}

static bool dense(const struct gf_plan *p)
{
	return gf_selection_has(&p->selection, GF_SELECT_LOSSLESS) &&
	       p->staleness == 1;
}

/* The parts of a plan that both Python targets leave out. */
static void caveats(const struct gf_plan *p, struct gf_text *out)
{
	size_t i, simultaneous = 0, late = 0;

	for (i = 0; i < p->nmessages; i++) {
		simultaneous += p->messages[i].mode == GF_MODE_SIMULTANEOUS;
		late += p->messages[i].release == GF_RELEASE_BACKWARD_END;
	}
	if (simultaneous)
		gf_text_addf(out,
			     "# %zu messages are planned simultaneous: here "
			     "the library decides what overlaps.\n",
			     simultaneous);
	if (late)
		gf_text_addf(out,
			     "# %zu messages are planned for after "
			     "backward: here they go when ready.\n",
			     late);
}

static int need_buckets(const struct gf_plan *p, const char *target,
			struct gf_error *err)
{
	size_t i;

	if (p->rule)
		return 0;
	if (!dense(p))
		return gf_error_set(
			err, -ENOTSUP,
			"--emit %s: want a dense plan without "
			"staleness, got selection %s and staleness %d",
			target, gf_selection_name(&p->selection), p->staleness);
	for (i = 0; i < p->nmessages; i++)
		if (p->messages[i].half == GF_HALF_SPLIT)
			return gf_error_set(
				err, -ENOTSUP,
				"--emit %s: want whole messages, got "
				"split ones (dear)",
				target);
	return 0;
}

/*
 * DDP closes a bucket once it holds its cap or more. So a cap of a message's
 * exact bytes closes the bucket after the message's last tensor, as long as
 * gradients become ready in the plan's order. A double of bytes / 2^20 is
 * exact.
 */
static int emit_ddp(const struct gf_plan *p, struct gf_text *out,
		    struct gf_error *err)
{
	char number[GF_JSON_REAL_TEXT];
	double most = 0;
	size_t i;
	int rc = need_buckets(p, "ddp", err);

	if (rc < 0)
		return rc;
	head(p, "buckets for torch.nn.parallel.DistributedDataParallel", out);
	if (p->rule) {
		gf_json_real_text((double)p->rule->threshold_bytes / 1048576,
				  number);
		gf_text_addf(out, "ddp_arguments = {\"bucket_cap_mb\": %s}\n",
			     number);
		return 0;
	}
	caveats(p, out);
	gf_text_addf(out, "import inspect\n"
			  "from torch.nn.parallel import "
			  "DistributedDataParallel\n\n"
			  "bucket_cap_mb_list = [");
	for (i = 0; i < p->nmessages; i++) {
		double mb = (double)gf_plan_message_bytes(p, i) / 1048576;

		gf_json_real_text(mb, number);
		gf_text_addf(out, "%s%s", i == 0 ? "" : ", ", number);
		most = mb > most ? mb : most;
	}
	gf_json_real_text(most, number);
	gf_text_addf(
		out,
		"]\n\n"
		"# DistributedDataParallel(model, **ddp_arguments): these "
		"buckets where it takes\n"
		"# a list of caps, else one cap of the largest.\n"
		"_has_list = \"bucket_cap_mb_list\" in inspect.signature(\n"
		"    DistributedDataParallel.__init__).parameters\n"
		"ddp_arguments = ({\"bucket_cap_mb_list\": "
		"bucket_cap_mb_list} if _has_list\n"
		"                 else {\"bucket_cap_mb\": %s})\n",
		number);
	return 0;
}

static int emit_horovod(const struct gf_plan *p, struct gf_text *out,
			struct gf_error *err)
{
	size_t i, k;
	int rc = need_buckets(p, "horovod", err);

	if (rc < 0)
		return rc;
	head(p, "groups for hvd.DistributedOptimizer", out);
	gf_text_addf(out, "import os\n\n");
	if (p->rule) {
		gf_text_addf(out,
			     "os.environ[\"HOROVOD_FUSION_THRESHOLD\"] = "
			     "\"%zu\"\n",
			     p->rule->threshold_bytes);
		return 0;
	}
	caveats(p, out);
	gf_text_addf(out, "os.environ[\"HOROVOD_DISABLE_GROUP_FUSION\"] = "
			  "\"1\"\n\n"
			  "group_names = [\n");
	for (i = 0; i < p->nmessages; i++) {
		gf_text_addf(out, "    [");
		for (k = p->messages[i].first; k <= p->messages[i].last; k++) {
			gf_text_addf(out, "%s",
				     k == p->messages[i].first ? "" : ", ");
			gf_json_quote(out, p->model->tensors[k].name);
		}
		gf_text_addf(out, "],\n");
	}
	gf_text_addf(out, "]\n\n\n"
			  "def groups(model):\n"
			  "    \"\"\"hvd.DistributedOptimizer(optimizer, "
			  "groups=groups(model), ...)\"\"\"\n"
			  "    parameters = dict(model.named_parameters())\n"
			  "    return [[parameters[name] for name in group] "
			  "for group in group_names]\n");
	return 0;
}

/* NCCL's name for ours, or NULL. It stops at a name it does not know. */
static const char *nccl_name(const char *algorithm)
{
	static const struct {
		const char *ours, *theirs;
	} table[] = {
		{"ring", "ring"},
		{"tree", "tree"},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].ours, algorithm) == 0)
			return table[i].theirs;
	return NULL;
}

/* The algorithm of all messages (of a rule: of long ones), NULL if they
 * differ. NCCL chooses by process, not by message. */
static const char *one_algorithm(const struct gf_plan *p)
{
	size_t i;

	if (p->rule)
		return p->rule->algorithms[p->rule->nalgorithms - 1].algorithm;
	for (i = 1; i < p->nmessages; i++)
		if (strcmp(p->messages[i].algorithm,
			   p->messages[0].algorithm) != 0)
			return NULL;
	return p->messages[0].algorithm;
}

static int emit_nccl(const struct gf_plan *p, struct gf_text *out,
		     struct gf_error *err)
{
	const char *algorithm = one_algorithm(p);
	const char *theirs = algorithm ? nccl_name(algorithm) : NULL;

	(void)err;
	head(p, "environment for NCCL", out);
	if (theirs)
		gf_text_addf(out, "export NCCL_ALGO=allreduce:%s\n", theirs);
	else if (algorithm)
		gf_text_addf(out,
			     "# NCCL_ALGO is left to NCCL, which has no "
			     "%s.\n",
			     algorithm);
	else
		gf_text_addf(out, "# NCCL_ALGO is left to NCCL: it is one for "
				  "all messages, the plan's differ.\n");
	if (p->lanes > 1)
		gf_text_addf(out,
			     "# %d messages at once: one communicator each, "
			     "launched in one order on every\n"
			     "# rank, none filling the GPU.\n"
			     "export NCCL_LAUNCH_ORDER_IMPLICIT=1\n"
			     "export NCCL_MAX_CTAS=%d\n",
			     p->lanes, 64 / p->lanes > 1 ? 64 / p->lanes : 1);
	return 0;
}

const struct gf_emitter gf_emitters[] = {
	{"ddp", "PyTorch DistributedDataParallel, Python", emit_ddp},
	{"horovod", "Horovod's DistributedOptimizer, Python", emit_horovod},
	{"nccl-env", "environment variables of NCCL, shell", emit_nccl},
	{NULL, NULL, NULL},
};

int gf_plan_emit(const struct gf_plan *p, const char *target,
		 struct gf_text *out, struct gf_error *err)
{
	size_t i;

	for (i = 0; gf_emitters[i].name; i++)
		if (strcmp(gf_emitters[i].name, target) == 0)
			return gf_emitters[i].emit(p, out, err);
	return gf_error_set(err, -EINVAL,
			    "--emit: want ddp, horovod or nccl-env, got %s",
			    target);
}
