/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SELECTIONS_H
#define GF_TESTS_SELECTIONS_H

#include "doc/select_csc.h"
#include "doc/select_dense.h"
#include "doc/select_topk.h"

/* A plan's selection in a table of cases, by its keys. The keys live as long
 * as the initialiser; no plan may release them. */
#define SELECT_DENSE                                                           \
	{                                                                      \
		&gf_select_plan_dense, NULL                                    \
	}
#define SELECT_CSC(...)                                                        \
	{                                                                      \
		&gf_select_plan_csc, &(struct gf_csc_params)                   \
		{                                                              \
			__VA_ARGS__                                            \
		}                                                              \
	}
#define SELECT_TOPK(...)                                                       \
	{                                                                      \
		&gf_select_plan_topk, &(struct gf_topk_params)                 \
		{                                                              \
			__VA_ARGS__                                            \
		}                                                              \
	}
#define SELECT_GTOPK(...)                                                      \
	{                                                                      \
		&gf_select_plan_gtopk, &(struct gf_topk_params)                \
		{                                                              \
			__VA_ARGS__                                            \
		}                                                              \
	}

#endif
