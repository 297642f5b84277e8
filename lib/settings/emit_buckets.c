/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are told buckets: Python to import. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "documents/selections/selection.h"
#include "json/json.h"
#include "planner/policies/policy.h"
#include "settings/emit.h"
#include "lists/gf_emitters.h"

#define MIB 1048576.0

/* What the programs call our codecs; NULL: they have none of the kind. */
static const struct compression {
	const char *codec, *ddp, *horovod;
} compressions[] = {
	{"f32", "", ""},
	{"f16", "fp16_compress_hook", "fp16"},
	{"bf16", "bf16_compress_hook", NULL},
};

static const struct compression *compression_of(const char *codec)
{
	static const struct compression none;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(compressions); i++)
		if (strcmp(compressions[i].codec, codec) == 0)
			return &compressions[i];
	return &none;
}

/* Comments on the parts of a plan that a program with an all-reduce of its own leaves out. */
static void add_caveats(const struct gf_plan *p, struct gf_text *out)
{
	size_t i, simultaneous = 0, late = 0, chosen = 0;

	for (i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];
		const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);

		simultaneous += m->mode == GF_MODE_SIMULTANEOUS;
		late += m->release == GF_RELEASE_BACKWARD_END;
		chosen += a && a->build;
	}
	if (simultaneous)
		gf_text_addf(out,
			     "# %zu messages are planned simultaneous: here the library decides "
			     "what overlaps.\n",
			     simultaneous);
	if (late)
		gf_text_addf(
			out,
			"# %zu messages are planned for after backward: here they go when ready.\n",
			late);
	if (chosen)
		gf_text_addf(out,
			     "# %zu messages are planned by algorithms of gradflow: here the "
			     "library chooses.\n",
			     chosen);
}

/* -ENOTSUP: the plan has that kind of thing, and the target has none. */
static int lacks(const struct gf_emitter *e, const char *kind, const char *name,
		 struct gf_error *err)
{
	return gf_error_set(err, -ENOTSUP, "--emit %s: %s has no %s%s (gradflow.ddp runs the plan)",
			    e->name, e->program, kind, name);
}

static int check_codecs(const struct gf_plan *p, const struct gf_emitter *e, struct gf_error *err)
{
	for (size_t i = 0; i < p->nmessages; i++) {
		if (!e->takes_codec(p->messages[i].codec))
			return lacks(e, "codec ", p->messages[i].codec, err);
		if (strcmp(p->messages[i].codec, p->messages[0].codec) != 0)
			return gf_error_set(
				err, -ENOTSUP,
				"--emit %s: want one codec for all messages, got %s and %s",
				e->name, p->messages[0].codec, p->messages[i].codec);
	}
	return 0;
}

int gf_emit_check_sent(const struct gf_plan *p, const struct gf_emitter *e, bool by_rank,
		       struct gf_error *err)
{
	if (p->rule)
		return 0;
	if (p->staleness > 1)
		return lacks(e, "stale gradients", "", err);
	if (!(by_rank || gf_selection_has(&p->selection, GF_SELECT_LOSSLESS)))
		return lacks(e, "selection ", gf_selection_name(&p->selection), err);
	if (gf_plan_splits(p))
		return gf_error_set(err, -ENOTSUP,
				    "--emit %s: want whole messages, got split ones (another "
				    "--policy plans whole ones)",
				    e->name);
	return check_codecs(p, e, err);
}

/* --- PyTorch's DistributedDataParallel: Python to import ------------------ */

static bool ddp_takes(const char *codec)
{
	return compression_of(codec)->ddp;
}

/* Two ways to pass a cap: PyTorch releases differ in whether the cap that is given counts for the
 * first bucket, too. */
static void add_cap(const struct gf_emit_times *t, struct gf_text *out)
{
	if (gf_emit_cap_pays(t))
		gf_text_addf(out, "{\"bucket_cap_mb\": %g}", t->cap_bytes / MIB);
	else
		gf_text_addf(out, "{}");
}

/*
 * DDP closes a bucket once it holds its cap or more. So a cap of a message's bytes closes the
 * bucket after the message's last tensor, as long as gradients become ready in the plan's order;
 * and so does every cap above the bytes of the tensors before the last one. Of these the shortest
 * number is taken, whole MiB where one will do. A double of bytes / 2^20 is exact.
 */
