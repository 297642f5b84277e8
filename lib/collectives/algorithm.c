/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/algorithm.h"

#include <assert.h>

#include "base/heap.h"
#include "base/registry.h"
#include "collectives/parts.h"
#include "documents/algorithm_traits.h"
#include "documents/topology.h"

const struct gf_algorithm *gf_algorithm_find(const char *name)
{
	return gf_named_find(gf_algorithms, 0, name);
}

const struct gf_algorithm *gf_sparse_find(const char *name)
{
	return gf_named_find(gf_sparse_algorithms, 0, name);
}

static int check_factors(const struct gf_coll_args *args, struct gf_error *err)
{
	long long product = 1;
	size_t i;

	for (i = 0; i < args->nfactors; i++) {
		if (args->factors[i] < 1)
			return gf_error_set(err, -EINVAL, "factors: want integers >= 1, got %d",
					    args->factors[i]);
		product *= args->factors[i];
		if (product > args->ranks)
			break;
	}
	if (args->nfactors && product != args->ranks)
		return gf_error_set(err, -EINVAL,
				    "factors: want a product of %d (the ranks), got %s%lld",
				    args->ranks, i < args->nfactors ? "at least " : "", product);
	for (i = 0; args->stage_algorithms && i < args->nfactors; i++)
		if (gf_stage_check(args->stage_algorithms[i], args->factors[i], err)) {
			gf_error_prefix(err, "stage %zu", i);
			return -EINVAL;
		}
	return 0;
}

int gf_coll_args_check(const struct gf_coll_args *args, struct gf_error *err)
{
	if (args->ranks < 1 || args->ranks > GF_RANKS_MAX)
		return gf_error_set(err, -EINVAL, "ranks: want 1 to %d, got %d", GF_RANKS_MAX,
				    args->ranks);
	if (args->servers < 0 || args->servers >= args->ranks)
		return gf_error_set(err, -EINVAL, "servers: want 0 to %d of %d ranks, got %d",
				    args->ranks - 1, args->ranks, args->servers);
	if (args->copies > 1 && args->ranks % args->copies)
		return gf_error_set(err, -EINVAL,
				    "copies: want a divisor of %d (the ranks), got %d", args->ranks,
				    args->copies);
	return check_factors(args, err);
}

size_t gf_coll_divisible(const struct gf_coll_args *args)
{
	size_t n = (size_t)args->ranks, power;

	if (args->servers > 0 && args->servers < args->ranks)
		n = (size_t)args->servers * (size_t)(args->ranks - args->servers);
	/* halving divides by the largest power of two up to ranks */
	for (power = 1; power <= (size_t)args->ranks / 2; power *= 2)
		n *= 2;
	return n;
}

/* The same message in grains. */
static struct gf_coll_args in_grains(const struct gf_coll_args *args)
{
	const size_t grain = args->grain_elems;
	struct gf_coll_args coarse = *args;

	if (grain < 2 || !args->count_elems)
		return coarse;
	coarse.count_elems = (args->skew_elems + args->count_elems - 1) / grain + 1;
	coarse.elem_bytes *= grain;
	coarse.segment_elems = (args->segment_elems + grain - 1) / grain;
	return coarse;
}

static size_t refined_place(size_t place, size_t grain_elems, size_t skew_elems, size_t count_elems)
{
	const size_t at = place ? place * grain_elems - skew_elems : 0;

	return at < count_elems ? at : count_elems;
}

/* False: it lies in several copies of a message of so many grains. */
static bool refine_range(struct gf_range *range, size_t grains, size_t grain_elems,
			 size_t skew_elems, size_t count_elems)
{
	const size_t copy = range->count ? range->first / grains : 0;
	const size_t first = range->count ? range->first % grains : 0;
	const size_t end =
		refined_place(first + range->count, grain_elems, skew_elems, count_elems);
	const bool one = first + range->count <= grains;

	range->first = refined_place(first, grain_elems, skew_elems, count_elems);
	range->count = end - range->first;
	if (range->buffer == GF_BUFFER_SCRATCH)
		range->first += copy * grains * grain_elems + skew_elems;
	return one;
}

