/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's topology.conf, a tree of switches, or blocks; what `scontrol show topology` makes of it,
 * with the nodes below every switch; and topology.yaml, of whose topologies the cluster's default
 * is read: these, rings, or tori.
 *
 *	SwitchName=leaf0 Nodes=tux[0-3]
 *	SwitchName=spine Switches=leaf[0-1] LinkSpeed=900
 *	BlockName=b0 Nodes=tux[0-7]        BlockSizes=8 *
 * The file names hosts and groups near ones, but has no rates (LinkSpeed has no unit and no
 * effect). The levels' rates are assumed: Ethernet with non-blocking switches. A tree with branches
 * of different shapes becomes one flat level. A size of BlockSizes above the blocks' is a tier,
 * too, if it divides them evenly; a block without nodes, which generators add to have a power of
 * two of them, is none.
 */
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/log_lines.h"
#include "discovery/find_levels.h"
#include "discovery/format.h"
#include "discovery/hostlist.h"
#include "discovery/markup.h"

/* Fat trees have three or four tiers. */
enum {
	SLURM_TIERS = 16,
	SLURM_SWITCHES = 16384,
	SLURM_SIZES = 16,
};

/* A switch, a block, a ring or a torus. */
struct slurm_node {
	char *name;
	size_t line;
	struct gf_hostlist hosts, children;
	bool has_parent;
	bool shown; /* by scontrol */
};

struct slurm {
	const struct gf_topology_file *in;
	struct gf_error *err;
	struct slurm_node *nodes;
	size_t nnodes, capacity;
	struct hsearch_data numbers;  /* of nodes, by name */
	size_t size[SLURM_TIERS + 1]; /* per tier, from the leaves; 0 unknown */
	bool unequal, blocks;
	size_t block_sizes[SLURM_SIZES], nblock_sizes; /* in nodes */
	/* a block without nodes was seen; it stands before others */
	bool after_empty, gap;
	size_t dims[3];           /* of the tori; 0: there are none */
	const char *what;         /* switches, blocks, ... */
	const char *innermost;    /* the name of their level */
	size_t names, visited;    /* read in all; switches found from above */
	struct gf_hostlist hosts; /* in the order of the tree */
};

/* Levels of the network, innermost first. */
struct tiers {
	struct gf_topology *t;
	size_t count, below; /* hosts */
};

/* Each tier passes on all that the hosts below can send. NULL: it has no name of its own. */
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
static size_t add_aggregated(const struct slurm *r, size_t blocks, struct tiers *to,
			     struct gf_text *remarks)
{
	const size_t *sizes = r->block_sizes;
	size_t i, together;

	if (r->nblock_sizes && sizes[0] != r->size[0])
		gf_text_addf(remarks,
			     "%s: BlockSizes: Slurm plans with %zu nodes of a block, and a block "
			     "has %zu\n",
			     r->in->path, sizes[0], r->size[0]);
	for (i = 1; i < r->nblock_sizes && blocks > 1; i++) {
		together = sizes[i] / sizes[i - 1];
		if (sizes[i] % sizes[i - 1] || blocks % together || r->gap) {
			gf_text_addf(remarks,
				     "%s: BlockSizes: %zu nodes do not divide the blocks with "
				     "nodes evenly: left out\n",
				     r->in->path, sizes[i]);
			break;
		}
		add_tier(to, NULL, together);
		blocks /= together;
	}
	return blocks;
}

/* The levels of equal trees of so many tiers, or a flat one. */
static void add_levels(const struct slurm *r, int tiers, struct gf_topology *t,
		       struct gf_text *remarks)
{
	static const char *const axes[] = {"x", "y", "z"};
	struct tiers to = {t, 0, 1};
	size_t size, k;

	if (r->in->ranks_per_host > 1)
		gf_levels_append(t, gf_levels_shm(), "host", (size_t)r->in->ranks_per_host);
	if (r->unequal) {
		gf_text_addf(
			remarks,
			"%s: the %s are not alike%s: described as one flat level of %zu hosts\n",
			r->in->path, r->what,
			r->dims[0] ? ", or have not one node for every place in order" : "",
			r->hosts.count);
		add_tier(&to, "net", r->hosts.count);
		return;
	}
	if (strcmp(r->innermost, "switch") != 0)
		gf_text_addf(remarks,
			     "%s: the hosts of %s are described as if switches that do not block "
			     "connected them\n",
			     r->in->path, r->what);
	for (k = 0; k < 3; k++)
		if (r->dims[k] > 1)
			add_tier(&to, axes[k], r->dims[k]);
	for (int i = to.count > 0; i < tiers; i++) {
		size = r->size[i];
		if (i == 1 && r->blocks) {
			size = add_aggregated(r, size, &to, remarks);
			if (size == 1)
				continue;
		}
		add_tier(&to, i ? NULL : r->innermost, size);
	}
}

