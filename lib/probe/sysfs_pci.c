/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probers.h"

#include "probe/sysfs.h"

/*
 * The rate of an accelerator's PCI Express link. The current link speed that
 * hwloc shows is lowered while a GPU idles, so the maximum that device and
 * slot agreed on replaces it where sysfs has it.
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

static int probe(const struct gf_probe_config *config, struct gf_host *host,
		 struct gf_error *err)
{
	size_t i;

	(void)err;
	if (!config->sysfs)
		return 0;
	for (i = 0; i < host->ndevices; i++) {
		struct gf_device *d = &host->devices[i];
		double rate = d->pci ? link_rate(config->sysfs, d->pci) : 0;

		if (rate > 0) {
			d->bandwidth_bytes_per_s = rate;
			d->bandwidth_origin = GF_ORIGIN_REPORTED;
		}
	}
	return 0;
}

const struct gf_prober gf_prober_sysfs_pci = {
	.name = "sysfs-pci",
	.probe = probe,
};
