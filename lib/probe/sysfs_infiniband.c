/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "probe/sysfs.h"

/*
 * InfiniBand and RoCE ports from <sysfs>/class/infiniband, one entry per port,
 * named as NCCL_IB_HCA and Open MPI name them: "mlx5_0:1". hwloc has one object
 * per device, without rate and link layer.
 */
static void describe(const char *folder, struct gf_nic *n)
{
	char text[64];
	double gigabits;

	if (gf_sysfs_line(text, sizeof(text), "%s/link_layer", folder) == 0 &&
	    strcmp(text, "Ethernet") == 0)
		n->link = gf_xstrdup("roce");
	else
		n->link = gf_xstrdup("infiniband");
	/* "4: ACTIVE" */
	if (gf_sysfs_line(text, sizeof(text), "%s/state", folder) < 0)
		n->state = gf_xstrdup("unknown");
	else
		n->state = gf_xstrdup(strstr(text, "ACTIVE") ? "up" : "down");
	/* "400 Gb/sec (4X NDR)" */
	if (gf_sysfs_number(&gigabits, "%s/rate", folder) == 0 &&
	    gigabits > 0) {
		n->bandwidth_bytes_per_s = gigabits * 1e9 / 8;
		n->bandwidth_origin = GF_ORIGIN_REPORTED;
	}
}

static void add_device(const char *sysfs, const char *device,
		       struct gf_host *host)
{
	char pci[GF_PCI_TEXT], **ports;
	size_t count, i;
	int numa, found;

	found = gf_sysfs_pci(pci, &numa, "%s/class/infiniband/%s/device", sysfs,
			     device) == 0;
	count = gf_sysfs_list(&ports, "%s/class/infiniband/%s/ports", sysfs,
			      device);
	for (i = 0; i < count; i++) {
		struct gf_nic *n = gf_probe_add_nic(host);
		char *folder = gf_xasprintf("%s/class/infiniband/%s/ports/%s",
					    sysfs, device, ports[i]);

		n->name = gf_xasprintf("%s:%s", device, ports[i]);
		describe(folder, n);
		n->numa = numa;
		if (found)
			n->pci = gf_xstrdup(pci);
		free(folder);
	}
	gf_sysfs_free_names(ports, count);
}

int gf_probe_sysfs_infiniband(const struct gf_probe_config *config,
			      struct gf_host *host, struct gf_error *err)
{
	char **devices;
	size_t count, i;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = gf_sysfs_list(&devices, "%s/class/infiniband", config->sysfs);
	for (i = 0; i < count; i++)
		add_device(config->sysfs, devices[i], host);
	gf_sysfs_free_names(devices, count);
	return 0;
}