static bool is_yaml(const char *text)
{
	return strstr(text, "cluster_default:") || strstr(text, "- topology:");
}

static int recognise(const char *text)
{
	return strcasestr(text, "SwitchName=") != NULL || strcasestr(text, "BlockName=") != NULL ||
	       is_yaml(text);
}

/* "2,4", or one of them: sizes of aggregated blocks, too. */
static int read_block_sizes(struct slurm *r, const char *value)
{
	unsigned long size;
	char *end;

	do {
		size = strtoul(value, &end, 10);
		if (end == value || (*end && *end != ',') || size < 1 || size > GF_HOSTLIST_MAX)
			return gf_error_set(r->err, -EINVAL,
					    "BlockSizes: want numbers of nodes with commas "
					    "between, got \"%.40s\"",
					    value);
		value = end + (*end == ',');
		if (r->nblock_sizes == SLURM_SIZES)
			return gf_error_set(r->err, -EINVAL,
					    "BlockSizes: want at most %d, got more", SLURM_SIZES);
		if (r->nblock_sizes == 0 || r->block_sizes[r->nblock_sizes - 1] < size)
			r->block_sizes[r->nblock_sizes++] = size;
	} while (*value);
	return 0;
}

/* One key of a switch or block, as topology.conf has them. -EINVAL without a place. */
static int set_key(struct slurm *r, struct slurm_node *n, const char *key, const char *value)
{
	if (strcasecmp(key, "Nodes") == 0)
		return gf_hostlist_add(&n->hosts, value, r->err);
	if (strcasecmp(key, "Switches") == 0)
		return gf_hostlist_add(&n->children, value, r->err);
	if (strcasecmp(key, "Level") == 0)
		n->shown = true;
	if (strcasecmp(key, "LinkSpeed") == 0 || strcasecmp(key, "Level") == 0 ||
	    strcasecmp(key, "BlockIndex") == 0)
		return 0;
	if (strcasecmp(key, "BlockSize") == 0 || strcasecmp(key, "BlockSizes") == 0)
		return read_block_sizes(r, value);
	if (strcasecmp(key, "BlockName") == 0) {
		r->blocks = true;
		r->what = "blocks";
	}
	if (strcasecmp(key, "SwitchName") != 0 && strcasecmp(key, "BlockName") != 0)
		return gf_error_set(r->err, -EINVAL,
				    "want SwitchName, Nodes, Switches, LinkSpeed, BlockName or "
				    "BlockSizes, got %.40s",
				    key);
	if (n->name || !*value)
		return gf_error_set(r->err, -EINVAL, "want one name on a line, got \"%.40s\"",
				    value);
	n->name = gf_xstrdup(value);
	return 0;
}

static void node_release(struct slurm_node *n)
{
	free(n->name);
	gf_hostlist_release(&n->hosts);
	gf_hostlist_release(&n->children);
}

/* Has it nothing below? */
static bool is_empty(const struct slurm_node *n)
{
	return !n->hosts.count && !n->children.count;
}

static int check_node(struct slurm *r, const struct slurm_node *n)
{
	ENTRY *found, entry = {.key = n->name, .data = (void *)r->nnodes};

	if (r->nnodes >= SLURM_SWITCHES || r->names > GF_HOSTLIST_MAX)
		return gf_error_set(r->err, -EINVAL,
				    "want at most %d switches and %zu names in all", SLURM_SWITCHES,
				    GF_HOSTLIST_MAX);
	if ((n->hosts.count > 0) == (n->children.count > 0) && (n->hosts.count > 0 || !r->blocks))
		return gf_error_set(r->err, -EINVAL, "%s: want either Nodes or Switches", n->name);
	/* those without nodes are not kept */
	if (!hsearch_r(entry, is_empty(n) ? FIND : ENTER, &found, &r->numbers))
		return is_empty(n) ? 0 : gf_error_set(r->err, -ENOMEM, "no memory");
	if (found->data != entry.data)
		return gf_error_set(r->err, -EINVAL, "want %.40s once, it was on line %zu", n->name,
				    r->nodes[(size_t)found->data].line);
	return 0;
}

