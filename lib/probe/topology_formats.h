/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_TOPOLOGY_FORMATS_H
#define GF_PROBE_TOPOLOGY_FORMATS_H

#include "probe/format.h"

/* The formats of topology_formats.c, each in the file of its name. */
extern const struct gf_topology_format gf_format_astra;
extern const struct gf_topology_format gf_format_hwloc;
extern const struct gf_topology_format gf_format_matrix;
extern const struct gf_topology_format gf_format_nccl;
extern const struct gf_topology_format gf_format_own;
extern const struct gf_topology_format gf_format_slurm;

#endif
