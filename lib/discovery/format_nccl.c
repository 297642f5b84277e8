/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's and RCCL's topology XML, what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads: the
 * nodes of one NVLink domain, mostly one, with the GPUs and network interfaces in use.
 *
 *	<system> <cpu numaid host_hash> <pci busid link_speed link_width> ...
 *		<gpu dev sm gcn> <nvlink target count tclass> or <xgmi ...>
 *			<c2c bw (MB/s) count>, the way to the processor
 *		<nic> <net name speed (Mb/s) port gdr>
 *
 * A pci that has others below it is a switch; each of those is at a port of its own.
 *
 * GPUs that NVLink or xGMI connects, directly or through switches, are a level; those of one node
 * that it does not connect meet over PCI Express, whose path is as narrow as its narrowest link;
 * nodes meet over their networks.
 */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "discovery/discovery.h"
#include "discovery/find_levels.h"
#include "discovery/format.h"
#include "discovery/markup.h"

/* NVLink domains have some hundreds of GPUs. */
enum { GPUS_MAX = 4096 };

struct nccl_gpu {
	const struct gf_markup *gpu, *pci;
	size_t host, order;
	char *bus;        /* in small letters, or NULL */
	double own, path; /* bytes per second of its PCI link, of its way up */
};

struct nccl {
	const struct gf_topology_file *in;
	struct gf_topology *t;
	struct gf_error *err;
	struct nccl_gpu *gpus;
	size_t ngpus, gpu_capacity;
	struct gf_pci_tree *trees;         /* per host */
	size_t nplaces, c2c;               /* c2c: GPUs that have such links */
	size_t bare, bare_gpus, bare_nets; /* PCI devices with nothing below */
	struct gf_nvlinked *linked;        /* per GPU */
	const char *link;                  /* nvlink or xgmi */
	size_t *at_switch;                 /* per host, and across hosts */
	size_t to_itself, to_itself_line;
};

/* Where an element stands. */
struct place {
	const struct gf_markup *pci; /* the nearest, or NULL */
	double path;                 /* of the narrowest link; 0 unknown */
	const char *bridges;         /* its place in the PCI tree */
	size_t host;
	int numa;
};

static int recognise(const char *text)
{
	return strstr(text, "<system") != NULL && strstr(text, "<cpu") != NULL;
}

static bool is(const struct gf_markup *e, const char *name)
{
	return strcmp(e->name, name) == 0;
}

/* An attribute's number, decimal, or hexadecimal with 0x as NCCL writes some; `absent` where there
 * is none or it is empty. -EINVAL names the place. */
static int number_of(const struct nccl *r, const struct gf_markup *e, const char *name,
		     double absent, double *out)
{
	const char *text = gf_markup_get(e, name);
	char *end;

	*out = absent;
	if (!text || !*text)
		return 0;
	*out = strtod(text, &end);
	if (*end || !isfinite(*out))
		return gf_error_set(r->err, -EINVAL, "%s:%zu: %s: want a number, got \"%.40s\"",
				    r->in->path, e->line, name, text);
	return 0;
}

/* An attribute in small letters, as most files write addresses; NULL if there is none. The caller
 * frees. */
