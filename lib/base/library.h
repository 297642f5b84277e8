/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_LIBRARY_H
#define GF_BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/*
 * Libraries that are used where they are there and not missed where they are not: loaded while the
 * program runs, kept until it ends.
 */
struct gf_symbol {
	const char *name;
	size_t at; /* of its pointer in the table */
};

/* Fills a table of function pointers. -ENODEV: no such file, or it lacks a symbol. */
int gf_library_open(const char *file, const struct gf_symbol *symbols, size_t count, void *table,
		    struct gf_error *err);

#endif
