/* SPDX-License-Identifier: BSD-3-Clause */
/* The NVLinks and xGMI links of an NCCL topology (format_nccl.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "discovery/nccl_xml.h"

static bool is_xgmi(const struct gf_markup *e)
{
	return strcmp(e->name, "xgmi") == 0;
}

static int by_host(const void *a, const void *b)
{
	const struct gf_nccl_gpu *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The GPU of that address on a host, but for one; ngpus: there is none. */
static size_t find(const struct gf_nccl *r, size_t host, const char *bus)
{
	size_t i;

	for (i = 0; i < r->ngpus; i++)
		if (bus && r->gpus[i].host == host && r->gpus[i].bus &&
		    strcmp(r->gpus[i].bus, bus) == 0)
			break;
	return i;
}

static int check_addresses(const struct gf_nccl *r)
{
	size_t i, first;

	for (i = 0; i < r->ngpus; i++) {
		first = find(r, r->gpus[i].host, r->gpus[i].bus);
		if (first < i && r->gpus[first].pci != r->gpus[i].pci)
			return gf_error_set(r->err, -EINVAL,
					    "%s:%zu: want one GPU of an address on a host "
					    "(host_hash), got %.40s again",
					    r->in->path, r->gpus[i].pci->line, r->gpus[i].bus);
	}
	return 0;
}

/* Bytes per second that NCCL and RCCL count on per link. */
static double link_rate(const struct gf_nccl_gpu *g, const struct gf_markup *link, double sm)
{
	static const struct {
		const char *target;
		double bytes_per_s;
	} xgmi[] = {{"gfx90a", 36e9}, {"gfx94", 48e9}, {"gfx95", 48e9}, {"", 24e9}};
	char *target;
	double rate;
	size_t i;

	if (!is_xgmi(link)) {
		rate = gf_nvlink_rate(sm);
		return rate > 0 ? rate : gf_nvlink_rate(80);
	}
	target = gf_nccl_target(g->gpu);
	for (i = 0; strncmp(target ? target : "", xgmi[i].target, strlen(xgmi[i].target)) != 0;)
		i++;
	free(target);
	return xgmi[i].bytes_per_s;
}

/* One link of a GPU: to a switch (all of a host that have one are together, and those of all hosts
 * where the switch has no address), or to another GPU's bus address. */
static int follow(struct gf_nccl *r, size_t gpu, const struct gf_markup *link, double sm)
{
	const struct gf_nccl_gpu *g = &r->gpus[gpu];
	const char *class = gf_markup_get(link, "tclass");
	char *target = gf_nccl_address(link, "target");
	size_t other = find(r, g->host, target), *at;
	const char *left = NULL;
	double count;
	int rc = gf_nccl_number(r, link, "count", 1, &count);

	if (rc == 0 && (count < 0 || count > 1024))
		rc = gf_error_set(r->err, -EINVAL, "%s:%zu: count: want 0 to 1024 links, got %g",
				  r->in->path, link->line, count);
	at = target && strncmp(target, "fffffff", 7) == 0 ? &r->at_switch[r->t->nhosts]
							  : &r->at_switch[g->host];
	if (rc == 0 && other == gpu) {
		if (r->to_itself++ == 0)
			r->to_itself_line = link->line;
	} else if (rc == 0 && count == 0) {
		left = "links with a count of 0";
	} else if (rc == 0 && other < r->ngpus) {
		gf_nvlinked_join(r->linked, r->ngpus, gpu, other);
		r->linked[gpu].bytes_per_s += count * link_rate(g, link, sm);
	} else if (rc == 0 && class && strncmp(class, "0x068000", 8) == 0) {
		if (*at < r->ngpus)
			gf_nvlinked_join(r->linked, r->ngpus, gpu, *at);
		*at = gpu;
		r->linked[gpu].bytes_per_s += count * link_rate(g, link, sm);
	} else if (rc == 0) {
		left = class && strncmp(class, "0x068001", 8) == 0 ? "links to processors"
								   : "links to no GPU of the file";
	}
	if (left)
		gf_imported_leave(r->in->imported, left, link->line);
	free(target);
	return rc;
}

