/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_NETWORK_DEVICE_H
#define GF_PROFILER_NETWORK_DEVICE_H

#include "profiler/curve.h"
#include "profiler/link.h"
#include "profiler/network.h"

/*
 * The all-reduces of the network half between GPUs: chains of messages on NCCL's lanes, as
 * training's engine enqueues them, with the device's times. Communicators are made once for all
 * sizes and algorithms, which takes longer than any message.
 */
struct gf_network_device;

/* Collective. */
int gf_network_device_open(const struct gf_measure_network *config, struct gf_network_device **d,
			   struct gf_error *err);
/* NULL is allowed. */
void gf_network_device_close(struct gf_network_device *d);

/* As struct gf_measure_subject's sit, of an algorithm and its stages. */
int gf_network_device_sit(struct gf_network_device *d, const struct gf_allreduce_cost *cost,
			  const struct gf_measure_sitting *sitting,
			  struct gf_measure_samples *samples, struct gf_error *err);

/* Transfers between neighbours, for profiler/network_parts.h. */
struct gf_measure_mover gf_network_device_mover(struct gf_network_device *d);

#endif
