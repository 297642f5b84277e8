/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's DistributedDataParallel: Python to import. */
#include "settings/emit_buckets.h"

#include "doc/selections/select_powersgd.h"
#include "json/json.h"
#include "planner/policies/policies.h"

static bool ddp_takes(const char *codec)
{
	return gf_emit_compression_of(codec)->ddp;
}

/* Two ways to pass a cap: PyTorch releases differ in whether the cap that is given counts for the
 * first bucket, too. */
static void add_cap(const struct gf_emit_times *t, struct gf_text *out)
{
	char number[GF_JSON_REAL_TEXT];

	gf_json_real_text(t->cap_bytes / GF_EMIT_MIB, number);
	if (gf_emit_cap_pays(t))
		gf_text_addf(out, "{\"bucket_cap_mb\": %s}", number);
	else
		gf_text_addf(out, "{}");
}

/*
 * DDP closes a bucket once it holds its cap or more. So a cap of a message's exact bytes closes the
 * bucket after the message's last tensor, as long as gradients become ready in the plan's order. A
 * double of bytes / 2^20 is exact.
 */
static void add_arguments(const struct gf_plan *p, const struct gf_emit_times *t,
			  struct gf_text *out)
{
	char number[GF_JSON_REAL_TEXT];
	size_t i;

	if (!gf_emit_plan_pays(t)) {
		gf_text_addf(out, "# The plan's buckets would be slower than the default here.\n"
				  "# DistributedDataParallel(model, **ddp_arguments)\n"
				  "ddp_arguments = ");
		add_cap(t, out);
		gf_text_addf(out, "\n");
		return;
	}
	gf_text_addf(out, "import inspect\n"
			  "from torch.nn.parallel import DistributedDataParallel\n\n"
			  "bucket_cap_mb_list = [");
	for (i = 0; i < p->nmessages; i++) {
		gf_json_real_text((double)gf_plan_message_bytes(p, i) / GF_EMIT_MIB, number);
		gf_text_addf(out, "%s%s", i == 0 ? "" : ", ", number);
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
static void add_rank_hook(const struct gf_powersgd_params *r, struct gf_text *out)
{
	char number[GF_JSON_REAL_TEXT];

	gf_json_real_text(r->min_compression, number);
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
		     "        process_group=None, matrix_approximation_rank=%zu,\n"
		     "        start_powerSGD_iter=%zu, min_compression_rate=%s,\n"
		     "        use_error_feedback=True, warm_start=%s)\n"
		     "    model.register_comm_hook(state, hooks.powerSGD_hook)\n",
		     r->rank, r->warmup_steps > 2 ? r->warmup_steps : (size_t)2, number,
		     r->warm_start ? "True" : "False");
}

static int emit_ddp(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		    struct gf_error *err)
{
	const struct gf_powersgd_params *rank = gf_powersgd_params(&p->selection);
	int rc = gf_emit_check(p, &gf_emitter_ddp, rank, err);
	char number[GF_JSON_REAL_TEXT];
	const char *name;

	if (rc < 0)
		return rc;
	name = p->rule ? "" : gf_emit_compression_of(p->messages[0].codec)->ddp;
	if (rank && name[0])
		return gf_emit_lacks(&gf_emitter_ddp, "PowerSGD in codec ", p->messages[0].codec,
				     err);
	gf_emit_head(p, "buckets for torch.nn.parallel.DistributedDataParallel", out);
	if (p->rule) {
		gf_json_real_text((double)p->rule->threshold_bytes / GF_EMIT_MIB, number);
		gf_text_addf(out, "ddp_arguments = {\"bucket_cap_mb\": %s}\n", number);
		return 0;
	}
	gf_emit_caveats(p, out);
	add_arguments(p, t, out);
	if (rank)
		add_rank_hook(rank, out);
	else if (name[0])
		add_codec_hook(name, out);
	return 0;
}

const struct gf_emitter gf_emitter_ddp = {
	.name = "ddp",
	.description = "PyTorch DistributedDataParallel, Python",
	.version = "PyTorch 1.13, 2.13",
	.takes = GF_EMIT_BUCKETS | GF_EMIT_CAP | GF_EMIT_CODECS,
	.program = "DistributedDataParallel",
	.as_it_is = &gf_policy_ddp,
	.takes_codec = ddp_takes,
	.emit = emit_ddp,
};
