/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/device_method.h"

#include <errno.h>

#include "train/device_update.h"

int gf_device_method_check(const struct gf_plan *plan,
			   const struct gf_training *training,
			   struct gf_error *err)
{
	const struct gf_optim_config optim = {
		.name = training->optimizer,
	};
	size_t i;

	if (plan->servers)
		return gf_error_set(err, -ENOTSUP,
				    "servers go by the host: one would hold a "
				    "GPU for nothing but sums");
	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(err, -ENOTSUP,
					    "split messages go by the host: "
					    "forward on GPUs asks for no "
					    "tensor by itself");
	if (!gf_selection_has(&plan->selection, GF_SELECT_NCCL))
		return gf_error_set(err, -ENOTSUP,
				    "selection \"%s\" goes by the host",
				    gf_selection_name(&plan->selection));
	return gf_selection_has(&plan->selection, GF_SELECT_PIECES)
		       ? gf_device_update_check_pieces(&optim, err)
		       : gf_device_update_check(&optim, err);
}
