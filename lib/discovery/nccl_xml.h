/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_NCCL_XML_H
#define GF_DISCOVERY_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "discovery/markup.h"
#include "discovery/format.h"
#include "discovery/pci_path.h"
#include "discovery/nvlink.h"

/* What format_nccl.c finds in a file and nccl_links.c connects. */
struct gf_nccl_gpu {
	const struct gf_markup *gpu, *pci;
	size_t host, order;
	char *bus;        /* in small letters, or NULL */
	double own, path; /* bytes per second of its PCI link, of its way up */
};

struct gf_nccl {
	const struct gf_topology_file *in;
	struct gf_topology *t;
	struct gf_error *err;
	struct gf_nccl_gpu *gpus;
	size_t ngpus, gpu_capacity;
	struct gf_pci_tree *trees;         /* per host */
	size_t nplaces, c2c;               /* c2c: GPUs that have such links */
	size_t bare, bare_gpus, bare_nets; /* PCI devices with nothing below */
	struct gf_nvlinked *linked;        /* per GPU */
	const char *link;                  /* nvlink or xgmi */
	size_t *at_switch;                 /* per host, and across hosts */
	size_t to_itself, to_itself_line;
};

/* Sorts the GPUs by hosts and follows their links; a line in remarks for what is wrong with the
 * machine, or with its file. Fills linked and at_switch, which the caller frees. -EINVAL names the
 * place. */
int gf_nccl_connect(struct gf_nccl *r, struct gf_text *remarks);

/* An attribute's number, decimal, or hexadecimal with 0x as NCCL writes some; `absent` where there
 * is none or it is empty. -EINVAL names the place. */
int gf_nccl_number(const struct gf_nccl *r, const struct gf_markup *e, const char *name,
		   double absent, double *out);
/* An attribute in small letters, as most files write addresses; NULL if there is none. The caller
 * frees. */
char *gf_nccl_address(const struct gf_markup *e, const char *name);
/* "gfx90a" from RCCL's "gfx90a:sramecc+" or the number of its first files; NULL if there is none.
 * The caller frees. */
char *gf_nccl_target(const struct gf_markup *gpu);

#endif
