/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's topology as Slurm's topology.conf (format_slurm.c reads it). */
#include <errno.h>
#include <string.h>

#include "probe/topology_formats.h"

static int writable(const struct gf_topology *t, size_t *first,
		    struct gf_error *err)
{
	size_t ranks = 1, i;

	if (t->nhosts == 0 || t->ranks == 0)
		return gf_error_set(err, -ENOTSUP,
				    "slurm: want a job's topology with the "
				    "names of its hosts");
	for (i = 0; i < t->nhosts; i++)
		if (t->hosts[i].name[strcspn(t->hosts[i].name, " \t\n=,[]#")])
			return gf_error_set(err, -ENOTSUP,
					    "slurm: want names without blanks, "
					    "=, commas, # and brackets, got "
					    "%.40s",
					    t->hosts[i].name);
	for (*first = 0; *first < t->nlevels; ++*first) {
		if (ranks * t->nhosts == (size_t)t->ranks)
			return 0;
		ranks *= t->levels[*first].size;
	}
	return gf_error_set(err, -ENOTSUP,
			    "slurm: want levels above the hosts, found none "
			    "where %zu hosts meet",
			    t->nhosts);
}

int gf_slurm_write(const struct gf_topology *t, struct gf_text *out,
		   struct gf_text *remarks, struct gf_error *err)
{
	size_t first = 0, count, size, i, k, level, tier;
	int rc = writable(t, &first, err);

	(void)remarks;
	if (rc < 0)
		return rc;
	count = t->nhosts;
	for (level = first; level < t->nlevels; level++) {
		size = t->levels[level].size;
		tier = level - first;
		for (i = 0; i < count / size; i++) {
			gf_text_addf(out, "SwitchName=s%zu-%zu %s=", tier, i,
				     tier ? "Switches" : "Nodes");
			for (k = 0; k < size && tier == 0; k++)
				gf_text_addf(out, "%s%s", k ? "," : "",
					     t->hosts[i * size + k].name);
			if (tier > 0)
				gf_text_addf(out, "s%zu-[%zu-%zu]", tier - 1,
					     i * size, i * size + size - 1);
			gf_text_addf(out, "\n");
		}
		count /= size;
	}
	return 0;
}
