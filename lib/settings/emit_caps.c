/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets that are told one cap of all buckets. Which gradients a bucket then has is the target's
 * own rule, a policy; the cap is the largest of those that are as good as any, and is not told
 * where the target's default is better.
 */
#include "settings/emit.h"

#include <errno.h>
#include <math.h>

#include "cli/human.h"
#include "planner/policies/policy.h"

/* Caps rise by a quarter from 64 KiB on. */
#define FIRST_CAP 65536.0
#define STEP      1.25
#define TRIED     128

static double unit_bytes(const struct gf_emitter *e, const struct gf_model_profile *m)
{
	return e->counts_elements
		       ? (double)gf_tensor_bytes(&m->tensors[0]) / (double)m->tensors[0].count_elems
		       : 1;
}

static int plan_cap(struct gf_task *t, const struct gf_emitter *e, double cap_bytes, bool late,
		    struct gf_plan *p, struct gf_error *err)
{
	t->problem.threshold_bytes = (size_t)cap_bytes;
	t->problem.threshold_zero = false;
	t->problem.release = late ? GF_RELEASE_BACKWARD_END : GF_RELEASE_READY;
	return gf_task_plan(t, e->as_it_is, p, err);
}

static int time_cap(struct gf_task *t, const struct gf_emitter *e, double cap_bytes, bool late,
		    double *s, struct gf_error *err)
{
	struct gf_plan p;
	int rc = plan_cap(t, e, cap_bytes, late, &p, err);

	if (rc == 0) {
		*s = p.predicted->iteration_s;
		gf_plan_release(&p);
	}
	return rc;
}

/* The largest cap whose time is the best one's but for the tolerance. */
static int find_cap(struct gf_task *t, const struct gf_emitter *e, struct gf_emit_times *out,
		    struct gf_error *err)
{
	const double all = (double)gf_model_profile_bytes(t->problem.model);
	double caps[TRIED], times[TRIED], cap = FIRST_CAP;
	size_t n = 0, i;
	int rc = 0;

	out->cap_s = INFINITY;
	while (rc == 0 && n < TRIED && (n == 0 || caps[n - 1] < all)) {
		rc = time_cap(t, e, cap, false, &times[n], err);
		caps[n] = cap;
		if (rc == 0)
			out->cap_s = fmin(out->cap_s, times[n++]);
		cap = ceil(cap * STEP / FIRST_CAP) * FIRST_CAP;
	}
	for (i = 0; i < n; i++)
		if (times[i] <= out->cap_s * (1 + GF_TOLERANCE))
			out->cap_bytes = caps[i];
	return rc ? rc : time_cap(t, e, out->cap_bytes, false, &out->cap_s, err);
}

static int find_default(struct gf_task *t, const struct gf_emitter *e, struct gf_emit_times *out,
			struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	const size_t cap = e->default_cap;
	double bytes = cap ? (double)cap * unit_bytes(e, m) : (double)gf_model_profile_bytes(m);

	return time_cap(t, e, bytes, e->late, &out->default_s, err);
}

static void note(const struct gf_emitter *e, const struct gf_emit_times *t, double unit,
		 struct gf_text *notes)
{
	gf_text_addf(notes, "%s as it is: %s a step; with buckets of %s: %s\n", e->program,
		     gf_human_time(t->default_s).text, gf_human_size(t->cap_bytes).text,
		     gf_human_time(t->cap_s).text);
	if (e->counts_elements)
		gf_text_addf(notes,
			     "elements are taken as %g bytes: a job whose gradients are f16 or "
			     "bf16 sends 2 (give its own profile)\n",
			     unit);
}

static int check(const struct gf_request *r, const struct gf_emitter *e, struct gf_error *err)
{
	if (r->wishes && r->wishes[0])
		return gf_error_set(err, -EINVAL,
				    "--emit %s goes without --%s: it is told the size of its "
				    "buckets and no more",
				    e->name, r->wishes);
	if (!r->model)
		return gf_error_set(err, -EINVAL, "--emit %s: want a model, found none", e->name);
	return 0;
}

int gf_emit_by_cap(const struct gf_request *r, const struct gf_emitter *e, struct gf_plan *p,
		   struct gf_text *out, struct gf_text *notes, struct gf_error *err)
{
	struct gf_request plain = {
		.model = r->model,
		.fabric = r->fabric,
		.one_host = r->one_host,
		.ranks_asked = r->ranks_asked,
		.algorithm = "library",
		.lanes = 1,
	};
	struct gf_emit_times times = {0};
	struct gf_task t;
	int rc = check(r, e, err);