static char *address_of(const struct gf_markup *e, const char *name)
{
	const char *text = e ? gf_markup_get(e, name) : NULL;
	char *copy = text ? gf_xstrdup(text) : NULL, *c;

	for (c = copy; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/* The host with that hash; NCCL before 2.21 wrote none: one host. */
static size_t host_of(struct nccl *r, const struct gf_markup *cpu)
{
	const char *hash = gf_markup_get(cpu, "host_hash");
	struct gf_topology *t = r->t;
	char *name = gf_xasprintf("node-%s", hash ? hash : "0");

	for (size_t i = 0; i < t->nhosts; i++)
		if (strcmp(t->hosts[i].name, name) == 0) {
			free(name);
			return i;
		}
	t->hosts = gf_xreallocarray(t->hosts, t->nhosts + 1, sizeof(*t->hosts));
	t->hosts[t->nhosts] = (struct gf_host){.name = name};
	r->trees = gf_xreallocarray(r->trees, t->nhosts + 1, sizeof(*r->trees));
	r->trees[t->nhosts] = (struct gf_pci_tree){0};
	return t->nhosts++;
}

/* "32.0 GT/s PCIe" and "16"; 0 where a virtual machine says nothing. */
static double pcie_rate(const struct gf_markup *pci)
{
	const char *speed = gf_markup_get(pci, "link_speed");
	const char *width = gf_markup_get(pci, "link_width");

	return speed && width ? gf_discover_pcie_rate(strtod(speed, NULL), strtod(width, NULL)) : 0;
}

/* "gfx90a" from RCCL's "gfx90a:sramecc+" or the number of its first files; NULL if there is none.
 * The caller frees. */
static char *target_of(const struct gf_markup *gpu)
{
	const char *gcn = gf_markup_get(gpu, "gcn");

	if (!gcn || !*gcn)
		return NULL;
	if (strcmp(gcn, "910") == 0)
		return gf_xstrdup("gfx90a");
	return gf_xasprintf("%s%.*s", isdigit((unsigned char)*gcn) ? "gfx" : "",
			    (int)strcspn(gcn, ":"), gcn);
}

/* Bytes per second of the links from chip to chip, as NCCL counts them. */
static int read_c2c(struct nccl *r, const struct gf_markup *gpu, double *rate)
{
	double mb_per_s, count;
	int rc = 0;

	for (size_t i = 0; i < gpu->nchildren && rc == 0; i++) {
		const struct gf_markup *c = gpu->children[i];

		if (!is(c, "c2c"))
			continue;
		rc = number_of(r, c, "bw", 0, &mb_per_s);
		rc = rc ?: number_of(r, c, "count", 1, &count);
		if (rc == 0 && mb_per_s > 0 && count > 0)
			*rate += fmin(mb_per_s * count, 1e9) * 1e6;
	}
	return rc;
}

static int read_gpu(struct nccl *r, const struct gf_markup *e, const struct place *at)
{
	struct gf_device *d;
	char *target, *name;
	struct nccl_gpu *g;
	double sm, c2c = 0;
	int rc = number_of(r, e, "sm", 0, &sm);

	rc = rc ?: read_c2c(r, e, &c2c);
	if (rc == 0 && r->ngpus == GPUS_MAX)
		rc = gf_error_set(r->err, -EINVAL, "%s:%zu: want at most %d GPUs, got more",
				  r->in->path, e->line, GPUS_MAX);
	if (rc < 0)
		return rc;
	target = target_of(e);
	g = gf_array_push(&r->gpus, &r->ngpus, &r->gpu_capacity);
	g->gpu = e;
	g->pci = at->pci;
	g->host = at->host;
	g->order = r->ngpus;
	g->bus = address_of(at->pci, "busid");
	g->own = at->pci ? pcie_rate(at->pci) : 0;
	g->path = at->path;
	name = target ? target : sm > 0 ? gf_xasprintf("sm_%.0f", sm) : gf_xstrdup("gpu");
	d = gf_discover_add_device(&r->t->hosts[at->host], "gpu", name, g->bus);
	d->numa = at->numa;
	gf_discover_report(c2c > g->path ? c2c : g->path, &d->bandwidth_bytes_per_s,
			   &d->bandwidth_origin);
	r->c2c += c2c > 0;
	return 0;
}

/* NCCL's sockets have port 0 and no way past the processor (gdr); its adapters have a port. Without
 * one, the name remains. */
static int link_of(const struct nccl *r, const struct gf_markup *net, const char *name,
		   const char **link)
{
	double port, gdr;
	int rc = number_of(r, net, "port", -1, &port);

	rc = rc ?: number_of(r, net, "gdr", 0, &gdr);
	if (rc == 0)
		*link = port > 0 || gdr > 0 ? gf_discover_rdma_link(name, "roce")
			: port < 0          ? gf_discover_rdma_link(name, "ethernet")
					    : "ethernet";
	return rc;
}

static int read_net(struct nccl *r, const struct gf_markup *e, const struct place *at)
{
	const char *name = gf_markup_get(e, "name");
	const char *link = NULL;
	struct gf_nic *n;
	double mb_per_s;
	int rc = number_of(r, e, "speed", 0, &mb_per_s);

	name = name && *name ? name : "net";
	rc = rc ?: link_of(r, e, name, &link);
	if (rc < 0)
		return rc;
	if (mb_per_s < 0 || mb_per_s > 1e9)
		return gf_error_set(r->err, -EINVAL, "%s:%zu: speed: want 0 to 1e9 Mb/s, got %g",
				    r->in->path, e->line, mb_per_s);
	n = gf_discover_add_nic(&r->t->hosts[at->host], gf_xstrdup(name), link, "up");
	n->numa = at->numa;
	n->pci = address_of(at->pci, "busid");
	n->bandwidth_bytes_per_s = mb_per_s * 1e6 / 8;
	if (at->path > 0 && n->bandwidth_bytes_per_s > at->path)
		n->bandwidth_bytes_per_s = at->path;
	if (mb_per_s > 0)
		n->bandwidth_origin = GF_ORIGIN_REPORTED;
	return 0;
}

/* A device that NCCL completes at run time, or that is not in use. */
static void note_bare(struct nccl *r, const struct gf_markup *pci)
{
	const char *class = gf_markup_get(pci, "class");
	unsigned long id = class ? strtoul(class, NULL, 16) >> 8 : 0;

	r->bare++;
	if (id >> 8 == 0x02) {
		r->bare_nets++;
		gf_imported_leave(r->in->imported, "network interfaces without an element net",
				  pci->line);
	}
	if (id != GF_PCI_3D && id != GF_PCI_VGA && id != GF_PCI_ACCELERATOR &&
	    id != GF_PCI_DISPLAY_OTHER)
		return;
	r->bare_gpus++;
	gf_imported_leave(r->in->imported, "GPUs without an element gpu", pci->line);
}

/* Below a switch: its port, and what is there. The caller frees. */
static char *add_place(struct nccl *r, const struct gf_markup *pci, const struct place *at)
{
	char *place = gf_xasprintf("%s%sport%zu/%zu", at->bridges ? at->bridges : "",
				   at->bridges ? "/" : "", r->nplaces, r->nplaces);
	GF_FREED char *address = address_of(pci, "busid");

	r->nplaces++;
	if (address)
		gf_pci_tree_put(&r->trees[at->host], address, gf_xstrdup(place));
	return place;
}

/* Below a cpu: pci, nic, gpu and net may be nested in any way. Links are followed when all GPUs are
 * known. */
static int read_below(struct nccl *r, const struct gf_markup *e, const struct place *at)
{
	static const char *const known[] = {"nic", "nvlink", "xgmi", "c2c", "pcilink", NULL};
	size_t i, k;
	int rc = 0;

	for (i = 0; i < e->nchildren && rc == 0; i++) {
		const struct gf_markup *c = e->children[i];
		struct place below = *at;
		GF_FREED char *bridges = NULL;

		if (is(c, "gpu")) {
			rc = read_gpu(r, c, at);
		} else if (is(c, "net")) {
			rc = read_net(r, c, at);
		} else if (is(c, "pci")) {
			double rate = pcie_rate(c);

			below.pci = c;
			bridges = add_place(r, c, at);
			below.bridges = bridges;
			if (rate > 0 && (rate < at->path || !(at->path > 0)))
				below.path = rate;
			if (c->nchildren == 0)
				note_bare(r, c);
		} else {
			for (k = 0; known[k] && !is(c, known[k]);)
				k++;
			if (!known[k])
				gf_imported_leave(r->in->imported, "unknown elements", c->line);
		}
		rc = rc ?: read_below(r, c, &below);
	}
	return rc;
}

/* A file for NCCL_TOPO_FILE, as clouds' images have one. */
static int refuse_empty(const struct nccl *r)
{
	size_t nets = r->bare_nets, i;

	for (i = 0; i < r->t->nhosts; i++)
		nets += r->t->hosts[i].nnics;
	if (r->bare == 0)
		return gf_error_set(r->err, -EINVAL,
				    "%s: want at least one gpu below a cpu, got none", r->in->path);
	return gf_error_set(r->err, -EINVAL,
			    "%s: want elements gpu, got a template, which NCCL completes at run "
			    "time (by class %zu GPUs and %zu network interfaces): give what "
			    "NCCL_TOPO_DUMP_FILE writes on the node",
			    r->in->path, r->bare_gpus, nets);
}

static int read_system(struct nccl *r, const struct gf_markup *root)
{
	const char *version = gf_markup_get(root, "version");
	int rc = 0;

	if (!is(root, "system"))
		return gf_error_set(r->err, -EINVAL, "%s:%zu: want the element system, got %.40s",
				    r->in->path, root->line, root->name);
	if (version)
		r->in->imported->version = gf_xasprintf("XML %.20s", version);
	for (size_t i = 0; i < root->nchildren && rc == 0; i++) {
		const struct gf_markup *c = root->children[i];
		struct place at = {0};
		double numa;

		if (!is(c, "cpu")) {
			gf_imported_leave(r->in->imported, "unknown elements", c->line);
			continue;
		}
		rc = number_of(r, c, "numaid", -1, &numa);
		at.host = host_of(r, c);
		at.numa = numa >= 0 && numa < 1e6 ? (int)numa : -1;
		r->t->hosts[at.host].numa_nodes += numa >= 0;
		if (rc == 0 && r->t->nhosts > GPUS_MAX)
			rc = gf_error_set(r->err, -EINVAL,
					  "%s:%zu: want at most %d hosts, got more", r->in->path,
					  c->line, GPUS_MAX);
		rc = rc ?: read_below(r, c, &at);
	}
	return rc == 0 && r->ngpus == 0 ? refuse_empty(r) : rc;
}

/* --- NVLinks and xGMI links ------------------------------------------------ */

static bool is_xgmi(const struct gf_markup *e)
{
	return strcmp(e->name, "xgmi") == 0;
}

GF_ORDER(by_host, struct nccl_gpu, GF_BY(x->host, y->host) ?: GF_BY(x->order, y->order))

/* The GPU of that address on a host, but for one; ngpus: there is none. */
static size_t find(const struct nccl *r, size_t host, const char *bus)
{
	size_t i;

	for (i = 0; i < r->ngpus; i++)
		if (bus && r->gpus[i].host == host && r->gpus[i].bus &&
		    strcmp(r->gpus[i].bus, bus) == 0)
			break;
	return i;
}

static int check_addresses(const struct nccl *r)
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
static double link_rate(const struct nccl_gpu *g, const struct gf_markup *link, double sm)
{
	static const struct {
		const char *target;
		double bytes_per_s;
	} xgmi[] = {{"gfx90a", 36e9}, {"gfx94", 48e9}, {"gfx95", 48e9}, {"", 24e9}};
	GF_FREED char *target = NULL;
	double rate;
	size_t i;

	if (!is_xgmi(link)) {
		rate = gf_nvlink_rate(sm);
		return rate > 0 ? rate : gf_nvlink_rate(80);
	}
	target = target_of(g->gpu);
	for (i = 0; strncmp(target ? target : "", xgmi[i].target, strlen(xgmi[i].target)) != 0;)
		i++;
	return xgmi[i].bytes_per_s;
}

/* One link of a GPU: to a switch (all of a host that have one are together, and those of all hosts
 * where the switch has no address), or to another GPU's bus address. */
static int follow(struct nccl *r, size_t gpu, const struct gf_markup *link, double sm)
{
	const struct nccl_gpu *g = &r->gpus[gpu];
	const char *class = gf_markup_get(link, "tclass");
	GF_FREED char *target = address_of(link, "target");
	size_t other = find(r, g->host, target), *at;
	const char *left = NULL;
	double count;
	int rc = number_of(r, link, "count", 1, &count);

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
	return rc;
}

static int follow_all(struct nccl *r)
{
	double sm;
	int rc = 0;

	r->linked = gf_nvlinked_new(r->ngpus);
	r->at_switch = gf_xcalloc(r->t->nhosts + 1, sizeof(*r->at_switch));
	for (size_t i = 0; i <= r->t->nhosts; i++)
		r->at_switch[i] = r->ngpus;
	for (size_t i = 0; i < r->ngpus && rc == 0; i++) {
		const struct gf_markup *g = r->gpus[i].gpu;

		rc = number_of(r, g, "sm", 0, &sm);
		for (size_t k = 0; k < g->nchildren && rc == 0; k++) {
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
static void say_faults(const struct nccl *r, struct gf_text *remarks)
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

/* --- the whole ------------------------------------------------------------- */

/* A host's GPUs meet by the links to its processor. */
static void name_levels(const struct nccl *r)
{
	if (r->c2c)
		gf_imported_find(r->in->imported, "c2c links of %zu GPU%s", r->c2c,
				 r->c2c == 1 ? "" : "s");
	for (size_t i = 0; i < r->t->nlevels && r->c2c == r->ngpus; i++) {
		struct gf_level *l = &r->t->levels[i];

		if (strcmp(l->link, "pcie") != 0)
			continue;
		free(l->link);
		l->link = gf_xstrdup("c2c");
	}
}

static int read_nccl(const struct gf_topology_file *in, struct gf_topology *t,
		     struct gf_text *remarks, struct gf_error *err)
{
	struct nccl r = {.in = in, .t = t, .err = err, .link = "nvlink"};
	struct gf_markup *root = NULL;
	int rc = gf_xml_parse(in->text, in->path, &root, err);

	rc = rc ?: read_system(&r, root);
	/* their links are followed by hosts; remarks say what is wrong with the machine, or with
	 * its file */
	if (rc == 0)
		qsort(r.gpus, r.ngpus, sizeof(*r.gpus), by_host);
	rc = rc ?: check_addresses(&r);
	rc = rc ?: follow_all(&r);
	if (rc == 0) {
		say_faults(&r, remarks);
		for (size_t i = 0; i < t->nhosts; i++)
			gf_near_by_places(&t->hosts[i], &r.trees[i]);
		gf_levels_linked(t, r.linked, r.ngpus, remarks);
		name_levels(&r);
		t->source = gf_xstrdup("nccl-xml");
	}
	gf_markup_free(root);
	for (size_t i = 0; i < t->nhosts; i++)
		gf_pci_tree_release(&r.trees[i]);
	free(r.trees);
	for (size_t i = 0; i < r.ngpus; i++)
		free(r.gpus[i].bus);
	free(r.gpus);
	free(r.linked);
	free(r.at_switch);
	return rc;
}

/* MANUAL
 * the XML of NCCL_TOPO_DUMP_FILE, as NCCL (2.28) and RCCL (2.27) write it:
 * GPUs and network interfaces of one node, or of several that
 * .Va host_hash
 * tells apart.
 * GPUs that NVLink or xGMI connects, directly or through switches, are a level.
 * Its bandwidth is the one that NCCL or RCCL assumes for all links of a GPU.
 * The other GPUs of a node meet over PCI Express, at the rate of the narrowest link on the way,
 * and nodes meet over their networks.
 * An interface is one for RDMA if it has a port, or a direct way to GPUs
 * .Pq Va gdr ;
 * the file does not say if it is InfiniBand or RoCE, and its name decides that.
 * The rate of a GPU whose links lead to its processor
 * .Pq Va c2c
 * is theirs.
 * GPUs with fewer links than their siblings, or with links to themselves, are named in a warning.
 * A file for NCCL_TOPO_FILE, as images of clouds have it, lacks the GPUs' links and is refused. */
const struct gf_topology_format gf_format_nccl = {
	.name = "nccl",
	.description = "NCCL's or RCCL's XML (NCCL_TOPO_DUMP_FILE)",
	.place = 10,
	.recognise = recognise,
	.read = read_nccl,
};
