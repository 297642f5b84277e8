/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"
#include "probe/probers.h"

/* hwloc comes first: it creates the devices to which sysfs adds rates, and NVML
 * the facts that only a driver knows. verbs completes the interfaces of sysfs.
 * `near` comes last: it needs all devices and interfaces to pair them. */
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
