/* SPDX-License-Identifier: BSD-3-Clause */
#include "compressors/selections.h"

#define ENTRY(name, host, gpu) {#name, &gf_select_##host, gpu},

const struct gf_selection_entry gf_selections[] = {
	GF_SELECTIONS(ENTRY){NULL, NULL, NULL},
};
