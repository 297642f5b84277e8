/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/nvml.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "discovery/find_levels.h"
#include "discovery/discovery.h"
#include "base/array.h"

#define AT(call) offsetof(struct gf_nvml, call)
static const struct {
	const char *symbol;
	size_t at;
	bool required;
} calls[] = {
	{"nvmlInit_v2", AT(init), true},
	{"nvmlShutdown", AT(shutdown), true},
	{"nvmlDeviceGetCount_v2", AT(count), true},
	{"nvmlDeviceGetHandleByIndex_v2", AT(device), true},
	{"nvmlDeviceGetPciInfo_v3", AT(pci), true},
	{"nvmlErrorString", AT(error), false},
	{"nvmlDeviceGetName", AT(name), false},
	{"nvmlDeviceGetMemoryInfo", AT(memory), false},
	{"nvmlDeviceGetCudaComputeCapability", AT(capability), false},
	{"nvmlDeviceGetMigMode", AT(mig), false},
	{"nvmlDeviceGetMaxPcieLinkGeneration", AT(pcie_generation), false},
	{"nvmlDeviceGetMaxPcieLinkWidth", AT(pcie_width), false},
	{"nvmlDeviceGetTopologyCommonAncestor", AT(ancestor), false},
	{"nvmlDeviceGetNvLinkState", AT(link_state), false},
	{"nvmlDeviceGetNvLinkRemotePciInfo_v2", AT(link_remote), false},
	{"nvmlDeviceGetNvLinkRemoteDeviceType", AT(link_remote_type), false},
	{"nvmlDeviceGetFieldValues", AT(fields), false},
};
#undef AT

static int find_calls(struct gf_nvml *n, const char *library, struct gf_error *err)
{
	for (size_t i = 0; i < GF_ARRAY_LENGTH(calls); i++) {
		void *found = dlsym(n->library, calls[i].symbol);

		if (!found && calls[i].required)
			return gf_error_set(err, -ELIBACC, "%s: it lacks %s", library,
					    calls[i].symbol);
		/* a function's address in a variable of a function type */
		memcpy((char *)n + calls[i].at, &found, sizeof(found));
	}
	return 0;
}

/* A status that a call returned, in words; borrowed. */
static const char *words_of(const struct gf_nvml *n, int status)
{
	const char *words = n->error ? n->error(status) : NULL;

	return words ? words : "an error without words";
}

/* Loads and starts it. -ENOTSUP: there is none, it lacks a call that is not optional, or it does
 * not start; the reason says which. */
static int open_library(const char *library, struct gf_nvml *n, struct gf_error *err)
{
	struct gf_nvml opened = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
	int rc, status;

	if (!opened.library)
		return gf_error_set(err, -ELIBACC, "%s", dlerror());
	rc = find_calls(&opened, library, err);
	status = rc == 0 ? opened.init() : 0;
	if (status)
		rc = gf_error_set(err, -ENOTSUP, "%s: %s", library, words_of(&opened, status));
	if (rc)
		dlclose(opened.library);
	else
		*n = opened;
	return rc;
}

/*
 * The facts that NVIDIA's driver reports about its GPUs: names, memory, NVLinks, and which of those
 * on the PCI bus a program can use at all. A container hides GPUs, and so does another program that
 * holds them exclusively.
 */
struct gpu {
	struct gf_nvml_device *handle;
	char *pci;
	int numa;
	bool mig;
	int *direct; /* per GPU: NVLinks to it */
	int at_switch;
	double link_bytes_per_s;
	enum gf_origin link_origin;
};

struct look {
	const struct gf_discover_config *config;
	struct gf_host *host;
	struct gf_nvml nvml;
	struct gpu *gpus;
	size_t ngpus;
};

/* --- devices -------------------------------------------------------------- */

static char *pci_text(const struct gf_nvml_pci *p)
{
	return gf_xasprintf("%04x:%02x:%02x.0", p->domain, p->bus, p->device);
}

static bool is_nvidia(const struct look *l, const char *pci)
{
	char text[16];

	return l->config->sysfs && pci &&
	       gf_sysfs_line(gf_xasprintf("%s/bus/pci/devices/%s/vendor", l->config->sysfs, pci),
			     text, sizeof(text)) == 0 &&
	       strtoul(text, NULL, 16) == GF_PCI_NVIDIA;
}

static void describe(const struct look *l, const struct gpu *g, struct gf_device *d)
{
	static const double gt_per_s[] = {0, 2.5, 5, 8, 16, 32, 64};
	const struct gf_nvml *n = &l->nvml;
	struct gf_nvml_memory memory;
	unsigned int generation, lanes;
	char name[96] = "";

	if (n->name && n->name(g->handle, name, sizeof(name) - 1) == 0 && *name) {
		free(d->name);
		d->name = gf_xstrdup(name);
	}
	if (n->memory && n->memory(g->handle, &memory) == 0 &&
	    memory.total < (unsigned long long)1 << 62)
		d->memory_bytes = (size_t)memory.total;
	if (d->bandwidth_bytes_per_s > 0 || !n->pcie_generation || !n->pcie_width ||
	    n->pcie_generation(g->handle, &generation) || n->pcie_width(g->handle, &lanes) ||
	    generation > 6)
		return;
	d->bandwidth_bytes_per_s = gf_discover_pcie_rate(gt_per_s[generation], lanes);
	d->bandwidth_origin = GF_ORIGIN_REPORTED;
}

