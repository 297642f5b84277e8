/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probers.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "probe/find_levels.h"
#include "probe/pci_path.h"

/*
 * The network interface nearest to each device, among those of the kind that a
 * job would go out by: of several equally near ones, that which fewest devices
 * have yet.
 */
static bool usable(const struct gf_nic *n, const char *link)
{
	return n->pci && strcmp(n->link, link) == 0 &&
	       strcmp(n->state, "down") != 0;
}

static void find_nearest(const struct gf_probe_config *config,
			 struct gf_host *host, struct gf_device *d,
			 const char *link, int *users)
{
	size_t i, best = host->nnics;
	enum gf_path best_path = GF_PATH_UNKNOWN;

	for (i = 0; i < host->nnics; i++) {
		const struct gf_nic *n = &host->nics[i];
		enum gf_path path;

		if (!usable(n, link))
			continue;
		path = gf_pci_path(
			config->sysfs, (struct gf_pci_end){d->pci, d->numa},
			(struct gf_pci_end){n->pci, n->numa}, host->numa_nodes);
		if (path == GF_PATH_UNKNOWN)
			continue;
		if (best < host->nnics &&
		    (path > best_path ||
		     (path == best_path && users[i] >= users[best])))
			continue;
		best = i;
		best_path = path;
	}
	if (best == host->nnics)
		return;
	users[best]++;
	d->nic = gf_xstrdup(host->nics[best].name);
	d->nic_path = best_path;
}

static int probe(const struct gf_probe_config *config, struct gf_host *host,
		 struct gf_error *err)
{
	int *users = gf_xcalloc(host->nnics + 1, sizeof(*users));
	struct gf_level way_out;
	size_t i;

	(void)err;
	gf_levels_network_of(host, &way_out);
	for (i = 0; i < host->ndevices; i++)
		find_nearest(config, host, &host->devices[i], way_out.link,
			     users);
	free(way_out.link);
	free(users);
	return 0;
}

const struct gf_prober gf_prober_near = {
	.name = "near",
	.probe = probe,
};