/* Each element of a finished schedule becomes `grain` of them, of a message of count_elems elements
 * that begins skew_elems after the first grain does: the first and the last may be shorter. Grains
 * of scratch begin where those of the message do. Dependencies stay: grains that overlap do so in
 * elements. -EINVAL: a range of scratch lies in several copies. */
static int refine(struct gf_schedule *s, size_t grain_elems, size_t skew_elems, size_t count_elems)
{
	const size_t grains = s->count_elems;
	bool one = true;

	assert(skew_elems < grain_elems);
	for (size_t i = 0; i < s->nsteps; i++) {
		one &= refine_range(&s->steps[i].range, grains, grain_elems, skew_elems,
				    count_elems);
		one &= refine_range(&s->steps[i].from, grains, grain_elems, skew_elems,
				    count_elems);
	}
	for (size_t i = 0; i < s->nowned; i++)
		refine_range(&s->owned[i], grains, grain_elems, skew_elems, count_elems);
	s->scratch_elems *= grain_elems;
	s->count_elems = count_elems;
	return one ? 0 : -EINVAL;
}

/* --- owners ------------------------------------------------------------------ */

/* The ranks among which the algorithm cuts the message. */
static int holders(const struct gf_algorithm *a, int ranks)
{
	return a->traits & GF_ALGORITHM_FOLDS ? gf_fold_core(ranks) : ranks;
}

/* The message that the algorithm is asked about: each holder's part has room for that of the rank
 * that folds into it. */
static struct gf_coll_args in_parts(const struct gf_algorithm *a, const struct gf_coll_args *args)
{
	const int ranks = gf_coll_sharers(args), n = holders(a, ranks);
	struct gf_coll_args even = *args;

	even.count_elems = gf_layout_most(args->owners, ranks) * (size_t)n;
	even.count_elems *= n < ranks ? 2 : 1;
	even.calls = false;
	return even;
}

/* The part of a rank; of one that folds in, the back of its holder's. */
static struct gf_range part_of(const struct gf_algorithm *a, const struct gf_coll_args *even,
			       int rank)
{
	const int n = holders(a, even->ranks);
	struct gf_range part = a->owned(even, rank < n ? rank : rank - n);

	return n < even->ranks ? gf_range_part(part, 2, rank >= n) : part;
}

/* A rank that folds in gets its part from its holder after a reduce-scatter, and brings it before
 * an all-gather. */
static void move_part(const struct gf_algorithm *a, const struct gf_coll_args *even,
		      struct gf_schedule *s)
{
	const int n = holders(a, even->ranks), folded = s->rank < n ? s->rank + n : s->rank;
	const bool brings = even->half == GF_COLL_ALL_GATHER;

	if (folded >= even->ranks)
		return;
	if ((s->rank >= n) == brings)
		gf_send_pieces(s, brings ? s->rank - n : folded, part_of(a, even, folded),
			       even->segment_elems);
	else
		gf_recv_pieces(s, brings ? folded : s->rank - n, part_of(a, even, folded),
			       even->segment_elems);
}

static void build_for_owners(const struct gf_algorithm *a, const struct gf_coll_args *args,
			     struct gf_schedule *s)
{
	const struct gf_coll_args even = in_parts(a, args);
	GF_FREED struct gf_range *parts = gf_xcalloc((size_t)args->ranks, sizeof(*parts));

	gf_schedule_init(s, s->rank, args->ranks, even.count_elems);
	s->lossy = args->lossy;
	for (int rank = 0; rank < gf_coll_sharers(args); rank++)
		parts[rank] = part_of(a, &even, rank);
	if (args->half == GF_COLL_ALL_GATHER)
		move_part(a, &even, s);
	a->build(&even, s->rank, s);
	if (args->half == GF_COLL_REDUCE_SCATTER)
		move_part(a, &even, s);
	gf_layout_apply(args->owners, parts, args->count_elems, s->rank % gf_coll_sharers(args), s);
}

