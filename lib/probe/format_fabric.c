/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ibnetdiscover prints of an InfiniBand fabric: every switch with what is
 * at its ports.
 *
 *	Switch	36 "S-ec0d9a0300ec8240"		# "leaf 1" base port 0 lid 48
 *lmc 0 [1]	"H-506b4b03003fa9b6"[1](506b4b03003fa9b6)	# "n18 HCA-1"
 *lid 67 4xEDR [13]	"S-ec0d9a0300ec81e0"[19]	# "spine 1" lid 21 4xEDR
 *
 * Switches with hosts are leaves. Leaves of equally many hosts are a level, and
 * what connects them another one, as wide as the links up of the leaf that has
 * least.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "probe/topology_formats.h"
#include "probe/find_levels.h"
#include "probe/probe.h"

/* A subnet has 49151 addresses, and a host several. */
enum { HOSTS_MAX = 16384 };

struct leaf {
	size_t hosts;
	double up_bytes_per_s;
};

struct reading {
	const struct gf_topology_file *in;
	struct gf_topology *t;
	struct gf_error *err;
	size_t line, capacity, *leaf_of; /* per host */
	struct leaf *leaves;             /* all switches */
	size_t nleaves, leaf_capacity, at_several, at_several_line;
	bool in_switch;
};

static int recognise(const char *text)
{
	return strstr(text, "Switch\t") != NULL &&
	       strstr(text, "\"S-") != NULL &&
	       (strstr(text, "\"H-") != NULL ||
		strstr(text, "vendid=") != NULL);
}

/* "4xEDR", what it carries; 0: not known. */
static double rate_of(const char *word)
{
	static const struct {
		const char *name;
		double gbit_per_s; /* a lane, without its coding */
	} speeds[] = {{"SDR", 2},    {"DDR", 4},     {"QDR", 8},
		      {"FDR10", 10}, {"FDR", 13.64}, {"EDR", 25},
		      {"HDR", 50},   {"NDR", 100},   {"XDR", 200}};
	char *end;
	long lanes = strtol(word, &end, 10);
	size_t i;

	if (*end != 'x' || lanes < 1 || lanes > 12)
		return 0;
	for (i = 0; i < GF_ARRAY_LENGTH(speeds); i++)
		if (strcmp(end + 1, speeds[i].name) == 0)
			return (double)lanes * speeds[i].gbit_per_s * 1e9 / 8;
	return 0;
}

/* The last word of a line. */
static const char *last_word(char *line)
{
	char *end = line + strlen(line);

	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (end > line && !isspace((unsigned char)end[-1]))
		end--;
	return end;
}

static int host_of(struct reading *r, const char *name, size_t *host)
{
	struct gf_topology *t = r->t;
	size_t i, leaf = r->nleaves - 1;

	for (i = 0; i < t->nhosts && strcmp(t->hosts[i].name, name) != 0;)
		i++;
	*host = i;
	if (i < t->nhosts) {
		if (r->leaf_of[i] != leaf && r->at_several++ == 0)
			r->at_several_line = r->line;
		return 0;
	}
	if (i == HOSTS_MAX)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want at most %d hosts, got more",
				    r->in->path, r->line, HOSTS_MAX);
	*(struct gf_host *)gf_array_push(&t->hosts, &t->nhosts, &r->capacity) =
		(struct gf_host){
			.name = gf_xstrdup(name),
			.ranks = r->in->ranks_per_host,
		};
	r->leaf_of =
		gf_xreallocarray(r->leaf_of, t->nhosts, sizeof(*r->leaf_of));
	r->leaf_of[i] = leaf;
	r->leaves[leaf].hosts++;
	return 0;
}

/* "node18 HCA-1": the host and its adapter. */
static int read_port(struct reading *r, char *line)
{
	char *name = strchr(line, '#'), *end, *adapter;
	double rate = rate_of(last_word(line));
	struct gf_nic *n;
	size_t host;
	int rc;

	name = name ? strchr(name, '"') : NULL;
	end = name ? strchr(name + 1, '"') : NULL;
	if (!end || end == name + 1)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want a port's description in "
				    "quotes, got none",
				    r->in->path, r->line);
	*end = '\0';
	name++;
	if (strstr(name, "Aggregation Node")) {
		gf_imported_leave(r->in->imported,
				  "aggregation nodes of switches", r->line);
		return 0;
	}
	adapter = strchr(name, ' ');
	if (adapter)
		*adapter++ = '\0';
	if (!*name)
		name = adapter;
	rc = host_of(r, name && *name ? name : "unnamed", &host);
	if (rc < 0)
		return rc;
	n = gf_probe_add_nic(&r->t->hosts[host]);
	n->name = gf_xstrdup(adapter && *adapter ? adapter : "HCA");
	n->link = gf_xstrdup("infiniband");
	n->state = gf_xstrdup("up");
	n->bandwidth_bytes_per_s = rate;
	if (rate > 0)
		n->bandwidth_origin = GF_ORIGIN_REPORTED;
	return 0;
}

