/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "select/selections.h"

const struct gf_selection_entry gf_selections[] = {
	{"dense", "all gradients", &gf_select_dense},
	{"csc", "chunks with the largest norms, the others wait",
	 &gf_select_csc},
	{"topk", "each rank's k largest, all of them applied", &gf_select_topk},
	{"gtopk", "the k largest of all ranks, merged along a tree",
	 &gf_select_topk},
	{NULL},
};

const struct gf_select_ops *gf_select_find(const struct gf_plan *plan)
{
	const char *name = gf_selection_name(&plan->selection);
	size_t i;

	for (i = 0; gf_selections[i].name; i++)
		if (strcmp(gf_selections[i].name, name) == 0)
			break;
	return gf_selections[i].ops;
}

int gf_select_check(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_select_ops *ops = gf_select_find(plan);

	if (!ops)
		return gf_error_set(
			err, -ENOTSUP,
			"the plan wants selection \"%s\", which no training "
			"method here does",
			gf_selection_name(&plan->selection));
	return ops->check ? ops->check(plan, err) : 0;
}

int gf_select_check_on_gpu(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_select_ops *ops = gf_select_find(plan);

	if (ops && ops->ready)
		return 0;
	return gf_error_set(err, -ENOTSUP,
			    "selection \"%s\" is made on the host",
			    gf_selection_name(&plan->selection));
}
