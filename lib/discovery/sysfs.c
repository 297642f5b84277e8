/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "discovery/discovery.h"

int gf_sysfs_line(char *path, char *out, size_t capacity)
{
	int saved, fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, capacity - 1);

	saved = errno;
	free(path);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -saved;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

/* The first line of a file as a number: 0 or a negative errno, -EINVAL if it is none. Takes path.
 */
static int read_number(double *out, char *path)
{
	char text[64], *end;
	double value;
	int rc = gf_sysfs_line(path, text, sizeof(text));

	if (rc < 0)
		return rc;
	value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return -EINVAL;
	*out = value;
	return 0;
}

GF_ORDER(by_bytes, char *, strcmp(*x, *y))

/* Whether such a path exists; takes it. */
static int exists(char *path)
{
	int found = access(path, F_OK) == 0;

	free(path);
	return found;
}

/* Names in a folder in byte order, without those that begin with a dot; 0 and no names if it cannot
 * be read. Free with free_names. Takes folder. */
static size_t list_names(char ***names, char *folder)
{
	DIR *dir = gf_heap_need(opendir(folder));
	struct dirent *entry;
	size_t count = 0;

	free(folder);
	*names = NULL;
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		*names = gf_xreallocarray(*names, count + 1, sizeof(**names));
		(*names)[count++] = gf_xstrdup(entry->d_name);
	}
	closedir(dir);
	if (count)
		qsort(*names, count, sizeof(**names), by_bytes);
	return count;
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* "0000:65:00.0", or with a longer domain on machines that have one */
static int is_pci_address(const char *text, size_t length)
{
	unsigned int domain, bus, slot, function;
	char copy[GF_PCI_TEXT], rest;

	if (length >= sizeof(copy))
		return 0;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return sscanf(copy, "%8x:%2x:%2x.%1x%c", &domain, &bus, &slot, &function, &rest) == 4;
}

static int find_pci(char *path, char pci[GF_PCI_TEXT], int *numa)
{
	char *at;
	double node;

	/* The innermost component that is an address; above it are bridges. */
	while ((at = strrchr(path, '/')) && at != path) {
		if (is_pci_address(at + 1, strlen(at + 1))) {
			snprintf(pci, GF_PCI_TEXT, "%s", at + 1);
			if (read_number(&node, gf_xasprintf("%s/numa_node", path)) == 0)
				*numa = (int)node;
			return 0;
		}
		*at = '\0';
	}
	return -ENOENT;
}

/* The PCI function that a device link leads to ("<class>/<name>/device"), through bus layers such
 * as virtio; -ENOENT if there is none. *numa is -1 where unknown. Takes link. */
static int pci_of(char pci[GF_PCI_TEXT], int *numa, char *link)
{
	GF_FREED char *resolved = gf_heap_need(realpath(link, NULL));
	int rc = -ENOENT;

	*numa = -1;
	free(link);
	if (resolved)
		rc = find_pci(resolved, pci, numa);
	return rc;
}

/*
 * The rate of every accelerator's PCI Express link, and accelerators that hwloc does not list:
 * saved machines may lack I/O objects. hwloc reports the current link speed, which an idle GPU
 * lowers; the maximum that device and slot agreed on replaces it if sysfs has it.
 */

/* Payload per transfer of one lane: 8b/10b up to 5 GT/s, 128b/130b up to 32, and 236 of 256 bytes
 * in the flits of 64 GT/s (PCI Express 6.0, 4.2.3). */
static double lane_bytes_per_s(double gt_per_s)
{
	if (gt_per_s <= 5)
		return gt_per_s * 1e9 * 8 / 10 / 8;
	if (gt_per_s <= 32)
		return gt_per_s * 1e9 * 128 / 130 / 8;
	return gt_per_s * 1e9 * 236 / 256 / 8;
}

double gf_discover_pcie_rate(double gt_per_s, double lanes)
{
	if (!(gt_per_s > 0) || gt_per_s > 1024 || lanes < 1 || lanes > 32)
		return 0;
	return lane_bytes_per_s(gt_per_s) * lanes;
}