/* Takes what was read; rc: it was not. Names the place. */
static int take_node(struct slurm *r, struct slurm_node *n, int rc)
{
	bool empty;

	r->names += n->hosts.count + n->children.count;
	if (n->shown && n->children.count)
		gf_hostlist_release(&n->hosts);
	if (rc == 0 && n->name)
		rc = check_node(r, n);
	else if (rc == 0 && (n->hosts.count || n->children.count))
		rc = gf_error_set(r->err, -EINVAL, "want a SwitchName or BlockName, got none");
	if (rc < 0)
		gf_error_prefix(r->err, "%s:%zu", r->in->path, n->line);
	empty = n->name && is_empty(n);
	if (rc == 0 && empty) {
		gf_imported_leave(r->in->imported, "blocks without nodes", n->line);
		r->after_empty = true;
	} else if (rc == 0 && n->name) {
		r->gap |= r->after_empty;
	}
	if (rc < 0 || !n->name || empty)
		node_release(n);
	else
		*gf_array_push(&r->nodes, &r->nnodes, &r->capacity) = *n;
	return rc;
}

/* Pairs of key=value; a line without a name (BlockSizes alone) says nothing. What begins with no
 * pair is of a transcript, or of a page. */
static int read_line(struct slurm *r, char *line, size_t number)
{
	struct slurm_node n = {.line = number};
	char *saved = NULL, *word, *value;
	bool aggregated;
	int rc = 0;

	line[strcspn(line, "#")] = '\0';
	aggregated = strncasecmp(line, "AggregatedBlock=", 16) == 0;
	if (*line && line[strcspn(line, "= \t")] != '=') {
		gf_imported_leave(r->in->imported, "lines that are none of its", number);
		return 0;
	}
	for (word = strtok_r(line, " \t\r", &saved); word && rc == 0;
	     word = strtok_r(NULL, " \t\r", &saved)) {
		value = strchr(word, '=');
		if (value) {
			*value = '\0';
			if (!aggregated || strcasecmp(word, "BlockSize") == 0)
				rc = set_key(r, &n, word, value + 1);
		} else {
			rc = gf_error_set(r->err, -EINVAL, "want KEY=VALUE, got \"%.40s\"", word);
		}
	}
	return take_node(r, &n, rc);
}

/* Lines that end in a backslash go on. */
static int read_lines(struct slurm *r)
{
	static const char *const marks[] = {"SwitchName=", "BlockName=", NULL};
	GF_RELEASED(gf_log_release) struct gf_log log = {.at = r->in->text, .marks = marks};
	GF_RELEASED(gf_text_release) struct gf_text whole = {0};
	size_t first = 1, n;
	char *line;
	int rc = 0;

	while (rc == 0 && (line = gf_log_next(&log))) {
		n = strlen(line);
		gf_text_add(&whole, line, n);
		if (n && line[n - 1] == '\\' && *log.at) {
			whole.data[whole.length - 1] = ' ';
			continue;
		}
		rc = read_line(r, whole.data, first);
		whole.length = 0;
		first = log.line + 1;
	}
	if (rc == 0 && r->nnodes == 0)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s: want a SwitchName or BlockName with nodes, got none",
				  r->in->path);
	return rc;
}

static struct slurm_node *find(const struct slurm *r, const char *name)
{
	ENTRY *found, wanted = {.key = (char *)name};

	hsearch_r(wanted, FIND, &found, (struct hsearch_data *)&r->numbers);
	return found ? &r->nodes[(size_t)found->data] : NULL;
}

/* Every switch below at most one other. */
static int link_nodes(struct slurm *r)
{
	for (size_t i = 0; i < r->nnodes; i++)
		for (size_t k = 0; k < r->nodes[i].children.count; k++) {
			const char *name = r->nodes[i].children.names[k];
			struct slurm_node *child = find(r, name);

			if (!child || child->has_parent)
				return gf_error_set(
					r->err, -EINVAL, "%s:%zu: want a switch that %s, got %.40s",
					r->in->path, r->nodes[i].line,
					child ? "is below no other" : "has a line of its own",
					name);
			child->has_parent = true;
		}
	return 0;
}