/* Does nothing if config->remarks is NULL. */
static void add_remark(const struct gf_discover_config *config, const char *fmt, ...)
{
	va_list args;
	char *line;

	if (!config->remarks)
		return;
	va_start(args, fmt);
	if (vasprintf(&line, fmt, args) >= 0) {
		gf_text_addf(config->remarks, "%s\n", line);
		free(line);
	}
	va_end(args);
}

static void add_gpu(struct look *l, unsigned int index)
{
	const struct gf_nvml *n = &l->nvml;
	struct gf_nvml_pci pci = {0};
	struct gpu g = {0};
	struct gf_device *d;
	unsigned int mig = 0, later;
	int status = n->device(index, &g.handle);

	if (status == 0)
		status = n->pci(g.handle, &pci);
	if (status) {
		add_remark(l->config, "GPU %u is left out: %s", index, words_of(n, status));
		return;
	}
	g.pci = pci_text(&pci);
	d = gf_discover_find_device(l->host, g.pci);
	if (!d)
		d = gf_discover_add_device(l->host, "gpu", gf_xstrdup("NVIDIA GPU"), g.pci);
	g.numa = d->numa;
	g.mig = n->mig && n->mig(g.handle, &mig, &later) == 0 && mig == 1;
	if (g.mig)
		add_remark(l->config,
			   "GPU %u (%s) is divided into instances (MIG), which NVLink does not "
			   "connect",
			   index, g.pci);
	describe(l, &g, d);
	l->gpus = gf_xreallocarray(l->gpus, l->ngpus + 1, sizeof(*l->gpus));
	l->gpus[l->ngpus++] = g;
}

static size_t index_of(const struct look *l, const char *pci)
{
	for (size_t i = 0; i < l->ngpus; i++)
		if (strcmp(l->gpus[i].pci, pci) == 0)
			return i;
	return l->ngpus;
}

static void drop_unusable(struct look *l)
{
	size_t i = 0;

	while (i < l->host->ndevices) {
		struct gf_device *d = &l->host->devices[i];

		if (!is_nvidia(l, d->pci) || index_of(l, d->pci) < l->ngpus) {
			i++;
			continue;
		}
		add_remark(l->config, "the GPU at %s is left out: the driver does not show it",
			   d->pci);
		free(d->type);
		free(d->name);
		free(d->pci);
		free(d->nic);
		free(d->extra);
		l->host->ndevices--;
		memmove(d, d + 1, (l->host->ndevices - i) * sizeof(*d));
	}
}

/* --- links ---------------------------------------------------------------- */

/* MB/s of one link as the driver reports it, else as is usual for the GPU. */
static void find_rate(const struct look *l, struct gpu *g)
{
	const struct gf_nvml *n = &l->nvml;
	struct gf_nvml_field f = {.field = GF_NVML_FIELD_LINK_SPEED};
	int major = 0, minor = 0;

	if (n->fields && n->fields(g->handle, 1, &f) == 0 && f.status == 0 && f.value.whole > 0) {
		g->link_bytes_per_s = f.value.whole * 1e6;
		g->link_origin = GF_ORIGIN_REPORTED;
	} else if (n->capability && n->capability(g->handle, &major, &minor) == 0) {
		g->link_bytes_per_s = gf_nvlink_rate(major * 10 + minor);
	}
}

/* Old drivers do not report the other end of a link: an NVSwitch is a PCI bridge made by NVIDIA. */
static bool is_switch(const struct look *l, const char *pci)
{
	char text[16];

	return is_nvidia(l, pci) &&
	       gf_sysfs_line(gf_xasprintf("%s/bus/pci/devices/%s/class", l->config->sysfs, pci),
			     text, sizeof(text)) == 0 &&
	       strtoul(text, NULL, 16) >> 8 == GF_PCI_BRIDGE_OTHER;
}

/* false: it leads to nothing known. */
static bool follow(const struct look *l, struct gpu *g, unsigned int link)
{
	const struct gf_nvml *n = &l->nvml;
	unsigned int type = GF_NVML_REMOTE_UNKNOWN;
	struct gf_nvml_pci pci = {0};
	size_t peer = l->ngpus;
	bool at_switch;

	if (n->link_remote_type && n->link_remote_type(g->handle, link, &type))
		type = GF_NVML_REMOTE_UNKNOWN;
	/* a virtual machine shows the type and no address */
	at_switch = type == GF_NVML_REMOTE_SWITCH;
	if (!at_switch && n->link_remote && n->link_remote(g->handle, link, &pci) == 0) {
		GF_FREED char *text = pci_text(&pci);

		peer = index_of(l, text);
		at_switch = peer == l->ngpus && is_switch(l, text);
	}
	if (peer < l->ngpus)
		g->direct[peer]++;
	g->at_switch += at_switch;
	return at_switch || peer < l->ngpus;
}

