/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_NEAR_H
#define GF_PROBE_NEAR_H

#include "doc/topology.h"
#include "probe/pci_path.h"

/*
 * The network interface nearest to each device, among those of the kind that a
 * job would go out by: of several equally near ones, that which fewest devices
 * have yet. Sets the devices' nic and nic_path.
 */

/* paths[d * host->nnics + n] leads from device d to interface n. */
void gf_near_by_paths(struct gf_host *host, const enum gf_path *paths);
void gf_near_by_places(struct gf_host *host, const struct gf_pci_tree *tree);

#endif
