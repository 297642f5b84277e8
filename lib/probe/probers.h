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

/* A host as text and back. Reading: -EINVAL names the source. */
char *gf_probe_host_write(struct gf_host *host);
int gf_probe_host_read(const char *text, size_t length, const char *source,
		       struct gf_host *host, struct gf_error *err);

/* hwloc.c: this machine, or the one that config->hwloc_xml is about, whose
 * bytes are xml; in this process. */
int gf_hwloc_describe(const struct gf_probe_config *config, const char *xml,
		      size_t size, struct gf_host *host, struct gf_error *err);
/* hwloc_apart.c: the same of a saved machine, in a child process. -EINVAL:
 * hwloc cannot load it, or does not survive it. */
int gf_hwloc_apart(const struct gf_probe_config *config, const char *xml,
		   size_t size, struct gf_host *host, struct gf_error *err);

#endif
