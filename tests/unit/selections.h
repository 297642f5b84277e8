/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SELECTIONS_H
#define GF_TESTS_SELECTIONS_H

#include "doc/select_csc.h"
#include "doc/select_dense.h"
#include "doc/select_dgc.h"
#include "doc/select_onebit.h"
#include "doc/select_powersgd.h"
#include "doc/select_randomk.h"
#include "doc/select_topk.h"

/* A plan's selection in a table of cases, by its keys. The keys live as long
 * as the initialiser; no plan may release them. */
#define SELECT(name, ...)                                                      \
	{                                                                      \
		&gf_select_plan_##name, &(struct gf_##name##_params)           \
		{                                                              \
			__VA_ARGS__                                            \
		}                                                              \
	}
#define gf_gtopk_params gf_topk_params
#define SELECT_DENSE                                                           \
	{                                                                      \
		&gf_select_plan_dense, NULL                                    \
	}
#define SELECT_CSC(...)      SELECT(csc, __VA_ARGS__)
#define SELECT_TOPK(...)     SELECT(topk, __VA_ARGS__)
#define SELECT_GTOPK(...)    SELECT(gtopk, __VA_ARGS__)
#define SELECT_DGC(...)      SELECT(dgc, __VA_ARGS__)
#define SELECT_ONEBIT(...)   SELECT(onebit, __VA_ARGS__)
#define SELECT_POWERSGD(...) SELECT(powersgd, __VA_ARGS__)
#define SELECT_RANDOMK(...)  SELECT(randomk, __VA_ARGS__)

#endif
