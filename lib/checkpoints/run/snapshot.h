/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/checkpoints/run: keeps a run's folder: its checkpoints, its marks, and what ranks that come
 * and go take over. */
#ifndef GF_RUN_SNAPSHOT_H
#define GF_RUN_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "documents/selections/selection.h"
#include "checkpoints/state.h"
#include "checkpoints/run/team.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/set.h"

/*
 * A run's checkpoint folder has an owner (checkpoints/set.h), and a set from which the run goes on.
 * All calls are collective but the last.
 */
struct gf_folder_wish {
	const char *dir;
	const char *job;       /* how people know this job; NULL: by its process */
	bool resume;           /* sets may be there */
	const char *other_run; /* advice where sets are another run's; or NULL */
	/* On rank 0: what the user would not expect (optional). */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

struct gf_folder {
	char *dir;
	struct gf_checkpoint_owner *owner; /* rank 0's, while the folder is owned */
	char run[GF_RUN_NAME];             /* ""; as gf_snapshot_write names it */
	struct gf_manifest from;           /* of the set found; ranks 0: none */
	size_t newest;                     /* step that was found or written */
	bool known;                        /* there is one */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* The newest set of which every file is what its manifest says, on all ranks, which share the
 * reading; refused ones are told. -ENOENT: there is no set; -EINVAL: none is whole. */
int gf_folder_find(struct gf_team *team, const struct gf_folder_wish *wish, struct gf_folder *f,
		   struct gf_error *err);

/* The folder is this job's, to write to. -EBUSY: another job has it. -EINVAL: unless wish->resume,
 * it holds sets newer than f knows. */
int gf_folder_claim(struct gf_team *team, const struct gf_folder_wish *wish, struct gf_folder *f,
		    struct gf_error *err);

/* Leaves the folder to other jobs; what f knows of it stays. */
void gf_folder_leave(struct gf_folder *f);
/* Leaves the folder, and frees what f has. Accepts a zeroed one. */
void gf_folder_release(struct gf_folder *f);

/*
 * State to and from checkpoint sets (checkpoints/set.h). All calls are collective: every rank
 * returns the same.
 */

#define GF_TRAIN_WAYS "ways" /* the metadata of a set */

/* The caller's own names for things, and its advice. The advice follows the description of what is
 * wrong. */
struct gf_snapshot_words {
	const char *samples;                 /* of struct gf_run_identity: "training samples" */
	const char *other_run, *other_ranks; /* advice; NULL: none */
};

/* The properties that a resumed run must share with the run before. */
struct gf_run_identity {
	const struct gf_snapshot_words *words;
	const char *model;  /* name */
	const char *method; /* gf_selection_name */
	const char *optimizer;
	size_t batch;      /* per rank */
	size_t accumulate; /* such batches in a step */
	size_t staleness;
	size_t servers;         /* the last ranks, which do not compute */
	size_t pipeline_warmup; /* steps */
	const struct gf_selection *selection;
	const char *codecs;     /* of the plan's messages */
	const char *period;     /* gf_period_text */
	const char *loss_scale; /* a name of gf_scaling_names */
	size_t samples;         /* of the training part, or what words say */
	size_t seed;
	const char *training; /* the whole document, kept for people */
	const char *ways;     /* how each message goes (trainer/choose_ways.h) */
};

/* Writes the set of step `step` into a folder that is owned. A failure leaves those that were there
 * untouched. */
int gf_snapshot_write(struct gf_team *team, struct gf_folder *folder, size_t step,
		      const struct gf_run_identity *id, const struct gf_state *state,
		      struct gf_error *err);

struct gf_snapshot_source {
	bool reshard; /* another number of ranks will do, as struct gf_reshard has it */
	bool recount; /* and then, too, another number of samples */
	/* 1 + what this rank was in the run before; 0 on all ranks: the ranks are the same as far
	 * as there are as many. 0 on this one: it is new */
	size_t former;
	/* out */
	size_t step;  /* it was made after, of a run of */
	int computed; /* so many ranks that compute */
	bool resharded;
	size_t samples; /* of that run */
	double carried; /* the norm of what went to other ranks then */
};

/* Reads the set that was found in the folder into `state`. */
int gf_snapshot_read(struct gf_team *team, const struct gf_folder *folder,
		     struct gf_snapshot_source *from, const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err);

/*
 * A checkpoint of P ranks becomes the state of P' ranks.
 *
 * Residuals, histories and sums in flight are divided by the number of ranks when they are applied.
 * So they are multiplied by P'/P: sum/P is conserved, and the applied mean is the same. State that
 * each rank has of its own goes from rank r to the rank that is r's heir, else to rank r mod P',
 * and is added there. A rank that is no heir, and gets nothing so, begins with zeros. Running
 * statistics become their mean over the old ranks. Ranks are those that compute; servers own
 * nothing that counts.
 */
struct gf_reshard {
	int from, to; /* ranks before, and now */
	int rank;     /* this one, now */
	/* Per rank before: what it is now, -1: it is no more. Borrowed; NULL: the first ranks keep
	 * their numbers. */
	const int *heirs;
	/* Grows by the squares of what this rank takes over from ranks that are no more.
	 * (optional) */
	double *carried;
};

/* Makes the own arrays ready for the first part. */
void gf_reshard_begin(const struct gf_state *s);
/* Adds what this rank takes over from old rank `part`, whose file that is. */
int gf_reshard_take(const struct gf_reshard *r, int part, const struct gf_safetensors *file,
		    const struct gf_state *s, struct gf_error *err);
/* When the shared arrays are there too and all parts are taken. */
void gf_reshard_end(const struct gf_reshard *r, const struct gf_state *s);

/*
 * A run has done `steps` steps of `from_samples`, with `samples` in an epoch. The result is the
 * number of steps of `to_samples` from which it goes on: in the same epoch, at the first whole step
 * after the samples that were seen, or at the epoch's end. An epoch is one order of all samples for
 * any number of ranks, so none is seen twice.
 */
size_t gf_reshard_steps(size_t steps, size_t samples, size_t from_samples, size_t to_samples);

/*
 * Which rank goes on from what a rank of an earlier run has left. Collective; every rank returns
 * the same. former: 1 + what this rank was, of `before` ranks; 0: it is new. *heirs has `before`
 * entries, -1 for a rank that is no more, and is the caller's to free. It is NULL if all ranks are
 * new: nobody knows. -EINVAL: there was no such rank, or two ranks were the same.
 */
int gf_heirs_find(struct gf_team *team, size_t former, int before, int **heirs,
		  struct gf_error *err);

#endif
