/* SPDX-License-Identifier: BSD-3-Clause */
/* A host on its way between processes: a topology document of that host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/json.h"
#include "probe/probers.h"

char *gf_probe_host_write(struct gf_host *host)
{
	char producer[] = "gf-topo " GF_VERSION;
	char name[] = "host", source[] = "discovered";
	struct gf_topology t = {
		.producer = producer,
		.name = name,
		.source = source,
		.hosts = host,
		.nhosts = 1,
	};

	return gf_topology_write(&t);
}

int gf_probe_host_read(const char *text, size_t length, const char *source,
		       struct gf_host *host, struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct gf_topology t = {0};
	int rc = gf_json_parse(text, length, source, &root, err);

	if (rc == 0)
		rc = gf_topology_read(root, source, &t, err);
	if (rc == 0 && t.nhosts != 1)
		rc = gf_error_set(err, -EINVAL,
				  "%s: /hosts: want one host, got %zu", source,
				  t.nhosts);
	if (rc == 0) {
		*host = t.hosts[0];
		memset(&t.hosts[0], 0, sizeof(t.hosts[0]));
	}
	gf_topology_release(&t);
	gf_json_free(root);
	return rc;
}
