/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's topology.yaml (topology.yaml(5), Slurm 26.11): of its topologies the cluster's default.
 *
 *	- topology: fabric
 *	  cluster_default: true
 *	  tree: {switches: [{switch: leaf0, nodes: "tux[0-3]"}, ...]}
 *	  block: {block_sizes: [4, 16], blocks: [{block: b0, nodes: ...}]}
 *	  ring: {rings: [{ring: r0, nodes: ...}]}
 *	  torus3d: {toruses: [{name: t0, dims: {x: 4, y: 4, z: 2}, nodes: ...}]}
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "discovery/markup.h"
#include "discovery/slurm.h"

/* What a topology of topology.yaml lists, and the keys of an entry. */
struct kind {
	const char *name, *list, *entry, *as, *tier;
};

static bool is_set(const char *value)
{
	return value && *value && strcmp(value, "null") != 0 && strcmp(value, "~") != 0;
}

/* A torus of other dimensions than the first is not like it, and neither is one that has not a node
 * at every place. */
static int read_dims(struct gf_slurm *r, const struct gf_markup *torus, struct gf_slurm_node *n)
{
	static const char *const axes[] = {"x", "y", "z"};
	size_t i, k, size, cells = 1;
	bool first = r->dims[0] == 0;
	int rc = 0;

	for (i = 0; i < torus->nchildren && rc == 0; i++) {
		const struct gf_markup *c = torus->children[i];
		const char *nodes = gf_markup_get(c, "nodes");

		if (strcmp(c->name, "regions") == 0 && is_set(nodes)) {
			rc = gf_slurm_set(r, n, "Nodes", nodes);
			r->unequal = true;
		}
		for (k = 0; strcmp(c->name, "dims") == 0 && k < 3; k++) {
			const char *text = gf_markup_get(c, axes[k]);

			size = text ? strtoul(text, NULL, 10) : 0;
			if (size < 1 || size > GF_HOSTLIST_MAX)
				return gf_error_set(r->err, -EINVAL,
						    "dims: want numbers x, y and z, got \"%.40s\"",
						    text ? text : "");
			r->unequal |= !first && r->dims[k] != size;
			r->dims[k] = size;
			cells = cells > GF_HOSTLIST_MAX ? cells : cells * size;
		}
	}
	r->unequal |= cells != n->hosts.count;
	return rc;
}

/* One switch, block, ring or torus. */
static int read_entry(struct gf_slurm *r, const struct gf_markup *e, const struct kind *kind)
{
	static const char *const as[] = {"Nodes", "Switches"};
	struct gf_slurm_node n = {.line = e->line};
	const char *value = gf_markup_get(e, kind->entry);
	int rc = gf_slurm_set(r, &n, kind->as, value ? value : "");
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(as) && rc == 0; i++) {
		value = gf_markup_get(e, i ? "children" : "nodes");
		if (is_set(value))
			rc = gf_slurm_set(r, &n, as[i], value);
	}
	if (rc == 0 && strcmp(kind->list, "toruses") == 0)
		rc = read_dims(r, e, &n);
	return gf_slurm_take(r, &n, rc);
}

static int read_list(struct gf_slurm *r, const struct gf_markup *e, const struct kind *kind)
{
	size_t i;
	int rc = 0;

	r->what = kind->list;
	r->innermost = kind->tier;
	for (i = 0; i < e->nchildren && rc == 0; i++) {
		const struct gf_markup *c = e->children[i];
		const char *size = gf_markup_get(c, "");

		if (strcmp(c->name, kind->list) == 0)
			rc = read_entry(r, c, kind);
		if (strcmp(c->name, "block_sizes") != 0 || !size)
			continue;
		rc = gf_slurm_block_sizes(r, size);
		if (rc < 0)
			gf_error_prefix(r->err, "%s:%zu", r->in->path, c->line);
	}
	return rc;
}

static int read_entries(struct gf_slurm *r, const struct gf_markup *topology)
{
	static const struct kind kinds[] = {{"tree", "switches", "switch", "SwitchName", "switch"},
					    {"block", "blocks", "block", "BlockName", "switch"},
					    {"ring", "rings", "ring", "SwitchName", "ring"},
					    {"torus3d", "toruses", "name", "SwitchName", "torus"}};
	const char *other = "none";
	size_t i, k;
	int rc = 0;

	if (gf_markup_get(topology, "flat"))
		other = "flat, which names no nodes";
	for (i = 0; i < topology->nchildren && rc == 0; i++) {
		const struct gf_markup *c = topology->children[i];

		for (k = 0; k < GF_ARRAY_LENGTH(kinds); k++)
			if (strcmp(c->name, kinds[k].name) == 0)
				break;
		if (k < GF_ARRAY_LENGTH(kinds))
			rc = read_list(r, c, &kinds[k]);
		else
			other = strcmp(c->name, "flat") == 0 ? "flat, which names no nodes"
							     : c->name;
	}
	if (rc == 0 && r->nnodes == 0)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s:%zu: want a tree, block, ring or torus3d with nodes, got "
				  "%.40s: give gf-topo --synthetic the levels",
				  r->in->path, topology->line, other);
	return rc;
}

int gf_slurm_yaml(struct gf_slurm *r)
{
	struct gf_markup *root = NULL, *chosen = NULL;
	const char *word;
	size_t i;
	int rc = gf_yaml_parse(r->in->text, r->in->path, &root, r->err);

	for (i = 0; rc == 0 && i < root->nchildren && !chosen; i++) {
		word = gf_markup_get(root->children[i], "cluster_default");
		if (word && (strcasecmp(word, "true") == 0 || strcasecmp(word, "yes") == 0))
			chosen = root->children[i];
	}
	if (rc == 0 && !chosen && root->nchildren)
		chosen = root->children[0];
	for (i = 0; rc == 0 && i < root->nchildren; i++)
		if (root->children[i] != chosen)
			gf_imported_leave(r->in->imported, "topologies but for the default",
					  root->children[i]->line);
	if (rc == 0)
		rc = chosen ? read_entries(r, chosen)
			    : gf_error_set(r->err, -EINVAL,
					   "%s: want a list of topologies, got none", r->in->path);
	gf_markup_free(root);
	return rc;
}
