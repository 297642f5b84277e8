/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_LAUNCHER_H
#define GF_BASE_LAUNCHER_H

/* What starts the processes of a job, and leaves these variables in their environment. */
struct gf_launcher {
	const char *rank, *size;
	/* Slurm: the variables are those of a batch script, too, but this one is not. */
	const char *step_size;
};

/* Innermost first: what is further out may be inherited. The last has no name. */
extern const struct gf_launcher gf_launchers[];

/* The launcher that the environment names; `variable` is getenv. NULL: none. */
const struct gf_launcher *gf_launcher_named(char *(*variable)(const char *name));
/* The same, if it has started this very process. */
const struct gf_launcher *gf_launcher_find(char *(*variable)(const char *name));

#endif
