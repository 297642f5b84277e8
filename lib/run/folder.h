/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/run: a run's folder: its checkpoints, its marks, and what ranks that
 * come and go take over. */
#ifndef GF_RUN_FOLDER_H
#define GF_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ckpt/manifest.h"
#include "run/team.h"

/*
 * A run's checkpoint folder: its owner (ckpt/set.h), and the set in it from
 * which the run goes on. All calls are collective but the last.
 */
struct gf_folder_wish {
	const char *dir;
	const char *job; /* how people know this job; NULL: by its process */
	bool resume;     /* sets may be there */
	const char
		*other_run; /* advice where sets are another run's; or NULL */
	/* On rank 0: what the user would not expect (optional). */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

struct gf_folder {
	char *dir;
	struct gf_ckpt_owner *owner; /* rank 0's, while the folder is owned */
	char run[GF_RUN_NAME];       /* ""; as gf_snapshot_write names it */
	struct gf_manifest from;     /* of the set found; ranks 0: none */
	size_t newest;               /* step that was found or written */
	bool known;                  /* there is one */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* The newest set of which every file is what its manifest says, on all ranks,
 * which share the reading; refused ones are told. -ENOENT: there is none. */
int gf_folder_find(struct gf_team *team, const struct gf_folder_wish *wish,
		   struct gf_folder *f, struct gf_error *err);

/* The folder is this job's, to write to. -EBUSY: another job has it. -EINVAL:
 * unless wish->resume, it holds sets newer than f knows. */
int gf_folder_claim(struct gf_team *team, const struct gf_folder_wish *wish,
		    struct gf_folder *f, struct gf_error *err);

/* Leaves the folder to other jobs; what f knows of it stays. */
void gf_folder_leave(struct gf_folder *f);
/* Leaves the folder, and frees what f has. Accepts a zeroed one. */
void gf_folder_release(struct gf_folder *f);

#endif