static void add_bucket(const struct gf_plan *p, size_t i, struct gf_text *out)
{
	const double all = (double)gf_plan_message_bytes(p, i) / MIB;
	const double last = (double)gf_tensor_bytes(&p->model->tensors[p->messages[i].last]) / MIB;
	double unit, cap = 0;
	int digits;

	/* in whole bytes, as DDP cuts the number off */
	for (digits = 0, unit = 1; digits < 9 && !(floor(cap * MIB) > (all - last) * MIB);
	     digits++, unit /= 10)
		cap = floor(all / unit) * unit;
	gf_text_addf(out, "%.*f", digits - 1, cap);
}

static void add_arguments(const struct gf_plan *p, const struct gf_emit_times *t,
			  struct gf_text *out)
{
	if (!gf_emit_plan_pays(t)) {
		gf_text_addf(out, "# One cap of all buckets is as good as the plan's buckets.\n"
				  "# DistributedDataParallel(model, **ddp_arguments)\n"
				  "ddp_arguments = ");
		add_cap(t, out);
		gf_text_addf(out, "\n");
		return;
	}
	gf_text_addf(out, "import inspect\n"
			  "from torch.nn.parallel import DistributedDataParallel\n\n"
			  "bucket_cap_mb_list = [");
	for (size_t i = 0; i < p->nmessages; i++) {
		gf_text_addf(out, "%s", i == 0 ? "" : ", ");
		add_bucket(p, i, out);
	}
	gf_text_addf(
		out,
		"]\n\n"
		"# DistributedDataParallel(model, **ddp_arguments): these buckets where it takes\n"
		"# a list of caps, else %s.\n"
		"_has_list = \"bucket_cap_mb_list\" in inspect.signature(\n"
		"    DistributedDataParallel.__init__).parameters\n"
		"ddp_arguments = ({\"bucket_cap_mb_list\": bucket_cap_mb_list} if _has_list\n"
		"                 else ",
		gf_emit_cap_pays(t) ? "the best cap of all buckets"
				    : "its default, which no cap beats");
	add_cap(t, out);
	gf_text_addf(out, ")\n");
}

static void add_codec_hook(const char *name, struct gf_text *out)
{
	gf_text_addf(out,
		     "\n\ndef register(model):\n"
		     "    \"\"\"model = DistributedDataParallel(...), then register(model): the "
		     "plan's codec\"\"\"\n"
		     "    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
		     "    model.register_comm_hook(None, default_hooks.%s)\n",
		     name);
}

/* PyTorch wants two dense steps before the first that remembers. Its hook takes the buckets'
 * collectives in no order, which gloo needs. */
static void add_rank_hook(const struct gf_selection *s, struct gf_text *out)
{
	const struct gf_record *keys = s->plan->record;
	char number[GF_JSON_REAL_TEXT];

	gf_json_real_text(gf_record_number(keys, s->params, "min_compression"), number);
	gf_text_addf(out,
		     "\n\ndef register(model):\n"
		     "    \"\"\"model = DistributedDataParallel(...), then register(model): the "
		     "plan's selection\"\"\"\n"
		     "    import torch.distributed as dist\n"
		     "    if dist.get_backend(model.process_group) == \"gloo\":\n"
		     "        raise RuntimeError(\"want NCCL for PyTorch's PowerSGD: gloo mixes up "
		     "the buckets \"\n"
		     "                           \"(gradflow.ddp runs the plan over any)\")\n"
		     "    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as "
		     "hooks\n"
		     "    state = hooks.PowerSGDState(\n"
		     "        process_group=None, matrix_approximation_rank=%.0f,\n"
		     "        start_powerSGD_iter=%.0f, min_compression_rate=%s,\n"
		     "        use_error_feedback=True, warm_start=%s)\n"
		     "    model.register_comm_hook(state, hooks.powerSGD_hook)\n",
		     gf_record_number(keys, s->params, "rank"),
		     fmax(2, gf_record_number(keys, s->params, "warmup_steps")), number,
		     gf_record_number(keys, s->params, "warm_start") > 0 ? "True" : "False");
}

static int emit_ddp(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		    struct gf_error *err)
{
	const bool rank = strcmp(gf_selection_name(&p->selection), "powersgd") == 0;
	int rc = gf_emit_check_sent(p, &gf_emitter_ddp, rank, err);
	char number[GF_JSON_REAL_TEXT];
	const char *name;

	if (rc < 0)
		return rc;
	name = p->rule ? "" : compression_of(p->messages[0].codec)->ddp;
	if (rank && name[0])
		return lacks(&gf_emitter_ddp, "PowerSGD in codec ", p->messages[0].codec, err);
	gf_emit_head(p, "buckets for torch.nn.parallel.DistributedDataParallel", out);
	if (p->rule) {
		gf_json_real_text((double)p->rule->threshold_bytes / MIB, number);
		gf_text_addf(out, "ddp_arguments = {\"bucket_cap_mb\": %s}\n", number);
		return 0;
	}
	add_caveats(p, out);
	add_arguments(p, t, out);
	if (rank)
		add_rank_hook(&p->selection, out);
	else if (name[0])
		add_codec_hook(name, out);
	return 0;
}

