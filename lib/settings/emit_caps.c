/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets that are told one cap of all buckets. Which gradients a bucket then has is the target's
 * own rule, a policy; the cap is the largest of those that are as good as any, and is not told
 * where the target's default is better.
 */
#include "settings/emit.h"

#include <math.h>

#include "base/heap.h"
#include "cli/human.h"
#include "planner/policies/policy.h"

/* Caps rise by a quarter from 64 KiB on. */
#define FIRST_CAP 65536.0
#define STEP      1.25
#define TRIED     128

static int plan_cap(struct gf_task *t, const struct gf_emitter *e, double cap_bytes,
		    struct gf_plan *p, struct gf_error *err)
{
	t->problem.threshold_bytes = (size_t)cap_bytes;
	t->problem.threshold_zero = false;
	return gf_task_plan(t, e->as_it_is, p, err);
}

struct capped {
	struct gf_task t;
	const struct gf_emitter *e;
};

static int time_cap(void *ctx, double cap_bytes, double *s, struct gf_error *err)
{
	struct capped *c = ctx;
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	int rc = plan_cap(&c->t, c->e, cap_bytes, &p, err);

	if (rc == 0)
		*s = p.predicted->iteration_s;
	return rc;
}

int gf_emit_find_cap(const struct gf_model_profile *m,
		     int (*time_cap_of)(void *ctx, double cap_bytes, double *s,
					struct gf_error *err),
		     void *ctx, struct gf_emit_times *out, struct gf_error *err)
{
	const double all = (double)gf_model_profile_bytes(m);
	double caps[TRIED], times[TRIED], cap = FIRST_CAP;
	size_t n = 0, i;
	int rc = 0;

	out->cap_s = INFINITY;
	for (; n < TRIED && (n == 0 || caps[n - 1] < all); n++) {
		rc = time_cap_of(ctx, cap, &times[n], err);
		if (rc && rc != -ENOTSUP)
			return rc;
		if (rc)
			times[n] = INFINITY;
		caps[n] = cap;
		out->cap_s = fmin(out->cap_s, times[n]);
		cap = ceil(cap * STEP / FIRST_CAP) * FIRST_CAP;
	}
	if (isinf(out->cap_s))
		return rc;
	for (i = 0; i < n; i++)
		if (times[i] <= out->cap_s * (1 + GF_TOLERANCE))
			out->cap_bytes = caps[i];
	return time_cap_of(ctx, out->cap_bytes, &out->cap_s, err);
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
	struct capped c = {.e = e};
	const size_t before = notes->length;
	int rc = check(r, e, err);

	if (rc)
		return rc;
	for (;; plain.algorithm = NULL) {
		rc = gf_request_pose(&plain, &c.t, notes, err);
		rc = rc ?: time_cap(&c, (double)e->default_cap, &times.default_s, err);
		if (rc != -ENOTSUP || !plain.algorithm)
			break;
		gf_task_release(&c.t);
		if (notes->length > before)
			notes->data[notes->length = before] = '\0';
	}
	rc = rc ?: gf_emit_find_cap(r->model, time_cap, &c, &times, err);
	rc = rc ?: plan_cap(&c.t, e, times.cap_bytes, p, err);
	if (rc == 0) {
		times.doubt = gf_emit_doubt(p);
		if (!gf_emit_pays(&times, times.cap_s)) {
			rc = gf_emit_nothing(e, e->program, &times, times.cap_s, err);
			gf_plan_release(p);
		}
	}
	if (rc == 0) {
		e->emit_cap((size_t)times.cap_bytes, out);
		gf_text_addf(notes, "%s as it is: %s a step; with buckets of %s: %s\n", e->program,
			     gf_human_time(times.default_s).text,
			     gf_human_size(times.cap_bytes).text, gf_human_time(times.cap_s).text);
	}
	gf_task_release(&c.t);
	return rc;
}

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
