/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/profiler: measures what a profile holds: costs of a network, of a model, and what both do to
 * each other. */
#ifndef GF_PROFILER_WHOLE_PROFILE_H
#define GF_PROFILER_WHOLE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/contest/device.h"
#include "profiler/network.h"
#include "transport/comm.h"
#include "documents/models/model.h"
#include "documents/profile.h"
#include "nn/net.h"
#include "documents/stream.h"

/*
 * A whole profile, measured: the model half when there is a model, the network half when there are
 * several ranks, and what only both together show, how much messages slow backward. On a GPU also
 * what copies to and from it cost.
 */
#define GF_MEASURE_MAX_BYTES ((size_t)4 << 20)

struct gf_measure_profile {
	struct gf_comm *comm;
	const struct gf_model *model;     /* or NULL */
	const char *backend_name;         /* auto: what fits the device */
	const struct gf_backend *backend; /* NULL: by that name */
	enum gf_dtype precision;          /* that it computes in */
	size_t batch;
	/* By its name, unless it is open already. */
	struct gf_contest_device device;
	size_t warmup, repeats;
	size_t threads; /* that compute; 0: this rank's share */
	bool network;
	/* max_bytes 0: as far as there is time, at most GF_MEASURE_MAX_BYTES or the model's whole
	 * gradient, what is more; comm is filled in */
	struct gf_measure_network sweep;
};

/* gf-profile's defaults. */
void gf_measure_profile_init(struct gf_measure_profile *config);
/* -EINVAL: what is wrong on any number of ranks. */
int gf_measure_profile_check(const struct gf_measure_profile *config, struct gf_error *err);

/* Collective: -EINVAL with both values where ranks were started to do different things. model: its
 * name, or NULL. Ranks may differ in their threads, and in the GPU or backend of the host. */
int gf_measure_profile_same(struct gf_comm *comm, const struct gf_measure_profile *config,
			    const char *model, struct gf_error *err);

/* What will be measured, and about how long it will take, on one line. */
void gf_measure_profile_say(const struct gf_measure_profile *config, struct gf_text *out);

/* Collective; all ranks get the same and return alike. After a failure, too, *out holds each half
 * that was measured whole; the caller releases it. remarks as in gf_measure_network. */
int gf_measure_profile(const struct gf_measure_profile *config, struct gf_profile *out,
		       struct gf_text *remarks, struct gf_error *err);

/* The parts of a profile, as given to the command on rank 0. */

/* Collective: the model of rank 0's documents, as gf_measure_given_model. -EINVAL: nothing to
 * measure, a topology of other ranks than the job's, or a profile that has a half in it which is
 * about to be measured. */
int gf_measure_given(struct gf_comm *comm, const struct gf_documents *d, bool network,
		     struct gf_model *model, bool *given, struct gf_error *err);

/* Collective: rank 0's model (NULL there: none; ignored elsewhere) on every rank, as a copy; *given
 * says whether there is one. All ranks return alike. Only rank 0 needs to see the file it came
 * from. */
int gf_measure_given_model(struct gf_comm *comm, const struct gf_model *model,
			   struct gf_model *copy, bool *given, struct gf_error *err);

/* A profile for people: a line on the model and a table of its tensors, many of them as runs; a
 * table of each kind of costs, with times at some sizes and how far the fits are off. */
void gf_profile_table(const struct gf_profile *p, size_t window, struct gf_text *out);

/* The answer, one line: what compute and the exchange of all gradients take, and which of both
 * bounds a step. Nothing of half a profile. */
void gf_profile_answer(const struct gf_profile *p, struct gf_text *out);

#endif
