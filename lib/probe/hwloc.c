/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probers.h"

#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"

/*
 * Processors, memory and accelerators by hwloc. Network interfaces come from
 * sysfs, which knows their rates; of a saved machine, where there is no sysfs,
 * they come from here.
 */

static int numa_of(hwloc_topology_t topology, hwloc_obj_t obj)
{
	hwloc_obj_t local = hwloc_get_non_io_ancestor_obj(topology, obj), node;

	if (!local || !local->nodeset ||
	    hwloc_bitmap_weight(local->nodeset) != 1)
		return -1;
	node = hwloc_get_numanode_obj_by_os_index(
		topology, (unsigned int)hwloc_bitmap_first(local->nodeset));
	return node ? (int)node->os_index : -1;
}

static char *pci_text(const struct hwloc_pcidev_attr_s *pci)
{
	return gf_xasprintf("%04x:%02x:%02x.%x", pci->domain, pci->bus,
			    pci->dev, pci->func);
}

static char *device_name(hwloc_obj_t obj)
{
	const char *vendor = hwloc_obj_get_info_by_name(obj, "PCIVendor");
	const char *model = hwloc_obj_get_info_by_name(obj, "PCIDevice");

	if (vendor && model)
		return gf_xasprintf("%s %s", vendor, model);
	return gf_xasprintf("%04x:%04x", obj->attr->pcidev.vendor_id,
			    obj->attr->pcidev.device_id);
}

static void add_devices(hwloc_topology_t topology, struct gf_host *host)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_pcidev(topology, obj))) {
		const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
		const char *type =
			gf_probe_device_type(pci->vendor_id, pci->device_id,
					     pci->class_id, pci->linkspeed > 0);
		struct gf_device *d;

		if (!type)
			continue;
		d = gf_probe_add_device(host);
		d->type = gf_xstrdup(type);
		d->name = device_name(obj);
		d->pci = pci_text(pci);
		d->numa = numa_of(topology, obj);
		if (pci->linkspeed > 0) {
			d->bandwidth_bytes_per_s = pci->linkspeed * 1e9;
			d->bandwidth_origin = GF_ORIGIN_REPORTED;
		}
	}
}

static hwloc_obj_t pci_above(hwloc_obj_t obj)
{
	while (obj && obj->type != HWLOC_OBJ_PCI_DEVICE)
		obj = obj->parent;
	return obj;
}

/* A GPU's matrix names its driver's device below its PCI function. */
static struct gf_device *device_of(struct gf_host *host, hwloc_obj_t obj)
{
	hwloc_obj_t pci = pci_above(obj);
	char *text = pci ? pci_text(&pci->attr->pcidev) : NULL;
	struct gf_device *d = text ? gf_probe_find_device(host, text) : NULL;

	free(text);
	return d;
}

static void add_link(struct gf_host *host, const struct gf_device *a,
		     const struct gf_device *b, enum gf_path path,
		     hwloc_uint64_t mb_per_s)
{
	host->links = gf_xreallocarray(host->links, host->nlinks + 1,
				       sizeof(*host->links));
	host->links[host->nlinks++] = (struct gf_device_link){
		.from = gf_xstrdup(a->pci),
		.to = gf_xstrdup(b->pci),
		.path = path,
		.bandwidth_bytes_per_s = (double)mb_per_s * 1e6,
		.bandwidth_origin = GF_ORIGIN_REPORTED,
	};
}

/* Direct links of a matrix have a rate each; those to switches add up, and
 * lead to every GPU that has some. */
static void add_matrix(const struct hwloc_distances_s *m, enum gf_path direct,
		       struct gf_host *host)
{
	const size_t n = m->nbobjs;
	hwloc_uint64_t *up = gf_xcalloc(n + 1, sizeof(*up)), rate;
	struct gf_device **at = gf_xcalloc(n + 1, sizeof(*at));
	size_t i, k;

	for (i = 0; i < n; i++) {
		at[i] = m->objs[i] ? device_of(host, m->objs[i]) : NULL;
		for (k = 0; k < n; k++)
			if (m->objs[k] && m->objs[k]->subtype &&
			    strcmp(m->objs[k]->subtype, "NVSwitch") == 0)
				up[i] += m->values[i * n + k];
	}
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++) {
			if (!at[i] || !at[k] || at[i] == at[k])
				continue;
			rate = up[i] < up[k] ? up[i] : up[k];
			if (rate)
				add_link(host, at[i], at[k], GF_PATH_NVSWITCH,
					 rate);
			else if (m->values[i * n + k])
				add_link(host, at[i], at[k], direct,
					 m->values[i * n + k]);
		}
	free(up);
	free(at);
}

static void add_matrices(hwloc_topology_t topology, struct gf_host *host)
{
	static const struct {
		const char *name;
		enum gf_path direct;
	} names[] = {{"NVLinkBandwidth", GF_PATH_NVLINK},
		     {"XGMIBandwidth", GF_PATH_XGMI}};
	struct hwloc_distances_s *matrix;
	unsigned count;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		count = 1;
		if (hwloc_distances_get_by_name(topology, names[i].name, &count,
						&matrix, 0) < 0 ||
		    count == 0)
			continue;
		add_matrix(matrix, names[i].direct, host);
		hwloc_distances_release(topology, matrix);
	}
}

/* IP over InfiniBand has addresses of 20 bytes, Ethernet of 6. A port of a
 * fabric that is active without an LID is RoCE. */
