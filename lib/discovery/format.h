/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_FORMAT_H
#define GF_DISCOVERY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/imported.h"
#include "documents/topology.h"

/*
 * Topologies in the formats of other programs. A format is one file that recognises and
 * reads them, with an entry, gf_format_NAME; a paragraph in gf-topo(1); a recorded file in
 * tests/data/topologies.
 */
struct gf_topology_file {
	const char *path; /* for messages */
	const char *text; /* NUL-terminated after size bytes */
	size_t size;
	int ranks_per_host;           /* >= 1; of a format with bare_hosts */
	struct gf_imported *imported; /* what was found and left out */
};

struct gf_topology_format {
	const char *name;
	const char *description; /* one line */
	unsigned place;          /* in listings, ascending (lib/list.sh) */
	/* It speaks of hosts and not of what is in them. */
	bool bare_hosts;
	/* 1 if a text looks like this format. */
	int (*recognise)(const char *text);
	/* Fills a zeroed topology but for producer and name; source is its own. remarks: one line
	 * each. -EINVAL names the file and the place. */
	int (*read)(const struct gf_topology_file *in, struct gf_topology *t,
		    struct gf_text *remarks, struct gf_error *err);
};

extern const struct gf_topology_format *const gf_topology_formats[]; /* NULL-terminated */

/*
 * Reads "FORMAT:FILE" or "FILE", then by the first format that recognises it; fills producer and,
 * from the file's name, the topology's; checks the result. ranks_per_host: 0 for one, unless the
 * file says it; a number beside a file that says it is -EINVAL. A file may be packed by gzip.
 * imported is zeroed, and the caller's to release, also after a failure.
 */
int gf_topology_import(const char *spec, int ranks_per_host, struct gf_topology *t,
		       struct gf_imported *imported, struct gf_text *remarks, struct gf_error *err);

#endif
