/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/whole_profile.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/heap.h"
#include "json/json.h"
#include "profiler/chain.h"
#include "profiler/model_times.h"
#include "profiler/profile_parts.h"
#include "transport/processors.h"

/* --- the place, by the rules of gf-train ----------------------------------- */

static int open_step(const struct gf_measure_profile *c, struct gf_measure_step *step,
		     struct gf_error *err)
{
	return gf_measure_step_open(step,
				    &(struct gf_measure_step_config){
					    .model = c->model,
					    .backend = c->backend,
					    .batch = c->batch,
					    .threads = (int)c->threads,
					    .precision = c->precision,
					    .gpu = c->device.gpu,
					    .updates_there = c->device.nccl != NULL,
				    },
				    err);
}

/* The host's best, or the one on the device; or that of the name, which must compute there. */
static int choose_backend(struct gf_measure_profile *c, struct gf_error *err)
{
	const char *name = c->backend_name ? c->backend_name : "auto";
	bool any = strcmp(name, "auto") == 0;

	for (size_t i = 0; gf_backends[i] && !c->backend; i++)
		if (gf_backends[i]->on_device == (c->device.gpu != NULL) &&
		    (any || strcmp(gf_backends[i]->name, name) == 0))
			c->backend = gf_backends[i];
	if (c->backend || !c->model)
		return 0;
	if (any)
		return gf_error_set(err, -ENOTSUP, "no backend of this build computes on a GPU");
	return gf_error_set(err, -EINVAL, "backend %s does not compute on --device %s", name,
			    gf_contest_device_kind(&c->device));
}

/* A layer of the model may have no kernel here, or a library may be missing. */
static int try_step(const struct gf_measure_profile *c, struct gf_error *err)
{
	struct gf_measure_step step = {0};
	int rc = c->model ? open_step(c, &step, err) : 0;

	if (step.model)
		gf_measure_step_close(&step);
	return rc;
}

static bool by_auto(const struct gf_measure_profile *c)
{
	return c->device.name && strcmp(c->device.name, "auto") == 0;
}

/* The rule of gf-train: what was asked for, or a GPU if every rank has one that computes the model,
 * else the host. Says which of the two was taken. */
static int choose_device(struct gf_measure_profile *c, struct gf_text *remarks,
			 struct gf_error *err)
{
	const char *name = c->backend_name;
	const struct gf_backend *b = gf_backend_find(name);
	struct gf_error why = {""};
	/* asked for by name, which says where, too; on any rank */
	double host = by_auto(c) && name && strcmp(name, "auto") != 0 && b && !b->on_device;
	int rc = gf_measure_slowest(c->comm, &host, 1, err);

	if (rc || c->device.gpu || host > 0)
		return rc ?: choose_backend(c, err);
	rc = gf_contest_device_open(c->comm, &c->device, err);
	if (rc || !by_auto(c) || !c->device.gpu)
		return rc ?: choose_backend(c, err);
	rc = choose_backend(c, &why);
	rc = gf_comm_agree(c->comm, rc ? rc : try_step(c, &why), &why);
	if (rc == 0) {
		gf_text_addf(remarks, "measured on %s; --device cpu measures the processors\n",
			     c->device.gpu->name);
		return 0;
	}
	gf_contest_device_close(&c->device);
	c->backend = NULL;
	if (c->comm->broken)
		return gf_error_set(err, rc, "%s", why.text);
	gf_text_addf(remarks, "measured on the processors: %s\n", why.text);
	return choose_backend(c, err);
}

static int choose_threads(struct gf_measure_profile *c, struct gf_error *err)
{
	/* all together, whatever this rank was told */
	int threads, rc = gf_comm_compute_threads(c->comm, &threads, err);

	if (rc)
		return rc;
	if (c->threads)
		threads = (int)c->threads;
	c->threads = (size_t)threads;
	/* as gf-train does; codecs and messages are another thread's */
	if (c->model && !c->device.gpu && c->comm->ranks > 1 &&
	    gf_priority_crowded(c->comm, threads))
		gf_priority_give_way();
	return 0;
}

/* Collective. Opens the device, unless it is open already, and fills in backend and threads. `auto`
 * is a GPU if every rank has one that computes the model, else the host; a remark names the place
 * where there are GPUs. After a failure the device may be open. */
static int choose_place(struct gf_measure_profile *c, struct gf_text *remarks, struct gf_error *err)
{
	const char *name = c->backend_name ? c->backend_name : "auto";
	int rc = choose_device(c, remarks, err);

	if (!c->comm->broken)
		rc = gf_comm_agree(c->comm, rc, err);
	if (rc)
		return rc;
	if (c->model && c->backend->slow && strcmp(name, c->backend->name) != 0)
		gf_text_addf(remarks, "%s\n", c->backend->slow);
	return choose_threads(c, err);
}