static const char *link_of(hwloc_obj_t obj, bool fabric)
{
	const char *address = hwloc_obj_get_info_by_name(obj, "Address");
	const char *lid = hwloc_obj_get_info_by_name(obj, "Port1LID");
	const char *state = hwloc_obj_get_info_by_name(obj, "Port1State");

	if (!fabric)
		return address && strlen(address) == 20 * 3 - 1 ? "ipoib"
								: "ethernet";
	return lid && strcmp(lid, "0x0") == 0 && state &&
			       strcmp(state, "4") == 0
		       ? "roce"
		       : "infiniband";
}

static void add_nics(hwloc_topology_t topology, struct gf_host *host)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_osdev(topology, obj))) {
		hwloc_obj_t pci = pci_above(obj);
		struct gf_nic *n;
		bool fabric =
			obj->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;

		if (!obj->name ||
		    (!fabric &&
		     obj->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK) ||
		    /* a second name of an Ethernet interface */
		    strncmp(obj->name, "usnic_", 6) == 0)
			continue;
		n = gf_probe_add_nic(host);
		n->name = gf_xstrdup(obj->name);
		n->link = gf_xstrdup(link_of(obj, fabric));
		n->state = gf_xstrdup("unknown");
		n->numa = numa_of(topology, obj);
		if (pci)
			n->pci = pci_text(&pci->attr->pcidev);
	}
}

static int count(hwloc_topology_t topology, hwloc_obj_type_t type, int low)
{
	int n = hwloc_get_nbobjs_by_type(topology, type);

	return n < low ? low : n;
}

static void describe(hwloc_topology_t topology,
		     const struct gf_probe_config *config, struct gf_host *host)
{
	hwloc_obj_t root = hwloc_get_root_obj(topology);
	const char *name = hwloc_obj_get_info_by_name(root, "HostName");

	host->threads = count(topology, HWLOC_OBJ_PU, 1);
	host->sockets = count(topology, HWLOC_OBJ_PACKAGE, 1);
	host->numa_nodes = count(topology, HWLOC_OBJ_NUMANODE, 1);
	/* Some virtual machines and old kernels hide the cores. */
	host->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
	if (host->cores < 1)
		host->cores = host->threads;
	host->memory_bytes = (size_t)root->total_memory;
	if (config->hwloc_xml && name && *name)
		host->name = gf_xstrdup(name);
	add_devices(topology, host);
	if (!config->sysfs)
		add_nics(topology, host);
	if (config->hwloc_xml)
		add_matrices(topology, host);
}

/* XML names the version of hwloc that can load it, but for hwloc 1. */
static int check_version(const char *xml, struct gf_error *err)
{
	const char *root = strstr(xml, "<topology");
	const unsigned mine = hwloc_get_api_version() >> 16;
	unsigned major;
	char rest[8];

	if (!root ||
	    sscanf(root, "<topology version=\"%u.%7[0-9]", &major, rest) != 2 ||
	    major <= mine)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want XML of hwloc %u, got format %u.%s (lstopo "
			    "--export-xml-flags v%u writes it)",
			    mine, major, rest, mine);
}

static int load(hwloc_topology_t topology, const char *xml, size_t size,
		struct gf_error *err)
{
	/* Plugins that would start a display or an OpenCL runtime to find what
	 * PCI shows anyway; an absent plugin cannot be refused: no check. */
	static const char *const unwanted[] = {"gl", "opencl"};
	size_t i;
	int rc = xml ? check_version(xml, err) : 0;

	if (rc)
		return rc;
	for (i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		hwloc_topology_set_components(
			topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
			unwanted[i]);
	hwloc_topology_set_io_types_filter(topology,
					   HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	/* the length that hwloc wants counts the NUL */
	if (xml && (size >= INT_MAX ||
		    hwloc_topology_set_xmlbuffer(topology, xml, (int)size + 1)))
		return gf_error_set(err, -EINVAL,
				    "want hwloc XML (lstopo --of xml)");
	if (hwloc_topology_load(topology) < 0)
		return gf_error_set(err, xml ? -EINVAL : -EIO,
				    "hwloc cannot load it");
	return 0;
}

int gf_hwloc_describe(const struct gf_probe_config *config, const char *xml,
		      size_t size, struct gf_host *host, struct gf_error *err)
{
	hwloc_topology_t topology;
	int rc;

	if (hwloc_topology_init(&topology) < 0)
		return gf_error_set(err, -ENOMEM, "cannot start hwloc");
	rc = load(topology, xml, size, err);
	/* libpciaccess keeps its name table for the life of the process, but
	 * hwloc unloads it with its plugin: pinned, the table is not lost and
	 * read again by every probe. */
	dlopen("libpciaccess.so.0", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (rc == 0)
		describe(topology, config, host);
	hwloc_topology_destroy(topology);
	return rc;
}

static int probe(const struct gf_probe_config *config, struct gf_host *host,
		 struct gf_error *err)
{
	const char *xml = config->hwloc_text;
	size_t size = config->hwloc_bytes;
	char *read = NULL;
	int rc = 0;

	if (!config->hwloc_xml) {
		rc = gf_hwloc_describe(config, NULL, 0, host, err);
		if (rc)
			gf_error_prefix(err, "this machine");
		return rc;
	}
	if (!xml)
		rc = gf_file_read(config->hwloc_xml, &read, &size, err);
	if (!rc)
		rc = gf_hwloc_apart(config, xml ? xml : read, size, host, err);
	free(read);
	return rc;
}

const struct gf_prober gf_prober_hwloc = {
	.name = "hwloc",
	.probe = probe,
};
