/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_PCI_PATH_H
#define GF_DISCOVERY_PCI_PATH_H

#include <stddef.h>

#include "documents/topology.h"

/*
 * Where the PCI functions of a host are: the host bridge, the bridges below it and the function,
 * "pci0000:16/0000:16:00.0/0000:17:00.0". Equal parts after equal parts are the same bridge.
 * Zero-initialise.
 */
struct gf_pci_tree {
	struct gf_pci_place {
		char *pci, *place;
	} * places;
	size_t nplaces, capacity;
};

/* Puts a function there, wherever it was; takes place. */
void gf_pci_tree_put(struct gf_pci_tree *tree, const char *pci, char *place);
/* The same, where sysfs (NULL: not read) has the function (NULL: none). */
void gf_pci_tree_look(struct gf_pci_tree *tree, const char *sysfs, const char *pci);
void gf_pci_tree_release(struct gf_pci_tree *tree);

/* One end of a path: a PCI function and its NUMA node. */
struct gf_pci_end {
	const char *pci; /* NULL: none */
	int numa;        /* -1: unknown */
};

/* How two functions of a host meet, by the bridges above them; where the tree does not have both or
 * they are below two host bridges, by NUMA nodes, of which the host has numa_nodes. GF_PATH_UNKNOWN
 * if nothing is known. */
enum gf_path gf_pci_path(const struct gf_pci_tree *tree, struct gf_pci_end a, struct gf_pci_end b,
			 int numa_nodes);

/* The network interface nearest to each device, among those of the kind that a job would go out by:
 * of several equally near ones, that which fewest devices have yet. Sets the devices' nic and
 * nic_path. */

/* paths[d * host->nnics + n] leads from device d to interface n. */
void gf_near_by_paths(struct gf_host *host, const enum gf_path *paths);
void gf_near_by_places(struct gf_host *host, const struct gf_pci_tree *tree);

#endif