static double link_rate(const char *sysfs, const char *pci)
{
	double speed, width;

	/* "16.0 GT/s PCIe" and "16"; 255 lanes and "Unknown" mean no answer */
	if (read_number(&speed, gf_xasprintf("%s/bus/pci/devices/%s/max_link_speed", sysfs, pci)) <
		    0 ||
	    read_number(&width, gf_xasprintf("%s/bus/pci/devices/%s/max_link_width", sysfs, pci)) <
		    0)
		return 0;
	return gf_discover_pcie_rate(speed, width);
}

/* "0x10de" and the like */
static int number_of(const char *sysfs, const char *pci, const char *what, unsigned int *out)
{
	char text[32], *end;
	int rc = gf_sysfs_line(gf_xasprintf("%s/bus/pci/devices/%s/%s", sysfs, pci, what), text,
			       sizeof(text));

	if (rc < 0)
		return rc;
	*out = (unsigned int)strtoul(text, &end, 16);
	return end == text ? -EINVAL : 0;
}

static void add_device(const char *sysfs, const char *pci, struct gf_host *host)
{
	unsigned int vendor, class_id, device = 0;
	struct gf_device *d;
	const char *type;
	double numa;

	if (number_of(sysfs, pci, "vendor", &vendor) < 0 ||
	    number_of(sysfs, pci, "class", &class_id) < 0)
		return;
	(void)number_of(sysfs, pci, "device", &device);
	type = gf_discover_device_type(vendor, device, class_id >> 8, link_rate(sysfs, pci) > 0);
	if (!type || gf_discover_find_device(host, pci))
		return;
	d = gf_discover_add_device(host, type,
				   vendor == GF_PCI_NVIDIA
					   ? gf_xasprintf("NVIDIA %04x", device)
					   : gf_xasprintf("%04x:%04x", vendor, device),
				   pci);
	if (read_number(&numa, gf_xasprintf("%s/bus/pci/devices/%s/numa_node", sysfs, pci)) == 0 &&
	    numa >= 0 && numa < INT_MAX)
		d->numa = (int)numa;
}

int gf_discover_sysfs_pci(const struct gf_discover_config *config, struct gf_host *host,
			  struct gf_error *err)
{
	char **found;
	size_t i, count;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = list_names(&found, gf_xasprintf("%s/bus/pci/devices", config->sysfs));
	for (i = 0; i < count; i++)
		add_device(config->sysfs, found[i], host);
	free_names(found, count);
	for (i = 0; i < host->ndevices; i++) {
		struct gf_device *d = &host->devices[i];
		double rate = d->pci ? link_rate(config->sysfs, d->pci) : 0;

		gf_pci_tree_look(config->tree, config->sysfs, d->pci);
		gf_discover_report(rate, &d->bandwidth_bytes_per_s, &d->bandwidth_origin);
	}
	return 0;
}

/*
 * Network interfaces from <sysfs>/class/net.
 *
 * Lists physical interfaces and bonds of them; without any, the virtual ones that are up (a
 * container's veth); without any, the loopback. hwloc knows neither their rates nor their states,
 * and no virtual ones. The speed of a virtual interface is a constant of its driver (veth: 10 Gb/s
 * on every network) and therefore counts as unknown, as do the answers of virtio (-1) and of
 * interfaces that are down (EINVAL).
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
	return exists(gf_xasprintf("%s/device", folder)) ||
			       exists(gf_xasprintf("%s/bonding", folder))
		       ? PHYSICAL
		       : VIRTUAL;
}

static const char *state_of(const char *folder)
{
	char text[32];

	if (gf_sysfs_line(gf_xasprintf("%s/operstate", folder), text, sizeof(text)) < 0)
		return "unknown";
	if (strcmp(text, "up") == 0)
		return "up";
	/* drivers without carrier detection stay "unknown" while they work */
	return strcmp(text, "unknown") == 0 ? "unknown" : "down";
}

static void add_interface(struct gf_host *host, const char *folder, const char *name,
			  enum kind kind, int type)
{
	const char *link = kind == LOOPBACK         ? "loopback"
			   : type == ARP_INFINIBAND ? "ipoib"
						    : "ethernet";
	struct gf_nic *n = gf_discover_add_nic(host, gf_xstrdup(name), link, state_of(folder));
	char pci[GF_PCI_TEXT];
	double megabits;

