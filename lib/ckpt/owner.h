/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CKPT_OWNER_H
#define GF_CKPT_OWNER_H

#include <stdbool.h>

#include "base/error.h"

/*
 * The owner of a checkpoint folder: the one job that may write to it. DIR/lock
 * holds the owner's host, process and job. The owner locks that file (flock)
 * where the file system can. An owner touches the file every few seconds, and
 * removes it in the end.
 *
 * A job that was killed leaves the file. The file is taken over if its lock is
 * free and its owner ran under this kernel: then that owner is no more. A lock
 * means less between hosts, as some file systems lock on each host alone: the
 * owner is then believed to be no more if it has not touched the file for
 * GF_TIMEOUT_LEASE_S.
 */
#define GF_OWNER_NAME "lock"

struct gf_ckpt_owner;

struct gf_ckpt_claim {
	const char *job; /* how people know it; NULL: by its process */
	double lease_s;  /* 0: GF_TIMEOUT_LEASE_S */
	bool unlocked;   /* as on a file system without locks: for tests */
	/* What the user would not expect (optional). */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* Makes DIR if need be. *owner is there for gf_ckpt_release in any case, and
 * the folder is owned once gf_ckpt_claim_poll has returned 0. */
struct gf_ckpt_owner *gf_ckpt_claim(const char *dir,
				    const struct gf_ckpt_claim *claim);
/* -EAGAIN: not known yet, ask again; -EBUSY: names the job that owns it. Does
 * not wait. */
int gf_ckpt_claim_poll(struct gf_ckpt_owner *o, struct gf_error *err);

/* Is the folder still this owner's? A lock file that is gone is made anew.
 * -EBUSY names the job that has taken the folder. */
int gf_ckpt_owns(struct gf_ckpt_owner *o, struct gf_error *err);

/* Leaves the folder to others, and removes it if it was made and is empty.
 * Accepts NULL. */
void gf_ckpt_release(struct gf_ckpt_owner *o);

#endif
