/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SELECTIONS_H
#define GF_TESTS_SELECTIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc/selections/select_csc.h"
#include "doc/selections/selection.h"
#include "doc/selections/select_dgc.h"
#include "doc/selections/select_onebit.h"
#include "doc/selections/select_powersgd.h"
#include "doc/selections/select_randomk.h"
#include "doc/selections/select_topk.h"

/* A plan's selection in a table of cases, by its keys. The keys live as long as the initialiser; no
 * plan may release them. */
#define SELECT(name, ...)                                                                          \
	{                                                                                          \
		&gf_select_plan_##name, &(struct gf_##name##_params)                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define gf_gtopk_params gf_topk_params
#define SELECT_DENSE                                                                               \
	{                                                                                          \
		&gf_select_plan_dense, NULL                                                        \
	}
#define SELECT_CSC(...)      SELECT(csc, __VA_ARGS__)
#define SELECT_TOPK(...)     SELECT(topk, __VA_ARGS__)
#define SELECT_GTOPK(...)    SELECT(gtopk, __VA_ARGS__)
#define SELECT_DGC(...)      SELECT(dgc, __VA_ARGS__)
#define SELECT_ONEBIT(...)   SELECT(onebit, __VA_ARGS__)
#define SELECT_POWERSGD(...) SELECT(powersgd, __VA_ARGS__)
#define SELECT_RANDOMK(...)  SELECT(randomk, __VA_ARGS__)

/* The rows of tests/data/selections.txt: a name, and the selection's object in a plan. Returns how
 * many. */
struct test_selection {
	char name[32], object[256];
};
enum { TEST_SELECTIONS = 32 };

static inline size_t test_selections(struct test_selection *rows)
{
	const char *source = getenv("GF_SOURCE");
	char path[512], line[512], name[32], keys[200];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/data/selections.txt", source ? source : ".");
	f = fopen(path, "r");
	while (f && n < TEST_SELECTIONS && fgets(line, sizeof(line), f)) {
		*keys = '\0';
		if (*line == '#' || sscanf(line, "%31[^|]|%*[^|]|%199[^|]", name, keys) < 1)
			continue;
		snprintf(rows[n].name, sizeof(rows[n].name), "%s", name);
		snprintf(rows[n].object, sizeof(rows[n].object), "{\"method\": \"%s\"%s%s}", name,
			 *keys ? ", " : "", keys);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

#endif