/* --- the halves ------------------------------------------------------------ */

/* The place and time of the measurement, for either half. */
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

static int put_load(const struct gf_measure_load *load, struct gf_comm *comm,
		    struct gf_json_writer *w, struct gf_error *err)
{
	struct gf_measure_load_found found;
	int rc = gf_measure_load_end(load, comm, &found, err);

	if (rc < 0 || !found.processors)
		return rc;
	gf_json_open_object(w, "load");
	gf_json_put_int(w, "ranks", found.ranks);
	gf_json_put_int(w, "processors", found.processors);
	gf_json_put_real(w, "own", found.own);
	gf_json_put_real(w, "others", found.others);
	gf_json_close_object(w);
	return 0;
}

/* The compute of a model, measured in several sittings. */
struct compute {
	struct gf_measure_step step;
	struct gf_measure_compute_times times;
	struct gf_measure_compute_spread spread;
};

static int sit(const struct gf_measure_profile *c, struct compute *m, size_t repeats,
	       struct gf_model_profile *out, struct gf_error *err)
{
	struct gf_measure_compute compute = {
		.comm = c->comm,
		.warmup = (int)c->warmup,
		.repeats = (int)repeats,
		.exchanges = c->network && !c->device.gpu && c->comm->ranks > 1,
		.threads = (int)c->threads,
		.timeout_s = c->sweep.timeout_s,
		.progress = c->sweep.progress,
		.progress_ctx = c->sweep.progress_ctx,
	};
	int rc = gf_measure_compute(&compute, &m->step, &m->times, err);

	if (rc == 0)
		gf_measure_compute_conclude(&m->times, &m->step, out, &m->spread);
	out->spread_s = m->spread.forward_s + m->spread.backward_s + m->spread.update_s;
	return rc;
}

/* The least and the most that a later sitting takes, apart from its first repeat. A processor's
 * pace changes from one second to the next where others share it. */
static const double short_sitting_s = 0.25, sitting_s = 2;
/* Many of the repeats that were asked for. */
enum { MORE_REPEATS = 10 };

static int sit_again(const struct gf_measure_profile *c, struct compute *m, struct gf_profile *p,
		     struct gf_error *err)
{
	double repeats = (double)c->repeats;

	if (!p->model)
		return 0;
	if (m->times.repeat_s > 0)
		repeats = fmin(fmax(repeats, fmin(MORE_REPEATS * repeats,
						  short_sitting_s / m->times.repeat_s)),
			       sitting_s / m->times.repeat_s - (double)c->warmup);
	return sit(c, m, (size_t)fmax(1, repeats), p->model, err);
}

static int measure_model(const struct gf_measure_profile *c, struct compute *m,
			 struct gf_profile *p, struct gf_error *err)
{
	int rc = open_step(c, &m->step, err);

	rc = gf_comm_agree(c->comm, rc, err);
	if (rc)
		return rc;
	p->model = gf_xcalloc(1, sizeof(*p->model));
	p->model->name = gf_xstrdup(c->model->name);
	p->model->device = gf_xstrdup(gf_contest_device_kind(&c->device));
	p->model->batch_per_rank = c->batch;
	p->model->overlap_slowdown = 1;
	return sit(c, m, c->repeats, p->model, err);
}

static void put_model(const struct gf_measure_profile *c, const struct compute *m,
		      struct gf_json_writer *w)
{
	gf_json_open_object(w, "model");
	put_place(w, c->comm);
	gf_json_put_string(w, "backend", c->backend->name);
	if (c->device.gpu)
		gf_json_put_string(w, "gpu", c->device.gpu->name);
	if (c->precision != GF_F32)
		gf_json_put_string(w, "precision", gf_dtype_names[c->precision]);
	gf_json_put_size(w, "threads", c->threads);
	gf_json_put_size(w, "warmup", c->warmup);
	gf_json_put_size(w, "repeats", m->times.nrows);
	gf_json_put_real(w, "forward_spread_s", m->spread.forward_s);
	gf_json_put_real(w, "backward_spread_s", m->spread.backward_s);
	gf_json_put_real(w, "update_spread_s", m->spread.update_s);
	gf_json_close_object(w);
}

