/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUN_MARKS_H
#define GF_RUN_MARKS_H

#include <stddef.h>

#include "base/error.h"
#include "ckpt/safetensors.h"
#include "run/snapshot.h"

/*
 * The settings that give a checkpoint's state its meaning, as the metadata of
 * its files and in its manifest. A run goes on only from a set that has the
 * same.
 */
#define GF_MARKS        19 /* at most */
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
			 char numbers[GF_MARKS][GF_MARK_TEXT],
			 struct gf_metadata metadata[GF_MARKS]);
/* An object's text, without ranks and step; the caller frees. */
char *gf_marks_settings(const struct gf_mark_origin *from,
			const struct gf_run_identity *id);
/* -EINVAL names the first that a file has otherwise. */
int gf_marks_check(const struct gf_safetensors *s,
		   const struct gf_mark_origin *from,
		   const struct gf_run_identity *id, struct gf_error *err);

#endif
