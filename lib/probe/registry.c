/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"
#include "probe/probers.h"

/* hwloc first: it creates the devices that sysfs gives figures to, and NVML
 * what only a driver knows. verbs completes what sysfs did not say; when all
 * devices and interfaces are there, it is found who is near whom. */
const struct gf_prober *const gf_probers[] = {
	&gf_prober_hwloc,
	&gf_prober_sysfs_pci,
	&gf_prober_nvml,
	&gf_prober_sysfs_net,
	&gf_prober_sysfs_infiniband,
#if GF_HAVE_VERBS
	&gf_prober_verbs,
#endif
	&gf_prober_near,
	NULL,
};
