/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/pci_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "probe/find_levels.h"
#include "probe/probe.h"

/* No host has as many devices times interfaces. */
enum { PAIRS_MAX = 1 << 20 };

static void find_nearest(struct gf_host *host, struct gf_device *d,
			 const enum gf_path *paths, const char *link,
			 int *users)
{
	size_t i, best = host->nnics;

	for (i = 0; i < host->nnics; i++) {
		const struct gf_nic *n = &host->nics[i];

		if (paths[i] == GF_PATH_UNKNOWN || strcmp(n->link, link) != 0 ||
		    strcmp(n->state, "down") == 0)
			continue;
		if (best == host->nnics || paths[i] < paths[best] ||
		    (paths[i] == paths[best] && users[i] < users[best]))
			best = i;
	}
	if (best == host->nnics)
		return;
	users[best]++;
	d->nic = gf_xstrdup(host->nics[best].name);
	d->nic_path = paths[best];
}

void gf_near_by_paths(struct gf_host *host, const enum gf_path *paths)
{
	int *users = gf_xcalloc(host->nnics + 1, sizeof(*users));
	struct gf_level way_out;
	size_t i;

	gf_levels_network_of(host, &way_out);
	for (i = 0; i < host->ndevices; i++)
		find_nearest(host, &host->devices[i], paths + i * host->nnics,
			     way_out.link, users);
	free(way_out.link);
	free(users);
}

void gf_near_by_places(struct gf_host *host, const struct gf_pci_tree *tree)
{
	const size_t pairs = host->ndevices * host->nnics;
	enum gf_path *paths;
	size_t i, k;

	if (pairs > PAIRS_MAX)
		return;
	paths = gf_xcalloc(pairs + 1, sizeof(*paths));
	for (i = 0; i < host->ndevices; i++)
		for (k = 0; k < host->nnics; k++) {
			const struct gf_device *d = &host->devices[i];
			const struct gf_nic *n = &host->nics[k];

			paths[i * host->nnics + k] = gf_pci_path(
				tree, (struct gf_pci_end){d->pci, d->numa},
				(struct gf_pci_end){n->pci, n->numa},
				host->numa_nodes);
		}
	gf_near_by_paths(host, paths);
	free(paths);
}

int gf_probe_near(const struct gf_probe_config *config, struct gf_host *host,
		  struct gf_error *err)
{
	size_t i;

	(void)err;
	for (i = 0; i < host->ndevices; i++)
		gf_pci_tree_look(config->tree, config->sysfs,
				 host->devices[i].pci);
	for (i = 0; i < host->nnics; i++)
		gf_pci_tree_look(config->tree, config->sysfs,
				 host->nics[i].pci);
	gf_near_by_places(host, config->tree);
	return 0;
}
