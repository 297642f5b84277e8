/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/checkpoints: what survives a stop: parts in safetensors, sets that appear whole, owners of
 * folders. */
#ifndef GF_CHECKPOINTS_SET_H
#define GF_CHECKPOINTS_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "checkpoints/safetensors.h"

/*
 * A checkpoint set's manifest (man 5 gf-checkpoint) says its run, its step, and the size and digest
 * of each file. It is written last and synced, so a set that has one is complete. Its last member
 * is the digest of all that stands before that digest: a manifest that has changed by one bit is
 * refused.
 */
#define GF_MANIFEST_NAME "manifest.json"

/* A run's name: 32 hexadecimal digits and NUL. */
#define GF_RUN_NAME 33

/* A file, by its contents. */
struct gf_checkpoint_file {
	char *name;
	size_t size_bytes;
	char *sha256;
	char *extra;
};

/* The set from which the job that wrote this one went on. */
struct gf_checkpoint_parent {
	char *run; /* NULL: a set of an earlier version, which has none */
	size_t step;
	char *sha256; /* of its manifest; NULL: as run */
	char *extra;
};

struct gf_manifest {
	char *run; /* NULL: a set of an earlier version, without a manifest */
	size_t step;
	int ranks;
	struct gf_checkpoint_parent *parent; /* NULL: the run began here */
	char *settings;                      /* an object's text */
	struct gf_checkpoint_file *files;    /* one per rank, in order */
	size_t nfiles;
	char *sha256;
	char *extra;
};

/* -EINVAL with the path: the manifest is damaged, or of another step. */
int gf_manifest_read(const char *path, size_t step, struct gf_manifest *m, struct gf_error *err);
/* The text of a file, whose digest becomes *m's too; the caller frees. */
char *gf_manifest_text(struct gf_manifest *m);
void gf_manifest_copy(struct gf_manifest *to, const struct gf_manifest *from);
void gf_manifest_release(struct gf_manifest *m);

/*
 * A checkpoint is a set of files, one per rank, that appears whole or not at all, in a folder that
 * every rank sees (man 5 gf-checkpoint):
 *
 *	DIR/step-N/rank-R.safetensors
 *	DIR/step-N/manifest.json
 *
 * Rank 0 begins; all ranks write their part into DIR/step-N.tmp and sync it; when all have agreed
 * that they succeeded, rank 0 publishes: it writes the manifest and renames the folder. It then
 * removes sets older than the one before. It also removes later ones, which are left when a run
 * goes on from an earlier step, or counts steps anew. Until then the sets that were there are
 * untouched. The caller
 * does the agreeing: nothing here communicates. The caller also owns the folder
 * (checkpoints/set.h).
 *
 * Only files named rank-*.safetensors* and manifest.json* are ever removed, and only folders that
 * are empty after that. Of the sets, only those of the same run are. A link in DIR is refused where
 * a file or a folder of a set would be: nothing is read, written or removed behind it.
 */

/* The metadata of a part. */
#define GF_CHECKPOINT_RANKS "ranks"
#define GF_CHECKPOINT_STEP  "step"
#define GF_CHECKPOINT_RUN   "run"
#define GF_CHECKPOINT_RANK  "rank"

/* Makes DIR and DIR/step-N.tmp, and removes what an earlier run left unfinished. Rank 0, before the
 * others write. */
int gf_checkpoint_begin(const char *dir, size_t step, struct gf_error *err);

/* The file of one rank, in the unfinished or in the published set; the caller frees. */
char *gf_checkpoint_part(const char *dir, size_t step, int rank, bool unfinished);

/* Rank 0, when all ranks have written: the set is there, and the newest. The manifest gets its
 * digest. `adopts`: sets of an earlier version, which say no run, are this run's. A set of the step
 * that is another run's is kept, as step-N.aside-1. */
int gf_checkpoint_publish(const char *dir, struct gf_manifest *m, bool adopts,
			  struct gf_error *err);

/* Rank 0, when one has failed: removes the unfinished set. */
void gf_checkpoint_discard(const char *dir, size_t step);

/* The steps of which there are sets, whole or not, newest first; the caller frees. */
int gf_checkpoint_steps(const char *dir, size_t **steps, size_t *count, struct gf_error *err);

/* What a set says of itself. m->run is NULL for a set of an earlier version, which has no manifest
 * and whose parts say no run. */
int gf_checkpoint_describe(const char *dir, size_t step, struct gf_manifest *m,
			   struct gf_error *err);
/* A rank's file of a set. A link is not followed. */
int gf_checkpoint_open_part(const char *dir, size_t step, int rank, struct gf_safetensors *s,
			    struct gf_error *err);
/* Is a rank's file the one that belongs there: of this run, step and rank, and bit for bit as it
 * was written? Of an earlier version's: is it sound? */
int gf_checkpoint_check_part(const char *dir, const struct gf_manifest *m, int rank,
			     struct gf_error *err);

/*
 * The owner of a checkpoint folder: the one job that may write to it. DIR/lock holds the owner's
 * host, process and job. The owner locks that file (flock) where the file system can. An owner
 * touches the file every few seconds, and removes it in the end.
 *
 * A job that was killed leaves the file. The file is taken over if its lock is free and its owner
 * ran under this kernel: then that owner is no more. A lock means less between hosts, as some file
 * systems lock on each host alone: the owner is then believed to be no more if it has not touched
 * the file for GF_TIMEOUT_LEASE_S.
 */
#define GF_OWNER_NAME "lock"

struct gf_checkpoint_owner;

struct gf_checkpoint_claim {
	const char *job; /* how people know it; NULL: by its process */
	double lease_s;  /* 0: GF_TIMEOUT_LEASE_S */
	bool unlocked;   /* as on a file system without locks: for tests */
	/* What the user would not expect (optional). */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* Makes DIR if need be. *owner is there for gf_checkpoint_release in any case, and the folder is
 * owned once gf_checkpoint_claim_poll has returned 0. */
struct gf_checkpoint_owner *gf_checkpoint_claim(const char *dir,
						const struct gf_checkpoint_claim *claim);
/* -EAGAIN: not known yet, ask again; -EBUSY: names the job that owns it. Does not wait. */
int gf_checkpoint_claim_poll(struct gf_checkpoint_owner *o, struct gf_error *err);

/* Is the folder still this owner's? A lock file that is gone is made anew. -EBUSY names the job
 * that has taken the folder. */
int gf_checkpoint_owns(struct gf_checkpoint_owner *o, struct gf_error *err);

/* Leaves the folder to others, and removes it if it was made and is empty. Accepts NULL. */
void gf_checkpoint_release(struct gf_checkpoint_owner *o);

#endif
