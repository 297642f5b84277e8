/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/trainer: gf-train's loop: compute, the exchange, the update, logs, checkpoints. */
#ifndef GF_TRAINER_TRAIN_H
#define GF_TRAINER_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/comm.h"
#include "cuda/lanes/nccl.h"
#include "data/dataset.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "documents/training.h"
#include "nn/net.h"
#include "trainer/optim/optimizer.h"
#include "exchange/localsgd/outer.h"
#include "checkpoints/run/snapshot.h"
#include "trainer/event_ring.h"
#include "trainer/speed.h"
#include "trainer/statistics.h"

/*
 * Data-parallel training by a plan. Every rank makes the same calls with the same configuration and
 * gets the same return code, except where the communicator breaks (comm->broken): then each rank
 * says what it saw, and the caller ends the job.
 *
 * Returns 0, a negative errno, or 1: the run came to an end of its own that is a "no" (replicas
 * differ, the loss is not finite), with the reason in err.
 */

/* The time of a step's parts, and of the communication thread's work beside moving data, whether
 * backward hides it or not. */
struct gf_train_times {
	struct gf_step_parts step;
	double select_s; /* packing, selection, scaling */
	double codec_s;  /* codecs and the merging of sets, at every hop */
};

/* A rank's memory: what was asked for, of a GPU's run there, by kinds; and what the process had in
 * use before the run, and at its peak, 0 if the kernel does not say. */
struct gf_train_memory {
	size_t parameters_bytes, gradients_bytes, optimizer_bytes;
	size_t activations_bytes; /* of nets, with their gradients and with copies of weights */
	size_t tests_bytes;       /* the same, for tests alone */
	size_t buffers_bytes;     /* of nets, loaders, and of what else checkpoints hold */
	size_t before_bytes, peak_bytes;
};

/* One row of what is known after a step, an epoch, or a test. */
struct gf_train_row {
	const char *part;   /* "batch": one step's samples; "train": an epoch's steps; "test": the
			     * test part */
	size_t epoch, step; /* from 1; step counts over the whole run */
	double rate;        /* learning rate of that step */
	double loss;        /* mean over the samples */
	double perplexity;  /* exp(loss) where the data is text; else 0 */
	/* Of a "test": by how many steps its parameters are older, where an outer exchange is to
	 * come. */
	size_t steps_behind;
	size_t correct, samples; /* labels: a text has one per position */
	double loss_scale;       /* of a "batch" that is scaled, else 0 */
	size_t skipped;          /* of a "batch": steps that were skipped so far */
	/* By all ranks in messages; and what rings would have sent of all gradients in f32. 0 of a
	 * "test". */
	uint64_t sent_bytes, dense_bytes;
	double seconds;                /* of the step, the epoch, the test, on rank 0 */
	double samples_per_s;          /* all ranks', labels too */
	struct gf_train_times times;   /* of a "train", rank 0's */
	struct gf_train_memory memory; /* the same */
};

struct gf_train_watch {
	/* On rank 0, in order (optional). Not 0 ends the run. */
	int (*row)(void *ctx, const struct gf_train_row *row, struct gf_error *err);
	/* On rank 0, after every step (optional). */
	void (*progress)(void *ctx, size_t step, size_t steps);
	void *ctx;
	/* On rank 0: what the user would not expect (optional). */
	void (*note)(void *ctx, const char *text);
	/* Once, when nothing is left to be found wrong before the first step (optional). */
	void (*begin)(void *ctx);
};

/* Whether a run goes on from a checkpoint, and of how many ranks. */
enum gf_train_resume { GF_RESUME_NO, GF_RESUME_SAME, GF_RESUME_ANY };
extern const char *const gf_train_resumes[]; /* no same any */

struct gf_train_config {
	struct gf_comm *comm; /* all borrowed */
	/* The ranks that exchange gradients in every step, where they are not all
	 * (trainer/groups.h); else NULL. */
	struct gf_comm *group, *undivided;
	const struct gf_plan *plan; /* bound to the model and the ranks */
	const struct gf_model *model;
	const struct gf_backend *backend;
	const struct gf_dataset *data;
	/* Of a backend on_device; with nccl each rank has a GPU of its own. Its passes are
	 * captured, as messages are, if there is a gpu, unless that is not wanted
	 * (gf_train_place_take). */
	struct gf_place place;
	bool no_graphs;

