/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_OPTIONS_H
#define GF_TRAINER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "documents/training.h"
#include "trainer/train.h"
#include "data/dataset.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "transport/comm.h"
#include "documents/stream.h"
#include "cuda/gpu.h"
#include "nn/net.h"
#include "profiler/autotune/own_gpu.h"

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

/* The command line's options for a training (cmd/gf-train.c has the table). Strings are borrowed
 * from the arguments. */
struct gf_train_options {
	const char *plan, *model, *data, *device, *log, *trace, *statistics, *training_file;
	struct gf_training training; /* what is given, without a document */
	const char *loss_scale;
	int optimizer;  /* of gf_optimizers; -1: not given */
	int cuda_graph; /* enum gf_train_graph */
	int precision;  /* of gf_train_precisions */
	int transport;  /* enum gf_train_transport */
	size_t log_every, threads;
	double target;
	bool replay, list, print_training;
	bool reproducible; /* sums, of a run without a plan, too */
	/* Where a run's configuration begins; not the documents, and not the place
	 * (trainer/options.h, trainer/options.h). */
	struct gf_train_config config;
};

/* Whether a GPU's passes are captured into graphs; on: insists on a GPU. */
enum gf_train_graph { GF_TRAIN_GRAPHS_AUTO, GF_TRAIN_GRAPHS_ON, GF_TRAIN_GRAPHS_OFF };
extern const char *const gf_train_graphs[]; /* NULL-ended */

/* In the order of what --precision knows. */
extern const enum gf_dtype gf_train_precisions[];

void gf_train_options_init(struct gf_train_options *o);
/* -EINVAL: the options contradict each other, whatever is in the documents. Reads --loss-scale into
 * the training, and --precision into config. */
int gf_train_options_finish(struct gf_train_options *o, struct gf_error *err);
/* Appends the defaults of a key of a training: "0.1; text: 4; adamw: 0.001"; nothing: it has
 * none. */
void gf_train_print_default(const struct gf_field *f, struct gf_text *out);
/* A complete training as a document of the keys that it uses; the caller frees. */
char *gf_train_document(const struct gf_training *t);
struct gf_train_wish gf_train_options_wish(const struct gf_train_options *o);

/* The output of --list: selections, optimisers, schedules. The caller frees. */
char *gf_train_list(void);

/* The documents and the data of a run, as its options name them. */
struct gf_train_inputs {
	struct gf_plan plan;
	struct gf_model model;
	struct gf_dataset data;
};

/* Collective: reads them by way of rank 0, binds the plan, and completes config's training.
 * config->comm is set before; plan, model and data will borrow from `in`. A replay has no model and
 * no data, --print-training no data. -EINVAL: the complete training does not heed an option or a
 * key that was given. */
int gf_train_load(const struct gf_train_options *o, struct gf_train_config *config,
		  struct gf_train_inputs *in, struct gf_error *err);
/* Frees all of it, and config's training. Also after a failed load; accepts zeroed ones. */
void gf_train_unload(struct gf_train_config *config, struct gf_train_inputs *in);

/*
 * From what was given on the command line to what every rank runs.
 */

/* Collective: -EINVAL with both values where ranks were started to do different things. Ranks may
 * differ in their threads and outputs, in the GPU or backend of the host, and in the place of their
 * data. */
int gf_train_same(struct gf_comm *comm, const struct gf_train_options *o, struct gf_error *err);

/*
 * Collective: rank 0 reads a file ("-": standard input, which reaches no other rank) that must hold
 * a document of the format, and all get it: the caller releases d, also after a failure. rc is what
 * a rank came to before, which all agree on first. The same for a plan.
 */
int gf_train_read(struct gf_comm *comm, int rc, const char *path, const char *format,
		  struct gf_documents *d, struct gf_error *err);
int gf_train_read_plan(struct gf_comm *comm, int rc, const char *path, struct gf_plan *plan,
		       struct gf_error *err);

/* Collective: opens the data that the model takes; path is this rank's. */
int gf_train_open_data(struct gf_comm *comm, const char *path, const struct gf_model *model,
		       size_t seed, struct gf_dataset *data, struct gf_error *err);

/* The plan of a run without one: threshold fusion with one lane; by an algorithm that
 * gf_algorithm_reproduces, if that is wanted. */
void gf_train_default_plan(struct gf_plan *rule, bool reproducible);

/* Makes `plan` one of these tensors on so many ranks: a rule is bound, a whole plan must fit. */
int gf_train_fit(struct gf_plan *plan, const struct gf_model_profile *model, int ranks,
		 struct gf_error *err);

/*
 * Makes `plan` one that runs this model (NULL: a replay, which has the plan's own) on so many
 * ranks: a rule is bound, a whole plan must fit, and the engine must be able to run it. What a rule
 * leaves open stays so until gf_train_choose.
 */
int gf_train_bind(struct gf_plan *plan, const struct gf_model *model, int ranks,
		  struct gf_error *err);

#endif
