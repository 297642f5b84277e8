/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/tree.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/human.h"

static const char branch[] = "├─ ", last_branch[] = "└─ ";
static const char pass[] = "│  ", blank[] = "   ";

static void draw_levels(const struct gf_topology *t, struct gf_text *out)
{
	struct gf_human rate, time;
	size_t i, depth;

	for (i = t->nlevels; i-- > 0;) {
		const struct gf_level *l = &t->levels[i];

		for (depth = t->nlevels - 1; depth > i; depth--)
			gf_text_addf(out, "%s",
				     depth - 1 == i ? last_branch : blank);
		gf_text_addf(out, "%s x%zu: %s, %s (%s), %s (%s)\n", l->name,
			     l->size, l->link,
			     gf_human_rate(l->bandwidth_bytes_per_s, &rate),
			     gf_origin_names[l->bandwidth_origin],
			     gf_human_time(l->latency_s, &time),
			     gf_origin_names[l->latency_origin]);
	}
}

static void add_place(const char *pci, int numa, struct gf_text *out)
{
	if (pci)
		gf_text_addf(out, ", pci %s", pci);
	if (numa >= 0)
		gf_text_addf(out, ", numa %d", numa);
}

static void add_rate(double bytes_per_s, enum gf_origin origin,
		     struct gf_text *out)
{
	struct gf_human rate;

	if (bytes_per_s > 0)
		gf_text_addf(out, ", %s (%s)\n",
			     gf_human_rate(bytes_per_s, &rate),
			     gf_origin_names[origin]);
	else
		gf_text_addf(out, ", rate unknown\n");
}

/* The NVLinks of a device, and the interface near it. */
static void add_near(const struct gf_host *h, const struct gf_device *d,
		     struct gf_text *out)
{
	int peers[GF_PATH_NVSWITCH + 1] = {0};
	enum gf_path p;
	size_t i;

	for (i = 0; d->pci && i < h->nlinks; i++) {
		const struct gf_device_link *l = &h->links[i];

		if (l->path <= GF_PATH_NVSWITCH &&
		    (strcmp(l->from, d->pci) == 0 ||
		     strcmp(l->to, d->pci) == 0))
			peers[l->path]++;
	}
	for (p = GF_PATH_NVLINK; p <= GF_PATH_NVSWITCH; p++)
		if (peers[p])
			gf_text_addf(out, ", %s to %d", gf_path_names[p],
				     peers[p]);
	if (d->nic)
		gf_text_addf(out, ", near %s (%s)", d->nic,
			     gf_path_names[d->nic_path]);
}

static const char *plural(long long n)
{
	return n == 1 ? "" : "s";
}

static void draw_host(const struct gf_host *h, const char *lead,
		      struct gf_text *out)
{
	const struct {
		int count;
		const char *what;
	} facts[] = {
		{h->ranks, "rank"},           {h->sockets, "socket"},
		{h->numa_nodes, "NUMA node"}, {h->cores, "core"},
		{h->threads, "thread"},
	};
	struct gf_human memory;
	size_t i, left = h->ndevices + h->nnics;
	int said = 0;

	gf_text_addf(out, "%s: ", h->name);
	for (i = 0; i < GF_ARRAY_LENGTH(facts); i++)
		if (facts[i].count > 0)
			gf_text_addf(out, "%s%d %s%s", said++ ? ", " : "",
				     facts[i].count, facts[i].what,
				     plural(facts[i].count));
	if (h->memory_bytes > 0)
		gf_text_addf(out, "%s%s", said++ ? ", " : "",
			     gf_human_size((double)h->memory_bytes, &memory));
	gf_text_addf(out, "\n");
	for (i = 0; i < h->ndevices; i++) {
		const struct gf_device *d = &h->devices[i];

		gf_text_addf(out, "%s%s%s %s", lead,
			     --left ? branch : last_branch, d->type, d->name);
		add_place(d->pci, d->numa, out);
		if (d->memory_bytes > 0)
			gf_text_addf(out, ", %s",
				     gf_human_size((double)d->memory_bytes,
						   &memory));
		add_near(h, d, out);
		add_rate(d->bandwidth_bytes_per_s, d->bandwidth_origin, out);
	}
	for (i = 0; i < h->nnics; i++) {
		const struct gf_nic *n = &h->nics[i];

		gf_text_addf(out, "%s%s%s: %s, %s", lead,
			     --left ? branch : last_branch, n->name, n->link,
			     n->state);
		add_place(n->pci, n->numa, out);
		add_rate(n->bandwidth_bytes_per_s, n->bandwidth_origin, out);
	}
}

void gf_tree_draw(const struct gf_topology *t, struct gf_text *out)
{
	size_t i;

	gf_text_addf(out, "%s (%s)", t->name, t->source);
	if (t->ranks > 0)
		gf_text_addf(out, ": %d rank%s", t->ranks, plural(t->ranks));
	gf_text_addf(out, "\n");
	draw_levels(t, out);
	for (i = 0; i < t->nhosts; i++) {
		int last = i + 1 == t->nhosts;

		gf_text_addf(out, "%s", last ? last_branch : branch);
		draw_host(&t->hosts[i], last ? blank : pass, out);
	}
}
