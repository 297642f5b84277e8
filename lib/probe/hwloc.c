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
		const char *type = gf_probe_device_type(
			pci->vendor_id, pci->class_id, pci->linkspeed > 0);
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

static void add_nics(hwloc_topology_t topology, struct gf_host *host)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_osdev(topology, obj))) {
		hwloc_obj_t pci = pci_above(obj);
		struct gf_nic *n;
		int fabric =
			obj->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;

		if (!obj->name || (!fabric && obj->attr->osdev.type !=
						      HWLOC_OBJ_OSDEV_NETWORK))
			continue;
		n = gf_probe_add_nic(host);
		n->name = gf_xstrdup(obj->name);
		n->link = gf_xstrdup(fabric ? "infiniband" : "ethernet");
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
