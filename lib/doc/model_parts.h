/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_MODEL_PARTS_H
#define GF_DOC_MODEL_PARTS_H

#include "json/record.h"

/* `layers`: the keys of each depend on its type, and its inputs are names of
 * earlier ones. The place is the struct gf_model; for lib/doc alone. */
extern const struct gf_field_own gf_model_layers_own;

#endif
