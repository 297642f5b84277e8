/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/discovery: finds out the hardware of a machine and of a job, and reads and writes topologies
 * in other programs' formats. */
#ifndef GF_DISCOVERY_DISCOVERY_H
#define GF_DISCOVERY_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/plot.h"
#include "documents/topology.h"

/*
 * Discovers one host: processors, accelerators, network interfaces.
 *
 * A prober looks in one place and adds what it finds to the host; the table in registry.c is their
 * order, and later ones may complete what earlier ones left open. A place that does not exist here
 * is no failure: a laptop has no /sys/class/infiniband.
 */
struct gf_discover_config {
	const char *sysfs;     /* "/sys", or a recorded tree; NULL: not read */
	const char *hwloc_xml; /* a saved machine; NULL: this one */
	/* The bytes of hwloc_xml, if they have been read; NULL: they are read.
	 */
	const char *hwloc_text;   /* ends in a NUL */
	const char *nvml;         /* the driver's library; NULL: not asked */
	struct gf_pci_tree *tree; /* gf_discover_host's: what was found so far */
	/* Lines on devices that are there but cannot be described; NULL: not wanted. */
	struct gf_text *remarks;
};

#define GF_DISCOVER_SYSFS "/sys"
#define GF_DISCOVER_NVML  "libnvidia-ml.so.1"

/* 0, or a negative errno with the reason. host is initialised. */
typedef int gf_prober(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err);

extern gf_prober *const gf_probers[]; /* NULL-terminated */

/* The probers of registry.c, each in the file of its name. */
gf_prober gf_discover_hwloc;
gf_prober gf_discover_sysfs_pci;
gf_prober gf_discover_sysfs_net;
gf_prober gf_discover_sysfs_infiniband;
gf_prober gf_discover_nvml;
gf_prober gf_discover_verbs;
gf_prober gf_discover_near;

/* Runs all of them on a zeroed host and names it; the caller releases it with
 * gf_discover_host_release, or hands it to a topology. A sysfs other than this machine's must be a
 * folder. */
int gf_discover_host(const struct gf_discover_config *config, struct gf_host *host,
		     struct gf_error *err);
void gf_discover_host_release(struct gf_host *host);

/* Bytes per second that one thread copies between two buffers larger than the caches, the median of
 * several rounds; takes about a tenth of a second. -ENOMEM. */
int gf_discover_copy_rate(double *bytes_per_s, struct gf_error *err);

/* Bytes per second, per direction, of a PCI Express link; 0 if there is no link (255 lanes mean no
 * answer). */
double gf_discover_pcie_rate(double gt_per_s, double lanes);

/* For probers: a new entry at the end of the host's list, zeroed but for these and numa = -1. Takes
 * the name; the others may be NULL. */
struct gf_device *gf_discover_add_device(struct gf_host *host, const char *type, char *name,
					 const char *pci);
struct gf_nic *gf_discover_add_nic(struct gf_host *host, char *name, const char *link,
				   const char *state);
/* A rate that was reported, if it is one. */
void gf_discover_report(double rate, double *bytes_per_s, enum gf_origin *origin);
struct gf_device *gf_discover_find_device(struct gf_host *host, const char *pci);

/* Numbers of the PCI bus (class without its last byte). */
enum {
	GF_PCI_AMD = 0x1002,
	GF_PCI_NVIDIA = 0x10de,
	GF_PCI_INTEL = 0x8086,
	GF_PCI_VGA = 0x0300,
	GF_PCI_3D = 0x0302,
	GF_PCI_DISPLAY_OTHER = 0x0380,
	GF_PCI_BRIDGE_OTHER = 0x0680, /* an NVSwitch, among others */
	GF_PCI_ACCELERATOR = 0x1200,
};
/* "gpu", "accelerator", or NULL for what trains nothing. has_link: it has a PCI Express link of its
 * own. */
const char *gf_discover_device_type(unsigned int vendor, unsigned int device, unsigned int class_id,
				    bool has_link);
/* The layer of an adapter for RDMA whose file does not say it, by its name: "infiniband" or "roce";
 * `unknown` where the name is no such adapter's. */
const char *gf_discover_rdma_link(const char *name, const char *unknown);
/* "dir/dump.xml" -> "dump"; the caller frees. */
char *gf_discover_name_of_file(const char *path);

/*
 * Small reads below a sysfs tree, the running kernel's or a recorded one. Attributes come and go
 * with devices and drivers, so every read may fail and callers treat that as "unknown".
 */

/* The first line of a file, without its newline: 0 or a negative errno (the kernel answers -EINVAL
 * for the speed of an interface that is down). Takes path. */
int gf_sysfs_line(char *path, char *out, size_t capacity);

#define GF_PCI_TEXT 16 /* "0000:65:00.0" and the NUL */

/* Draws a topology for people: levels from the outside in, then the hosts with what they have,
 * every figure with its origin. Hosts stand under their switch, and neighbours that are alike on
 * one line. ascii: without the lines of Unicode. */
void gf_tree_draw(const struct gf_topology *t, bool ascii, struct gf_text *out);
/* The same as a picture (share/plots/topology.gp): a row of boxes for each level, which has the
 * first box of the row above; below them the hosts, those that are alike together. */
void gf_tree_plot(const struct gf_topology *t, struct gf_plot *plot);

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