	int threads;             /* of nets on the host; 0: OpenMP's choice */
	size_t loaders;          /* threads that fetch samples; 0: the usual */
	enum gf_dtype precision; /* of nets */
	bool half;               /* it is f16: the loss scale is wanted */
	bool halves;             /* of gf_train_choose: what is open moves as halves */

	struct gf_training training; /* owned by the caller */
	char *remark;        /* how completing it suited the plan, or NULL; owned by the caller */
	size_t steps;        /* stop after so many in all; 0: after the epochs */
	size_t test_samples; /* of a test, at most; 0: all */

	const char *checkpoint;   /* folder; NULL: none */
	struct gf_folder *folder; /* the same, by gf_train_take_folder */
	const char *job;          /* how people know it; NULL: by its process */
	size_t checkpoint_every;  /* steps; 0: every epoch */
	int resume;               /* enum gf_train_resume */
	size_t check_every; /* steps between comparisons of replicas; 0: never; SIZE_MAX: as the
			     * plan's algorithms need it */
	int skip_bad;       /* a gradient that is not finite: 1 skips the step, 0 ends the run */
	bool statistics;    /* what gradients are like is wanted */
	double timeout_s;
	double choose_s; /* that gf_train_choose measured; 0: nothing to */
	struct gf_train_watch watch;
};

struct gf_train_result {
	const char *device;              /* a GPU's name, the configuration's; else NULL */
	const char *transport;           /* of gradients */
	struct gf_timeline timeline;     /* this rank's last steps */
	size_t first_step, last_step;    /* that were run; first > last: none */
	size_t warmup_steps;             /* until the selection sends what the plan says */
	size_t skipped;                  /* of these steps, whose gradients were not finite */
	double scale;                    /* of the loss, at the end; 0: none */
	struct gf_train_row train, test; /* the last of each; part NULL: none */
	/* By all ranks in the steps that were run, as in rows. */
	uint64_t sent_bytes, dense_bytes;
	struct gf_train_times times; /* this rank's, of those steps */
	struct gf_speed speed;
	struct gf_train_memory memory; /* this rank's; of a replay zeros */
	/* This rank's, of a plan with a period; else zeros. */
	struct gf_outer_totals outer;
	struct gf_statistics_result statistics;
};

/* Fills in what is absent in config->training: the plan's batch, and defaults that suit the shipped
 * models and the plan, with a remark if they differ from those for dense gradients. -EINVAL: it
 * contradicts itself. */
int gf_train_complete(struct gf_train_config *config, struct gf_error *err);
/* Its optimiser; strings are borrowed. */
struct gf_optim_config gf_train_optim(const struct gf_training *t);
/* The peak of the learning rate at this run's batch. */
double gf_train_peak(const struct gf_train_config *config);
/* Samples of a step on all ranks. */
size_t gf_train_global_batch(const struct gf_train_config *config);

/* Settles the plan's warm-ups, which is config's, by the lengths of this run. A replay has no
 * epochs, and leaves out those that are counted in them. Those that outlast the run are shortened,
 * with a remark. Split messages of a training that looks at its whole gradient first
 * (trainer/method.h) become whole, with a remark, and the plan is predicted anew. */
void gf_train_settle(struct gf_train_config *config, struct gf_plan *plan);

/* Collective, before gf_train_choose: the checkpoint folder, if there is one, becomes this job's,
 * and the set to resume from is found in it. After a failure, too, the caller leaves it. */
int gf_train_take_folder(struct gf_train_config *config, struct gf_error *err);
void gf_train_leave_folder(struct gf_train_config *config);

int gf_train_run(const struct gf_train_config *config, struct gf_train_result *result,
		 struct gf_error *err);

/* Sleeps for compute as plan->model says, with real communication; uses comm, plan, steps (0:
 * GF_TRAIN_REPLAY_STEPS), timeout_s and watch alone. */
#define GF_TRAIN_REPLAY_STEPS 50
int gf_train_replay(const struct gf_train_config *config, struct gf_train_result *result,
		    struct gf_error *err);

#endif
