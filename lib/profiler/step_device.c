/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <errno.h>
#include <string.h>

#include "profiler/chain.h"
#include "transport/processors.h"

int gf_measure_place_step(const struct gf_measure_profile *c, struct gf_measure_step *step,
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
	size_t i;

	for (i = 0; gf_backends[i] && !c->backend; i++)
		if (gf_backends[i]->on_device == (c->device.gpu != NULL) &&
		    (any || strcmp(gf_backends[i]->name, name) == 0))
			c->backend = gf_backends[i];
	if (c->backend || !c->model)
		return 0;
	if (any)
		return gf_error_set(err, -ENOTSUP, "no backend of this build computes on a GPU");
	return gf_error_set(err, -EINVAL, "--backend %s does not compute on --device %s", name,
			    gf_contest_device_kind(&c->device));
}

/* A layer of the model may have no kernel here, or a library may be missing. */
static int try_step(const struct gf_measure_profile *c, struct gf_error *err)
{
	struct gf_measure_step step = {0};
	int rc = c->model ? gf_measure_place_step(c, &step, err) : 0;

	if (step.model)
		gf_measure_step_close(&step);
	return rc;
}

static bool by_auto(const struct gf_measure_profile *c)
{
	return c->device.name && strcmp(c->device.name, "auto") == 0;
}

/* Asked for by name, which says where, too. */
static bool wants_host(const struct gf_measure_profile *c)
{
	const struct gf_backend *b = gf_backend_find(c->backend_name);

	return c->backend_name && strcmp(c->backend_name, "auto") != 0 && b && !b->on_device;
}

/* The rule of gf-train: what was asked for, or a GPU if every rank has one that computes the model,
 * else the host. Says which of the two was taken. */
static int choose_device(struct gf_measure_profile *c, struct gf_text *remarks,
			 struct gf_error *err)
{
	struct gf_error why = {""};
	double host = by_auto(c) && wants_host(c); /* on any rank */
	int rc = gf_measure_slowest(c->comm, &host, 1, err);

	if (rc || c->device.gpu || host > 0)
		return rc ? rc : choose_backend(c, err);
	rc = gf_contest_device_open(c->comm, &c->device, err);
	if (rc || !by_auto(c) || !c->device.gpu)
		return rc ? rc : choose_backend(c, err);
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

static void say_slow(const struct gf_measure_profile *c, struct gf_text *remarks)
{
	const char *name = c->backend_name ? c->backend_name : "auto";

	if (c->model && c->backend->slow && strcmp(name, c->backend->name) != 0)
		gf_text_addf(remarks, "%s\n", c->backend->slow);
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

int gf_measure_place_choose(struct gf_measure_profile *c, struct gf_text *remarks,
			    struct gf_error *err)
{
	int rc = choose_device(c, remarks, err);

	if (!c->comm->broken)
		rc = gf_comm_agree(c->comm, rc, err);
	if (rc)
		return rc;
	say_slow(c, remarks);
	return choose_threads(c, err);
}
