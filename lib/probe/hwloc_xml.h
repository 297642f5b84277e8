/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_HWLOC_XML_H
#define GF_PROBE_HWLOC_XML_H

#include <stdbool.h>

#include "base/error.h"
#include "doc/topology.h"
#include "probe/markup.h"
#include "probe/pci_path.h"
#include "probe/probe.h"
#include "probe/sysfs.h"

/* Adds to a host that probers fill what hwloc's XML says of a machine:
 * processors, memory and accelerators; without a sysfs network interfaces, too;
 * of a saved machine its name, and links. The config's tree gets the places of
 * PCI functions. -EINVAL names the path, and the line where there is one. */
int gf_hwloc_read(const char *xml, const char *path,
		  const struct gf_probe_config *config, struct gf_host *host,
		  struct gf_error *err);

/* hwloc_matrix.c: adds the links of the file's matrices of NVLinks and xGMI
 * links. */
void gf_hwloc_links(const struct gf_markup *root, struct gf_host *host);

/* The value of an object's fact; NULL: it has none of that name. */
const char *gf_hwloc_info(const struct gf_markup *object, const char *name);
bool gf_hwloc_is_subtype(const struct gf_markup *object, const char *subtype);
/* A PCI function's "0000:65:00.0"; false: it has no address. */
bool gf_hwloc_address(const struct gf_markup *object, char to[GF_PCI_TEXT]);

#endif
