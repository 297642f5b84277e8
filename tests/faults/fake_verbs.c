/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded before libibverbs: the devices that GF_FAKE_VERBS describes, a word for each port, as
 * "mlx5_0:4,2,active,infiniband mlx5_0:...". The numbers are the codes of the speed of a lane and
 * of the width. A device by the name "broken" cannot be opened.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_get_device_list
#undef ibv_query_port

enum { DEVICES_MOST = 8, PORTS_MOST = 4 };

static struct fake {
	struct ibv_device device; /* first: what callers have */
	struct ibv_context context;
	struct ibv_port_attr ports[PORTS_MOST];
	int nports;
} fakes[DEVICES_MOST];

static struct fake *named(const char *name)
{
	struct fake *f = fakes;

	while (f->nports && strcmp(f->device.name, name))
		f++;
	snprintf(f->device.name, sizeof(f->device.name), "%s", name);
	f->context.device = &f->device;
	return f;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(DEVICES_MOST + 1, sizeof(*list));
	const char *said = getenv("GF_FAKE_VERBS");
	char *text = strdup(said ? said : ""), *rest = text, *word;

	memset(fakes, 0, sizeof(fakes));
	*count = 0;
	while (list && (word = strsep(&rest, " "))) {
		char name[32], state[16], link[16];
		unsigned int speed, width;
		struct ibv_port_attr *port;
		struct fake *f;

		if (sscanf(word, "%31[^:]:%u,%u,%15[^,],%15s", name, &speed, &width, state, link) !=
		    5)
			continue;
		f = named(name);
		if (!f->nports)
			list[(*count)++] = &f->device;
		port = &f->ports[f->nports++];
		port->active_speed = (uint8_t)speed;
		port->active_width = (uint8_t)width;
		port->state = strcmp(state, "active") ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
		port->link_layer = strcmp(link, "ethernet") ? IBV_LINK_LAYER_INFINIBAND
							    : IBV_LINK_LAYER_ETHERNET;
	}
	free(text);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake *f = (struct fake *)device;

	return strcmp(device->name, "broken") ? &f->context : NULL;
}

int ibv_close_device(struct ibv_context *context)
{
	return context ? 0 : -1;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = (uint8_t)((struct fake *)context->device)->nports;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct fake *f = (struct fake *)context->device;

	memcpy(attr, &f->ports[port - 1], sizeof(f->ports[0]));
	return 0;
}
