/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_STAGE_LIST_H
#define GF_DOCUMENTS_STAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/topology.h"

/* One factor of a decomposition (BlueConnect). A list of them is innermost first. */
struct gf_stage {
	int factor;      /* >= 2 */
	char *algorithm; /* gf_stage_algorithm */
	char *extra;
};

struct gf_stage *gf_stages_copy(const struct gf_stage *stages, size_t n);
void gf_stages_free(struct gf_stage *stages, size_t n);

/* The same factors by the same algorithms? */
bool gf_stages_same(const struct gf_stage *a, size_t na, const struct gf_stage *b, size_t nb);
/* The product of the factors; 1 of none. */
double gf_stages_ranks(const struct gf_stage *stages, size_t n);
/* Is one of them a call of a library, which moves f32 as they are? */
bool gf_stages_call(const struct gf_stage *stages, size_t n);

/* Can that algorithm be decomposed so, by algorithms that exist? One without GF_ALGORITHM_LEVELS
 * takes no stages, one without GF_ALGORITHM_STAGES rings alone; a stage's algorithm may be NULL.
 * -EINVAL. */
int gf_stages_check(const char *algorithm, const struct gf_stage *stages, size_t n,
		    struct gf_error *err);
/* -ENOTSUP: a stage that works in a host's memory goes between hosts, as far as the levels tell. */
int gf_stages_check_hosts(const struct gf_stage *stages, size_t n, const struct gf_level *levels,
			  size_t nlevels, struct gf_error *err);

/* Factors as people type them, innermost first, "4,16:ring" or "4x16"; a factor of 1 changes
 * nothing and is dropped. The caller frees *stages, whose names are static. -EINVAL. */
int gf_stages_parse(const char *text, struct gf_stage **stages, size_t *n, struct gf_error *err);
/* "2:shm,4:ring", with that text between them. */
void gf_stages_text(struct gf_text *out, const char *between, const struct gf_stage *stages,
		    size_t n);
/* "blueconnect 2:shm 4:ring" */
void gf_stages_text_of(struct gf_text *out, const char *algorithm, const struct gf_stage *stages,
		       size_t n);

#endif
