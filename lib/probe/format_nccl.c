/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's topology XML, what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE
 * reads: one node (or NVLink domain) with the GPUs and network interfaces in
 * use.
 *
 *	<system> <cpu numaid> <pci busid link_speed link_width> ...
 *		<gpu dev sm> <nvlink target count tclass>
 *		<nic> <net name speed (Mb/s)>
 *
 * GPUs that NVLink connects, directly or through switches, are a level; those
 * of one node that it does not connect meet over PCI Express.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "probe/formats.h"
#include "probe/levels.h"
#include "probe/nvlink.h"
#include "probe/probe.h"
#include "probe/xml.h"

/* The class of an NVSwitch as an NVLink's target. */
static const char switch_class[] = "0x068000";

struct gpu {
	const struct gf_xml *gpu, *pci;
};

struct reading {
	const struct gf_topology_file *in;
	struct gf_topology *t;
	struct gf_error *err;
	struct gpu *gpus;
	size_t ngpus, gpu_capacity;
	struct gf_nvlinked *linked; /* per GPU */
};

static int recognise(const char *text)
{
	return strstr(text, "<system") != NULL && strstr(text, "<cpu") != NULL;
}

/* Decimal, or hexadecimal with 0x as NCCL writes some; `absent` where there is
 * none or it is empty. */
static int number(const struct reading *r, const struct gf_xml *x,
		  const char *name, double absent, double *out)
{
	const char *text = gf_xml_get(x, name);
	char *end;

	*out = absent;
	if (!text || !*text)
		return 0;
	*out = strtod(text, &end);
	if (*end || !isfinite(*out))
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: %s: want a number, got \"%.40s\"",
				    r->in->path, x->line, name, text);
	return 0;
}

/* The host with that hash; NCCL before 2.21 wrote none: one host. */
static struct gf_host *host_of(struct reading *r, const struct gf_xml *cpu)
{
	const char *hash = gf_xml_get(cpu, "host_hash");
	struct gf_topology *t = r->t;
	char *name = gf_xasprintf("node-%s", hash ? hash : "0");
	size_t i;

	for (i = 0; i < t->nhosts; i++)
		if (strcmp(t->hosts[i].name, name) == 0) {
			free(name);
			return &t->hosts[i];
		}
	t->hosts = gf_xreallocarray(t->hosts, t->nhosts + 1, sizeof(*t->hosts));
	t->hosts[t->nhosts] = (struct gf_host){.name = name};
	return &t->hosts[t->nhosts++];
}

/* "32.0 GT/s PCIe" and "16"; 0 where a virtual machine says nothing. */
static double pcie_rate(const struct gf_xml *pci)
{
	const char *speed = gf_xml_get(pci, "link_speed");
	const char *width = gf_xml_get(pci, "link_width");

	return speed && width ? gf_probe_pcie_rate(strtod(speed, NULL),
						   strtod(width, NULL))
			      : 0;
}

static int read_gpu(struct reading *r, const struct gf_xml *x,
		    const struct gf_xml *pci, struct gf_host *host, int numa)
{
	struct gf_device *d;
	struct gpu *g;
	double sm;
	int rc = number(r, x, "sm", 0, &sm);

	if (rc < 0)
		return rc;
	g = gf_array_push(&r->gpus, &r->ngpus, &r->gpu_capacity);
	g->gpu = x;
	g->pci = pci;
	d = gf_probe_add_device(host);
	d->type = gf_xstrdup("gpu");
	d->name = sm > 0 ? gf_xasprintf("sm_%.0f", sm) : gf_xstrdup("gpu");
	d->numa = numa;
	if (!pci)
		return 0;
	if (gf_xml_get(pci, "busid"))
		d->pci = gf_xstrdup(gf_xml_get(pci, "busid"));
	d->bandwidth_bytes_per_s = pcie_rate(pci);
	if (d->bandwidth_bytes_per_s > 0)
		d->bandwidth_origin = GF_ORIGIN_REPORTED;
	return 0;
}

static int read_net(struct reading *r, const struct gf_xml *x,
		    const struct gf_xml *pci, struct gf_host *host, int numa)
{
	const char *name = gf_xml_get(x, "name");
	struct gf_nic *n;
	double mb_per_s;
	int rc = number(r, x, "speed", 0, &mb_per_s);

	if (rc < 0)
		return rc;
	if (mb_per_s < 0 || mb_per_s > 1e9)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: speed: want 0 to 1e9 Mb/s, got %g",
				    r->in->path, x->line, mb_per_s);
	n = gf_probe_add_nic(host);
	n->name = gf_xstrdup(name && *name ? name : "net");
	/* the dump does not tell InfiniBand from RoCE; adapters by name */
	n->link = gf_xstrdup(strncmp(n->name, "mlx", 3) == 0 ? "infiniband"
							     : "ethernet");
	n->state = gf_xstrdup("up");
	n->numa = numa;
	if (pci && gf_xml_get(pci, "busid"))
		n->pci = gf_xstrdup(gf_xml_get(pci, "busid"));
	n->bandwidth_bytes_per_s = mb_per_s * 1e6 / 8;
	if (mb_per_s > 0)
		n->bandwidth_origin = GF_ORIGIN_REPORTED;
	return 0;
}