static int read_line(struct reading *r, char *line)
{
	const char *end;

	line += strspn(line, " \t");
	if (strncmp(line, "Switch", 6) == 0) {
		gf_array_push(&r->leaves, &r->nleaves, &r->leaf_capacity);
		r->in_switch = true;
	} else if (strncmp(line, "Ca", 2) == 0 || strncmp(line, "Rt", 2) == 0) {
		r->in_switch = false;
	} else if (*line == '[' && r->in_switch) {
		end = strchr(line, '"');
		if (end && strncmp(end, "\"H-", 3) == 0)
			return read_port(r, line);
		if (end && strncmp(end, "\"S-", 3) == 0)
			r->leaves[r->nleaves - 1].up_bytes_per_s +=
				rate_of(last_word(line));
		else
			gf_imported_leave(r->in->imported, "unknown ports",
					  r->line);
	}
	return 0;
}

static int by_leaf(const void *a, const void *b, void *reading)
{
	const struct reading *r = reading;
	size_t x = r->leaf_of[*(const size_t *)a];
	size_t y = r->leaf_of[*(const size_t *)b];

	if (x != y)
		return x < y ? -1 : 1;
	return *(const size_t *)a < *(const size_t *)b ? -1 : 1;
}

/* The hosts of a leaf side by side. */
static void sort_hosts(struct reading *r)
{
	struct gf_topology *t = r->t;
	size_t *order = gf_xcalloc(t->nhosts + 1, sizeof(*order)), i;
	struct gf_host *sorted = gf_xcalloc(t->nhosts + 1, sizeof(*sorted));

	for (i = 0; i < t->nhosts; i++)
		order[i] = i;
	qsort_r(order, t->nhosts, sizeof(*order), by_leaf, r);
	for (i = 0; i < t->nhosts; i++)
		sorted[i] = t->hosts[order[i]];
	free(t->hosts);
	t->hosts = sorted;
	free(order);
}

static void make_levels(struct reading *r, struct gf_text *remarks)
{
	struct gf_topology *t = r->t;
	struct gf_level level = gf_levels_between(t);
	size_t i, leaves = 0, size = 0;
	bool alike = true;
	double up = 0;

	for (i = 0; i < r->nleaves; i++) {
		const struct leaf *l = &r->leaves[i];

		if (!l->hosts)
			continue;
		alike &= !size || size == l->hosts;
		size = l->hosts;
		if (leaves++ == 0 || l->up_bytes_per_s < up)
			up = l->up_bytes_per_s;
	}
	if (r->in->ranks_per_host > 1)
		gf_levels_append(t, gf_levels_shm(), "host",
				 (size_t)r->in->ranks_per_host);
	if (r->at_several)
		gf_text_addf(remarks,
			     "%s:%zu: %zu ports are at another switch than the "
			     "first of their host: a host is put below its "
			     "first\n",
			     r->in->path, r->at_several_line, r->at_several);
	if (!alike)
		gf_text_addf(remarks,
			     "%s: the %zu switches with hosts have unequal "
			     "numbers of them: described as one flat level of "
			     "%zu hosts\n",
			     r->in->path, leaves, t->nhosts);
	gf_levels_append(t, level, alike ? "switch" : "net",
			 alike ? size : t->nhosts);
	if (!alike || leaves == 1)
		return;
	level = gf_levels_between(t);
	if (up > 0) {
		level.bandwidth_bytes_per_s = up;
		level.bandwidth_origin = GF_ORIGIN_REPORTED;
	} else {
		gf_text_addf(remarks,
			     "%s: a switch with hosts has no link to another: "
			     "described as if they did not block\n",
			     r->in->path);
		level.bandwidth_bytes_per_s *= (double)size;
		level.bandwidth_origin = GF_ORIGIN_ASSUMED;
	}
	gf_levels_append(t, level, "tier2", leaves);
}

static int read_fabric(const struct gf_topology_file *in, struct gf_topology *t,
		       struct gf_text *remarks, struct gf_error *err)
{
	struct reading r = {.in = in, .t = t, .err = err};
	char *copy = gf_xstrdup(in->text), *line = copy, *next;
	int rc = 0;

	for (; line && rc == 0; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r.line++;
		rc = read_line(&r, line);
	}
	if (rc == 0 && t->nhosts == 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want switches with hosts (\"H-...\") at "
				  "their ports, got none",
				  in->path);
	if (rc == 0) {
		sort_hosts(&r);
		make_levels(&r, remarks);
		t->source = gf_xstrdup("ibnetdiscover");
		t->ranks = gf_levels_ranks(t->levels, t->nlevels);
		if (t->ranks == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s: want at most %d ranks in all",
					  in->path, GF_RANKS_MAX);
	}
	free(copy);
	free(r.leaves);
	free(r.leaf_of);
	return rc;
}

const struct gf_topology_format gf_format_fabric = {
	.name = "ibnetdiscover",
	.description = "an InfiniBand fabric, as ibnetdiscover prints it",
	.bare_hosts = true,
	.recognise = recognise,
	.read = read_fabric,
};
