/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/heap.h"

struct gf_device *gf_probe_add_device(struct gf_host *host)
{
	struct gf_device *d;

	host->devices = gf_xreallocarray(host->devices, host->ndevices + 1,
					 sizeof(*host->devices));
	d = &host->devices[host->ndevices++];
	*d = (struct gf_device){.numa = -1};
	return d;
}

struct gf_nic *gf_probe_add_nic(struct gf_host *host)
{
	struct gf_nic *n;

	host->nics = gf_xreallocarray(host->nics, host->nnics + 1,
				      sizeof(*host->nics));
	n = &host->nics[host->nnics++];
	*n = (struct gf_nic){.numa = -1};
	return n;
}

void gf_probe_host_release(struct gf_host *host)
{
	size_t i;

	for (i = 0; i < host->ndevices; i++) {
		free(host->devices[i].type);
		free(host->devices[i].name);
		free(host->devices[i].pci);
		free(host->devices[i].extra);
	}
	for (i = 0; i < host->nnics; i++) {
		free(host->nics[i].name);
		free(host->nics[i].link);
		free(host->nics[i].state);
		free(host->nics[i].pci);
		free(host->nics[i].extra);
	}
	free(host->devices);
	free(host->nics);
	free(host->name);
	free(host->extra);
	memset(host, 0, sizeof(*host));
}

int gf_probe_host(const struct gf_probe_config *config, struct gf_host *host,
		  struct gf_error *err)
{
	struct gf_host h = {0};
	struct utsname names;
	size_t i;
	int rc;

	for (i = 0; gf_probers[i]; i++) {
		rc = gf_probers[i]->probe(config, &h, err);
		if (rc < 0) {
			gf_error_prefix(err, "%s", gf_probers[i]->name);
			gf_probe_host_release(&h);
			return rc;
		}
	}
	/* A saved machine carries its own name; this one is asked. */
	if (!h.name && uname(&names) == 0)
		h.name = gf_xstrdup(names.nodename);
	if (!h.name || !*h.name) {
		free(h.name);
		h.name = gf_xstrdup("localhost");
	}
	*host = h;
	return 0;
}
