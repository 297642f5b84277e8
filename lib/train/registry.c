/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "train/methods.h"

const struct gf_method_ops *const gf_methods[] = {
	&gf_method_dense,
	NULL,
};

int gf_method_find(const struct gf_plan *plan, const struct gf_method_ops **ops,
		   struct gf_error *err)
{
	size_t i;

	for (i = 0; gf_methods[i]; i++) {
		if (gf_methods[i]->serves(plan)) {
			*ops = gf_methods[i];
			return 0;
		}
	}
	return gf_error_set(err, -ENOTSUP,
			    "the plan wants selection \"%s\" with staleness "
			    "%d, which no training method here does",
			    gf_select_names[plan->selection.method],
			    plan->staleness);
}
