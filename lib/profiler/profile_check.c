/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/whole_profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/timeout.h"
#include "json/json.h"
#include "profiler/profile_parts.h"

static char *describe_network(const struct gf_measure_network *n)
{
	struct gf_text t = {0};

	gf_text_addf(&t, "%zu to ", n->min_bytes);
	if (n->max_bytes)
		gf_text_addf(&t, "%zu bytes", n->max_bytes);
	else
		gf_text_addf(&t, "as many bytes as there is time for");
	gf_text_addf(&t, "%s, %zu lanes, %g s a point, %g s in all, given up after %g s, ",
		     n->callers_memory ? " of a caller's" : "", n->lanes, n->time_s, n->budget_s,
		     n->timeout_s);
	for (size_t i = 0; n->algorithms && n->algorithms[i]; i++)
		gf_text_addf(&t, "%s%s", i ? "," : "", n->algorithms[i]);
	if (!n->algorithms)
		gf_text_addf(&t, "all algorithms");
	for (size_t i = 0; n->collectives && n->collectives[i]; i++)
		gf_text_addf(&t, "%s%s", i ? "," : " and ", n->collectives[i]);
	return gf_text_take(&t);
}

int gf_measure_profile_same(struct gf_comm *comm, const struct gf_measure_profile *c,
			    const char *model, struct gf_error *err)
{
	const char *device = c->device.name ? c->device.name : "cpu";
	GF_FREED char *step = gf_xasprintf("batch %zu, %zu + %zu repeats, %.*s, %s", c->batch,
					   c->warmup, c->repeats, (int)strcspn(device, ":"), device,
					   gf_dtype_names[c->precision]);
	GF_FREED char *network = c->network ? describe_network(&c->sweep) : gf_xstrdup("none");
	const struct {
		const char *what, *text;
	} said[] = {
		{"version", GF_VERSION},
		{"model", model ? model : "none"},
		{"options", step},
		{"network half", network},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < GF_ARRAY_LENGTH(said); i++)
		rc = gf_comm_same_text(comm, said[i].what, said[i].text, err);
	return rc;
}

void gf_measure_profile_init(struct gf_measure_profile *c)
{
	*c = (struct gf_measure_profile){
		.backend_name = "auto",
		.device.name = "auto",
		.warmup = 5,
		.repeats = 30,
		.sweep = {.min_bytes = 1024,
			  .lanes = 4,
			  .time_s = 0.1,
			  .budget_s = 30,
			  .timeout_s = GF_TIMEOUT_S},
	};
}

int gf_measure_profile_check(const struct gf_measure_profile *c, struct gf_error *err)
{
	struct gf_measure_network sweep = c->sweep;
	int rc = gf_contest_device_check(&c->device, err);

	if (rc) {
		gf_error_prefix(err, "--device");
		return rc;
	}
	if (sweep.max_bytes == 0)
		sweep.max_bytes = GF_MEASURE_MAX_BYTES;
	rc = gf_measure_network_check(&sweep, err);
	if (rc == 0 && !gf_backend_find(c->backend_name))
		rc = gf_registry_refuse(&(struct gf_registry){gf_backends}, "--device", "auto",
					c->backend_name, err);
	return rc;
}

static int check(const struct gf_documents *d, bool network, int ranks, struct gf_error *err)
{
	bool timed = d->profile && (d->profile->model || d->profile->passes);

	if (!d->model && !network)
		return gf_error_set(
			err, -EINVAL,
			"nothing to measure: want --model, or more than one rank under mpirun");
	if (network && d->topology && d->topology->ranks > 0 && d->topology->ranks != ranks)
		return gf_error_set(err, -EINVAL, "%s: the topology has %d ranks, this job has %d",
				    d->topology_file, d->topology->ranks, ranks);
	if (d->profile && ((timed && d->model) || (d->profile->network && network)))
		return gf_error_set(err, -EINVAL, "%s: there is a %s half in it already",
				    d->profile_file, timed && d->model ? "model" : "network");
	return 0;
}

