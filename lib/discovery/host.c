/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/discovery.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"

struct gf_device *gf_discover_add_device(struct gf_host *host, const char *type, char *name,
					 const char *pci)
{
	struct gf_device *d;

	host->devices = gf_xreallocarray(host->devices, host->ndevices + 1, sizeof(*host->devices));
	d = &host->devices[host->ndevices++];
	*d = (struct gf_device){gf_xstrdup(type), name, .pci = gf_xstrdup_or_null(pci), .numa = -1};
	return d;
}

struct gf_nic *gf_discover_add_nic(struct gf_host *host, char *name, const char *link,
				   const char *state)
{
	struct gf_nic *n;

	host->nics = gf_xreallocarray(host->nics, host->nnics + 1, sizeof(*host->nics));
	n = &host->nics[host->nnics++];
	*n = (struct gf_nic){name, gf_xstrdup_or_null(link), gf_xstrdup_or_null(state), .numa = -1};
	return n;
}

void gf_discover_report(double rate, double *bytes_per_s, enum gf_origin *origin)
{
	if (!(rate > 0))
		return;
	*bytes_per_s = rate;
	*origin = GF_ORIGIN_REPORTED;
}

struct gf_device *gf_discover_find_device(struct gf_host *host, const char *pci)
{
	for (size_t i = 0; i < host->ndevices; i++)
		if (host->devices[i].pci && strcmp(host->devices[i].pci, pci) == 0)
			return &host->devices[i];
	return NULL;
}

/* GPUs that AMD's compute software knows, from Polaris and Vega on; not the display of a processor
 * (13xx, 15xx, 16xx, 9xxx) or of a board (515e). */
static bool is_radeon(unsigned int device)
{
	return (device >= 0x6600 && device < 0x7000) || (device >= 0x7300 && device < 0x8000);
}

/*
 * A VGA controller may be the console chip of a server's management board or of a virtual machine:
 * it counts only from a vendor of GPUs, and from those that also make such chips only with a link
 * of its own.
 */
const char *gf_discover_device_type(unsigned int vendor, unsigned int device, unsigned int class_id,
				    bool has_link)
{
	switch (class_id) {
	case GF_PCI_3D:
		return "gpu";
	case GF_PCI_ACCELERATOR:
		return "accelerator";
	case GF_PCI_DISPLAY_OTHER:
		return vendor == GF_PCI_AMD && is_radeon(device) ? "gpu" : NULL;
	case GF_PCI_VGA:
		if (vendor == GF_PCI_NVIDIA)
			return "gpu";
		return has_link && (vendor == GF_PCI_INTEL ||
				    (vendor == GF_PCI_AMD && is_radeon(device)))
			       ? "gpu"
			       : NULL;
	}
	return NULL;
}

/* Drivers' names, and udev's by the place on the bus: ibp65s0, rocep65s0. */
const char *gf_discover_rdma_link(const char *name, const char *unknown)
{
	static const struct {
		const char *begins, *link;
	} adapters[] = {
		{"mlx", "infiniband"}, {"ib", "infiniband"}, {"hfi", "infiniband"},
		{"opa", "infiniband"}, {"roce", "roce"},     {"rdma", "roce"},
		{"bnxt_re", "roce"},   {"irdma", "roce"},    {"ionic", "roce"},
		{"efa", "roce"},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(adapters); i++)
		if (strncmp(name, adapters[i].begins, strlen(adapters[i].begins)) == 0)
			return adapters[i].link;
	return unknown;
}

void gf_discover_host_release(struct gf_host *host)
{
	struct gf_topology t = {
		.hosts = gf_xmemdup(host, sizeof(*host)),
		.nhosts = 1,
	};

	gf_topology_release(&t);
	memset(host, 0, sizeof(*host));
}

char *gf_discover_name_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = gf_xstrdup(slash ? slash + 1 : path);
	char *dot = strrchr(name, '.');

	if (dot && dot != name)
		*dot = '\0';
	if (!*name || strcmp(name, "-") == 0) {
		free(name);
		name = gf_xstrdup("imported");
	}
	return name;
}

/* This machine's sysfs may be missing, in a container. A named one must exist, or the document
 * would describe nothing. */
static int check_sysfs(const char *sysfs, struct gf_error *err)
{
	struct stat st;

	if (!sysfs || strcmp(sysfs, GF_DISCOVER_SYSFS) == 0)
		return 0;
	if (stat(sysfs, &st) < 0)
		return gf_error_errno(err, -errno, "%s", sysfs);
	if (!S_ISDIR(st.st_mode))
		return gf_error_set(err, -EINVAL, "%s: want a folder like /sys, got a file", sysfs);
	return 0;
}

int gf_discover_host(const struct gf_discover_config *config, struct gf_host *host,
		     struct gf_error *err)
{
	GF_RELEASED(gf_pci_tree_release) struct gf_pci_tree tree = {0};
	struct gf_discover_config own = *config;
	struct gf_host h = {0};
	struct utsname names;
	int rc = check_sysfs(config->sysfs, err);

	if (rc < 0)
		return rc;
	own.tree = &tree;
	for (size_t i = 0; gf_probers[i] && rc == 0; i++)
		rc = gf_probers[i](&own, &h, err);
	if (rc < 0) {
		gf_discover_host_release(&h);
		return rc;
	}
	/* A saved machine carries its own name, or gets its file's; this one is asked. */
	if (!h.name && config->hwloc_xml)
		h.name = gf_discover_name_of_file(config->hwloc_xml);
	else if (!h.name && uname(&names) == 0)
		h.name = gf_xstrdup(names.nodename);
	if (!h.name || !*h.name) {
		free(h.name);
		h.name = gf_xstrdup("localhost");
	}
	*host = h;
	return 0;
}

/* Beyond the last-level cache of a core's share, yet quick to copy. */
static const size_t buffer_bytes = (size_t)64 << 20;
enum { ROUNDS = 5 };

GF_ORDER(ascending, double, GF_BY(*x, *y))

int gf_discover_copy_rate(double *bytes_per_s, struct gf_error *err)
{
	/* A copy that the compiler could see to be unused would vanish. */
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;
	double elapsed[ROUNDS];
	GF_FREED char *from = malloc(buffer_bytes), *to = malloc(buffer_bytes);
	int i, rc = 0;

	if (!from || !to) {
		rc = gf_error_set(err, -ENOMEM, "no memory for two buffers of %zu bytes",
				  buffer_bytes);
		goto out;
	}
	memset(from, 1, buffer_bytes);
	copy(to, from, buffer_bytes); /* touches every page of both */
	for (i = 0; i < ROUNDS; i++) {
		double start = gf_clock_s();

		copy(to, from, buffer_bytes);
		elapsed[i] = gf_clock_s() - start;
	}
	qsort(elapsed, ROUNDS, sizeof(*elapsed), ascending);
	*bytes_per_s = (double)buffer_bytes / elapsed[ROUNDS / 2];
out:
	return rc;
}
