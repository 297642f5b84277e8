/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's topology.conf, a tree of switches, or blocks; what `scontrol show
 * topology` makes of it, with the nodes below every switch; and topology.yaml,
 * of whose topologies the cluster's default is read.
 *
 *	SwitchName=leaf0 Nodes=tux[0-3]
 *	SwitchName=spine Switches=leaf[0-1] LinkSpeed=900
 *	BlockName=b0 Nodes=tux[0-7]        BlockSizes=8
 *
 *	- topology: fabric
 *	  cluster_default: true
 *	  tree: {switches: [{switch: leaf0, nodes: "tux[0-3]"}, ...]}
 *
 * The file names hosts and groups near ones, but has no rates (LinkSpeed has no
 * unit and no effect). The levels' rates are assumed: Ethernet with
 * non-blocking switches. A tree with branches of different shapes becomes one
 * flat level.
 */
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/heap.h"
#include "probe/markup.h"
#include "probe/topology_formats.h"
#include "probe/hostlist.h"
#include "probe/find_levels.h"

/* Fat trees have three or four tiers. */
enum { TIERS_MAX = 16, SWITCHES_MAX = 16384 };

struct node {
	char *name;
	size_t line;
	struct gf_hostlist hosts, children;
	bool has_parent;
	bool shown; /* by scontrol */
};

struct reading {
	const struct gf_topology_file *in;
	struct gf_error *err;
	struct node *nodes;
	size_t nnodes, capacity;
	size_t size[TIERS_MAX + 1]; /* per tier, from the leaves; 0 unknown */
	bool unequal, blocks;
	struct hsearch_data numbers; /* of nodes, by name */
	size_t names, visited;    /* read in all; switches found from above */
	struct gf_hostlist hosts; /* in the order of the tree */
};

static bool is_yaml(const char *text)
{
	return strstr(text, "cluster_default:") != NULL ||
	       (strstr(text, "- topology:") != NULL &&
		(strstr(text, "tree:") != NULL ||
		 strstr(text, "block:") != NULL ||
		 strstr(text, "flat:") != NULL));
}

static int recognise(const char *text)
{
	return strcasestr(text, "SwitchName=") != NULL ||
	       strcasestr(text, "BlockName=") != NULL || is_yaml(text);
}

static int set_key(struct reading *r, struct node *n, const char *key,
		   const char *value)
{
	if (strcasecmp(key, "Nodes") == 0)
		return gf_hostlist_add(&n->hosts, value, r->err);
	if (strcasecmp(key, "Switches") == 0)
		return gf_hostlist_add(&n->children, value, r->err);
	if (strcasecmp(key, "Level") == 0)
		n->shown = true;
	if (strcasecmp(key, "LinkSpeed") == 0 ||
	    strcasecmp(key, "Level") == 0 ||
	    strcasecmp(key, "BlockIndex") == 0 ||
	    strcasecmp(key, "BlockSize") == 0 ||
	    strcasecmp(key, "BlockSizes") == 0)
		return 0;
	if (strcasecmp(key, "BlockName") == 0)
		r->blocks = true;
	if (strcasecmp(key, "SwitchName") != 0 &&
	    strcasecmp(key, "BlockName") != 0)
		return gf_error_set(r->err, -EINVAL,
				    "want SwitchName, Nodes, Switches, "
				    "LinkSpeed, BlockName or BlockSizes, got "
				    "%.40s",
				    key);
	if (n->name || !*value)
		return gf_error_set(r->err, -EINVAL,
				    "want one name on a line, got \"%.40s\"",
				    value);
	n->name = gf_xstrdup(value);
	return 0;
}

static void node_release(struct node *n)
{
	free(n->name);
	gf_hostlist_release(&n->hosts);
	gf_hostlist_release(&n->children);
}

static int check_node(struct reading *r, const struct node *n)
{
	ENTRY *found, entry = {.key = n->name, .data = (void *)r->nnodes};

	if (r->nnodes >= SWITCHES_MAX || r->names > GF_HOSTLIST_MAX)
		return gf_error_set(r->err, -EINVAL,
				    "want at most %d switches and %zu names in "
				    "all",
				    SWITCHES_MAX, GF_HOSTLIST_MAX);
	if ((n->hosts.count > 0) == (n->children.count > 0))
		return gf_error_set(r->err, -EINVAL,
				    "%s: want either Nodes or Switches",
				    n->name);
	if (!hsearch_r(entry, ENTER, &found, &r->numbers))
		return gf_error_set(r->err, -ENOMEM, "no memory");
	if (found->data != entry.data)
		return gf_error_set(
			r->err, -EINVAL, "want %.40s once, it was on line %zu",
			n->name, r->nodes[(size_t)found->data].line);
	return 0;
}

/* Takes what was read; rc: it was not. */
static int take_node(struct reading *r, struct node *n, int rc)
{
	r->names += n->hosts.count + n->children.count;
	if (n->shown && n->children.count)
		gf_hostlist_release(&n->hosts);
	if (rc == 0 && n->name)
		rc = check_node(r, n);
	else if (rc == 0 && (n->hosts.count || n->children.count))
		rc = gf_error_set(r->err, -EINVAL,
				  "want a SwitchName or BlockName, got none");
	if (rc < 0)
		gf_error_prefix(r->err, "%s:%zu", r->in->path, n->line);
	if (rc < 0 || !n->name)
		node_release(n);
	else
		*gf_array_push(&r->nodes, &r->nnodes, &r->capacity) = *n;
	return rc;
}

/* Pairs of key=value; a line without a name (BlockSizes alone) says nothing. */
static int read_line(struct reading *r, char *line, size_t number)
{
	struct node n = {.line = number};
	char *saved = NULL, *word, *value;
	int rc = 0;

	line[strcspn(line, "#")] = '\0';
	if (strncasecmp(line, "AggregatedBlock=", 16) == 0) {
		gf_imported_leave(r->in->imported, "aggregated blocks", number);
		return 0;
	}
	for (word = strtok_r(line, " \t\r", &saved); word && rc == 0;
	     word = strtok_r(NULL, " \t\r", &saved)) {
		value = strchr(word, '=');
		if (value) {
			*value = '\0';
			rc = set_key(r, &n, word, value + 1);
		} else {
			rc = gf_error_set(r->err, -EINVAL,
					  "want KEY=VALUE, got \"%.40s\"",
					  word);
		}
	}
	return take_node(r, &n, rc);
}

/* One switch or block of topology.yaml. */
static int read_entry(struct reading *r, const struct gf_markup *e,
		      const char *const keys[])
{
	static const char *const as[] = {"Nodes", "Switches"};
	struct node n = {.line = e->line};
	const char *value = gf_markup_get(e, keys[0]);
	int rc = set_key(r, &n, keys[1], value ? value : "");
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(as) && rc == 0; i++) {
		value = gf_markup_get(e, i ? "children" : "nodes");
		if (value && *value)
			rc = set_key(r, &n, as[i], value);
	}
	return take_node(r, &n, rc);
}

/* The topology's switches or blocks; a flat one has none. */
static int read_entries(struct reading *r, const struct gf_markup *topology)
{
	static const char *const kinds[][4] = {
		{"switch", "SwitchName", "tree", "switches"},
		{"block", "BlockName", "block", "blocks"}};
	size_t i, k, m;
	int rc = 0;

	for (i = 0; i < topology->nchildren; i++)
		for (m = 0; m < GF_ARRAY_LENGTH(kinds); m++) {
			const struct gf_markup *c = topology->children[i];

			if (strcmp(c->name, kinds[m][2]) != 0)
				continue;
			for (k = 0; k < c->nchildren && rc == 0; k++)
				if (strcmp(c->children[k]->name, kinds[m][3]) ==
				    0)
					rc = read_entry(r, c->children[k],
							kinds[m]);
		}
	if (rc == 0 && r->nnodes == 0)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s:%zu: want a topology with switches or "
				  "blocks, got none (flat: it names no nodes)",
				  r->in->path, topology->line);
	return rc;
}

static int read_yaml(struct reading *r)
{
	struct gf_markup *root = NULL, *chosen = NULL;
	const char *word;
	size_t i;
	int rc = gf_yaml_parse(r->in->text, r->in->path, &root, r->err);

	for (i = 0; rc == 0 && i < root->nchildren && !chosen; i++) {
		word = gf_markup_get(root->children[i], "cluster_default");
		if (word && (strcasecmp(word, "true") == 0 ||
			     strcasecmp(word, "yes") == 0))
			chosen = root->children[i];
	}
	if (rc == 0 && !chosen && root->nchildren)
		chosen = root->children[0];
	for (i = 0; rc == 0 && i < root->nchildren; i++)
		if (root->children[i] != chosen)
			gf_imported_leave(r->in->imported,
					  "topologies but for the default",
					  root->children[i]->line);
	if (rc == 0)
		rc = chosen ? read_entries(r, chosen)
			    : gf_error_set(r->err, -EINVAL,
					   "%s: want a list of topologies, got "
					   "none",
					   r->in->path);
	gf_markup_free(root);
	return rc;
}

/* Lines that end in a backslash go on. */
static int read_lines(struct reading *r)
{
	char *copy = gf_xstrdup(r->in->text), *line = copy, *next;
	size_t number = 1, first;
	int rc = 0;

	while (line && rc == 0) {
		first = number;
		next = line;
		while ((next = strchr(next, '\n'))) {
			number++;
			if (next == line || next[-1] != '\\')
				break;
			next[-1] = next[0] = ' ';
		}
		if (next)
			*next++ = '\0';
		rc = read_line(r, line, first);
		line = next;
	}
	free(copy);
	if (rc == 0 && r->nnodes == 0)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s: want a SwitchName or BlockName, got "
				  "none",
				  r->in->path);
	return rc;
}

static struct node *find(const struct reading *r, const char *name)
{
	ENTRY *found, wanted = {.key = (char *)name};

	hsearch_r(wanted, FIND, &found, (struct hsearch_data *)&r->numbers);
	return found ? &r->nodes[(size_t)found->data] : NULL;
}

/* Every switch below at most one other. */
static int link_nodes(struct reading *r)
{
	size_t i, k;

	for (i = 0; i < r->nnodes; i++)
		for (k = 0; k < r->nodes[i].children.count; k++) {
			const char *name = r->nodes[i].children.names[k];
			struct node *child = find(r, name);

			if (!child || child->has_parent)
				return gf_error_set(
					r->err, -EINVAL,
					"%s:%zu: want a switch that %s, got "
					"%.40s",
					r->in->path, r->nodes[i].line,
					child ? "is below no other"
					      : "has a line of its own",
					name);
			child->has_parent = true;
		}
	return 0;
}

static void note_size(struct reading *r, int tier, size_t size)
{
	if (r->size[tier] == 0)
		r->size[tier] = size;
	else if (r->size[tier] != size)
		r->unequal = true;
}

/* Adds the hosts below; *tier is how many levels there are. */
static int walk(struct reading *r, const struct node *n, int depth, int *tier)
{
	size_t i;
	int below, rc = 0;

	if (depth > TIERS_MAX)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want at most %d tiers of "
				    "switches, got more at %.40s",
				    r->in->path, n->line, TIERS_MAX, n->name);
	*tier = 0;
	r->visited++;
	for (i = 0; i < n->hosts.count && rc == 0; i++)
		rc = gf_hostlist_add(&r->hosts, n->hosts.names[i], r->err);
	for (i = 0; i < n->children.count && rc == 0; i++) {
		rc = walk(r, find(r, n->children.names[i]), depth + 1, &below);
		if (i > 0 && below + 1 != *tier)
			r->unequal = true;
		if (below + 1 > *tier)
			*tier = below + 1;
	}
	if (rc == 0)
		note_size(r, *tier,
			  n->hosts.count ? n->hosts.count : n->children.count);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_hosts(const struct reading *r)
{
	char **sorted =
		gf_xmemdup(r->hosts.names, r->hosts.count * sizeof(*sorted));
	size_t i;
	int rc = 0;

	qsort(sorted, r->hosts.count, sizeof(*sorted), by_name);
	for (i = 1; i < r->hosts.count && rc == 0; i++)
		if (strcmp(sorted[i], sorted[i - 1]) == 0)
			rc = gf_error_set(r->err, -EINVAL,
					  "%s: want every node below one "
					  "switch, got %.40s below two",
					  r->in->path, sorted[i]);
	free(sorted);
	return rc;
}

/* All trees; several meet at one more tier. */
static int walk_all(struct reading *r, int *tiers, struct gf_text *remarks)
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
				  "%s: want a tree of switches, got %zu in a "
				  "circle",
				  r->in->path, r->nnodes - r->visited);
	*tiers = top + 1;
	if (roots > 1)
		r->size[(*tiers)++] = roots;
	if (rc == 0 && roots > 1 && !r->blocks)
		gf_text_addf(remarks,
			     "%s:%zu: no switch connects the %zu trees (%s is "
			     "the second), and Slurm starts no job across "
			     "them: described as if one more tier did\n",
			     r->in->path, r->nodes[second].line, roots,
			     r->nodes[second].name);
	return rc ? rc : check_hosts(r);
}

/* Each tier passes on all that the hosts below can send. */
static void make_levels(const struct reading *r, int tiers,
			struct gf_topology *t, struct gf_text *remarks)
{
	static const struct gf_host nothing = {0};
	struct gf_level level;
	size_t below = 1;
	int i;

	if (r->in->ranks_per_host > 1)
		gf_levels_append(t, gf_levels_shm(), "host",
				 (size_t)r->in->ranks_per_host);
	if (r->unequal) {
		gf_text_addf(remarks,
			     "%s: the switches are not alike: described as one "
			     "flat level of %zu hosts\n",
			     r->in->path, r->hosts.count);
		gf_levels_network_of(&nothing, &level);
		gf_levels_append(t, level, "net", r->hosts.count);
		return;
	}
	for (i = 0; i < tiers; i++) {
		char *name = i ? gf_xasprintf("tier%d", i + 1)
			       : gf_xstrdup("switch");

		gf_levels_network_of(&nothing, &level);
		level.bandwidth_bytes_per_s *= (double)below;
		gf_levels_append(t, level, name, r->size[i]);
		below *= r->size[i];
		free(name);
	}
}

static int read_slurm(const struct gf_topology_file *in, struct gf_topology *t,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct reading r = {.in = in, .err = err};
	size_t i;
	int tiers, rc;

	if (!hcreate_r(SWITCHES_MAX, &r.numbers))
		return gf_error_set(err, -ENOMEM, "%s: no memory", in->path);
	rc = is_yaml(in->text) ? read_yaml(&r) : read_lines(&r);
	if (rc == 0)
		rc = walk_all(&r, &tiers, remarks);
	if (rc == 0) {
		make_levels(&r, tiers, t, remarks);
		t->source = gf_xstrdup("slurm");
		t->ranks = gf_levels_ranks(t->levels, t->nlevels);
		if (t->ranks == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s: want at most %d ranks in all",
					  in->path, GF_RANKS_MAX);
	}
	if (rc == 0) {
		t->nhosts = r.hosts.count;
		t->hosts = gf_xcalloc(t->nhosts, sizeof(*t->hosts));
		for (i = 0; i < t->nhosts; i++) {
			t->hosts[i].name = gf_xstrdup(r.hosts.names[i]);
			t->hosts[i].ranks = in->ranks_per_host;
		}
	}
	for (i = 0; i < r.nnodes; i++)
		node_release(&r.nodes[i]);
	free(r.nodes);
	hdestroy_r(&r.numbers);
	gf_hostlist_release(&r.hosts);
	return rc;
}

const struct gf_topology_format gf_format_slurm = {
	.name = "slurm",
	.description = "Slurm's topology.conf, topology.yaml, scontrol",
	.bare_hosts = true,
	.recognise = recognise,
	.read = read_slurm,
	.write = gf_slurm_write,
};
