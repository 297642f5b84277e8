/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-level hierarchical all-reduce (GradientFlow section 2.4; Jia et al. 2018, "Highly scalable
 * deep learning training system with mixed-precision"; BlueConnect's Eq. 4).
 *
 * Ranks form groups of p0 neighbours (a host), the first of each is its master.
 * 1. reduce to the master: ring reduce-scatter within the group, then binomial gather; 2. ring
 *    all-reduce among the p1 masters; 3. broadcast from the master: binomial scatter, then ring
 *    all-gather within the group.
 * Fewer rounds than one ring, and one stream per group on the slow network, but that stream carries
 * the whole message while the other ranks are idle.
 *
 * Cost, p = p0 p1 ranks, n bytes, T_r ring and T_c tree, each over one half:
 *   2 T_r(p0, n) + 2 T_c(p0, n) + 2 T_r(p1, n)   (Eq. 4)
 *   T_r(p, n) = (p-1) (alpha + n/p beta), + (p-1)/p n gamma where it reduces
 *   T_c(p, n) = ceil(log2 p) alpha + (p-1)/p n beta
 * Masters share no link with other masters: their rate is min W.
 * Unsegmented, the stages follow each other and take just that; segmented, each piece goes on as
 * soon as it can, and it is an upper bound.
 *
 * Restrictions: the first factor is p0; without factors it is the largest divisor of p not above
 * its square root (1 for a prime: a plain ring). No halves.
 *
 * p = 4 = 2 x 2, n = 4 elements; whose contributions a rank holds:
 *
 *            start   scatter      gather       masters     back
 *   rank 0   0-3: 0  0-1: 0,1     0-3: 0,1     0-3: all    0-3: all
 *   rank 1   0-3: 1  2-3: 0,1     -            -           0-3: all
 *   rank 2   0-3: 2  0-1: 2,3     0-3: 2,3     0-3: all    0-3: all
 *   rank 3   0-3: 3  2-3: 2,3     -            -           0-3: all
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

static int group_size(const struct gf_coll_args *args)
{
	int size = 1, d;

	if (args->nfactors)
		return args->factors[0];
	for (d = 2; d <= args->ranks / d; d++)
		if (args->ranks % d == 0)
			size = d;
	return size;
}

/* The union of parts a <= i < b of a range cut into `parts`. */
static struct gf_range parts_between(struct gf_range range, int parts, int a, int b)
{
	struct gf_range first = gf_range_part(range, parts, a);
	struct gf_range last = gf_range_part(range, parts, b - 1);

	first.count = last.first + last.count - first.first;
	return first;
}

/* Gather or scatter of so many elements: the root's messages, one after the other; the first
 * group's stand for all. */
static struct gf_cost tree(const struct gf_coll_args *args, const struct gf_cost_net *net, int size,
			   size_t count_elems)
{
	struct gf_range data = gf_data(0, count_elems);
	struct gf_cost total = {0};
	int a, b;

	for (a = 1; a < size; a = b) {
		struct gf_cost_round pairs = {size, a, 2, 1, true};
		struct gf_link_cost link;
		double bytes;

		b = a > size / 2 ? size : 2 * a;
		bytes = (double)parts_between(data, size, a, b).count * (double)args->elem_bytes;
		if (!(bytes > 0))
			continue;
		link = gf_cost_link(net, &pairs, bytes);
		total = gf_cost_plus(total, 1, gf_cost_send(&link, bytes));
	}
	return total;
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	int size = group_size(args), masters = args->ranks / size;
	struct gf_cost_round inside = {args->ranks, 1, size, 1};
	struct gf_cost_round outside = {args->ranks, size, masters, 1};
	double in = gf_part_bytes(args, size);
	double out = gf_part_bytes(args, masters);
	struct gf_link_cost near = gf_cost_link(net, &inside, in);
	struct gf_link_cost far = gf_cost_link(net, &outside, out);
	struct gf_cost total = {0};

	if (!args->count_elems)
		return total;
	if (args->half != GF_COLL_ALL_GATHER) {
		/* only in the first ring do ranks go on as parts come: in_stages */
		total = gf_cost_ring(net, &inside, in, true, false);
		total = gf_cost_plus(total, 1, tree(args, net, size, args->count_elems));
		total = gf_cost_plus(total, masters - 1, gf_cost_send_reduce(&far, out));
	}
	if (args->half != GF_COLL_REDUCE_SCATTER) {
		total = gf_cost_plus(total, masters - 1, gf_cost_send(&far, out));
		total = gf_cost_plus(total, 1, tree(args, net, size, args->count_elems));
		total = gf_cost_plus(total, size - 1, gf_cost_send(&near, in));
	}
	if (args->half != GF_COLL_WHOLE)
		total = gf_cost_plus(
			total, 1,
			tree(args, net, size,
			     gf_range_part(gf_data(0, args->count_elems), masters, 0).count));
	return total;
}

/* Steps from `next` on begin after the one before has ended. */
static void in_turn(struct gf_schedule *s, size_t first, size_t next)
{
	if (next > first && s->nsteps > next)
		s->steps[next].after = (uint32_t)next;
}

/* Parts [m, m + d) of place m with lowest bit d. */
static struct gf_pieces held(const struct gf_group *g, struct gf_range data,
			     const struct gf_cut *cut, int m, int d)
{
	int end = m + d < g->size ? m + d : g->size;

	return gf_pieces_of(parts_between(data, g->size, m, end), cut);
}

/* Parts gathered at place 0: in round k place m with lowest bit d = 2^k sends what it holds to the
 * place d below. */
static void gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range data,
		   const struct gf_cut *cut)
{
	size_t first = s->nsteps, next;
	int d, me = g->me;

	for (d = 1; d < g->size && !(me & d); d *= 2) {
		next = s->nsteps;
		if (me + d < g->size)
			gf_recv_cut(s, gf_group_rank(g, me + d), held(g, data, cut, me + d, d));
		in_turn(s, first, next);
	}
	if (me)
		gf_send_cut(s, gf_group_rank(g, me - d), held(g, data, cut, me, d));
}