	if (kind == PHYSICAL && read_number(&megabits, gf_xasprintf("%s/speed", folder)) == 0)
		gf_discover_report(megabits * 1e6 / 8, &n->bandwidth_bytes_per_s,
				   &n->bandwidth_origin);
	if (pci_of(pci, &n->numa, gf_xasprintf("%s/device", folder)) == 0)
		n->pci = gf_xstrdup(pci);
}

static int is_wanted(const char *folder, enum kind wanted, int *type)
{
	double number;

	if (read_number(&number, gf_xasprintf("%s/type", folder)) < 0)
		return 0;
	*type = (int)number;
	if (classify(folder, *type) != wanted)
		return 0;
	return wanted != VIRTUAL || strcmp(state_of(folder), "up") == 0;
}

/* Adds the interfaces of one kind; how many. */
static size_t add_kind(const char *sysfs, char **names, size_t count, enum kind wanted,
		       struct gf_host *host)
{
	size_t i, added = 0;

	for (i = 0; i < count; i++) {
		GF_FREED char *folder = gf_xasprintf("%s/class/net/%s", sysfs, names[i]);
		int type;

		if (is_wanted(folder, wanted, &type)) {
			add_interface(host, folder, names[i], wanted, type);
			added++;
		}
	}
	return added;
}

int gf_discover_sysfs_net(const struct gf_discover_config *config, struct gf_host *host,
			  struct gf_error *err)
{
	static const enum kind preference[] = {PHYSICAL, VIRTUAL, LOOPBACK};
	char **names;
	size_t count, i;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = list_names(&names, gf_xasprintf("%s/class/net", config->sysfs));
	for (i = 0; i < GF_ARRAY_LENGTH(preference); i++)
		if (add_kind(config->sysfs, names, count, preference[i], host))
			break;
	free_names(names, count);
	return 0;
}

/*
 * InfiniBand and RoCE ports from <sysfs>/class/infiniband, one entry per port, named as NCCL_IB_HCA
 * and Open MPI name them: "mlx5_0:1". hwloc has one object per device, without rate and link layer.
 */
static struct gf_nic *describe_port(struct gf_host *host, char *name, const char *folder)
{
	char layer[64] = "", state[64];
	const bool known =
		gf_sysfs_line(gf_xasprintf("%s/state", folder), state, sizeof(state)) == 0;
	struct gf_nic *n;
	double gigabits;

	gf_sysfs_line(gf_xasprintf("%s/link_layer", folder), layer, sizeof(layer));
	/* "4: ACTIVE" */
	n = gf_discover_add_nic(host, name, strcmp(layer, "Ethernet") == 0 ? "roce" : "infiniband",
				!known                    ? "unknown"
				: strstr(state, "ACTIVE") ? "up"
							  : "down");
	/* "400 Gb/sec (4X NDR)" */
	if (read_number(&gigabits, gf_xasprintf("%s/rate", folder)) == 0)
		gf_discover_report(gigabits * 1e9 / 8, &n->bandwidth_bytes_per_s,
				   &n->bandwidth_origin);
	return n;
}

static void add_port(const char *sysfs, const char *device, struct gf_host *host)
{
	char pci[GF_PCI_TEXT], **ports;
	size_t count, i;
	int numa, found;

	found = pci_of(pci, &numa, gf_xasprintf("%s/class/infiniband/%s/device", sysfs, device)) ==
		0;
	count = list_names(&ports, gf_xasprintf("%s/class/infiniband/%s/ports", sysfs, device));
	for (i = 0; i < count; i++) {
		GF_FREED char *folder =
			gf_xasprintf("%s/class/infiniband/%s/ports/%s", sysfs, device, ports[i]);
		struct gf_nic *n =
			describe_port(host, gf_xasprintf("%s:%s", device, ports[i]), folder);

		n->numa = numa;
		if (found)
			n->pci = gf_xstrdup(pci);
	}
	free_names(ports, count);
}

int gf_discover_sysfs_infiniband(const struct gf_discover_config *config, struct gf_host *host,
				 struct gf_error *err)
{
	char **devices;
	size_t count, i;

	(void)err;
	if (!config->sysfs)
		return 0;
	count = list_names(&devices, gf_xasprintf("%s/class/infiniband", config->sysfs));
	for (i = 0; i < count; i++)
		add_port(config->sysfs, devices[i], host);
	free_names(devices, count);
	return 0;
}
