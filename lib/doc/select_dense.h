/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_SELECT_DENSE_H
#define GF_DOC_SELECT_DENSE_H

#include "doc/selection.h"

/* All gradients of a message, as they are: no keys. */
extern const struct gf_select_plan gf_select_plan_dense;

#endif
