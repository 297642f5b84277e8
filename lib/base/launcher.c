/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/launcher.h"

#include <stddef.h>

const struct gf_launcher gf_launchers[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
	{"PMIX_RANK", NULL, NULL},
	{"PMI_RANK", "PMI_SIZE", NULL},
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"},
	{NULL, NULL, NULL},
};

const struct gf_launcher *gf_launcher_named(char *(*variable)(const char *name))
{
	const struct gf_launcher *l = gf_launchers;

	while (l->rank && !variable(l->rank))
		l++;
	return l->rank ? l : NULL;
}

const struct gf_launcher *gf_launcher_find(char *(*variable)(const char *name))
{
	const struct gf_launcher *l = gf_launcher_named(variable);

	return l && (!l->step_size || variable(l->step_size)) ? l : NULL;
}
