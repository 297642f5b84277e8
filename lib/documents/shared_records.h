/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_SHARED_RECORDS_H
#define GF_DOCUMENTS_SHARED_RECORDS_H

#include "documents/models/model.h"
#include "documents/profile.h"
#include "json/record.h"
#include "documents/topology.h"

/* Tables of one document that are also part of another; for lib/documents alone. */
extern const struct gf_record gf_level_record;   /* struct gf_level */
extern const struct gf_record gf_tensor_record;  /* struct gf_tensor */
extern const struct gf_record gf_network_record; /* struct gf_network */
extern const struct gf_record gf_copy_cost_record;
extern const struct gf_record gf_stage_record; /* struct gf_stage */
/* struct gf_model_profile, and the same without its tensors */
extern const struct gf_record gf_model_profile_record;
extern const struct gf_record gf_model_scalars_record;
/* `contention` of an all-reduce or a level, a struct gf_contention at the field's offset. */
extern const struct gf_field_own gf_contention_own;
/* `layers`: the keys of each depend on its type, and its inputs are names of earlier ones. The
 * place is the struct gf_model. */
extern const struct gf_field_own gf_model_layers_own;

/* The rules of a profile's tensors; `at` is the cursor on the object that has the key "tensors",
 * `backward` the path of backward_s from there. */
int gf_tensors_check(const struct gf_json_at *at, const struct gf_model_profile *m,
		     const char *backward, struct gf_error *err);
/* Level names are unique, and the product of the sizes is an int. */
int gf_levels_check(const struct gf_json_at *at, const struct gf_level *levels, size_t count,
		    struct gf_error *err);

#endif
