/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processors, memory and accelerators of this machine by hwloc, or of a machine that lstopo saved:
 * both as hwloc's XML. Network interfaces come from sysfs, which knows their rates; of a saved
 * machine, where there is no sysfs, they come from here.
 */
#include "discovery/discovery.h"

#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/allowance.h"
#include "base/file.h"
#include "base/heap.h"
#include "discovery/find_levels.h"
#include "discovery/format.h"

static int load(hwloc_topology_t topology, struct gf_error *err)
{
	/* Plugins that would start a display or an OpenCL runtime to find what PCI shows anyway; an
	 * absent plugin cannot be refused: no check. */
	static const char *const unwanted[] = {"gl", "opencl"};
	size_t i;

	for (i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      unwanted[i]);
	hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	if (hwloc_topology_load(topology) < 0)
		return gf_error_set(err, -EIO, "hwloc cannot load it");
	return 0;
}

/* A container or a job may have less than the machine. */
static void limit(struct gf_host *host)
{
	struct gf_allowance limits[GF_ALLOWANCES];
	double memory = gf_allowance_memory_limit("");
	size_t i = gf_allowance_processors("", limits);

	if (memory < (double)host->memory_bytes)
		host->memory_bytes = (size_t)memory;
	while (i-- > 0) {
		double most = limits[i].processors > 1 ? limits[i].processors : 1;

		if (host->threads > most)
			host->threads = (int)most;
		if (host->cores > most)
			host->cores = (int)most;
	}
}

static int probe_this(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err)
{
	hwloc_topology_t topology;
	char *xml;
	int rc, size;

	if (hwloc_topology_init(&topology) < 0)
		return gf_error_set(err, -ENOMEM, "cannot start hwloc");
	rc = load(topology, err);
	/* libpciaccess keeps its name table for the life of the process, but hwloc unloads it with
	 * its plugin: pinned, the table is not lost and read again by every probe. */
	dlopen("libpciaccess.so.0", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (rc == 0 && hwloc_topology_export_xmlbuffer(topology, &xml, &size, 0) < 0)
		rc = gf_error_set(err, -EIO, "hwloc cannot describe it");
	else if (rc == 0) {
		rc = gf_hwloc_read(xml, "hwloc's XML", config, host, err);
		limit(host);
		hwloc_free_xmlbuffer(topology, xml);
	}
	hwloc_topology_destroy(topology);
	return rc;
}

int gf_discover_hwloc(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err)
{
	char *read = NULL;
	size_t size;
	int rc = 0;

	if (!config->hwloc_xml) {
		rc = probe_this(config, host, err);
		if (rc)
			gf_error_prefix(err, "this machine");
		return rc;
	}
	if (!config->hwloc_text)
		rc = gf_file_read(config->hwloc_xml, &read, &size, err);
	if (rc == 0)
		rc = gf_hwloc_read(read ? read : config->hwloc_text, config->hwloc_xml, config,
				   host, err);
	free(read);
	return rc;
}

static int recognise(const char *text)
{
	return strstr(text, "<topology") != NULL && strstr(text, "<object ") != NULL;
}

static int read_hwloc(const struct gf_topology_file *in, struct gf_topology *t,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct gf_discover_config config = {
		.hwloc_xml = in->path,
		.hwloc_text = in->text,
	};
	int rc;

	t->hosts = gf_xcalloc(1, sizeof(*t->hosts));
	rc = gf_discover_host(&config, &t->hosts[0], err);
	if (rc < 0)
		return rc;
	t->nhosts = 1;
	if (strstr(in->text, "\"XeLinkBandwidth\"") ||
	    (t->hosts[0].nlinks == 0 &&
	     (strstr(in->text, "\"NVLinkBandwidth\"") || strstr(in->text, "\"XGMIBandwidth\""))))
		gf_imported_leave(in->imported, "matrices of links between other devices", 0);
	t->source = gf_xstrdup("hwloc");
	return gf_levels_of_host(t, GF_RANKS_ON_AUTO, remarks, err);
}

/* MANUAL
 * XML of one machine by lstopo (hwloc 1 to 3), as with
 * .Fl -machine Cm hwloc= .
 * The bandwidths of NVLinks and xGMI links that it has make levels. */
const struct gf_topology_format gf_format_hwloc = {
	.name = "hwloc",
	.description = "XML of one machine (lstopo --of xml)",
	.place = 20,
	.recognise = recognise,
	.read = read_hwloc,
};
