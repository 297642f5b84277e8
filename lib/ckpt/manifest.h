/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CKPT_MANIFEST_H
#define GF_CKPT_MANIFEST_H

#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"

/*
 * A checkpoint set's manifest (man 5 gf-checkpoint) says its run, its step, and
 * the size and digest of each file. It is written last and synced, so a set
 * that has one is complete. Its last member is the digest of
 * all that stands before that digest: a manifest that has changed by one bit is
 * refused.
 */
#define GF_MANIFEST_NAME "manifest.json"

/* A run's name: 32 hexadecimal digits and NUL. */
#define GF_RUN_NAME 33

/* A file, by its contents. */
struct gf_ckpt_file {
	char *name;
	size_t size_bytes;
	char *sha256;
	char *extra;
};

/* The set from which the job that wrote this one went on. */
struct gf_ckpt_parent {
	char *run; /* NULL: a set of an earlier version, which has none */
	size_t step;
	char *sha256; /* of its manifest; NULL: as run */
	char *extra;
};

struct gf_manifest {
	char *run; /* NULL: a set of an earlier version, without a manifest */
	size_t step;
	int ranks;
	struct gf_ckpt_parent *parent; /* NULL: the run began here */
	char *settings;                /* an object's text */
	struct gf_ckpt_file *files;    /* one per rank, in order */
	size_t nfiles;
	char *sha256;
	char *extra;
};

/* -EINVAL with the path: the manifest is damaged, or of another step. */
int gf_manifest_read(const char *path, size_t step, struct gf_manifest *m,
		     struct gf_error *err);
/* The text of a file, whose digest becomes *m's too; the caller frees. */
char *gf_manifest_text(struct gf_manifest *m);
void gf_manifest_copy(struct gf_manifest *to, const struct gf_manifest *from);
void gf_manifest_release(struct gf_manifest *m);

#endif
