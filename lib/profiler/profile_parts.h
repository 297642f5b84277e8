/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_PROFILE_PARTS_H
#define GF_PROFILER_PROFILE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "transport/comm.h"
#include "documents/processing_cost.h"
#include "documents/profile.h"
#include "base/text.h"
#include "cuda/gpu.h"
#include "profiler/contest/device.h"
#include "profiler/model_times.h"

/* Collective: the cost of each codec on the host, by the calls with which messages are encoded and
 * decoded, on one thread of every rank at once. The slowest rank's counts; all ranks get the same.
 * Each of a codec's four figures takes about time_s, and no more than 0.05 s. Adds to `out`. */
int gf_measure_codecs(struct gf_comm *comm, double backward_share, double time_s,
		      struct gf_processing *out, struct gf_error *err);

/*
 * Messages of a codec may also move in another way than f32, which ranks of one host read from each
 * other's memory. So messages of f32 and of each codec go through the engine, by the algorithm with
 * steps that is cheapest for them. What a codec takes longer per byte, beyond what its bytes on the
 * wire would take as f32 and a tenth of that for noise, is its cost, if that is more than encoding
 * and decoding alone.
 */
struct gf_measure_codecs_run {
	struct gf_comm *comm;
	const struct gf_network *network; /* measured */
	int threads;                      /* that compute beside messages, per rank */
	bool callers_memory;              /* profiler/chain.h */
	size_t max_bytes;                 /* of a message */
	size_t model_bytes;               /* of its long messages together; 0: max_bytes counts */
	double time_s;                    /* of a point, roughly */
	double timeout_s;
};

/* Collective, after gf_measure_codecs: raises the costs in `p`; all ranks get the same. */
int gf_measure_codecs_run(const struct gf_measure_codecs_run *c, struct gf_processing *p,
			  struct gf_error *err);

struct gf_measure_selections {
	struct gf_comm *comm;
	int threads;           /* that compute beside messages, per rank */
	size_t max_bytes;      /* of a message; three sizes are measured anyway */
	size_t model_bytes;    /* a size, too, up to a limit; 0: none */
	double backward_share; /* documents/processing_cost.h; of all entries */
	bool callers_memory;   /* profiler/chain.h */
	double time_s;         /* of a size, roughly */
	double timeout_s;
};

/*
 * Collective: what each selection of the registry, with its default keys, adds to a dense message
 * of f32 on the host: seconds in its hooks and in merging sets on the thread that moves messages,
 * in its part on the compute thread, and in compute, which then finds less of its own memory in the
 * caches: by how much a pass takes longer than the same again. The message goes through the engine
 * that training uses, and its selection is in the steady state, after any warm-up. As in training,
 * compute works on as much memory as weights, momentum and activations may take, and then writes
 * the gradients. A second share of elements tells what goes out from passes over all gradients. The
 * slowest rank's median counts; all ranks get the same. Adds to `out`, and to the codecs there that
 * may overflow what multiplying by a loss scale takes.
 */
int gf_measure_selections(const struct gf_measure_selections *c, struct gf_processing *out,
			  struct gf_error *err);

/*
 * The cost of copies between a host and its GPU, and within the GPU: startup and per byte, by the
 * same fit as the network's. All ranks copy at the same time, as in training, so that GPUs on one
 * bridge share it. A repeat's time is the slowest rank's, measured by events on the device.
 */
struct gf_measure_device_copies {
	struct gf_comm *comm;
	struct gf_gpu *gpu;
	size_t max_bytes;
	double time_s;   /* per point, about */
	double budget_s; /* for everything, about */
};

/* Collective; all ranks get the same: "host-to-device", "device-to-host" and "within-device" in the
 * profile's copies. remarks as gf_measure_curve's. */
int gf_measure_device_copies(const struct gf_measure_device_copies *config, struct gf_profile *p,
			     struct gf_text *remarks, struct gf_error *err);

/*
 * How busy the processors of the machines were during a measurement, and how much of that other
 * programs were: what /proc/stat counts beside the ranks' own time. On a system without /proc/stat
 * nothing is known.
 */
struct gf_measure_load {
	double began_s, busy_s, own_s; /* at the start; busy_s < 0: unknown */
};

/* Of the machine on which other programs took most; in processors, on average. processors are those
 * that the ranks may run on, and others what other programs took of these at least. */
struct gf_measure_load_found {
	int ranks, processors; /* 0: unknown */
	double own, others;
};

void gf_measure_load_begin(struct gf_measure_load *l);
/* Collective; all ranks get the same. */
int gf_measure_load_end(const struct gf_measure_load *l, struct gf_comm *comm,
			struct gf_measure_load_found *found, struct gf_error *err);

/*
 * What messages cost backward and backward costs messages, for a profile with both halves: the
 * model's overlap_slowdown and issue_s, and beside_backward of each algorithm, with one message in
 * flight and more. The cheapest algorithm comes first, and the others follow as long as there is
 * time. By NCCL only the model's figure is measured.
 */
struct gf_measure_beside {
	struct gf_comm *comm;
	const struct gf_contest_device *device;
	int lanes, threads, repeats;
	bool callers_memory; /* profiler/chain.h */
	double budget_s, timeout_s;
};

/* Collective; all ranks get the same. */
int gf_measure_beside(const struct gf_measure_beside *config, struct gf_measure_step *step,
		      struct gf_profile *profile, struct gf_error *err);

#endif