/* The way back: what gather received is sent, the last first. */
static void scatter(struct gf_schedule *s, const struct gf_group *g, struct gf_range data,
		    const struct gf_cut *cut)
{
	int d = 1, me = g->me;
	size_t first, next;

	while (d < g->size && !(me & d))
		d *= 2;
	if (me)
		gf_recv_cut(s, gf_group_rank(g, me - d), held(g, data, cut, me, d));
	first = s->nsteps;
	for (d /= 2; d; d /= 2) {
		next = s->nsteps;
		if (me + d < g->size)
			gf_send_cut(s, gf_group_rank(g, me + d), held(g, data, cut, me + d, d));
		in_turn(s, first, next);
	}
}

/* The stage that began at `first` sends nothing before the last one ended, and then one message
 * after the other. */
static void in_stages(const struct gf_coll_args *args, struct gf_schedule *s, size_t first)
{
	size_t i, before = first;

	for (i = first; first && !args->segment_elems && i < s->nsteps; i++) {
		if (s->steps[i].op != GF_STEP_SEND)
			continue;
		s->steps[i].after = (uint32_t)before;
		before = i + 1;
	}
}

/* Reduces a range of the message to the host's master. */
static void gather_sum(const struct gf_coll_args *args, struct gf_schedule *s,
		       const struct gf_group *host, struct gf_range range)
{
	struct gf_cut cut = {.segment_elems = args->segment_elems};
	size_t first;

	gf_ring_reduce_scatter(s, host, range, &cut);
	first = s->nsteps;
	gather(s, host, range, &cut);
	in_stages(args, s, first);
}

/* The ring all-gather of a host whose master has the whole message. A lossy codec may round a part
 * again on its way down from the master; the master then gets the part back with the bits that the
 * others have. */
static void pass_round(struct gf_schedule *s, const struct gf_group *host, struct gf_range range,
		       const struct gf_cut *cut)
{
	int size = host->size, next = (host->me + 1) % size, k;
	int previous = (host->me + size - 1) % size;

	for (k = 0; k < size - 1; k++) {
		struct gf_range out = gf_range_part(range, size, (host->me + size - k) % size);
		struct gf_range in = gf_range_part(range, size, (previous + size - k) % size);

		out.count = next ? out.count : 0;
		in.count = host->me ? in.count : 0;
		gf_exchange(s, gf_group_rank(host, next), gf_pieces_of(out, cut),
			    gf_group_rank(host, previous), gf_pieces_of(in, cut));
	}
}

