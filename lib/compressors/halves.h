/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_HALVES_H
#define GF_COMPRESSORS_HALVES_H

/*
 * What a selection's file includes. The file is compiled twice: with GF_PLAN_HALF 1 for the library
 * of documents, which runs nothing, and has the entry of what is planned, gf_select_plan_NAME:
 * source, equations, keys, what goes out and traits (documents/selections/selection.h); with 0 for
 * this one, and has the entry of what runs, gf_selection_NAME (select_parts.h). A selection without
 * the second can be planned and simulated, and is refused where it would run. Its facts for tests
 * stand in tests/entries.
 */
#include "documents/selections/select_density.h"
#include "documents/selections/selection.h"
#include "json/record.h"

#if !GF_PLAN_HALF
#include "compressors/select_parts.h"
#include "gf_kernels.h"
#include "lists/gf_select_plans.h"
#endif

#endif
