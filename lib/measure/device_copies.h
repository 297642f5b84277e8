/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_DEVICE_COPIES_H
#define GF_MEASURE_DEVICE_COPIES_H

#include "base/error.h"
#include "base/text.h"
#include "comm/comm.h"
#include "doc/profile.h"
#include "gpu/gpu.h"

/*
 * The cost of copies between a host and its GPU, and within the GPU: startup
 * and per byte, by the same fit as the network's. All ranks copy at the same
 * time, as in training, so that GPUs on one bridge share it. A repeat's time is
 * the slowest rank's, measured by events on the device.
 */
struct gf_measure_device_copies {
	struct gf_comm *comm;
	struct gf_gpu *gpu;
	size_t max_bytes;
	double time_s;   /* per point, about */
	double budget_s; /* for everything, about */
};

/* Collective; all ranks get the same: "host-to-device", "device-to-host" and
 * "within-device" in the profile's copies. remarks as gf_measure_curve's. */
int gf_measure_device_copies(const struct gf_measure_device_copies *config,
			     struct gf_profile *p, struct gf_text *remarks,
			     struct gf_error *err);

#endif
