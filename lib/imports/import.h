/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/imports: profiles from what other programs measured: tables, logs, traces. */
#ifndef GF_IMPORTS_IMPORT_H
#define GF_IMPORTS_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "cost/preset.h"
#include "documents/imported.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "documents/profile.h"

/*
 * Profiles from what other tools measured. A format is one file with one entry,
 * gf_importer_NAME, which recognises a text and reads one half of a profile. The entry says in
 * in->imported (documents/imported.h) what was found and what was left out. log_lines.h gives the
 * lines of a log without launchers' labels. A table of one collective is an entry of
 * import_tables.c. Besides: a MANUAL comment for gf-import(7), and a file that the program has
 * written in tests/data/import. A file that is only to be named gets a row in
 * lib/documents/foreign.c.
 */
struct gf_collectives;
struct gf_import_job;

struct gf_import {
	const char *file;
	const char *text; /* of the file; gf_import_file reads it */
	size_t size;
	const struct gf_importer *importer; /* gf_import_profile sets it */
	bool folder;                        /* the text is that of a folder's files */
	int rank;                           /* of a folder's files, if each is a rank's; first 0 */
	/* What the file does not say; each may be unknown. */
	const char *name;             /* of the model; NULL: from the file's */
	size_t batch;                 /* 0 */
	double forward_s, backward_s; /* NAN */
	int shares;                   /* enum gf_shares, of an estimate */
	int ranks;                    /* 0 */
	const char *variant;          /* of the library, as documents/library_tuning.h; NULL */
	const char *parameters; /* CSV name,count_elems in registration order, as text; NULL */
	/* What was found and left out. Of the caller, or NULL; an importer always has one. */
	struct gf_imported *imported;
	/* Takes the all-reduces of a rank's file; NULL: the file stands alone. */
	struct gf_collectives *collectives;
	/* That the job ran (gf_import_job_read), or NULL: not known. */
	const struct gf_plan *plan;
};

struct gf_importer {
	const char *name;
	const char *description; /* one line */
	unsigned place;          /* in listings, ascending (lib/list.sh) */
	bool folders;            /* a file for each rank, one after the other, will do */
	bool ranks;              /* a profile for each rank's file makes one of all */
	/* (optional) Its table in logs (imports/importers.h), which is recognised, too. */
	const struct gf_columns_format *table;
	/* 1 if a text looks like this format. Optional beside a table. */
	int (*recognise)(const char *text);
	/* Fills a zeroed profile; remarks: one line each. -EINVAL names the file and the place.
	 * NULL: no profile comes of it, and gf-plan --refine takes it. */
	int (*read)(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
		    struct gf_error *err);
	/* Adds to a job what the file's ranks did (imports/job.h). NULL: the format does not
	 * say. */
	int (*job)(const struct gf_import *in, struct gf_import_job *job, struct gf_error *err);
};

extern const struct gf_importer *const gf_importers[]; /* NULL-terminated */
/* Does a profile come of that importer's files? */
bool gf_import_profiles(const void *importer);

/* The description of the importer that recognises a text; NULL: none does. */
const char *gf_import_reads(const char *text);

/* By the importer of that name, or (NULL, "auto") the first that recognises the text; fills
 * producer and `measured`, and checks the result. */
int gf_import_profile(const struct gf_import *in, const char *format, struct gf_profile *out,
		      struct gf_text *remarks, struct gf_error *err);

/* Whether a file, or the first one of a folder, says what a job's ranks did (imports/job.h): 1 or
 * 0. -EINVAL: no importer knows it. */
int gf_import_is_job(const char *path, struct gf_error *err);

/* gf_import_profile of what in->file holds, or the files of all ranks in such a folder; params_file
 * (or NULL) is read for in->parameters. */
int gf_import_file(const struct gf_import *in, const char *params_file, const char *format,
		   struct gf_profile *out, struct gf_text *remarks, struct gf_error *err);

/* The model half from a model's layers and what is known of the hardware, or in->forward_s and
 * in->backward_s, for in->batch samples: gf_model_estimate; or from whole passes (NULL: none), in
 * whose place all that is refused. A remark says the rates. -EINVAL without a model, or any of
 * these, too. */
int gf_import_estimate(const struct gf_import *in, const struct gf_model *model,
		       const struct gf_rates *rates, const struct gf_passes *passes,
		       struct gf_profile *out, struct gf_text *remarks, struct gf_error *err);

#endif