static void spread_sum(const struct gf_coll_args *args, struct gf_schedule *s,
		       const struct gf_group *host, struct gf_range range)
{
	struct gf_cut cut = {.segment_elems = args->segment_elems};
	size_t first = s->nsteps;

	scatter(s, host, range, &cut);
	in_stages(args, s, first);
	first = s->nsteps;
	if (s->lossy)
		gf_ring_all_gather(s, host, range, &cut);
	else
		pass_round(s, host, range, &cut);
	in_stages(args, s, first);
}

/* A host works on the parts of its master's ring one after the other, so that the ring begins with
 * the first part while hosts still work on the rest. Parts are not used if their pieces would be
 * shorter than a segment; without segments the stages are Eq. 4's. */
static int turns(const struct gf_coll_args *args, const struct gf_group *masters)
{
	size_t parts = (size_t)args->ranks, n = args->segment_elems;

	return n && args->count_elems / parts >= n ? masters->size : 1;
}

/* The range that the ring of masters works on in turn i, and the range that is there by then. */
static struct gf_range turn_range(const struct gf_group *masters, int nturns, int back,
				  struct gf_range data)
{
	if (nturns == 1)
		return data;
	return gf_range_part(data, nturns, (masters->me + 2 * nturns - back) % nturns);
}

/* What the rank's host owns between the halves. */
static struct gf_range block_of(const struct gf_coll_args *args, int size, int rank)
{
	return gf_range_part(gf_data(0, args->count_elems), args->ranks / size, rank / size);
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	int size = group_size(args);

	return gf_range_part(block_of(args, size, rank), size, rank % size);
}

/* The masters' rings; of a half, the host's block goes out to its owners, or is fetched from them.
 */
static void build_masters(const struct gf_coll_args *args, const struct gf_group *host,
			  const struct gf_group *masters, struct gf_schedule *s)
{
	struct gf_range data = gf_data(0, args->count_elems);
	struct gf_range block = block_of(args, host->size, s->rank);
	struct gf_cut cut = {.segment_elems = args->segment_elems};

	if (args->half == GF_COLL_ALL_GATHER)
		gather(s, host, block, &cut);
	if (!host->me && args->half != GF_COLL_ALL_GATHER)
		gf_ring_reduce_scatter(s, masters, data, &cut);
	if (!host->me && args->half != GF_COLL_REDUCE_SCATTER)
		gf_ring_all_gather(s, masters, data, &cut);
	if (args->half == GF_COLL_REDUCE_SCATTER)
		scatter(s, host, block, &cut);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_range data = gf_data(0, args->count_elems);
	int size = group_size(args), i, n;
	struct gf_group host = {rank - rank % size, 1, size, rank % size};
	struct gf_group masters = {0, size, args->ranks / size, rank / size};
	size_t first;

	n = turns(args, &masters);
	for (i = 0; args->half != GF_COLL_ALL_GATHER && i < n; i++)
		gather_sum(args, s, &host, turn_range(&masters, n, i + 1, data));

	gf_schedule_stage(s, 1);
	first = s->nsteps;
	build_masters(args, &host, &masters, s);
	in_stages(args, s, first);

	gf_schedule_stage(s, 2);
	for (i = 0; args->half != GF_COLL_REDUCE_SCATTER && i < n; i++)
		spread_sum(args, s, &host, turn_range(&masters, n, i, data));
}

/* MANUAL
 * Groups reduce to a master, masters go round a ring, and masters tell their group.
 * It takes two factors. */
const struct gf_algorithm gf_algorithm_hierarchical = {
	.name = "hierarchical",
	.description = "reduce to masters, ring of masters, broadcast",
	.place = 60,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES | GF_ALGORITHM_LEVELS |
		  GF_ALGORITHM_TWO_LEVELS,
	.cost = cost,
	.owned = owned,
	.build = build,
};
