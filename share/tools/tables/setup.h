/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TABLES_SETUP_H
#define GF_TABLES_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/profile.h"
#include "doc/topology.h"
#include "planner/policy.h"

/*
 * What the predictions start from: a shipped architecture with its total times,
 * a network with one algorithm, a policy.
 */
/* share/topologies/<name>; free with gf_topology_release. */
int gf_setup_topology(const char *name, struct gf_topology *out,
		      struct gf_error *err);

struct gf_setup_times {
	double forward_s, backward_s;
	/* Every tensor takes the same share of backward; else each layer takes
	 * its share of the FLOPs. */
	bool even;
};

/* total_s as 1:2, forward to backward: what the papers leave open. */
struct gf_setup_times gf_setup_split(double total_s);

/*
 * A profile of share/models/<name>; dtype: of the gradients on the wire. Free
 * with gf_model_profile_free.
 */
int gf_setup_model(const char *name, const struct gf_setup_times *times,
		   enum gf_dtype dtype, struct gf_model_profile **out,
		   struct gf_error *err);

/* f32 bytes of all its gradients, or of those of its convolutions alone. */
int gf_setup_bytes(const char *name, bool convolutions, double *bytes,
		   struct gf_error *err);

/* One all-reduce entry: startup + per_byte * bytes, without contention. */
struct gf_network *gf_setup_network(int ranks, double startup_s,
				    double per_byte_s);

struct gf_setup_result {
	double iteration_s, lower_bound_s;
	size_t messages;
};

/* The policy's prediction, with at most `lanes` messages at once. */
int gf_setup_predict(const struct gf_model_profile *model,
		     const struct gf_network *network,
		     const struct gf_policy *policy, int lanes,
		     struct gf_setup_result *out, struct gf_error *err);

#endif
