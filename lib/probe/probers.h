/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_PROBERS_H
#define GF_PROBE_PROBERS_H

#include "probe/probe.h"

/* The probers of registry.c, each in the file of its name. */
extern const struct gf_prober gf_prober_hwloc;
extern const struct gf_prober gf_prober_sysfs_pci;
extern const struct gf_prober gf_prober_sysfs_net;
extern const struct gf_prober gf_prober_sysfs_infiniband;
extern const struct gf_prober gf_prober_nvml;
extern const struct gf_prober gf_prober_verbs;
extern const struct gf_prober gf_prober_near;

/* whole_job.c: the host of another rank's answer, a topology document of one
 * host. -EINVAL names the source. */
int gf_probe_host_read(const char *text, size_t length, const char *source,
		       struct gf_host *host, struct gf_error *err);

#endif
