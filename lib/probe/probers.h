/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_PROBERS_H
#define GF_PROBE_PROBERS_H

#include "probe/probe.h"

/* The probers of registry.c, each in the file of its name. */
gf_prober gf_probe_hwloc;
gf_prober gf_probe_sysfs_pci;
gf_prober gf_probe_sysfs_net;
gf_prober gf_probe_sysfs_infiniband;
gf_prober gf_probe_nvml;
gf_prober gf_probe_verbs;
gf_prober gf_probe_near;

/* whole_job.c: the host of another rank's answer, a topology document of one
 * host. -EINVAL names the source. */
int gf_probe_host_read(const char *text, size_t length, const char *source,
		       struct gf_host *host, struct gf_error *err);

#endif