static int follow_all(struct gf_nccl *r)
{
	size_t i, k;
	double sm;
	int rc = 0;

	r->linked = gf_nvlinked_new(r->ngpus);
	r->at_switch = gf_xcalloc(r->t->nhosts + 1, sizeof(*r->at_switch));
	for (i = 0; i <= r->t->nhosts; i++)
		r->at_switch[i] = r->ngpus;
	for (i = 0; i < r->ngpus && rc == 0; i++) {
		const struct gf_markup *g = r->gpus[i].gpu;

		rc = gf_nccl_number(r, g, "sm", 0, &sm);
		for (k = 0; k < g->nchildren && rc == 0; k++) {
			const struct gf_markup *c = g->children[k];

			if (is_xgmi(c))
				r->link = r->linked[i].link = "xgmi";
			if (is_xgmi(c) || strcmp(c->name, "nvlink") == 0)
				rc = follow(r, i, c, sm);
		}
	}
	return rc;
}

/* What is wrong with a machine, or with its file. */
static void say_faults(const struct gf_nccl *r, struct gf_text *remarks)
{
	size_t i, fewer = 0, narrow = 0, first_fewer = 0, first_narrow = 0;
	double most = 0;

	for (i = 0; i < r->ngpus; i++)
		if (r->linked[i].bytes_per_s > most)
			most = r->linked[i].bytes_per_s;
	for (i = r->ngpus; i-- > 0;) {
		if (r->linked[i].bytes_per_s < most) {
			fewer++;
			first_fewer = i;
		}
		if (r->gpus[i].path < r->gpus[i].own) {
			narrow++;
			first_narrow = i;
		}
	}
	if (strcmp(r->link, "xgmi") == 0 && !gf_markup_get(r->gpus[0].gpu, "gcn"))
		gf_text_addf(remarks,
			     "%s:%zu: the GPUs have no gfx target (gcn): an xGMI link counts for "
			     "24 GB/s, RCCL's least\n",
			     r->in->path, r->gpus[0].gpu->line);
	if (r->to_itself)
		gf_text_addf(remarks,
			     "%s:%zu: %zu links (%s) lead from a GPU to itself and to no other: "
			     "left out; NCCL_TOPO_DUMP_FILE on the node writes the right ones\n",
			     r->in->path, r->to_itself_line, r->to_itself, r->link);
	if (fewer)
		gf_text_addf(remarks,
			     "%s:%zu: %zu of %zu GPUs have fewer links (%s) than their siblings: "
			     "first %s, %s of %s\n",
			     r->in->path, r->gpus[first_fewer].gpu->line, fewer, r->ngpus, r->link,
			     r->gpus[first_fewer].bus ? r->gpus[first_fewer].bus
						      : "one without address",
			     gf_human_rate(r->linked[first_fewer].bytes_per_s).text,
			     gf_human_rate(most).text);
	if (narrow)
		gf_text_addf(remarks,
			     "%s:%zu: %zu of %zu GPUs are behind a PCI link narrower than their "
			     "own: first %s, %s of %s\n",
			     r->in->path, r->gpus[first_narrow].pci->line, narrow, r->ngpus,
			     r->gpus[first_narrow].bus ? r->gpus[first_narrow].bus
						       : "one without address",
			     gf_human_rate(r->gpus[first_narrow].path).text,
			     gf_human_rate(r->gpus[first_narrow].own).text);
}

int gf_nccl_connect(struct gf_nccl *r, struct gf_text *remarks)
{
	int rc;

	qsort(r->gpus, r->ngpus, sizeof(*r->gpus), by_host);
	rc = check_addresses(r);
	if (rc == 0)
		rc = follow_all(r);
	if (rc == 0)
		say_faults(r, remarks);
	return rc;
}
