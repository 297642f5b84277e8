/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_TOPOLOGY_H
#define GF_DOCUMENTS_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "json/json.h"

/* More than anyone has; distances and products stay in an int. */
#define GF_RANKS_MAX (1 << 24)

/*
 * gf-topology: how ranks are grouped, and how fast each group's links are (gf-topology(5)). Levels
 * are innermost first; rank r has mixed-radix digits, level 0 fastest. ranks is the product of the
 * level sizes, or 0 in a document that describes one host outside a job.
 */
enum gf_origin { GF_ORIGIN_ASSUMED, GF_ORIGIN_REPORTED, GF_ORIGIN_MEASURED };
extern const char *const gf_origin_names[]; /* NULL-terminated */

/* The way between two parts of a host, the nearest first: NVLinks or xGMI, one PCI Express bridge,
 * several of them, the host bridge, the NUMA node, several nodes. The names of the PCI paths are
 * those of nvidia-smi and NCCL. */
enum gf_path {
	GF_PATH_UNKNOWN,
	GF_PATH_NVLINK,
	GF_PATH_XGMI,
	GF_PATH_NVSWITCH,
	GF_PATH_PIX,
	GF_PATH_PXB,
	GF_PATH_PHB,
	GF_PATH_NODE,
	GF_PATH_SYS,
};
extern const char *const gf_path_names[]; /* NULL-terminated */

struct gf_level {
	char *name;
	size_t size;
	char *link; /* shm, pcie, nvlink, ethernet, infiniband, ... */
	/* Per direction; > 0. All ranks of one group one level down share it when they enter this
	 * level. */
	double bandwidth_bytes_per_s;
	size_t nics;      /* equal interfaces that have it together; 0: unknown */
	double latency_s; /* per round; >= 0 */
	enum gf_origin bandwidth_origin;
	enum gf_origin latency_origin;
	char *extra; /* x- keys as JSON text, or NULL */
};

struct gf_device {
	char *type; /* gpu, accelerator */
	char *name;
	char *pci;                    /* "0000:65:00.0", or NULL */
	int numa;                     /* -1 unknown */
	size_t memory_bytes;          /* 0 unknown */
	double bandwidth_bytes_per_s; /* host link; 0 unknown */
	enum gf_origin bandwidth_origin;
	char *nic; /* the nearest network interface's name, or NULL */
	enum gf_path nic_path;
	char *extra;
};

/* Between two devices, by their PCI addresses. */
struct gf_device_link {
	char *from, *to;
	enum gf_path path;
	int count;                    /* NVLinks; 0 on PCI paths */
	double bandwidth_bytes_per_s; /* per direction; 0 unknown */
	enum gf_origin bandwidth_origin;
	char *extra;
};

struct gf_nic {
	char *name;
	char *link;                   /* ethernet, infiniband, loopback, ... */
	char *state;                  /* up, down, unknown */
	char *pci;                    /* or NULL */
	int numa;                     /* -1 unknown */
	double bandwidth_bytes_per_s; /* 0 unknown */
	enum gf_origin bandwidth_origin;
	char *extra;
};

struct gf_host {
	char *name;
	int ranks; /* of the job on this host; 0 outside a job */
	int sockets, numa_nodes, cores, threads;
	size_t memory_bytes;
	struct gf_device *devices;
	size_t ndevices;
	struct gf_device_link *links;
	size_t nlinks;
	struct gf_nic *nics;
	size_t nnics;
	char *extra;
};

struct gf_topology {
	char *producer;
	char *name;
	char *source; /* synthetic, discovered, nccl-xml, slurm, ... */
	char *origin; /* of an import: gf_imported_note; or NULL */
	int ranks;    /* 0: absent */
	struct gf_level *levels;
	size_t nlevels;
	struct gf_host *hosts;
	size_t nhosts;
	char *extra;
};

int gf_topology_read(const struct gf_json *root, const char *file, struct gf_topology *t,
		     struct gf_error *err);
/* The reader's checks, for structs made by code. */
int gf_topology_check(const struct gf_topology *t, struct gf_error *err);
/* The document, ending in a newline; the caller frees. */
char *gf_topology_write(const struct gf_topology *t);
void gf_topology_release(struct gf_topology *t);

/* Levels are also part of a plan. */
struct gf_level *gf_levels_copy(const struct gf_level *levels, size_t count);
void gf_levels_free(struct gf_level *levels, size_t count);
/* Product of the sizes; 0 if it overflows int. */
int gf_levels_ranks(const struct gf_level *levels, size_t count);
/* The ranks of a host: the product of the innermost sizes whose links do not leave one. 0:
 * unknown. */
int gf_levels_host(const struct gf_level *levels, size_t count);
bool gf_level_is_within_host(const struct gf_level *level);

#endif
