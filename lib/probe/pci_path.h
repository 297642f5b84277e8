/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_PCI_PATH_H
#define GF_PROBE_PCI_PATH_H

#include "doc/topology.h"

/* One end of a path: a PCI function and its NUMA node. */
struct gf_pci_end {
	const char *pci; /* NULL: none */
	int numa;        /* -1: unknown */
};

/* How two functions of a host meet, by the bridges above them in sysfs (NULL:
 * not read); where it does not have both, by NUMA nodes, of which there are
 * `numa_nodes`. GF_PATH_UNKNOWN if nothing is known. */
enum gf_path gf_pci_path(const char *sysfs, struct gf_pci_end a,
			 struct gf_pci_end b, int numa_nodes);

#endif
