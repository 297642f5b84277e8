/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"

/* hwloc comes first: it creates the devices to which sysfs adds rates, and NVML
 * the facts that only a driver knows. verbs completes the interfaces of sysfs.
 * `near` comes last: it needs all devices and interfaces to pair them. */
gf_prober *const gf_probers[] = {
	gf_probe_hwloc,
	gf_probe_sysfs_pci,
	gf_probe_nvml,
	gf_probe_sysfs_net,
	gf_probe_sysfs_infiniband,
#if GF_HAVE_VERBS
	gf_probe_verbs,
#endif
	gf_probe_near,
	NULL,
};
