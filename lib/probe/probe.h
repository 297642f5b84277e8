/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_PROBE_H
#define GF_PROBE_PROBE_H

#include <stddef.h>

#include "base/error.h"
#include "doc/topology.h"

/*
 * What one host has: processors, accelerators, network interfaces.
 *
 * A prober looks in one place and adds what it finds to the host; the table in
 * registry.c is their order, and later ones may complete what earlier ones
 * left open. A place that does not exist here is no failure: a laptop has no
 * /sys/class/infiniband.
 */
struct gf_probe_config {
	const char *sysfs;     /* "/sys", or a recorded tree; NULL: not read */
	const char *hwloc_xml; /* a saved machine; NULL: this one */
};

struct gf_prober {
	const char *name;
	/* 0, or a negative errno with the reason. host is initialised. */
	int (*probe)(const struct gf_probe_config *config, struct gf_host *host,
		     struct gf_error *err);
};

extern const struct gf_prober *const gf_probers[]; /* NULL-terminated */

/* Runs all of them on a zeroed host and names it; the caller releases it with
 * gf_probe_host_release, or hands it to a topology. */
int gf_probe_host(const struct gf_probe_config *config, struct gf_host *host,
		  struct gf_error *err);
void gf_probe_host_release(struct gf_host *host);

/* Bytes per second that one thread copies between two buffers larger than the
 * caches, the median of several rounds; takes about a tenth of a second.
 * -ENOMEM. */
int gf_probe_copy_rate(double *bytes_per_s, struct gf_error *err);

/* Bytes per second, per direction, of a PCI Express link; 0 for what is none
 * (255 lanes mean no answer). */
double gf_probe_pcie_rate(double gt_per_s, double lanes);

/* For probers: a new entry at the end of the host's list, zeroed but for
 * numa = -1. */
struct gf_device *gf_probe_add_device(struct gf_host *host);
struct gf_nic *gf_probe_add_nic(struct gf_host *host);

#endif
