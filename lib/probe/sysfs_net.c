/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "probe/sysfs.h"

/*
 * Network interfaces from <sysfs>/class/net.
 *
 * Lists physical interfaces and bonds of them; without any, the virtual ones
 * that are up (a container's veth); without any, the loopback. hwloc knows
 * neither their rates nor their states, and no virtual ones. The speed of a
 * virtual interface is a constant of its driver (veth: 10 Gb/s on every
 * network) and therefore counts as unknown, as do the answers of virtio (-1)
 * and of interfaces that are down (EINVAL).
 */
enum {
	ARP_ETHERNET = 1,    /* linux/if_arp.h, <interface>/type */
	ARP_INFINIBAND = 32, /* IP over InfiniBand */
	ARP_LOOPBACK = 772,
};

enum kind { NONE, LOOPBACK, VIRTUAL, PHYSICAL };

static enum kind classify(const char *folder, int type)
{
	if (type == ARP_LOOPBACK)
		return LOOPBACK;
	if (type != ARP_ETHERNET && type != ARP_INFINIBAND)
		return NONE;
	return gf_sysfs_has("%s/device", folder) ||
			       gf_sysfs_has("%s/bonding", folder)
		       ? PHYSICAL
		       : VIRTUAL;
}

static const char *state_of(const char *folder)
{
	char text[32];

	if (gf_sysfs_line(text, sizeof(text), "%s/operstate", folder) < 0)
		return "unknown";
	if (strcmp(text, "up") == 0)
		return "up";
	/* drivers without carrier detection stay "unknown" while they work */
	return strcmp(text, "unknown") == 0 ? "unknown" : "down";
}

static void add(struct gf_host *host, const char *folder, const char *name,
		enum kind kind, int type)
{
	struct gf_nic *n = gf_probe_add_nic(host);
	char pci[GF_PCI_TEXT];
	double megabits;

	n->name = gf_xstrdup(name);
	n->link = gf_xstrdup(kind == LOOPBACK         ? "loopback"
			     : type == ARP_INFINIBAND ? "ipoib"
						      : "ethernet");
	n->state = gf_xstrdup(state_of(folder));
	if (kind == PHYSICAL &&
	    gf_sysfs_number(&megabits, "%s/speed", folder) == 0 &&
	    megabits > 0) {
		n->bandwidth_bytes_per_s = megabits * 1e6 / 8;
		n->bandwidth_origin = GF_ORIGIN_REPORTED;
	}
	if (gf_sysfs_pci(pci, &n->numa, "%s/device", folder) == 0)
		n->pci = gf_xstrdup(pci);
}

static int is_wanted(const char *folder, enum kind wanted, int *type)
{
	double number;

	if (gf_sysfs_number(&number, "%s/type", folder) < 0)
		return 0;
	*type = (int)number;
	if (classify(folder, *type) != wanted)
		return 0;
	return wanted != VIRTUAL || strcmp(state_of(folder), "up") == 0;
}

/* Adds the interfaces of one kind; how many. */
static size_t add_kind(const char *sysfs, char **names, size_t count,
		       enum kind wanted, struct gf_host *host)
{
	size_t i, added = 0;

	for (i = 0; i < count; i++) {
		char *folder = gf_xasprintf("%s/class/net/%s", sysfs, names[i]);
		int type;

		if (is_wanted(folder, wanted, &type)) {
			add(host, folder, names[i], wanted, type);
			added++;
		}
		free(folder);
	}
	return added;
}

int gf_probe_sysfs_net(const struct gf_probe_config *config,
		       struct gf_host *host, struct gf_error *err)
{
	static const enum kind preference[] = {PHYSICAL, VIRTUAL, LOOPBACK};
	char **names;
	size_t count, i;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = gf_sysfs_list(&names, "%s/class/net", config->sysfs);
	for (i = 0; i < GF_ARRAY_LENGTH(preference); i++)
		if (add_kind(config->sysfs, names, count, preference[i], host))
			break;
	gf_sysfs_free_names(names, count);
	return 0;
}
