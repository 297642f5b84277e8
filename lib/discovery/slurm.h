/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_SLURM_H
#define GF_DISCOVERY_SLURM_H

#include <search.h>
#include <stdbool.h>
#include <stddef.h>

#include "discovery/format.h"
#include "discovery/hostlist.h"

/* A topology of Slurm while it is read: format_slurm.c reads its lines and makes levels of it,
 * slurm_yaml.c reads its yaml. */

/* Fat trees have three or four tiers. */
enum {
	GF_SLURM_TIERS = 16,
	GF_SLURM_SWITCHES = 16384,
	GF_SLURM_SIZES = 16,
};

/* A switch, a block, a ring or a torus. */
struct gf_slurm_node {
	char *name;
	size_t line;
	struct gf_hostlist hosts, children;
	bool has_parent;
	bool shown; /* by scontrol */
};

struct gf_slurm {
	const struct gf_topology_file *in;
	struct gf_error *err;
	struct gf_slurm_node *nodes;
	size_t nnodes, capacity;
	struct hsearch_data numbers;     /* of nodes, by name */
	size_t size[GF_SLURM_TIERS + 1]; /* per tier, from the leaves; 0 unknown */
	bool unequal, blocks;
	size_t block_sizes[GF_SLURM_SIZES], nblock_sizes; /* in nodes */
	/* a block without nodes was seen; it stands before others */
	bool after_empty, gap;
	size_t dims[3];           /* of the tori; 0: there are none */
	const char *what;         /* switches, blocks, ... */
	const char *innermost;    /* the name of their level */
	size_t names, visited;    /* read in all; switches found from above */
	struct gf_hostlist hosts; /* in the order of the tree */
};

/* One key of a switch or block, as topology.conf has them. -EINVAL without a place. */
int gf_slurm_set(struct gf_slurm *r, struct gf_slurm_node *n, const char *key, const char *value);
/* "2,4", or one of them: sizes of aggregated blocks, too. */
int gf_slurm_block_sizes(struct gf_slurm *r, const char *value);
/* Takes what was read; rc: it was not. Names the place. */
int gf_slurm_take(struct gf_slurm *r, struct gf_slurm_node *n, int rc);

/* The cluster's default of topology.yaml. */
int gf_slurm_yaml(struct gf_slurm *r);

#endif
