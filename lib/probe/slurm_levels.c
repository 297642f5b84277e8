/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/slurm.h"

#include <stdio.h>
#include <string.h>

#include "probe/find_levels.h"

/* Levels of the network, innermost first. */
struct tiers {
	struct gf_topology *t;
	size_t count, below; /* hosts */
};

/* Each tier passes on all that the hosts below can send. NULL: it has no name
 * of its own. */
static void add_tier(struct tiers *to, const char *own, size_t size)
{
	static const struct gf_host nothing = {0};
	struct gf_level level;
	char name[32];

	snprintf(name, sizeof(name), "tier%zu", ++to->count);
	gf_levels_network_of(&nothing, &level);
	level.bandwidth_bytes_per_s *= (double)to->below;
	gf_levels_append(to->t, level, own ? own : name, size);
	to->below *= size;
}

/* Sizes of aggregated blocks; the blocks that are left at the end. */
static size_t add_aggregated(const struct gf_slurm *r, size_t blocks,
			     struct tiers *to, struct gf_text *remarks)
{
	const size_t *sizes = r->block_sizes;
	size_t i, together;

	if (r->nblock_sizes && sizes[0] != r->size[0])
		gf_text_addf(remarks,
			     "%s: BlockSizes: Slurm plans with %zu nodes of a "
			     "block, and a block has %zu\n",
			     r->in->path, sizes[0], r->size[0]);
	for (i = 1; i < r->nblock_sizes && blocks > 1; i++) {
		together = sizes[i] / sizes[i - 1];
		if (sizes[i] % sizes[i - 1] || blocks % together || r->gap) {
			gf_text_addf(remarks,
				     "%s: BlockSizes: %zu nodes do not divide "
				     "the blocks with nodes evenly: left out\n",
				     r->in->path, sizes[i]);
			break;
		}
		add_tier(to, NULL, together);
		blocks /= together;
	}
	return blocks;
}

void gf_slurm_levels(const struct gf_slurm *r, int tiers, struct gf_topology *t,
		     struct gf_text *remarks)
{
	static const char *const axes[] = {"x", "y", "z"};
	struct tiers to = {t, 0, 1};
	size_t size, k;
	int i;

	if (r->in->ranks_per_host > 1)
		gf_levels_append(t, gf_levels_shm(), "host",
				 (size_t)r->in->ranks_per_host);
	if (r->unequal) {
		gf_text_addf(remarks,
			     "%s: the %s are not alike%s: described as one "
			     "flat level of %zu hosts\n",
			     r->in->path, r->what,
			     r->dims[0] ? ", or have not one node for every "
					  "place in order"
					: "",
			     r->hosts.count);
		add_tier(&to, "net", r->hosts.count);
		return;
	}
	if (strcmp(r->innermost, "switch") != 0)
		gf_text_addf(remarks,
			     "%s: the hosts of %s are described as if switches "
			     "that do not block connected them\n",
			     r->in->path, r->what);
	for (k = 0; k < 3; k++)
		if (r->dims[k] > 1)
			add_tier(&to, axes[k], r->dims[k]);
	for (i = to.count > 0; i < tiers; i++) {
		size = r->size[i];
		if (i == 1 && r->blocks) {
			size = add_aggregated(r, size, &to, remarks);
			if (size == 1)
				continue;
		}
		add_tier(&to, i ? NULL : r->innermost, size);
	}
}
