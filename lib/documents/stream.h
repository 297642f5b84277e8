/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_STREAM_H
#define GF_DOCUMENTS_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "documents/topology.h"
#include "documents/training.h"

/*
 * The documents a command was given: files named as arguments and a concatenated stream on standard
 * input, sorted by their `format`.
 *
 * Two documents of one format: equal digests count once, two profiles with complementary halves
 * combine, anything else is refused with both names. Several plans are taken only where the caller
 * allows it.
 */
struct gf_documents {
	/* Set first, where plans that differ are taken side by side: the first is `plan`, and these
	 * are the others in order of arrival. */
	bool several_plans;
	struct gf_other_plan {
		struct gf_plan *plan;
		char *file, digest[GF_DIGEST_TEXT];
	} * other_plans;
	size_t nother_plans, other_capacity;
	struct gf_topology *topology; /* each NULL when not given */
	struct gf_profile *profile;
	struct gf_plan *plan;
	struct gf_model *model;
	struct gf_training *training;
	char topology_digest[GF_DIGEST_TEXT], profile_digest[GF_DIGEST_TEXT],
		plan_digest[GF_DIGEST_TEXT], model_digest[GF_DIGEST_TEXT],
		training_digest[GF_DIGEST_TEXT];
	/* The files they came from; NULL where there is none. */
	char *topology_file, *profile_file, *plan_file, *model_file, *training_file;
	/* The documents from standard input, as our writers print them, in order of arrival:
	 * gf-profile passes them on. */
	struct gf_text passed_on;
};

/* Adds every document of one file ("-": standard input). All or nothing. The documents are void *
 * for callers that know them as such. */
int gf_documents_take(void *documents, const char *path, struct gf_error *err);
/* Adds a model from a file that has no other document. */
int gf_documents_take_model(void *documents, const char *path, struct gf_error *err);
/* Adds a file that must hold what costs are taken from: a topology, or a profile with a network. */
int gf_documents_take_costs(void *documents, const char *path, struct gf_error *err);

/* Adds a file that must hold a document of this format: for options that name one. */
int gf_documents_add_of(struct gf_documents *d, const char *path, const char *format,
			struct gf_error *err);
/* Adds documents from memory, e.g. broadcast from rank 0; the name "-" means that they came on
 * standard input. */
int gf_documents_add_text(struct gf_documents *d, const char *text, size_t size, const char *name,
			  struct gf_error *err);
/* -EINVAL: there is no document of that format; the text says what there is. */
int gf_documents_require(const struct gf_documents *d, const char *format, struct gf_error *err);
void gf_documents_release(struct gf_documents *d);

#endif
