/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/verify.h"

#include <errno.h>

#include "coll/machine.h"
#include "coll/verify_parts.h"

static int check_run(const struct gf_machine *m, int rank,
		     const struct gf_run *run, struct gf_error *err)
{
	int contributors = m->ranks[0].contributors, r;

	if (run->term == GF_TERM_NOTHING)
		return gf_error_set(err, -EINVAL,
				    "rank %d data[%zu] was never written", rank,
				    run->first);
	if (run->origin != run->first)
		return gf_error_set(err, -EINVAL,
				    "rank %d data[%zu] ends with element %zu",
				    rank, run->first, run->origin);
	r = gf_terms_twice(&m->terms, run->term);
	if (r >= 0)
		return gf_error_set(err, -EINVAL,
				    "rank %d data[%zu] counts rank %d's "
				    "contribution twice",
				    rank, run->first, r);
	for (r = 0; r < contributors; r++)
		if (!gf_terms_contains(&m->terms, run->term, r))
			return gf_error_set(err, -EINVAL,
					    "rank %d data[%zu] lacks rank %d's "
					    "contribution",
					    rank, run->first, r);
	return 0;
}

static int check_range(struct gf_machine *m, int rank, struct gf_range range,
		       struct gf_error *err)
{
	struct gf_runs *runs = gf_machine_buffer(m, rank, GF_BUFFER_DATA);
	size_t end, i;
	int rc;

	gf_runs_cut(runs, range.first + range.count);
	i = gf_runs_cut(runs, range.first);
	end = range.first + range.count;
	for (; runs->items[i].first < end; i++) {
		rc = check_run(m, rank, &runs->items[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Every rank's tree against rank 0's. */
static int check_same(struct gf_machine *m, int rank, struct gf_error *err)
{
	struct gf_runs *mine = gf_machine_buffer(m, rank, GF_BUFFER_DATA);
	struct gf_runs *first = gf_machine_buffer(m, 0, GF_BUFFER_DATA);
	size_t i = 0, k = 0;

	while (i + 1 < mine->count && k + 1 < first->count) {
		size_t a = mine->items[i].first, b = first->items[k].first;

		if (mine->items[i].term != first->items[k].term)
			return gf_error_set(err, -EINVAL,
					    "data[%zu]: rank %d %s than rank 0",
					    a > b ? a : b, rank,
					    m->ranks[rank].lossy
						    ? "adds or rounds otherwise"
						    : "adds in another order");
		a = mine->items[i + 1].first;
		b = first->items[k + 1].first;
		i += a <= b;
		k += b <= a;
	}
	return 0;
}

static int check_end(struct gf_machine *m, enum gf_coll_half half,
		     struct gf_error *err)
{
	int contributors = m->ranks[0].contributors, rank, rc;
	struct gf_range all = gf_data(0, m->ranks[0].count_elems);

	for (rank = 0; rank < m->nranks; rank++) {
		if (half == GF_COLL_REDUCE_SCATTER)
			rc = check_range(m, rank, m->ranks[rank].owned, err);
		else if (rank < contributors)
			rc = check_range(m, rank, all, err);
		else
			rc = 0;
		if (!rc && half != GF_COLL_REDUCE_SCATTER &&
		    rank < contributors)
			rc = check_same(m, rank, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* The ranges that the ranks own must make up the message, each element once. */
static int check_owned(const struct gf_schedule *ranks, int nranks,
		       struct gf_error *err)
{
	size_t owned = 0, n = ranks[0].count_elems;
	int a, b;

	for (a = 0; a < nranks; a++) {
		struct gf_range x = ranks[a].owned;

		if (!x.count)
			continue;
		if (x.buffer != GF_BUFFER_DATA || x.first > n ||
		    x.count > n - x.first)
			return gf_error_set(err, -EINVAL,
					    "rank %d owns [%zu..%zu) of %zu "
					    "elements",
					    a, x.first, x.first + x.count, n);
		for (b = 0; b < a; b++) {
			struct gf_range y = ranks[b].owned;

			if (y.count && x.first < y.first + y.count &&
			    y.first < x.first + x.count)
				return gf_error_set(
					err, -EINVAL,
					"ranks %d and %d both own "
					"data[%zu]",
					b, a,
					x.first > y.first ? x.first : y.first);
		}
		owned += x.count;
	}
	if (owned != n)
		return gf_error_set(err, -EINVAL,
				    "%zu of %zu elements are owned by no rank",
				    n - owned, n);
	return 0;
}

static int verify(const struct gf_schedule *ranks, int nranks,
		  enum gf_coll_half half, struct gf_error *err)
{
	struct gf_machine machine;
	uint32_t **partners;
	int rank, rc = 0;

	if (half != GF_COLL_WHOLE)
		rc = check_owned(ranks, nranks, err);
	if (!rc)
		rc = gf_verify_shape(ranks, nranks, &partners, err);
	if (rc)
		return rc;
	for (rank = 0; !rc && rank < nranks; rank++)
		rc = gf_verify_races(&ranks[rank], err);
	gf_machine_init(&machine, half, ranks, nranks, partners);
	if (!rc)
		rc = gf_machine_run(&machine, err);
	if (!rc)
		rc = check_end(&machine, half, err);
	gf_machine_release(&machine);
	return rc;
}

int gf_verify_allreduce(const struct gf_schedule *ranks, int nranks,
			struct gf_error *err)
{
	return verify(ranks, nranks, GF_COLL_WHOLE, err);
}

int gf_verify_reduce_scatter(const struct gf_schedule *ranks, int nranks,
			     struct gf_error *err)
{
	return verify(ranks, nranks, GF_COLL_REDUCE_SCATTER, err);
}

int gf_verify_all_gather(const struct gf_schedule *ranks, int nranks,
			 struct gf_error *err)
{
	return verify(ranks, nranks, GF_COLL_ALL_GATHER, err);
}