static void note_size(struct slurm *r, int tier, size_t size)
{
	if (r->size[tier] == 0)
		r->size[tier] = size;
	else if (r->size[tier] != size)
		r->unequal = true;
}

/* Adds the hosts below; *tier is how many levels there are. */
static int walk(struct slurm *r, const struct slurm_node *n, int depth, int *tier)
{
	int below, rc = 0;

	if (depth > SLURM_TIERS)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want at most %d tiers of switches, got more at %.40s",
				    r->in->path, n->line, SLURM_TIERS, n->name);
	*tier = 0;
	r->visited++;
	for (size_t i = 0; i < n->hosts.count && rc == 0; i++)
		rc = gf_hostlist_add(&r->hosts, n->hosts.names[i], r->err);
	for (size_t i = 0; i < n->children.count && rc == 0; i++) {
		rc = walk(r, find(r, n->children.names[i]), depth + 1, &below);
		if (i > 0 && below + 1 != *tier)
			r->unequal = true;
		if (below + 1 > *tier)
			*tier = below + 1;
	}
	if (rc == 0)
		note_size(r, *tier, n->hosts.count ? n->hosts.count : n->children.count);
	return rc;
}

GF_ORDER(by_name, char *, strcmp(*x, *y))

static int check_hosts(const struct slurm *r)
{
	GF_FREED char **sorted = gf_xmemdup(r->hosts.names, r->hosts.count * sizeof(*sorted));
	int rc = 0;

	qsort(sorted, r->hosts.count, sizeof(*sorted), by_name);
	for (size_t i = 1; i < r->hosts.count && rc == 0; i++)
		if (strcmp(sorted[i], sorted[i - 1]) == 0)
			rc = gf_error_set(
				r->err, -EINVAL,
				"%s: want every node below one switch, got %.40s below two",
				r->in->path, sorted[i]);
	return rc;
}

