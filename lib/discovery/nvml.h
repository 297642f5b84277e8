/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_NVML_H
#define GF_DISCOVERY_NVML_H

#include "base/error.h"

/*
 * The handful of calls of NVIDIA's management library that gf-topo makes. The library comes with
 * the driver and is found when the program runs; there is no header of it here, so its types and
 * numbers are declared below, as its manual gives them (the suffixes are part of its binary
 * interface).
 *
 * Calls return 0 or a number that `error` has words for. Those marked optional are NULL where the
 * library is older than they are.
 */
struct gf_nvml_device; /* opaque */

enum {
	GF_NVML_LINKS = 18, /* the most that a GPU has */
	GF_NVML_REMOTE_GPU = 0,
	GF_NVML_REMOTE_SWITCH = 2,
	GF_NVML_REMOTE_UNKNOWN = 255,
	GF_NVML_FIELD_LINK_SPEED = 90, /* MB/s of each NVLink */
};

struct gf_nvml_pci {
	char legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char address[32]; /* 00000000:65:00.0 */
};

struct gf_nvml_memory {
	unsigned long long total, free, used;
};

struct gf_nvml_field {
	unsigned int field, scope;
	long long timestamp, latency_us;
	unsigned int type; /* of the value: 0 double, 1 unsigned int, ... */
	int status;
	union {
		double real;
		unsigned int whole;
		unsigned long long large;
	} value;
};

struct gf_nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *count);
	int (*device)(unsigned int index, struct gf_nvml_device **d);
	int (*pci)(struct gf_nvml_device *d, struct gf_nvml_pci *pci);
	/* (optional, all that follow) */
	const char *(*error)(int status);
	int (*name)(struct gf_nvml_device *d, char *name, unsigned int length);
	int (*memory)(struct gf_nvml_device *d, struct gf_nvml_memory *m);
	int (*capability)(struct gf_nvml_device *d, int *major, int *minor);
	int (*mig)(struct gf_nvml_device *d, unsigned int *now, unsigned int *later);
	int (*pcie_generation)(struct gf_nvml_device *d, unsigned int *g);
	int (*pcie_width)(struct gf_nvml_device *d, unsigned int *lanes);
	int (*ancestor)(struct gf_nvml_device *a, struct gf_nvml_device *b, unsigned int *level);
	int (*link_state)(struct gf_nvml_device *d, unsigned int link, unsigned int *enabled);
	int (*link_remote)(struct gf_nvml_device *d, unsigned int link, struct gf_nvml_pci *pci);
	int (*link_remote_type)(struct gf_nvml_device *d, unsigned int link, unsigned int *type);
	int (*fields)(struct gf_nvml_device *d, int count, struct gf_nvml_field *fields);
};

#endif
