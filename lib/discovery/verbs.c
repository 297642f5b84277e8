/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/discovery.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/*
 * InfiniBand and RoCE ports by libibverbs: completes the ports that sysfs listed without a rate
 * (containers often mount /sys without the port attributes) and adds those it did not list. Only on
 * the running machine.
 */

/* ibv_port_attr codes, IBTA specification 14.2.5.6 (PortInfo) */
static double lane_gigabits(unsigned int active_speed)
{
	static const struct {
		unsigned int code;
		double gigabits;
	} lanes[] = {
		{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(lanes); i++)
		if (lanes[i].code == active_speed)
			return lanes[i].gigabits;
	return 0;
}

static int lane_count(unsigned int active_width)
{
	switch (active_width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	}
	return 0;
}

static struct gf_nic *find_or_add(struct gf_host *host, const char *device, int port)
{
	char *name = gf_xasprintf("%s:%d", device, port);

	for (size_t i = 0; i < host->nnics; i++)
		if (strcmp(host->nics[i].name, name) == 0) {
			free(name);
			return &host->nics[i];
		}
	return gf_discover_add_nic(host, name, NULL, NULL);
}

static void add_port(struct gf_host *host, const char *device, int port,
		     const struct ibv_port_attr *attr)
{
	struct gf_nic *n = find_or_add(host, device, port);
	double rate = lane_gigabits(attr->active_speed) * lane_count(attr->active_width) * 1e9 / 8;

	if (!n->link)
		n->link = gf_xstrdup(attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "roce"
										 : "infiniband");
	if (!n->state)
		n->state = gf_xstrdup(attr->state == IBV_PORT_ACTIVE ? "up" : "down");
	if (!(n->bandwidth_bytes_per_s > 0))
		gf_discover_report(rate, &n->bandwidth_bytes_per_s, &n->bandwidth_origin);
}

static void add_device(struct gf_host *host, struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	if (!context)
		return;
	if (ibv_query_device(context, &attr) == 0)
		for (int i = 1; i <= attr.phys_port_cnt; i++)
			if (ibv_query_port(context, (uint8_t)i, &port) == 0)
				add_port(host, ibv_get_device_name(device), i, &port);
	ibv_close_device(context);
}

int gf_discover_verbs(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err)
{
	struct ibv_device **devices;
	int count, i;

	(void)err;
	if (config->hwloc_xml || !config->sysfs || strcmp(config->sysfs, "/sys") != 0)
		return 0;
	/* NULL, with ENOSYS, where the kernel has no RDMA at all */
	devices = ibv_get_device_list(&count);
	if (!devices)
		return 0;
	for (i = 0; i < count; i++)
		add_device(host, devices[i]);
	ibv_free_device_list(devices);
	return 0;
}