/* Below a cpu: pci, nic, gpu and net may be nested in any way. */
static int read_below(struct reading *r, const struct gf_xml *x,
		      const struct gf_xml *pci, size_t host, int numa)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < x->nchildren && rc == 0; i++) {
		const struct gf_xml *c = x->children[i];
		struct gf_host *h = &r->t->hosts[host];

		if (strcmp(c->name, "gpu") == 0)
			rc = read_gpu(r, c, pci, h, numa);
		else if (strcmp(c->name, "net") == 0)
			rc = read_net(r, c, pci, h, numa);
		else
			rc = read_below(r, c,
					strcmp(c->name, "pci") == 0 ? c : pci,
					host, numa);
	}
	return rc;
}

static int read_system(struct reading *r, const struct gf_xml *root)
{
	size_t i;
	int rc = 0;

	if (strcmp(root->name, "system") != 0)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want the element system, got "
				    "%.40s",
				    r->in->path, root->line, root->name);
	for (i = 0; i < root->nchildren && rc == 0; i++) {
		const struct gf_xml *c = root->children[i];
		struct gf_host *host;
		double numa;

		if (strcmp(c->name, "cpu") != 0)
			continue;
		rc = number(r, c, "numaid", -1, &numa);
		host = host_of(r, c);
		host->numa_nodes += numa >= 0;
		if (rc == 0)
			rc = read_below(
				r, c, NULL, (size_t)(host - r->t->hosts),
				numa >= 0 && numa < 1e6 ? (int)numa : -1);
	}
	if (rc == 0 && r->ngpus == 0)
		rc = gf_error_set(r->err, -EINVAL,
				  "%s: want at least one gpu below a cpu, got "
				  "none",
				  r->in->path);
	return rc;
}

/* One link of a GPU: to a switch (all that have one are together) or to
 * another GPU's bus address. */
static int follow(struct reading *r, size_t gpu, const struct gf_xml *link,
		  double sm, size_t *at_switch)
{
	const char *target = gf_xml_get(link, "target");
	const char *class = gf_xml_get(link, "tclass");
	double count;
	size_t i;
	int rc = number(r, link, "count", 1, &count);

	if (rc < 0)
		return rc;
	if (count < 0 || count > 1024)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: count: want 0 to 1024 links, got "
				    "%g",
				    r->in->path, link->line, count);
	r->linked[gpu].bytes_per_s += count * gf_nvlink_rate(sm);
	if (class && strcmp(class, switch_class) == 0) {
		if (*at_switch < r->ngpus)
			gf_nvlinked_join(r->linked, r->ngpus, gpu, *at_switch);
		*at_switch = gpu;
		return 0;
	}
	for (i = 0; target && i < r->ngpus; i++) {
		const char *busid =
			r->gpus[i].pci ? gf_xml_get(r->gpus[i].pci, "busid")
				       : NULL;

		if (busid && strcmp(busid, target) == 0)
			gf_nvlinked_join(r->linked, r->ngpus, gpu, i);
	}
	return 0;
}

static int connect(struct reading *r)
{
	size_t i, k, at_switch = r->ngpus;
	double sm;
	int rc = 0;

	r->linked = gf_nvlinked_new(r->ngpus);
	for (i = 0; i < r->ngpus && rc == 0; i++) {
		const struct gf_xml *g = r->gpus[i].gpu;

		rc = number(r, g, "sm", 0, &sm);
		for (k = 0; k < g->nchildren && rc == 0; k++)
			if (strcmp(g->children[k]->name, "nvlink") == 0)
				rc = follow(r, i, g->children[k], sm,
					    &at_switch);
	}
	return rc;
}

static void make_levels(struct reading *r, struct gf_text *remarks)
{
	size_t size = gf_nvlinked_size(r->linked, r->ngpus);

	if (size == 1 && gf_nvlinked_any(r->linked, r->ngpus))
		gf_text_addf(remarks,
			     "%s: NVLink does not connect the GPUs in equal "
			     "groups of neighbours: described as if over PCI "
			     "Express\n",
			     r->in->path);
	if (size > 1)
		gf_levels_append(r->t, gf_nvlinked_level(r->linked, r->ngpus),
				 size == r->ngpus ? "host" : "nvlink", size);
	if (size < r->ngpus || r->ngpus == 1)
		gf_levels_append(r->t,
				 gf_levels_devices(&r->t->hosts[0],
						   r->t->hosts[0].ndevices),
				 "host", r->ngpus / size);
}

static int read_nccl(const struct gf_topology_file *in, struct gf_topology *t,
		     struct gf_text *remarks, struct gf_error *err)
{
	struct reading r = {.in = in, .t = t, .err = err};
	struct gf_xml *root = NULL;
	int rc = gf_xml_parse(in->text, in->path, &root, err);

