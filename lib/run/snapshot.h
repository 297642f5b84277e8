/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUN_SNAPSHOT_H
#define GF_RUN_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/selection.h"
#include "ckpt/state.h"
#include "run/folder.h"
#include "run/team.h"
#include "ckpt/safetensors.h"

/*
 * State to and from checkpoint sets (ckpt/set.h). All calls are collective:
 * every rank returns the same.
 */

#define GF_TRAIN_WAYS "ways" /* the metadata of a set */

/* The caller's own names for things, and its advice. The advice follows the
 * description of what is wrong. */
struct gf_snapshot_words {
	const char *samples; /* of struct gf_run_identity: "training samples" */
	const char *other_run, *other_ranks; /* advice; NULL: none */
};

/* The properties that a resumed run must share with the run before. */
struct gf_run_identity {
	const struct gf_snapshot_words *words;
	const char *model;  /* name */
	const char *method; /* gf_method_name */
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
	const char *ways;     /* how each message goes (train/choose_ways.h) */
};

/* The set of step `step` in a folder that is owned; on failure those that were
 * there are untouched. */
int gf_snapshot_write(struct gf_team *team, struct gf_folder *folder,
		      size_t step, const struct gf_run_identity *id,
		      const struct gf_state *state, struct gf_error *err);

struct gf_snapshot_source {
	bool reshard; /* another number of ranks will do (run/reshard.h) */
	bool recount; /* and then, too, another number of samples */
	/* 1 + what this rank was in the run before; 0 on all ranks: the ranks
	 * are the same as far as there are as many. 0 on this one: it is new */
	size_t former;
	/* out */
	size_t step;  /* it was made after, of a run of */
	int computed; /* so many ranks that compute */
	bool resharded;
	size_t samples; /* of that run */
	double carried; /* the norm of what went to other ranks then */
};

/* The set that was found in the folder into `state`. */
int gf_snapshot_read(struct gf_team *team, const struct gf_folder *folder,
		     struct gf_snapshot_source *from,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err);

/* Are the shared arrays the same, bit for bit, on all ranks? 1 if not, with
 * the first rank and array that differ from rank 0's in err. */
int gf_snapshot_compare(struct gf_team *team, size_t step,
			const struct gf_state *state, struct gf_error *err);

/*
 * The settings that give a checkpoint's state its meaning, as the metadata of
 * its files and in its manifest. A run goes on only from a set that has the
 * same.
 */
#define GF_RUN_MARKS    19 /* at most */
#define GF_MARK_TEXT    24 /* of a number */
#define GF_MARK_SERVERS "servers"
#define GF_MARK_SAMPLES "samples"

/* A set's record of the ranks that wrote it. */
struct gf_mark_origin {
	size_t step, ranks, servers, samples;
};

/* The metadata of every part; returns how many. Borrows from `id` and
 * `numbers`. */
size_t gf_marks_metadata(const struct gf_mark_origin *from,
			 const struct gf_run_identity *id,
			 char numbers[GF_RUN_MARKS][GF_MARK_TEXT],
			 struct gf_metadata metadata[GF_RUN_MARKS]);
/* An object's text, without ranks and step; the caller frees. */
char *gf_marks_settings(const struct gf_mark_origin *from,
			const struct gf_run_identity *id);
/* -EINVAL names the first that a file has otherwise. */
int gf_marks_check(const struct gf_safetensors *s,
		   const struct gf_mark_origin *from,
		   const struct gf_run_identity *id, struct gf_error *err);

#endif