/* A library cuts as it likes: its halves are of parts in the order of ranks, as even as can be. */
static bool is_even(const struct gf_layout *owners, const struct gf_coll_args *args)
{
	for (size_t i = 0; owners && i < owners->npieces; i++) {
		const struct gf_layout_piece *p = &owners->pieces[i];

		if (!gf_range_same(
			    gf_data(p->first, p->count),
			    gf_range_part(gf_data(0, args->count_elems), args->ranks, p->rank)))
			return false;
	}
	return true;
}

static int check_half(const struct gf_algorithm *a, const struct gf_coll_args *args,
		      struct gf_error *err)
{
	int rc = 0;

	if (args->half == GF_COLL_WHOLE)
		return 0;
	if (a->build && !a->owned)
		return gf_error_set(err, -ENOTSUP,
				    "want an algorithm that comes as a reduce-scatter and an "
				    "all-gather, which this does not");
	if (args->copies > 1 && !(a->traits & GF_ALGORITHM_COPIES))
		return gf_error_set(
			err, -ENOTSUP,
			"want an algorithm whose halves leave copies, which %s does not", a->name);
	assert(!args->owners || args->grain_elems < 2);
	if (args->owners)
		rc = gf_layout_check(args->owners, gf_coll_sharers(args), args->count_elems, err);
	if (!rc && !a->build && !is_even(args->owners, args))
		rc = gf_error_set(err, -ENOTSUP,
				  "want even parts in the order of ranks, as a library cuts them");
	return rc;
}

int gf_algorithm_can(const struct gf_algorithm *a, const struct gf_coll_args *args,
		     struct gf_error *err)
{
	int rc = gf_coll_args_check(args, err);

	if (rc)
		return rc;
	if (!a->build && (!args->calls || args->half == GF_COLL_WHOLE))
		return gf_error_set(err, -ENOTSUP, "%s has no steps of its own", a->name);
	rc = check_half(a, args, err);
	return rc || !a->applicable ? rc : a->applicable(args, err);
}

int gf_algorithm_schedule(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
			  struct gf_schedule *s, struct gf_error *err)
{
	const struct gf_coll_args coarse = in_grains(args);
	const struct gf_range data = gf_data(0, args->count_elems);
	int rc = gf_algorithm_can(a, args, err);

	if (rc)
		return rc;
	if (rank < 0 || rank >= args->ranks)
		return gf_error_set(err, -EINVAL, "rank: want 0 to %d, got %d", args->ranks - 1,
				    rank);
	if (!a->build) {
		gf_schedule_init(s, rank, args->ranks, args->count_elems);
		s->lossy = args->lossy;
		/* a half of an algorithm without steps is one call */
		gf_schedule_own(s, gf_range_part(data, args->ranks, rank));
		gf_schedule_call(s,
				 args->half == GF_COLL_ALL_GATHER ? GF_STEP_ALL_GATHER
								  : GF_STEP_REDUCE_SCATTER,
				 &(struct gf_group){0, 1, args->ranks, rank}, data);
	} else if (args->half != GF_COLL_WHOLE && args->owners) {
		s->rank = rank;
		build_for_owners(a, args, s);
	} else {
		gf_schedule_init(s, rank, args->ranks, coarse.count_elems);
		s->lossy = args->lossy;
		if (args->half != GF_COLL_WHOLE)
			gf_schedule_own(s, a->owned(&coarse, rank));
		a->build(&coarse, rank, s);
	}
	gf_schedule_finish(s);
	if (args->grain_elems > 1 && args->count_elems)
		rc = refine(s, args->grain_elems, args->skew_elems, args->count_elems);
	if (rc) {
		gf_schedule_release(s);
		gf_error_set(err, rc,
			     "%s between GPUs: want ranges of scratch in one copy of the message "
			     "each, got one in several",
			     a->name);
	}
	return rc;
}