	if (rc == 0)
		rc = read_system(&r, root);
	if (rc == 0)
		rc = connect(&r);
	if (rc == 0) {
		make_levels(&r, remarks);
		t->source = gf_xstrdup("nccl-xml");
	}
	gf_xml_free(root);
	free(r.gpus);
	free(r.linked);
	return rc;
}

/* "16.0 GT/s PCIe" x 16 for a rate that such a link has. */
static void write_link(double bytes_per_s, struct gf_text *out)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
	double lanes;
	size_t i;

	for (lanes = 16; lanes >= 1; lanes /= 2)
		for (i = 0; i < GF_ARRAY_LENGTH(speeds); i++) {
			double rate = gf_probe_pcie_rate(speeds[i], lanes);

			if (fabs(rate / bytes_per_s - 1) > 0.01)
				continue;
			gf_text_addf(out,
				     " link_speed=\"%.1f GT/s PCIe\" "
				     "link_width=\"%.0f\"",
				     speeds[i], lanes);
			return;
		}
}

struct written {
	size_t gpus, nets;
};

static void write_devices(const struct gf_host *h, int numa,
			  struct written *done, struct gf_text *out)
{
	size_t i;

	for (i = 0; i < h->ndevices; i++) {
		const struct gf_device *d = &h->devices[i];

		if (!d->pci || strcmp(d->type, "gpu") != 0 || d->numa != numa)
			continue;
		gf_text_addf(out, "    <pci busid=\"%s\" class=\"0x030200\"",
			     d->pci);
		write_link(d->bandwidth_bytes_per_s, out);
		gf_text_addf(out, ">\n      <gpu dev=\"%zu\"/>\n    </pci>\n",
			     done->gpus++);
	}
	for (i = 0; i < h->nnics; i++) {
		const struct gf_nic *n = &h->nics[i];

		if (!n->pci || n->numa != numa || strcmp(n->state, "down") == 0)
			continue;
		gf_text_addf(out,
			     "    <pci busid=\"%s\" class=\"0x020000\">\n"
			     "      <nic>\n        <net name=\"%s\" "
			     "dev=\"%zu\"",
			     n->pci, n->name, done->nets++);
		if (n->bandwidth_bytes_per_s > 0)
			gf_text_addf(out, " speed=\"%.0f\"",
				     n->bandwidth_bytes_per_s * 8 / 1e6);
		gf_text_addf(out, "/>\n      </nic>\n    </pci>\n");
	}
}

static int plain(const char *text)
{
	return !text || !strpbrk(text, "<>&\"");
}

/* Writes the parts that the document has; NCCL itself discovers the rest. */
static int write_nccl(const struct gf_topology *t, struct gf_text *out,
		      struct gf_text *remarks, struct gf_error *err)
{
	const struct gf_host *h = t->nhosts ? &t->hosts[0] : NULL;
	struct written done = {0};
	size_t gpus = 0, i;
	int numa, last = -1;

	for (i = 0; h && i < h->ndevices; i++) {
		gpus += h->devices[i].pci && plain(h->devices[i].pci) &&
			strcmp(h->devices[i].type, "gpu") == 0;
		last = h->devices[i].numa > last ? h->devices[i].numa : last;
	}
	for (i = 0; h && i < h->nnics; i++) {
		if (!plain(h->nics[i].name) || !plain(h->nics[i].pci))
			return gf_error_set(err, -EINVAL,
					    "nccl: want names without <, >, & "
					    "and quotes, got %.40s",
					    h->nics[i].name);
		last = h->nics[i].numa > last ? h->nics[i].numa : last;
	}
	if (gpus == 0)
		return gf_error_set(err, -ENOTSUP,
				    "nccl: want a host with GPUs and their PCI "
				    "addresses, found none");
	if (t->nhosts > 1)
		gf_text_addf(remarks,
			     "nccl: the file describes one node: %s, the first "
			     "of %zu\n",
			     h->name, t->nhosts);
	gf_text_addf(out, "<system version=\"1\">\n");
	for (numa = -1; numa <= last; numa++) {
		struct gf_text inside = {0};

		write_devices(h, numa, &done, &inside);
		if (inside.length > 0)
			gf_text_addf(out, "  <cpu numaid=\"%d\">\n%s  </cpu>\n",
				     numa, inside.data);
		gf_text_release(&inside);
	}
	gf_text_addf(out, "</system>\n");
	gf_text_addf(remarks,
		     "nccl: NVLinks are left out: NCCL finds them itself\n");
	if (done.nets < h->nnics)
		gf_text_addf(remarks,
			     "nccl: %zu of %zu interfaces are left out: down, "
			     "or without a PCI address\n",
			     h->nnics - done.nets, h->nnics);
	return 0;
}

const struct gf_topology_format gf_format_nccl = {
	.name = "nccl",
	.description = "NCCL's XML (NCCL_TOPO_DUMP_FILE)",
	.recognise = recognise,
	.read = read_nccl,
	.write = write_nccl,
};
