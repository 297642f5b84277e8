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

#endif