/* Longer messages go by lines that were fitted to shorter ones. */
static void remark_ends(const struct gf_network *net, size_t max_bytes, struct gf_text *remarks)
{
	size_t least = SIZE_MAX, early = 0, i;

	for (i = 0; i < net->nallreduce; i++) {
		const struct gf_fit *fit = &net->allreduce[i].fit;
		size_t last = fit->npoints ? fit->size_bytes[fit->npoints - 1] : max_bytes;

		early += last < max_bytes;
		if (last < least)
			least = last;
	}
	if (early)
		gf_text_addf(remarks,
			     "%zu of %zu algorithms were measured up to %zu bytes or more, not "
			     "%zu: there was no time (--budget)\n",
			     early, net->nallreduce, least, max_bytes);
}

/* That compute on the host beside messages, as training counts them. */
static int beside_threads(const struct gf_measure_profile *c)
{
	return c->device.gpu ? 1 : (int)c->threads;
}

static int measure_network(const struct gf_measure_profile *c, struct gf_profile *p,
			   struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_network sweep = c->sweep;
	int rc;

	sweep.comm = c->comm;
	sweep.device = &c->device;
	sweep.threads = beside_threads(c);
	sweep.whole = sweep.max_bytes > 0;
	if (!sweep.whole) {
		sweep.gradient_bytes = p->model ? gf_model_profile_bytes(p->model) : 0;
		sweep.max_bytes = sweep.gradient_bytes > GF_MEASURE_MAX_BYTES ? sweep.gradient_bytes
									      : GF_MEASURE_MAX_BYTES;
	}
	rc = gf_measure_network(&sweep, &p->network, remarks, err);
	if (rc < 0)
		return rc;
	remark_ends(p->network, sweep.max_bytes, remarks);
	return 0;
}

/* The most that copies get of the network's time; copies are quick. */
static const double copies_budget_s = 6;
static const size_t copies_bytes = (size_t)64 << 20;

static int measure_copies(const struct gf_measure_profile *c, struct gf_profile *p,
			  struct gf_text *remarks, struct gf_json_writer *w, struct gf_error *err)
{
	struct gf_measure_device_copies copies = {
		.comm = c->comm,
		.gpu = c->device.gpu,
		.max_bytes = c->sweep.max_bytes ? c->sweep.max_bytes : copies_bytes,
		.time_s = c->sweep.time_s,
		.budget_s = fmin(copies_budget_s, c->sweep.budget_s),
	};
	int rc = gf_measure_device_copies(&copies, p, remarks, err);

	if (rc < 0)
		return rc;
	gf_json_open_object(w, "copies");
	put_place(w, c->comm);
	gf_json_put_string(w, "gpu", c->device.gpu->name);
	gf_json_close_object(w);
	return 0;
}

/* The share of the network's time. */
static const double beside_share = 0.2;

/* Of codecs and selections, each of which takes some. */
enum { PROCESSING_POINTS = 50 };

void gf_measure_profile_say(const struct gf_measure_profile *c, struct gf_text *out)
{
	/* messages beside compute; steps, too, where ranks share processors */
	int shares = !c->model ? 0 : c->comm->crowded ? 2 : 1;
	double network_s = (1 + shares * beside_share) * c->sweep.budget_s +
			   PROCESSING_POINTS * c->sweep.time_s;

	gf_text_addf(out, "measuring ");
	if (c->model)
		gf_text_addf(out, "%s takes %zu steps of %zu samples (--repeats)", c->model->name,
			     c->warmup + c->repeats, c->batch);
	if (c->network)
		gf_text_addf(out, "%s takes at least %.0f s (--budget), longer beside other work",
			     c->model ? ", the network" : "the network", network_s);
}

static int measure_beside(const struct gf_measure_profile *c, struct gf_measure_step *step,
			  struct gf_profile *p, struct gf_error *err)
{
	const struct gf_measure_beside beside = {
		.comm = c->comm,
		.device = &c->device,
		.lanes = (int)c->sweep.lanes,
		.threads = beside_threads(c),
		.callers_memory = c->sweep.callers_memory,
		.repeats = (int)c->repeats,
		.budget_s = beside_share * c->sweep.budget_s,
		.timeout_s = c->sweep.timeout_s,
	};

	return gf_measure_beside(&beside, step, p, err);
}

static int measure_processing(const struct gf_measure_profile *c,
			      const struct gf_model_profile *model, struct gf_processing *out,
			      struct gf_error *err)
{
	double backward_share =
		!c->device.gpu && gf_priority_crowded(c->comm, beside_threads(c)) ? 1 : 0;
	struct gf_measure_selections selections = {
		.comm = c->comm,
		.threads = beside_threads(c),
		.max_bytes = c->sweep.max_bytes ? c->sweep.max_bytes : GF_MEASURE_MAX_BYTES,
		.model_bytes = model ? gf_model_profile_bytes(model) : 0,
		.callers_memory = c->sweep.callers_memory,
		.time_s = c->sweep.time_s,
		.timeout_s = c->sweep.timeout_s,
	};
	/* on all ranks, if it is so on any */
	int rc = gf_measure_slowest(c->comm, &backward_share, 1, err);

