/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/profiler/contest: gf-allreduce: contestants that send the same messages in turns, checked and
 * reported. */
#ifndef GF_CONTEST_CONTEST_H
#define GF_CONTEST_CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/contest/allreduce.h"
#include "profiler/contest/device_send.h"
#include "transport/watch.h"
#include "runtime/engine/burst.h"
#include "profiler/autotune/chooser.h"
#include "transport/comm.h"
#include "profiler/contest/exact.h"

/*
 * A sparse all-reduce as a contestant. Every rank takes the largest values out of its message (a
 * share `density` of them, compressors/sets.h). The sets travel by gather or gtopk. The result is
 * the sum of the sets, and zero where no set had a value. All three parts are in the time, as they
 * are in a step of training.
 */
struct gf_contest_sparse_config {
	struct gf_comm *comm;         /* borrowed */
	struct gf_watch *watch;       /* borrowed */
	struct gf_way way;            /* a sparse algorithm, with a density */
	const struct gf_codec *codec; /* of the sets' values; NULL: none */
	size_t count_elems;
	bool checks; /* it sends nothing, but knows what is right */
};

struct gf_contest_sparse;

/* Collective. */
int gf_contest_sparse_new(const struct gf_contest_sparse_config *config,
			  struct gf_contest_sparse **s, struct gf_error *err);
void gf_contest_sparse_free(struct gf_contest_sparse *s);

/* data: this rank's contribution becomes the sum of all ranks' sets. */
int gf_contest_sparse_send(struct gf_contest_sparse *s, float *data, struct gf_error *err);
/* The sets' own; borrowed. */
struct gf_burst *gf_contest_sparse_burst(const struct gf_contest_sparse *s);

/* Elements of a result that are not what the same selections and merges, done here for all ranks by
 * other means, make of the exact inputs. */
size_t gf_contest_sparse_wrong(const struct gf_contest_sparse *s, const struct gf_exact *x,
			       const float *data);

/*
 * The data that allreduce.c's measurements share. Contestants use memory for the same messages and
 * take turns. Their results are checked afterwards.
 */
struct gf_contest_allreduce {
	struct gf_contest_allreduce_config config;
	struct gf_watch watch;
	struct gf_chooser *chooser;
	void *source, *work;
	size_t room_elems;             /* in each */
	struct gf_contest_gpu *device; /* where messages lie; NULL: in work */
	bool pinned;                   /* work is, for copies */
};

/* When a repeat began, by gf_clock_s, and how long it took: no step of it is outside. */
struct gf_contest_span {
	double start_s, time_s;
};

/* One way to send the messages: a burst, or sparse sets, or a library that is told how to go, or,
 * between GPUs, `send`. */
struct gf_contestant {
	struct gf_burst *burst;
	struct gf_comm_told *told;
	struct gf_contest_sparse *sparse;
	struct gf_contest_send *send;
	double *times[2];            /* per placement and repeat */
	struct gf_contest_span span; /* of what was recorded */
};

/* The caller fills the contestants before it measures. */
struct gf_contest {
	struct gf_contest_allreduce *b;
	struct gf_contestant *of;
	size_t n;
	struct gf_contest_span latest;
	size_t count_elems;      /* of all messages of a burst */
	size_t first_elems;      /* of the first of them; of a half, of each */
	struct gf_layout owners; /* of a half */
};

/* Bytes of so many elements. */
static inline size_t gf_contest_bytes(const struct gf_contest_allreduce *b, size_t count_elems)
{
	return count_elems * b->config.element.size_bytes;
}

/* Collective: proves the schedules of all contestants, lines of config.proofs. Errors as
 * gf_burst_prove's. */
int gf_contest_prove(struct gf_contest *c, struct gf_error *err);
/* Collective: repeats, times and checks into a row each. After a failure the ranks may not be
 * together any more. */
int gf_contest_measure(struct gf_contest *c, struct gf_contest_row *rows, struct gf_error *err);

/* Collective, over any communicator: times of repeats over the ranks, and then over the repeats; a
 * count's sum, added to *out, or its most. */
int gf_contest_summarise(const struct gf_contest_allreduce_config *config, struct gf_comm *c,
			 double *times, struct gf_contest_reading *r, struct gf_error *err);
int gf_contest_over_ranks(struct gf_comm *c, size_t mine, bool add, size_t *out,
			  struct gf_error *err);

#endif
