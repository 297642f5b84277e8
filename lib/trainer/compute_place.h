/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_COMPUTE_PLACE_H
#define GF_TRAINER_COMPUTE_PLACE_H

#include <stddef.h>

#include "base/error.h"
#include "transport/comm.h"
#include "cuda/lanes/nccl.h"
#include "doc/models/model.h"
#include "cuda/gpu.h"
#include "nn/net.h"
#include "profiler/autotune/own_gpu.h"
#include "trainer/train.h"

/*
 * The place where a run computes: a number of the host's threads, or a GPU. The ranks of a host
 * take its GPUs in turn; more ranks than GPUs share them.
 */
struct gf_train_place {
	const struct gf_backend *backend;
	struct gf_place at;
	int threads; /* of the host, that a net computes with */
	char *note;  /* what this rank's user may want to know; NULL: nothing */
};

/* The devices that there are; tests put others here. */
struct gf_train_devices {
	struct gf_gpu_source gpus;
	const struct gf_backend *backend; /* NULL: none computes there */
};

extern const char *const gf_train_transports[]; /* NULL-ended */
enum gf_train_transport {
	GF_TRANSPORT_AUTO,
	GF_TRANSPORT_NCCL,
	GF_TRANSPORT_MPI,
	GF_TRANSPORT_UCX,
};
/* The transport between hosts that it asks for by name, or NULL. */
const char *gf_train_between_hosts(int transport);

struct gf_train_wish {
	const char *device;           /* checked by gf_train_place_check */
	int threads;                  /* per rank; 0: its share of the processors */
	enum gf_dtype precision;      /* that nets compute in */
	const struct gf_model *model; /* NULL: nothing is computed */
	size_t batch;
	struct gf_comm *group; /* NCCL connects these; NULL: all ranks */
	enum gf_train_transport transport;
	const char *by_host;                    /* why gradients must go so; NULL: need not */
	const struct gf_train_devices *devices; /* NULL: this machine's */
};

/* "auto", "cpu", "cuda", "cuda:N" or the name of a backend on the host; else -EINVAL. */
int gf_train_place_check(const char *device, struct gf_error *err);
/*
 * Collective. auto takes GPUs if every rank can: if the model's net can be made there. -ENODEV: a
 * GPU that was asked for is not there, with what is missing; the same on all ranks. Gradients of
 * GPUs go by NCCL if they may, if it is there and if every rank has a GPU of its own; asked for and
 * hindered: -ENOTSUP, -ENODEV or -EINVAL.
 */
int gf_train_place_open(struct gf_comm *comm, const struct gf_train_wish *wish,
			struct gf_train_place *place, struct gf_error *err);
/* gf_train_place_open for a configuration: its model, batch and plan say the rest of the wish, and
 * it gets the place. */
int gf_train_place_take(struct gf_train_config *config, const struct gf_train_wish *wish,
			struct gf_train_place *place, struct gf_error *err);
/* Accepts zeros. After everything that computes there. */
void gf_train_place_close(struct gf_train_place *place);

#endif