/* All trees; several meet at one more tier. */
static int walk_all(struct slurm *r, int *tiers, struct gf_text *remarks)
{
	size_t i, roots = 0, second = 0;
	int top = 0, tier, rc = link_nodes(r);

	for (i = 0; i < r->nnodes && rc == 0; i++) {
		if (r->nodes[i].has_parent)
			continue;
		rc = walk(r, &r->nodes[i], 1, &tier);
		if (rc == 0 && roots++ > 0 && tier != top)
			r->unequal = true;
		second = roots == 2 && !second ? i : second;
		top = roots == 1 || tier > top ? tier : top;
	}
	if (rc == 0 && r->visited < r->nnodes)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s: want a tree of switches, got %zu in a circle", r->in->path,
				  r->nnodes - r->visited);
	*tiers = top + 1;
	if (roots > 1)
		r->size[(*tiers)++] = roots;
	if (rc == 0 && roots > 1 && strcmp(r->what, "switches") == 0)
		gf_text_addf(remarks,
			     "%s:%zu: no switch connects the %zu trees (%s is the second), and "
			     "Slurm starts no job across them: described as if one more tier did\n",
			     r->in->path, r->nodes[second].line, roots, r->nodes[second].name);
	return rc ?: check_hosts(r);
}

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
static int read_dims(struct slurm *r, const struct gf_markup *torus, struct slurm_node *n)
{
	static const char *const axes[] = {"x", "y", "z"};
	size_t i, k, size, cells = 1;
	bool first = r->dims[0] == 0;
	int rc = 0;

	for (i = 0; i < torus->nchildren && rc == 0; i++) {
		const struct gf_markup *c = torus->children[i];
		const char *nodes = gf_markup_get(c, "nodes");

		if (strcmp(c->name, "regions") == 0 && is_set(nodes)) {
			rc = set_key(r, n, "Nodes", nodes);
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
static int read_entry(struct slurm *r, const struct gf_markup *e, const struct kind *kind)
{
	static const char *const as[] = {"Nodes", "Switches"};
	struct slurm_node n = {.line = e->line};
	const char *value = gf_markup_get(e, kind->entry);
	int rc = set_key(r, &n, kind->as, value ? value : "");

	for (size_t i = 0; i < GF_ARRAY_LENGTH(as) && rc == 0; i++) {
		value = gf_markup_get(e, i ? "children" : "nodes");
		if (is_set(value))
			rc = set_key(r, &n, as[i], value);
	}
	if (rc == 0 && strcmp(kind->list, "toruses") == 0)
		rc = read_dims(r, e, &n);
	return take_node(r, &n, rc);
}

static int read_list(struct slurm *r, const struct gf_markup *e, const struct kind *kind)
{
	int rc = 0;

	r->what = kind->list;
	r->innermost = kind->tier;
	for (size_t i = 0; i < e->nchildren && rc == 0; i++) {
		const struct gf_markup *c = e->children[i];
		const char *size = gf_markup_get(c, "");

		if (strcmp(c->name, kind->list) == 0)
			rc = read_entry(r, c, kind);
		if (strcmp(c->name, "block_sizes") != 0 || !size)
			continue;
		rc = read_block_sizes(r, size);
		if (rc < 0)
			gf_error_prefix(r->err, "%s:%zu", r->in->path, c->line);
	}
	return rc;
}

static int read_entries(struct slurm *r, const struct gf_markup *topology)
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

static int read_yaml(struct slurm *r)
{
	struct gf_markup *root = NULL, *chosen = NULL;
	const char *word;
	int rc = gf_yaml_parse(r->in->text, r->in->path, &root, r->err);

	for (size_t i = 0; rc == 0 && i < root->nchildren && !chosen; i++) {
		word = gf_markup_get(root->children[i], "cluster_default");
		if (word && (strcasecmp(word, "true") == 0 || strcasecmp(word, "yes") == 0))
			chosen = root->children[i];
	}
	if (rc == 0 && !chosen && root->nchildren)
		chosen = root->children[0];
	for (size_t i = 0; rc == 0 && i < root->nchildren; i++)
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

static int read_slurm(const struct gf_topology_file *in, struct gf_topology *t,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct slurm r = {.in = in, .err = err, .what = "switches", .innermost = "switch"};
	int tiers, rc;

	if (!hcreate_r(SLURM_SWITCHES, &r.numbers))
		return gf_error_set(err, -ENOMEM, "%s: no memory", in->path);
	rc = is_yaml(in->text) ? read_yaml(&r) : read_lines(&r);
	rc = rc ?: walk_all(&r, &tiers, remarks);
	if (rc == 0) {
		add_levels(&r, tiers, t, remarks);
		t->source = gf_xstrdup("slurm");
		t->ranks = gf_levels_ranks(t->levels, t->nlevels);
		if (t->ranks == 0)
			rc = gf_error_set(err, -EINVAL, "%s: want at most %d ranks in all",
					  in->path, GF_RANKS_MAX);
	}
	if (rc == 0) {
		t->nhosts = r.hosts.count;
		t->hosts = gf_xcalloc(t->nhosts, sizeof(*t->hosts));
		for (size_t i = 0; i < t->nhosts; i++) {
			t->hosts[i].name = gf_xstrdup(r.hosts.names[i]);
			t->hosts[i].ranks = in->ranks_per_host;
		}
	}
	for (size_t i = 0; i < r.nnodes; i++)
		node_release(&r.nodes[i]);
	free(r.nodes);
	hdestroy_r(&r.numbers);
	gf_hostlist_release(&r.hosts);
	return rc;
}

/* MANUAL
 * topology.conf: a tree of switches, or blocks; the output of
 * .Dq scontrol show topology ;
 * and the cluster's default in topology.yaml (Slurm 26.11): a tree, blocks, rings, or tori.
 * Sizes of BlockSizes above the blocks' are levels if they divide the blocks evenly.
 * Blocks without nodes are left out.
 * Rings and tori are described as if their hosts were connected by switches.
 * The file describes nearness and has no rates.
 * The rates are assumed, with switches that do not block.
 * Each host has one rank, or as many as
 * .Fl -ranks-per-host
 * gives.
 * Switches that are not alike become one flat level
 * .Cm net
 * over all hosts, with a warning. */
const struct gf_topology_format gf_format_slurm = {
	.name = "slurm",
	.description = "Slurm's topology.conf, topology.yaml, scontrol",
	.place = 30,
	.bare_hosts = true,
	.recognise = recognise,
	.read = read_slurm,
};