	if (rc)
		return rc;
	rc = gf_request_pose(&plain, &t, notes, err);
	if (rc == -ENOTSUP) {
		plain.algorithm = NULL;
		rc = gf_request_pose(&plain, &t, notes, err);
	}
	if (rc)
		return rc;
	rc = find_default(&t, e, &times, err);
	if (rc == 0)
		rc = find_cap(&t, e, &times, err);
	if (rc == 0)
		rc = plan_cap(&t, e, times.cap_bytes, false, p, err);
	if (rc == 0) {
		times.doubt = gf_emit_doubt(p);
		if (!gf_emit_pays(&times, times.cap_s)) {
			rc = gf_emit_nothing(e, e->program, &times, times.cap_s, err);
			gf_plan_release(p);
		}
	}
	if (rc == 0) {
		e->emit_cap((size_t)(times.cap_bytes / unit_bytes(e, r->model)), out);
		note(e, &times, unit_bytes(e, r->model), notes);
	}
	gf_task_release(&t);
	return rc;
}

/*
 * DeepSpeed's configuration, for ZeRO's stages 1 and 2, which reduce a bucket before the next
 * gradient would make it larger than reduce_bucket_size elements (runtime/zero/config.py).
 * overlap_comm is false by default, and a step then waits for each reduction. allgather_bucket_size
 * is left alone: the parameters are gathered after backward, beside nothing.
 */
static void emit_deepspeed(size_t cap, struct gf_text *out)
{
	gf_text_addf(out,
		     "{\n"
		     "  \"zero_optimization\": {\n"
		     "    \"reduce_bucket_size\": %zu,\n"
		     "    \"overlap_comm\": true\n"
		     "  }\n"
		     "}\n",
		     cap);
}

/* MANUAL
 * DeepSpeed's ZeRO 1 and 2: reduce_bucket_size and overlap_comm, a part of its JSON */
const struct gf_emitter gf_emitter_deepspeed = {
	.name = "deepspeed",
	.description = "DeepSpeed's ZeRO 1 and 2, a part of its JSON",
	.place = 90,
	.version = "DeepSpeed 1b88ac36",
	.takes = GF_EMIT_CAP,
	.program = "DeepSpeed",
	.as_it_is = &gf_policy_at_most,
	.default_cap = 500000000,
	.counts_elements = true,
	.late = true,
	.emit_cap = emit_deepspeed,
};

/*
 * Megatron-LM's DistributedDataParallel, as arguments of a script. A bucket is full once it has
 * ddp-bucket-size elements or more. Without overlap-grad-reduce there is one bucket, after backward
 * (core/distributed/distributed_data_parallel.py).
 */
static void emit_megatron(size_t cap, struct gf_text *out)
{
	gf_text_addf(out, "--overlap-grad-reduce --ddp-bucket-size %zu\n", cap);
}

/* MANUAL
 * Megatron-LM: arguments
 * .Fl -overlap-grad-reduce
 * and
 * .Fl -ddp-bucket-size */
const struct gf_emitter gf_emitter_megatron = {
	.name = "megatron",
	.description = "Megatron-LM, arguments",
	.place = 100,
	.version = "Megatron-LM 00119989",
	.takes = GF_EMIT_CAP,
	.program = "Megatron-LM",
	.as_it_is = &gf_policy_ddp,
	.counts_elements = true,
	.late = true,
	.emit_cap = emit_megatron,
};

/*
 * XLA's flags for GPUs, as JAX reads them. XLA combines all-reduces up to a threshold of bytes, 30
 * MiB and 7 bytes by default (xla/service/collective_utils.h). They run beside backward only with
 * the latency hiding scheduler, which the default here is taken to have.
 */
static void emit_xla(size_t cap, struct gf_text *out)
{
	gf_text_addf(
		out,
		"export XLA_FLAGS=\"${XLA_FLAGS:-} --xla_gpu_enable_latency_hiding_scheduler=true "
		"--xla_gpu_all_reduce_combine_threshold_bytes=%zu\"\n",
		cap);
}

/* MANUAL
 * XLA on GPUs, and so JAX: the combine threshold of all-reduces, for a shell */
const struct gf_emitter gf_emitter_xla = {
	.name = "xla",
	.description = "XLA on GPUs, shell",
	.place = 110,
	.version = "XLA's collective_utils.h of 2026",
	.takes = GF_EMIT_CAP,
	.program = "XLA",
	.as_it_is = &gf_policy_at_most,
	.default_cap = 30 * 1024 * 1024 + 7,
	.emit_cap = emit_xla,
};
