/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_LIBRARY_TUNING_H
#define GF_DOCUMENTS_LIBRARY_TUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * What a library of collectives can be told about its all-reduce, as words with dots between:
 * "segmented_ring.64K" for Open MPI, "ring.simple.8" for NCCL; "default" tells it nothing.
 * Measurements, profiles and the settings that gf-plan emits use the same words.
 *
 * To add a library: a row of gf_dialects. Its numbers are those of the library's own settings.
 */
struct gf_dialect_word {
	const char *name;
	int number;
	bool segments;        /* takes the size of segments */
	const char *protocol; /* the only one that it has; NULL: any */
};

struct gf_dialect {
	const char *name, *description;           /* how the library's version begins */
	const char *call;                         /* its all-reduce */
	const char *as_it_is;                     /* the word that tells it nothing */
	const struct gf_dialect_word *algorithms; /* NULL ends them */
	/* Every variant but the default has one of these, and may have a number of channels; NULL:
	 * there are none. */
	const struct gf_dialect_word *protocols;
	/* Sizes of segments, or numbers of channels, that are tried; 0 ends them; NULL: none. */
	const size_t *tried;
};

extern const struct gf_dialect gf_dialects[]; /* a NULL name ends them */
/* "blocking": MPI_Allreduce of any MPI, which is told nothing. */
extern const struct gf_dialect gf_dialect_blocking;

/* Of a library with its version, "Open MPI 4.1.4"; NULL: not known. */
const struct gf_dialect *gf_dialect_of(const char *library);

/* Is what stands before the first dot one of its algorithms? */
bool gf_dialect_has(const struct gf_dialect *dialect, const char *text);

/* A value. No dialect: nothing can be told. No algorithm: nothing is told. */
struct gf_tuning {
	const struct gf_dialect *dialect;
	const struct gf_dialect_word *algorithm, *protocol;
	size_t segment_bytes; /* 0: not cut */
	int channels;         /* 0: as many as the library takes */
};

#define GF_TUNING_TEXT 64

/* Letters may be of any case, and "_" may be missing. -EINVAL: the library cannot be told that. */
int gf_tuning_read(const struct gf_dialect *dialect, const char *text, struct gf_tuning *v,
		   struct gf_error *err);
/* As gf_tuning_read takes it; returns text. */
const char *gf_tuning_text(const struct gf_tuning *v, char text[GF_TUNING_TEXT]);
bool gf_tuning_same(const struct gf_tuning *a, const struct gf_tuning *b);
/* The i-th that a search tries, the default first. false: there are no more.
 */
bool gf_tuning_at(const struct gf_dialect *d, size_t i, struct gf_tuning *v);

#endif
