/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine saved by lstopo (hwloc_xml.c). Not written: a topology document does not know what
 * hwloc's XML is about, and of this machine lstopo writes it. */
#include <string.h>

#include "base/heap.h"
#include "discovery/format.h"
#include "discovery/find_levels.h"
#include "discovery/discovery.h"

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

const struct gf_topology_format gf_format_hwloc = {
	.name = "hwloc",
	.description = "XML of one machine (lstopo --of xml)",
	.recognise = recognise,
	.read = read_hwloc,
};
