/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/options.h"

#include <string.h>

#include "base/heap.h"
#include "trainer/method.h"
#include "transport/processors.h"

/* --- what is asked for ---------------------------------------------------- */

static const struct gf_backend *on_host(const char *device)
{
	const struct gf_backend *b;

	if (strcmp(device, "auto") == 0 || strcmp(device, "cpu") == 0)
		return gf_backend_find("auto");
	b = gf_backend_find(device);
	return b && !b->on_device ? b : NULL;
}

int gf_train_place_check(const char *device, struct gf_error *err)
{
	size_t index;
	int rc = gf_own_gpu_read(device, &index, err);

	if (!rc || (rc == -ENOENT && on_host(device)))
		return 0;
	return gf_error_set(
		err, -EINVAL,
		"--device: want auto, cpu, cuda, cuda:N or a backend of this build, got \"%s\"",
		device);
}

/* --- GPUs ------------------------------------------------------------------
 */

static int missing(const struct gf_train_devices *d, struct gf_error *err)
{
	struct gf_error why = {""};

	if (!d->gpus.count(&why))
		return gf_error_set(err, -ENODEV, "%s", why.text);
	if (!d->backend)
		return gf_error_set(
			err, -ENODEV,
			"this build computes nothing on GPUs: it was made without cuDNN");
	return 0;
}

/* Libraries that are not there and memory that does not suffice show when a net is made. */
static int try_net(const struct gf_train_place *p, const struct gf_train_wish *w,
		   struct gf_error *err)
{
	struct gf_net *net = NULL;
	int rc;

	if (!w->model)
		return 0;
	rc = p->backend->net_new(w->model, w->batch,
				 &(struct gf_net_options){.precision = w->precision,
							  .gpu = p->at.gpu,
							  .stream = p->at.stream},
				 &net, err);
	if (!rc)
		p->backend->net_free(net);
	return rc;
}

/* This rank's own. */
static int take_gpu(struct gf_comm *comm, const struct gf_train_wish *w,
		    const struct gf_train_devices *d, size_t index, struct gf_train_place *p,
		    struct gf_error *err)
{
	int rc = missing(d, err);

	rc = rc ?: gf_own_gpu_open(&d->gpus, comm, index, &p->at.gpu, err);
	if (rc)
		return rc;
	p->backend = d->backend;
	rc = p->at.gpu->ops->stream_new(p->at.gpu, false, &p->at.stream, err);
	return rc ?: try_net(p, w, err);
}

/* --- how gradients go ------------------------------------------------------
 */

const char *const gf_train_transports[] = {"auto", "nccl", "mpi", "ucx", NULL};

static bool by_host(int transport)
{
	return transport == GF_TRANSPORT_MPI || transport == GF_TRANSPORT_UCX;
}

const char *gf_train_between_hosts(int transport)
{
	return by_host(transport) ? gf_train_transports[transport] : NULL;
}

/* Collective. If NCCL was asked for and cannot be used, the run is refused; else the reason is a
 * note. */
static int choose_transport(struct gf_comm *comm, const struct gf_train_wish *w,
			    const struct gf_train_devices *d, struct gf_train_place *p,
			    struct gf_error *err)
{
	struct gf_error why = {""};
	int rc = 0;

	if (by_host((int)w->transport))
		return 0;
	if (w->by_host)
		rc = gf_error_set(&why, -ENOTSUP, "%s", w->by_host);
	rc = rc ? rc
		: gf_own_gpu_nccl(&d->gpus, w->group ? w->group : comm, p->at.gpu, &p->at.nccl,
				  &why);
	/* groups find out by themselves, and all go one way */
	rc = w->group ? gf_comm_agree(comm, rc, &why) : rc;
	if (!rc)
		return 0;
	p->at.nccl = NULL;
	if (w->transport == GF_TRANSPORT_NCCL || comm->broken)
		return gf_error_set(err, rc, "--transport nccl: %s", why.text);
	if (!p->note && comm->ranks > 1)
		p->note = gf_xasprintf("gradients go by the host: %s", why.text);
	return 0;
}

struct used {
	int host;
	char pci[sizeof(((struct gf_gpu *)0)->pci)];
};

/* How many ranks use this rank's GPU. */
static int count_sharing(struct gf_comm *comm, const struct gf_gpu *gpu, int *sharing,
			 struct gf_error *err)
{
	struct used own = {.host = comm->host}, *all;
	int r, rc;

	memcpy(own.pci, gpu->pci, sizeof(own.pci));
	all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	*sharing = 0;
	for (r = 0; r < comm->ranks && !rc; r++)
		*sharing += all[r].host == own.host && strcmp(all[r].pci, own.pci) == 0;
	free(all);
	return rc;
}