static int read_model(const char *text, size_t length, struct gf_model *model, struct gf_error *err)
{
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	int rc = gf_json_parse(text, length, "the model", &root, err);

	return rc ?: gf_model_read(root, "the model", model, err);
}

int gf_measure_given_model(struct gf_comm *comm, const struct gf_model *model,
			   struct gf_model *copy, bool *given, struct gf_error *err)
{
	GF_FREED char *text = NULL;
	size_t length = 0;
	int rc;

	if (comm->rank == 0) {
		text = model ? gf_model_write(model) : gf_xstrdup("");
		length = strlen(text);
	}
	rc = gf_comm_bcast_text(comm, 0, &text, &length, err);
	if (rc == 0) {
		*given = length > 0;
		if (*given)
			rc = read_model(text, length, copy, err);
		rc = gf_comm_agree(comm, rc, err);
	}
	return rc;
}

int gf_measure_given(struct gf_comm *comm, const struct gf_documents *d, bool network,
		     struct gf_model *model, bool *given, struct gf_error *err)
{
	int rc = comm->rank ? 0 : check(d, network, comm->ranks, err);

	rc = gf_comm_agree(comm, rc, err);
	return rc ?: gf_measure_given_model(comm, d->model, model, given, err);
}

/* All processors of this machine since it started; < 0: unknown. Time that a hypervisor gave to
 * others (steal) is busy, too. */
static double busy_s(void)
{
	FILE *f = gf_heap_need(fopen("/proc/stat", "r"));
	double user, nice, system, idle, wait, irq, soft, steal = 0;
	int n;

	if (!f)
		return -1;
	n = fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
		   &irq, &soft, &steal);
	fclose(f);
	if (n < 7)
		return -1;
	return (user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK);
}

static double own_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void gf_measure_load_begin(struct gf_measure_load *l)
{
	l->began_s = gf_clock_s();
	l->busy_s = busy_s();
	l->own_s = own_s();
}

/* What one rank saw. */
struct seen {
	int machine, online; /* processors; 0: unknown */
	double share;        /* this rank's, in processors; 0: unknown */
	double busy, own;    /* per second */
};

static struct seen look(const struct gf_measure_load *l, const struct gf_comm *comm)
{
	double took_s = gf_clock_s() - l->began_s, now_s = busy_s();
	struct seen s = {.machine = comm->machine};

	if (l->busy_s < 0 || now_s < 0 || !(took_s > 0))
		return s;
	s.online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	s.share = comm->processors;
	s.busy = (now_s - l->busy_s) / took_s;
	s.own = (own_s() - l->own_s) / took_s;
	return s;
}

int gf_measure_load_end(const struct gf_measure_load *l, struct gf_comm *comm,
			struct gf_measure_load_found *found, struct gf_error *err)
{
	struct seen own = look(l, comm);
	GF_FREED struct seen *all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	int rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);

	*found = (struct gf_measure_load_found){.others = -1};
	for (int h = 0; rc == 0 && h < comm->ranks; h++) {
		struct gf_measure_load_found here = {0};
		double share = 0, beside;

		for (int r = h; r < comm->ranks; r++)
			if (all[r].machine == h) {
				here.ranks++;
				here.own += all[r].own;
				share += all[r].share;
			}
		if (all[h].machine != h || !all[h].online)
			continue;
		/* thirds of a processor may sum to a little more than one */
		here.processors = (int)ceil(share - 1e-6);
		if (here.processors < 1 || here.processors > all[h].online)
			here.processors = all[h].online;
		/* other programs may be where this one may not be */
		beside = all[h].online - here.processors;
		here.others = fmax(all[h].busy - here.own - beside, 0);
		if (here.others > found->others)
			*found = here;
	}
	return rc;
}
