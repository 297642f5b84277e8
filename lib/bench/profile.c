/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/heap.h"
#include "bench/compute.h"
#include "bench/overlap.h"
#include "bench/step.h"
#include "comm/processors.h"
#include "doc/json.h"

/* Where and when, of either half. */
static void put_place(struct gf_json_writer *w, const struct gf_comm *comm)
{
	struct utsname names = {0};
	char date[32] = "";
	time_t now = time(NULL);
	struct tm utc;

	uname(&names);
	if (gmtime_r(&now, &utc))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
	gf_json_put_string(w, "host", names.nodename);
	gf_json_put_string(w, "date", date);
	gf_json_put_int(w, "ranks", comm->ranks);
	gf_json_put_int(w, "local_ranks", comm->local_ranks);
}

static int measure_model(const struct gf_bench_profile *c,
			 struct gf_bench_step *step, struct gf_profile *p,
			 struct gf_json_writer *w, struct gf_error *err)
{
	struct gf_bench_compute compute = {c->comm, (int)c->warmup,
					   (int)c->repeats};
	struct gf_bench_compute_spread spread;
	struct gf_model_profile *m = gf_xcalloc(1, sizeof(*m));
	int rc;

	p->model = m;
	m->name = gf_xstrdup(c->model->name);
	m->device = gf_xstrdup("cpu");
	m->batch_per_rank = c->batch;
	m->overlap_slowdown = 1;
	rc = gf_bench_compute(&compute, step, m, &spread, err);
	if (rc < 0)
		return rc;
	gf_json_open_object(w, "model");
	put_place(w, c->comm);
	gf_json_put_string(w, "backend", c->backend->name);
	gf_json_put_size(w, "threads", c->threads);
	gf_json_put_size(w, "warmup", c->warmup);
	gf_json_put_size(w, "repeats", c->repeats);
	gf_json_put_real(w, "forward_spread_s", spread.forward_s);
	gf_json_put_real(w, "backward_spread_s", spread.backward_s);
	gf_json_put_real(w, "update_spread_s", spread.update_s);
	gf_json_close_object(w);
	return 0;
}

static int measure_network(const struct gf_bench_profile *c,
			   struct gf_profile *p, struct gf_text *remarks,
			   struct gf_json_writer *w, struct gf_error *err)
{
	struct gf_bench_network sweep = c->sweep;
	int rc;

	sweep.comm = c->comm;
	sweep.whole = sweep.max_bytes > 0;
	if (!sweep.whole) {
		sweep.max_bytes = GF_BENCH_MAX_BYTES;
		if (p->model &&
		    gf_model_profile_bytes(p->model) > sweep.max_bytes)
			sweep.max_bytes = gf_model_profile_bytes(p->model);
	}
	rc = gf_bench_network(&sweep, &p->network, remarks, err);
	if (rc < 0)
		return rc;
	gf_json_open_object(w, "network");
	put_place(w, c->comm);
	gf_json_put_string(w, "transport", c->comm->ops->name);
	gf_json_close_object(w);
	return 0;
}

/* The one that would carry the whole gradient. */
static const struct gf_allreduce_cost *cheapest(const struct gf_network *net,
						double bytes)
{
	const struct gf_allreduce_cost *best = NULL;
	double least = INFINITY;
	size_t i;

	for (i = 0; i < net->nallreduce; i++) {
		const struct gf_allreduce_cost *a = &net->allreduce[i];
		double time = a->startup_s + a->per_byte_s * bytes;

		if (time < least) {
			least = time;
			best = a;
		}
	}
	return best;
}

static int measure_overlap(const struct gf_bench_profile *c,
			   struct gf_bench_step *step, struct gf_profile *p,
			   struct gf_error *err)
{
	struct gf_bench_overlap overlap = {
		.comm = c->comm,
		.cost = cheapest(p->network,
				 (double)gf_model_profile_bytes(p->model)),
		.backward_s = p->model->backward_s,
		.repeats = (int)c->repeats,
		.timeout_s = c->sweep.timeout_s,
	};

	return gf_bench_overlap(&overlap, step, &p->model->overlap_slowdown,
				err);
}

static int measure(const struct gf_bench_profile *c, struct gf_profile *p,
		   struct gf_text *remarks, struct gf_json_writer *w,
		   struct gf_error *err)
{
	struct gf_bench_step step = {0};
	int rc = 0;

	if (c->model) {
		rc = gf_bench_step_open(&step, c->model, c->backend, c->batch,
					err);
		rc = gf_comm_agree(c->comm, rc, err);
		if (rc == 0)
			rc = measure_model(c, &step, p, w, err);
	}
	if (rc == 0 && c->network)
		rc = measure_network(c, p, remarks, w, err);
	if (rc == 0 && p->model && p->network)
		rc = measure_overlap(c, &step, p, err);
	if (step.model)
		gf_bench_step_close(&step);
	return rc;
}

static int use_threads(struct gf_bench_profile *c, struct gf_error *err)
{
	int threads = (int)c->threads, rc = 0;

	if (threads == 0)
		rc = gf_comm_compute_threads(c->comm, &threads, err);
	c->threads = (size_t)threads;
	if (rc == 0)
		gf_nn_set_threads(threads);
	return rc;
}

int gf_bench_profile(const struct gf_bench_profile *config,
		     struct gf_profile *out, struct gf_text *remarks,
		     struct gf_error *err)
{
	struct gf_bench_profile c = *config;
	struct gf_profile p = {0};
	struct gf_json_writer w = {0};
	int rc = use_threads(&c, err);

	p.producer = gf_xstrdup("gf-profile " GF_VERSION);
	gf_json_open_object(&w, NULL);
	if (rc == 0)
		rc = measure(&c, &p, remarks, &w, err);
	gf_json_close_object(&w);
	p.measured = gf_text_take(&w.text);
	if (rc < 0) {
		gf_profile_release(&p);
		return rc;
	}
	*out = p;
	return 0;
}