static int use_gpu(struct gf_comm *comm, const struct gf_train_wish *w,
		   const struct gf_train_devices *d, size_t index, struct gf_train_place *p,
		   struct gf_error *err)
{
	int sharing, rc;

	rc = gf_comm_agree(comm, take_gpu(comm, w, d, index, p, err), err);
	rc = rc ?: count_sharing(comm, p->at.gpu, &sharing, err);
	if (rc) {
		gf_train_place_close(p);
		return rc;
	}
	if (sharing > 1)
		p->note = gf_xasprintf("%d ranks share GPU %d (%s): they slow each other", sharing,
				       p->at.gpu->index, p->at.gpu->name);
	rc = choose_transport(comm, w, d, p, err);
	if (rc)
		gf_train_place_close(p);
	return rc;
}

/* One more note, before those that are there. */
static void add_note(struct gf_train_place *p, const char *text)
{
	GF_FREED char *others = p->note;

	p->note = gf_xasprintf("%s%s%s", text, others ? "; " : "", others ? others : "");
}

/* --- the host --------------------------------------------------------------
 */

static int use_host(struct gf_comm *comm, const struct gf_train_wish *w,
		    const struct gf_backend *backend, struct gf_train_place *p,
		    struct gf_error *err)
{
	double share = 0;
	int threads, rc = gf_comm_processor_share(comm, &share, err);

	/* all together, whatever this rank was told */
	rc = rc ?: gf_comm_compute_threads(comm, &threads, err);
	if (rc)
		return rc;
	if (w->threads)
		threads = w->threads;
	p->threads = threads;
	p->backend = backend;
	if (comm->ranks > 1 && gf_priority_crowded(comm, threads))
		gf_priority_give_way();
	if (share + 0.01 < threads)
		p->note = gf_xasprintf("ranks of %d compute thread%s have %.4g processors each: "
				       "they slow each other",
				       threads, threads == 1 ? "" : "s", share);
	if (backend->slow && strcmp(w->device, backend->name) != 0)
		add_note(p, backend->slow);
	return 0;
}

int gf_train_place_open(struct gf_comm *comm, const struct gf_train_wish *wish,
			struct gf_train_place *p, struct gf_error *err)
{
	const struct gf_train_devices here = {gf_gpus_here, gf_backend_find("cuda")};
	const struct gf_train_devices *d = wish->devices ? wish->devices : &here;
	struct gf_error why = {""};
	size_t index;
	int rc;

	*p = (struct gf_train_place){0};
	if (!gf_own_gpu_read(wish->device, &index, NULL))
		return use_gpu(comm, wish, d, index, p, err);
	if (strcmp(wish->device, "auto") == 0) {
		rc = use_gpu(comm, wish, d, GF_ANY_GPU, p, &why);
		if (rc && (comm->broken || wish->transport == GF_TRANSPORT_NCCL))
			*err = why;
		if (!rc || comm->broken || wish->transport == GF_TRANSPORT_NCCL)
			return rc;
	}
	if (wish->transport == GF_TRANSPORT_NCCL)
		return gf_error_set(
			err, -EINVAL,
			"--transport nccl: it moves gradients of GPUs, and --device is %s",
			wish->device);
	rc = use_host(comm, wish, on_host(wish->device), p, err);
	if (!rc && why.text[0] && d->gpus.count(NULL)) {
		gf_error_prefix(&why, "computing on the CPU");
		add_note(p, why.text);
	}
	return rc;
}

void gf_train_place_close(struct gf_train_place *p)
{
	if (p->at.stream)
		p->at.gpu->ops->stream_free(p->at.gpu, p->at.stream);
	gf_gpu_close(p->at.gpu);
	free(p->note);
	*p = (struct gf_train_place){0};
}

int gf_train_place_take(struct gf_train_config *config, const struct gf_train_wish *wish,
			struct gf_train_place *p, struct gf_error *err)
{
	struct gf_train_wish w = *wish;
	struct gf_error why = {""};
	int rc;

	w.model = config->model;
	w.group = config->group;
	w.batch = config->training.batch;
	if (gf_method_check_gpu(config->plan, &config->training, &why))
		w.by_host = why.text;
	rc = gf_train_place_open(config->comm, &w, p, err);
	if (rc)
		return rc;
	if (config->place.graphs && !p->at.gpu) {
		gf_train_place_close(p);
		return gf_error_set(err, strcmp(w.device, "auto") ? -EINVAL : -ENODEV,
				    "--cuda-graph: it captures what GPUs compute, and this run "
				    "computes on the CPU");
	}
	p->at.graphs = p->at.gpu && !config->no_graphs;
	config->backend = p->backend;
	config->place = p->at;
	config->threads = p->threads;
	config->precision = w.precision;
	return 0;
}
