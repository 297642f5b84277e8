/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/heap.h"
#include "probe/sysfs.h"

/*
 * The rate of every accelerator's PCI Express link, and accelerators that hwloc
 * does not list: saved machines may lack I/O objects. hwloc reports the current
 * link speed, which an idle GPU lowers; the maximum that device and slot agreed
 * on replaces it if sysfs has it.
 */

/* Payload per transfer of one lane: 8b/10b up to 5 GT/s, 128b/130b up to 32,
 * and 236 of 256 bytes in the flits of 64 GT/s (PCI Express 6.0, 4.2.3). */
static double lane_bytes_per_s(double gt_per_s)
{
	if (gt_per_s <= 5)
		return gt_per_s * 1e9 * 8 / 10 / 8;
	if (gt_per_s <= 32)
		return gt_per_s * 1e9 * 128 / 130 / 8;
	return gt_per_s * 1e9 * 236 / 256 / 8;
}

double gf_probe_pcie_rate(double gt_per_s, double lanes)
{
	if (!(gt_per_s > 0) || gt_per_s > 1024 || lanes < 1 || lanes > 32)
		return 0;
	return lane_bytes_per_s(gt_per_s) * lanes;
}

static double link_rate(const char *sysfs, const char *pci)
{
	double speed, width;

	/* "16.0 GT/s PCIe" and "16"; 255 lanes and "Unknown" mean no answer */
	if (gf_sysfs_number(&speed, "%s/bus/pci/devices/%s/max_link_speed",
			    sysfs, pci) < 0 ||
	    gf_sysfs_number(&width, "%s/bus/pci/devices/%s/max_link_width",
			    sysfs, pci) < 0)
		return 0;
	return gf_probe_pcie_rate(speed, width);
}

/* "0x10de" and the like */
static int number_of(const char *sysfs, const char *pci, const char *what,
		     unsigned int *out)
{
	char text[32], *end;
	int rc = gf_sysfs_line(text, sizeof(text), "%s/bus/pci/devices/%s/%s",
			       sysfs, pci, what);

	if (rc < 0)
		return rc;
	*out = (unsigned int)strtoul(text, &end, 16);
	return end == text ? -EINVAL : 0;
}

static void add_device(const char *sysfs, const char *pci, struct gf_host *host)
{
	unsigned int vendor, class_id, device = 0;
	struct gf_device *d;
	const char *type;
	double numa;

	if (number_of(sysfs, pci, "vendor", &vendor) < 0 ||
	    number_of(sysfs, pci, "class", &class_id) < 0)
		return;
	(void)number_of(sysfs, pci, "device", &device);
	type = gf_probe_device_type(vendor, device, class_id >> 8,
				    link_rate(sysfs, pci) > 0);
	if (!type || gf_probe_find_device(host, pci))
		return;
	d = gf_probe_add_device(host);
	d->type = gf_xstrdup(type);
	d->name = vendor == GF_PCI_NVIDIA
			  ? gf_xasprintf("NVIDIA %04x", device)
			  : gf_xasprintf("%04x:%04x", vendor, device);
	d->pci = gf_xstrdup(pci);
	if (gf_sysfs_number(&numa, "%s/bus/pci/devices/%s/numa_node", sysfs,
			    pci) == 0 &&
	    numa >= 0 && numa < INT_MAX)
		d->numa = (int)numa;
}

int gf_probe_sysfs_pci(const struct gf_probe_config *config,
		       struct gf_host *host, struct gf_error *err)
{
	char **found;
	size_t i, count;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = gf_sysfs_list(&found, "%s/bus/pci/devices", config->sysfs);
	for (i = 0; i < count; i++)
		add_device(config->sysfs, found[i], host);
	gf_sysfs_free_names(found, count);
	for (i = 0; i < host->ndevices; i++) {
		struct gf_device *d = &host->devices[i];
		double rate = d->pci ? link_rate(config->sysfs, d->pci) : 0;

		gf_pci_tree_look(config->tree, config->sysfs, d->pci);
		if (rate > 0) {
			d->bandwidth_bytes_per_s = rate;
			d->bandwidth_origin = GF_ORIGIN_REPORTED;
		}
	}
	return 0;
}
