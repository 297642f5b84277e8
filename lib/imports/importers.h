/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_IMPORTERS_H
#define GF_IMPORTS_IMPORTERS_H

#include <stddef.h>

#include "imports/import.h"
#include "json/json.h"

/* What importers share. */

/* The importer of that name, or (NULL, "auto") the first that recognises the text. -EINVAL: the
 * text is another program's, has none of the formats, or `format` names none. */
int gf_import_find(const struct gf_import *in, const char *format,
		   const struct gf_importer **importer, struct gf_error *err);

/* Calls take with a file, or with each of `count` files of a folder by their names, numbered from
 * 0; not with what is hidden or a folder. -EINVAL:
 * there are none, or one is a pipe, say. */
int gf_import_each(const char *path,
		   int (*take)(void *ctx, const char *file, int number, int count,
			       struct gf_error *err),
		   void *ctx, struct gf_error *err);

/* A model half without tensors, from what `in` says; backward_s is 0 if unknown. Remarks on an
 * unknown forward time. */
struct gf_model_profile *gf_import_model(const struct gf_import *in, const char *device,
					 struct gf_text *remarks);
/* After the tensors: backward lasts at least until the last is ready. -EINVAL: `in` says less. */
int gf_import_finish_model(const struct gf_import *in, struct gf_model_profile *m,
			   struct gf_error *err);

/*
 * Names, and sizes where unknown (0), from in->parameters: rows of name and count_elems in
 * registration order. Backward runs from last to first, so a gradient takes the last row not yet
 * taken that has its number of elements. -EINVAL if none is left.
 */
int gf_import_names(const struct gf_import *in, struct gf_model_profile *m, struct gf_error *err);

/* Takes one object of JSON Lines. */
typedef int gf_import_record(void *ctx, struct gf_json_at *at, size_t line, struct gf_error *err);
/* All objects of a text in turn, until one is refused; labels may stand in front of them. What is
 * no whole object is left out and counted. */
int gf_import_records(const struct gf_import *in, gf_import_record *take, void *ctx,
		      struct gf_error *err);

/* -EINVAL: neither the file nor the user says how many ranks there were. */
int gf_import_want_ranks(const struct gf_import *in, struct gf_error *err);

#endif
