/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libnvidia-ml.so.1 that shows the GPUs of a description (tests/machine.sh), named in
 * GF_FAKE_NVML. A gpu line goes on after its lanes with words:
 *
 *	name=H100  memory=85899345920  cc=9.0  speed=26562 (MB/s of a link)
 *	links=ADDRESS*N,switch*N,nowhere*N  mig  lost  hidden
 *
 * A line "fault start|count|fields|remote-type|ancestor" makes that call fail;
 * "virtual" hides what is at the other ends but for its kind, as in a virtual machine.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/nvml.h"

enum {
	GPUS_MAX = 16,
	LOST = 15,
	NOT_SUPPORTED = 3,
	UNKNOWN = 999,
	DRIVER_MISMATCH = 18,
};

struct end {
	char to[16]; /* an address, "switch" or "nowhere" */
};

struct gf_nvml_device {
	char place[128], name[64];
	char pci[16];
	int major, minor;
	unsigned int speed, lanes;
	double gt_per_s;
	unsigned long long memory;
	bool mig, lost;
	struct end links[GF_NVML_LINKS];
	unsigned int nlinks;
};

static struct gf_nvml_device gpus[GPUS_MAX];
static unsigned int ngpus;
static char faults[256];

static bool faulty(const char *what)
{
	return strstr(faults, what) != NULL;
}

static void add_links(struct gf_nvml_device *d, char *text)
{
	char *part;

	while ((part = strsep(&text, ","))) {
		char *star = strchr(part, '*');
		int n = star ? atoi(star + 1) : 1;

		if (star)
			*star = '\0';
		while (n-- > 0 && d->nlinks < GF_NVML_LINKS)
			snprintf(d->links[d->nlinks++].to, sizeof(d->links->to), "%s", part);
	}
}

static void add_word(struct gf_nvml_device *d, char *word, bool *hidden)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (strcmp(word, "mig") == 0)
		d->mig = true;
	else if (strcmp(word, "lost") == 0)
		d->lost = true;
	else if (strcmp(word, "hidden") == 0)
		*hidden = true;
	else if (strcmp(word, "name") == 0)
		snprintf(d->name, sizeof(d->name), "NVIDIA %s", value);
	else if (strcmp(word, "memory") == 0)
		d->memory = strtoull(value, NULL, 10);
	else if (strcmp(word, "cc") == 0)
		sscanf(value, "%d.%d", &d->major, &d->minor);
	else if (strcmp(word, "speed") == 0)
		d->speed = (unsigned int)atoi(value);
	else if (strcmp(word, "links") == 0)
		add_links(d, value);
	else
		abort();
}

static void add_gpu(char *rest)
{
	struct gf_nvml_device d = {0};
	bool hidden = false;
	char *word;
	int at = 0;

	if (sscanf(rest, " %127s %*s %lf %u %n", d.place, &d.gt_per_s, &d.lanes, &at) < 3)
		abort();
	rest += at;
	while ((word = strsep(&rest, " \t\n")))
		if (*word)
			add_word(&d, word, &hidden);
	snprintf(d.pci, sizeof(d.pci), "%.15s", strrchr(d.place, '/') + 1);
	if (!hidden && ngpus < GPUS_MAX)
		gpus[ngpus++] = d;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	const char *path = getenv("GF_FAKE_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[1024];

	ngpus = 0;
	*faults = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "gpu ", 4) == 0)
			add_gpu(line + 4);
		if (strncmp(line, "fault ", 6) == 0 || strncmp(line, "virtual", 7) == 0)
			strncat(faults, line, sizeof(faults) - strlen(faults) - 1);
	}
	if (f)
		fclose(f);
	return faulty("start") ? DRIVER_MISMATCH : 0;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return 0;
}

const char *nvmlErrorString(int status);
const char *nvmlErrorString(int status)
{
	switch (status) {
	case LOST:
		return "GPU is lost";
	case DRIVER_MISMATCH:
		return "Driver/library version mismatch";
	}
	return "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = ngpus;
	return faulty("count") ? UNKNOWN : 0;
}

#ifndef GF_FAKE_NVML_OLD /* it lacks what every library has */
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gf_nvml_device **d);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gf_nvml_device **d)
{
	*d = &gpus[index];
	return gpus[index].lost ? LOST : 0;
}
#endif