	selections.backward_share = backward_share;
	rc = rc ?: gf_measure_codecs(c->comm, backward_share, c->sweep.time_s, out, err);
	return rc ?: gf_measure_selections(&selections, out, err);
}

static int measure_codecs_run(const struct gf_measure_profile *c, struct gf_profile *p,
			      struct gf_error *err)
{
	const struct gf_measure_codecs_run run = {
		.comm = c->comm,
		.network = p->network,
		.threads = beside_threads(c),
		.callers_memory = c->sweep.callers_memory,
		.max_bytes = c->sweep.max_bytes ? c->sweep.max_bytes : GF_MEASURE_MAX_BYTES,
		.model_bytes =
			p->model && !c->sweep.max_bytes ? gf_model_profile_bytes(p->model) : 0,
		.time_s = 0.5 * c->sweep.time_s,
		.timeout_s = c->sweep.timeout_s,
	};

	/* between GPUs codecs run there */
	return c->device.nccl ? 0 : gf_measure_codecs_run(&run, &p->processing, err);
}

/* Of a measurement that has failed, what is whole stays: a half, or both without what they do to
 * each other. */
static void keep_whole(struct gf_profile *p, struct gf_text *remarks)
{
	if (p->model && !p->model->tensors) {
		gf_model_profile_free(p->model);
		p->model = NULL;
	}
	for (size_t i = 0; p->network && i < p->network->nallreduce; i++) {
		struct gf_beside_backward *b = &p->network->allreduce[i].beside;

		free(b->compute_slowdown);
		*b = (struct gf_beside_backward){0};
	}
	if (p->model) {
		p->model->overlap_slowdown = 1;
		p->model->issue_s = 0;
	}
	if (!p->network)
		gf_processing_release(&p->processing);
	if (p->model || p->network)
		gf_text_addf(remarks, "the profile has %s alone\n",
			     !p->network ? "the model half"
			     : p->model  ? "each half"
					 : "the network half");
}

static int measure(const struct gf_measure_profile *c, struct gf_profile *p,
		   struct gf_text *remarks, struct gf_json_writer *w, struct gf_error *err)
{
	struct compute m = {0};
	int rc = 0;

	if (c->device.gpu)
		rc = measure_copies(c, p, remarks, w, err);
	if (c->model && rc == 0)
		rc = measure_model(c, &m, p, err);
	if (rc == 0 && c->network) {
		rc = measure_processing(c, p->model, &p->processing, err);
		rc = rc ?: sit_again(c, &m, p, err);
		rc = rc ?: measure_network(c, p, remarks, err);
		rc = rc ?: measure_codecs_run(c, p, err);
		rc = rc ?: sit_again(c, &m, p, err);
	}
	if (rc == 0 && p->model && p->network) {
		rc = measure_beside(c, &m.step, p, err);
		rc = rc ?: sit_again(c, &m, p, err);
	}
	if (rc)
		keep_whole(p, remarks);
	if (p->model)
		put_model(c, &m, w);
	if (p->network) {
		gf_json_open_object(w, "network");
		put_place(w, c->comm);
		gf_json_put_string(w, "transport",
				   gf_contest_device_transport(&c->device, c->comm));
		if (c->sweep.callers_memory)
			gf_json_put_string(w, "memory", "caller's");
		gf_json_close_object(w);
	}
	if (m.step.model)
		gf_measure_step_close(&m.step);
	gf_measure_compute_release(&m.times);
	return rc;
}

int gf_measure_profile(const struct gf_measure_profile *config, struct gf_profile *out,
		       struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_profile c = *config;
	bool opened = !c.device.gpu;
	struct gf_profile p = {0};
	struct gf_json_writer w = {0};
	struct gf_measure_load load;
	int rc = choose_place(&c, remarks, err);

	gf_measure_load_begin(&load);
	if (rc == 0 && c.device.gpu && !c.device.nccl && c.network)
		gf_text_addf(remarks, "all-reduces go by the host: %s\n", c.device.why);
	p.producer = gf_xstrdup("gf-profile " GF_VERSION);
	gf_json_open_object(&w, NULL);
	rc = rc ?: measure(&c, &p, remarks, &w, err);
	rc = rc ?: put_load(&load, c.comm, &w, err);
	gf_json_close_object(&w);
	p.measured = gf_text_take(&w.text);
	if (opened)
		gf_contest_device_close(&c.device);
	*out = p;
	return rc;
}