/* MANUAL
 * PyTorch's DistributedDataParallel: the size of every bucket, as Python.
 * If the installed release takes no list of sizes, it is given the best cap of all buckets,
 * unless its default is as fast. */
const struct gf_emitter gf_emitter_ddp = {
	.name = "ddp",
	.description = "PyTorch DistributedDataParallel, Python",
	.place = 10,
	.version = "PyTorch 1.13, 2.13",
	.takes = GF_EMIT_BUCKETS | GF_EMIT_CAP | GF_EMIT_CODECS,
	.program = "DistributedDataParallel",
	.as_it_is = &gf_policy_ddp,
	.takes_codec = ddp_takes,
	.emit = emit_ddp,
};

/* --- Horovod's DistributedOptimizer: Python to import --------------------- */

static bool horovod_takes(const char *codec)
{
	return compression_of(codec)->horovod;
}

GF_ORDER(by_name, const char *, strcmp(*x, *y))

/* The groups are found by the names of their tensors. */
static int check_names(const struct gf_plan *p, struct gf_error *err)
{
	size_t n = p->model->ntensors, i;
	GF_FREED const char **names = gf_xcalloc(n, sizeof(*names));
	int rc = 0;

	for (i = 0; i < n; i++)
		names[i] = p->model->tensors[i].name;
	qsort(names, n, sizeof(*names), by_name);
	for (i = 1; i < n && !rc; i++)
		if (!strcmp(names[i - 1], names[i]))
			rc = gf_error_set(err, -ENOTSUP,
					  "--emit horovod: want tensors with names of their own, "
					  "got \"%.40s\" twice",
					  names[i]);
	return rc;
}

static void add_groups(const struct gf_plan *p, struct gf_text *out)
{
	gf_text_addf(out, "import os\n\n");
	gf_text_addf(out, "os.environ[\"HOROVOD_DISABLE_GROUP_FUSION\"] = \"1\"\n\n"
			  "group_names = [\n");
	for (size_t i = 0; i < p->nmessages; i++) {
		gf_text_addf(out, "    [");
		for (size_t k = p->messages[i].first; k <= p->messages[i].last; k++) {
			gf_text_addf(out, "%s", k == p->messages[i].first ? "" : ", ");
			gf_json_quote(out, p->model->tensors[k].name);
		}
		gf_text_addf(out, "],\n");
	}
	gf_text_addf(out, "]\n");
}

static int emit_horovod(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
			struct gf_error *err)
{
	int rc = gf_emit_check_sent(p, &gf_emitter_horovod, false, err);
	const char *name;

	(void)t;
	if (rc < 0)
		return rc;
	gf_emit_head(p, "groups for hvd.DistributedOptimizer", out);
	if (p->rule) {
		gf_text_addf(out,
			     "import os\n\n"
			     "os.environ[\"HOROVOD_FUSION_THRESHOLD\"] = \"%zu\"\n",
			     p->rule->threshold_bytes);
		return 0;
	}
	rc = check_names(p, err);
	if (rc < 0)
		return rc;
	add_caveats(p, out);
	add_groups(p, out);
	name = compression_of(p->messages[0].codec)->horovod;
	if (name[0])
		gf_text_addf(out,
			     "\n\ndef compression():\n"
			     "    \"\"\"hvd.DistributedOptimizer(..., compression=compression()): "
			     "the plan's codec\"\"\"\n"
			     "    import horovod.torch as hvd\n"
			     "    return hvd.Compression.%s\n",
			     name);
	gf_text_addf(
		out,
		"\n\ndef groups(model):\n"
		"    \"\"\"hvd.DistributedOptimizer(optimizer, groups=groups(model), ...)\"\"\"\n"
		"    parameters = dict(model.named_parameters())\n"
		"    return [[parameters[name] for name in group] for group in group_names]\n");
	return 0;
}

/* MANUAL
 * Horovod's DistributedOptimizer: groups of parameters by name, as Python */
const struct gf_emitter gf_emitter_horovod = {
	.name = "horovod",
	.description = "Horovod's DistributedOptimizer, Python",
	.place = 20,
	.version = "Horovod 0.28.1",
	.takes = GF_EMIT_BUCKETS | GF_EMIT_CODECS,
	.program = "Horovod",
	.as_it_is = &gf_policy_horovod,
	.takes_codec = horovod_takes,
	.emit = emit_horovod,
};
