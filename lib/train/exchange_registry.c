/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "train/exchanges.h"

const struct gf_exchange_ops *const gf_exchanges[] = {
	&gf_exchange_dense,
	&gf_exchange_csc,
	&gf_exchange_topk,
	&gf_exchange_gtopk,
	NULL,
};

const struct gf_exchange_ops *gf_exchange_find(const struct gf_plan *plan)
{
	const char *name = gf_select_names[plan->selection.method];
	size_t i;

	for (i = 0; gf_exchanges[i]; i++)
		if (strcmp(gf_exchanges[i]->name, name) == 0)
			break;
	return gf_exchanges[i];
}