static void fill(const char *address, struct gf_nvml_pci *pci)
{
	unsigned int function;

	memset(pci, 0, sizeof(*pci));
	sscanf(address, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
	snprintf(pci->address, sizeof(pci->address), "%08X:%02X:%02X.0", pci->domain, pci->bus,
		 pci->device);
}

int nvmlDeviceGetPciInfo_v3(struct gf_nvml_device *d, struct gf_nvml_pci *pci);
int nvmlDeviceGetPciInfo_v3(struct gf_nvml_device *d, struct gf_nvml_pci *pci)
{
	fill(d->pci, pci);
	return 0;
}

int nvmlDeviceGetName(struct gf_nvml_device *d, char *name, unsigned int length);
int nvmlDeviceGetName(struct gf_nvml_device *d, char *name, unsigned int length)
{
	snprintf(name, length, "%s", d->name);
	return 0;
}

int nvmlDeviceGetMemoryInfo(struct gf_nvml_device *d, struct gf_nvml_memory *m);
int nvmlDeviceGetMemoryInfo(struct gf_nvml_device *d, struct gf_nvml_memory *m)
{
	*m = (struct gf_nvml_memory){.total = d->memory};
	return d->memory ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetCudaComputeCapability(struct gf_nvml_device *d, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(struct gf_nvml_device *d, int *major, int *minor)
{
	*major = d->major;
	*minor = d->minor;
	return 0;
}

int nvmlDeviceGetMigMode(struct gf_nvml_device *d, unsigned int *now, unsigned int *later);
int nvmlDeviceGetMigMode(struct gf_nvml_device *d, unsigned int *now, unsigned int *later)
{
	*now = *later = d->mig;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct gf_nvml_device *d, unsigned int *g);
int nvmlDeviceGetMaxPcieLinkGeneration(struct gf_nvml_device *d, unsigned int *g)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
	unsigned int i;

	for (i = 0; i < 6; i++)
		if (speeds[i] >= d->gt_per_s)
			break;
	*g = i + 1;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(struct gf_nvml_device *d, unsigned int *lanes);
int nvmlDeviceGetMaxPcieLinkWidth(struct gf_nvml_device *d, unsigned int *lanes)
{
	*lanes = d->lanes;
	return 0;
}

/* The host bridge is the first 12 characters of a place. */
int nvmlDeviceGetTopologyCommonAncestor(struct gf_nvml_device *a, struct gf_nvml_device *b,
					unsigned int *level);
int nvmlDeviceGetTopologyCommonAncestor(struct gf_nvml_device *a, struct gf_nvml_device *b,
					unsigned int *level)
{
	if (faulty("ancestor"))
		return NOT_SUPPORTED;
	*level = strncmp(a->place, b->place, 11) == 0 ? 30 : 50;
	return 0;
}

int nvmlDeviceGetNvLinkState(struct gf_nvml_device *d, unsigned int link, unsigned int *enabled);
int nvmlDeviceGetNvLinkState(struct gf_nvml_device *d, unsigned int link, unsigned int *enabled)
{
	*enabled = 1;
	return link < d->nlinks ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gf_nvml_device *d, unsigned int link,
					struct gf_nvml_pci *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gf_nvml_device *d, unsigned int link,
					struct gf_nvml_pci *pci)
{
	const char *to = d->links[link].to;

	if (faulty("virtual"))
		fill("0000:00:00.0", pci);
	else
		fill(strcmp(to, "switch") == 0 ? "0000:07:00.0" : to, pci);
	return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct gf_nvml_device *d, unsigned int link,
					unsigned int *type);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct gf_nvml_device *d, unsigned int link,
					unsigned int *type)
{
	const char *to = d->links[link].to;

	*type = strcmp(to, "switch") == 0    ? GF_NVML_REMOTE_SWITCH
		: strcmp(to, "nowhere") == 0 ? GF_NVML_REMOTE_UNKNOWN
					     : GF_NVML_REMOTE_GPU;
	return faulty("remote-type") ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetFieldValues(struct gf_nvml_device *d, int count, struct gf_nvml_field *fields);
int nvmlDeviceGetFieldValues(struct gf_nvml_device *d, int count, struct gf_nvml_field *fields)
{
	int i;

	for (i = 0; i < count; i++) {
		fields[i].status =
			fields[i].field == GF_NVML_FIELD_LINK_SPEED && d->speed ? 0 : NOT_SUPPORTED;
		fields[i].type = 1;
		fields[i].value.whole = d->speed;
	}
	return faulty("fields") ? UNKNOWN : 0;
}