static void find_nvlinks(const struct look *l, struct gpu *g)
{
	const struct gf_nvml *n = &l->nvml;
	unsigned int link, enabled;
	int nowhere = 0;

	g->direct = gf_xcalloc(l->ngpus, sizeof(*g->direct));
	if (g->mig || !n->link_state)
		return;
	find_rate(l, g);
	for (link = 0; link < GF_NVML_LINKS; link++)
		if (n->link_state(g->handle, link, &enabled) == 0 && enabled == 1)
			nowhere += !follow(l, g, link);
	if (nowhere)
		add_remark(l->config,
			   "%d NVLinks of the GPU at %s lead to nothing known here: not counted",
			   nowhere, g->pci);
}

static enum gf_path pci_path(const struct look *l, const struct gpu *a, const struct gpu *b)
{
	static const struct {
		unsigned int level;
		enum gf_path path;
	} levels[] = {{10, GF_PATH_PIX},
		      {20, GF_PATH_PXB},
		      {30, GF_PATH_PHB},
		      {40, GF_PATH_NODE},
		      {50, GF_PATH_SYS}};
	unsigned int level, i;

	if (!l->nvml.ancestor || l->nvml.ancestor(a->handle, b->handle, &level))
		return gf_pci_path(l->config->tree, (struct gf_pci_end){a->pci, a->numa},
				   (struct gf_pci_end){b->pci, b->numa}, l->host->numa_nodes);
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (level <= levels[i].level)
			return levels[i].path;
	return GF_PATH_SYS;
}

/* Both ends should agree; if they do not, the smaller number counts. */
static int fewer(int a, int b)
{
	return a < b ? a : b;
}

static struct gf_device_link between(const struct look *l, size_t i, size_t j)
{
	const struct gpu *a = &l->gpus[i], *b = &l->gpus[j];
	const struct gpu *slow = a->link_bytes_per_s < b->link_bytes_per_s ? a : b;
	struct gf_device_link link = {0};

	link.count = fewer(a->direct[j], b->direct[i]);
	link.path = GF_PATH_NVLINK;
	if (link.count == 0) {
		link.count = fewer(a->at_switch, b->at_switch);
		link.path = GF_PATH_NVSWITCH;
	}
	if (link.count == 0) {
		link.path = pci_path(l, a, b);
		return link;
	}
	link.bandwidth_bytes_per_s = link.count * slow->link_bytes_per_s;
	link.bandwidth_origin = slow->link_origin;
	return link;
}

static void add_links(struct look *l)
{
	struct gf_host *h = l->host;

	for (size_t i = 0; i < l->ngpus; i++)
		find_nvlinks(l, &l->gpus[i]);
	for (size_t i = 0; i < l->ngpus; i++)
		for (size_t j = i + 1; j < l->ngpus; j++) {
			struct gf_device_link link = between(l, i, j);

			if (link.path == GF_PATH_UNKNOWN)
				continue;
			link.from = gf_xstrdup(l->gpus[i].pci);
			link.to = gf_xstrdup(l->gpus[j].pci);
			h->links = gf_xreallocarray(h->links, h->nlinks + 1, sizeof(*h->links));
			h->links[h->nlinks++] = link;
		}
}

/* -------------------------------------------------------------------------- */

static void look_around(struct look *l)
{
	unsigned int count = 0, i;
	int status = l->nvml.count(&count);

	if (status) {
		add_remark(l->config, "%s: %s", l->config->nvml, words_of(&l->nvml, status));
		return;
	}
	for (i = 0; i < count; i++)
		add_gpu(l, i);
	drop_unusable(l);
	add_links(l);
	for (i = 0; i < l->ngpus; i++) {
		free(l->gpus[i].pci);
		free(l->gpus[i].direct);
	}
	free(l->gpus);
}

int gf_discover_nvml(const struct gf_discover_config *config, struct gf_host *host,
		     struct gf_error *err)
{
	struct look l = {.config = config, .host = host};
	struct gf_error why = {""};
	size_t i, hidden = 0;
	bool named = config->nvml && strcmp(config->nvml, GF_DISCOVER_NVML) != 0;
	int rc;

	if (!config->nvml)
		return 0;
	rc = open_library(config->nvml, &l.nvml, &why);
	if (rc == 0) {
		look_around(&l);
		l.nvml.shutdown();
		dlclose(l.nvml.library);
		return 0;
	}
	if (rc == -ELIBACC && named)
		return gf_error_set(err, rc, "--machine: nvml: %s", why.text);
	for (i = 0; i < host->ndevices; i++)
		hidden += is_nvidia(&l, host->devices[i].pci);
	if (hidden)
		add_remark(config,
			   "%zu NVIDIA GPUs are described from the PCI bus alone, without NVLinks, "
			   "and may not be usable: %s",
			   hidden, why.text);
	else if (named)
		add_remark(config, "no GPU was asked about: %s", why.text);
	return 0;
}
