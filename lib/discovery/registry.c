/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/discovery.h"

/* hwloc comes first: it creates the devices to which sysfs adds rates, and NVML the facts that only
 * a driver knows. verbs completes the interfaces of sysfs. `near` comes last: it needs all devices
 * and interfaces to pair them. */
gf_prober *const gf_probers[] = {
	gf_discover_hwloc,
	gf_discover_sysfs_pci,
	gf_discover_nvml,
	gf_discover_sysfs_net,
	gf_discover_sysfs_infiniband,
#if GF_HAVE_VERBS
	gf_discover_verbs,
#endif
	gf_discover_near,
	NULL,
};
