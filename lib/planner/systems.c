/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/systems.h"

#include "base/registry.h"
#include "lists/gf_select_plans.h"

const struct gf_system gf_systems[] = {
	{
		.name = "auto",
		.description = "the best synchronous dense plan",
		.source = "gradflow",
	},
	{
		.name = "gradientflow",
		.description = "lazy all-reduce, f16 on the wire, chunks chosen by norm",
		.source = "GradientFlow (Sun et al. 2019)",
		.policy = "threshold",
		.algorithm = "ring",
		.codecs = {"f16"},
		.selection = &gf_select_plan_csc,
	},
	{
		.name = "pipe-sgd",
		.description = "gradients of the step before, one message, truncated to 16 bits",
		.source = "Pipe-SGD (Li et al. 2018)",
		.policy = "single",
		.algorithm = "ring",
		.codecs = {"trunc16"},
		.release = GF_RELEASE_BACKWARD_END,
		.staleness = 2,
	},
	{
		.name = "gtopk",
		.description = "the k largest gradients of all ranks, one message",
		.source = "gTop-k (Shi et al. 2019)",
		.policy = "single",
		.algorithm = "ring",
		.release = GF_RELEASE_BACKWARD_END,
		.selection = &gf_select_plan_gtopk,
	},
	{
		.name = "topk",
		.description = "the k largest gradients of each rank, one message",
		.source = "Top-k S-SGD (gTop-k, Shi et al. 2019, section II)",
		.policy = "single",
		.algorithm = "ring",
		.release = GF_RELEASE_BACKWARD_END,
		.selection = &gf_select_plan_topk,
	},
	/* MANUAL
	 * the policy of that name on two lanes */
	{
		.name = "asc-wfbp",
		.description = "normal, merged and simultaneous messages",
		.source = "ASC-WFBP (Shi, Chu, Li 2021)",
		.policy = "asc-wfbp",
		.lanes = 2,
	},
	/* MANUAL
	 * one message, decomposed by the sizes of the network's levels; a line names better
	 * factors where there are some */
	{
		.name = "blueconnect",
		.description = "one message, decomposed along the network's levels",
		.source = "BlueConnect (Cho et al. 2019)",
		.policy = "single",
		.algorithm = "blueconnect",
		.by_levels = true,
	},
	/* MANUAL
	 * PyTorch's DistributedDataParallel: the policy ddp, and the library's all-reduce where
	 * its cost is known */
	{
		.name = "ddp",
		.description = "PyTorch's DistributedDataParallel by default",
		.source = "PyTorch",
		.policy = "ddp",
		.algorithm = "library",
	},
	/* MANUAL
	 * Horovod: the policy horovod, and the library's all-reduce where its cost is known */
	{
		.name = "horovod",
		.description = "Horovod's tensor fusion by default",
		.source = "Horovod (Sergeev, Del Balso 2018)",
		.policy = "horovod",
		.algorithm = "library",
	},
	{.name = NULL},
};

const struct gf_system *gf_system_find(const char *name)
{
	return gf_named_find(gf_systems, sizeof(*gf_systems), name);
}
