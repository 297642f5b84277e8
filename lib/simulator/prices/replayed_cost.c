/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/prices/price.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/verify.h"
#include "simulator/replay/replay.h"

/*
 * An algorithm's schedules on the network of a closed form, to be replayed at any size: that of an
 * element is the replay's, their number the schedule's. What a replay took is kept.
 */
struct gf_bench {
	const struct gf_fabric_net *net;
	const struct gf_algorithm *algorithm;
	struct gf_coll_args args; /* with lists of its own */
	bool sized;               /* nsteps and rc are known */
	size_t nsteps;
	int rc;           /* -E2BIG: more than GF_DERIVED_STEPS_MOST steps */
	size_t nreplayed; /* steps that were asked for, kept or not */
	/* while it replays */
	struct gf_schedule *ranks;
	uint32_t **partners;
	struct replayed {
		double bytes, seconds;
		size_t n;
	} * replays;
	size_t nreplays, capacity;
};

struct gf_derived_entry {
	struct gf_bench *bench; /* of a message that everything divides */
	struct gf_derived_cost cost;
	struct gf_line *lines;
	size_t nreplayed; /* steps that the cost comes from */
	unsigned counted; /* in the derived's count of that number */
	int lanes;
	struct gf_contention_entry entry;
	struct gf_contention contention;
};

static bool same_lines(const struct gf_cost_line *a, const struct gf_cost_line *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].from_bytes != b[i].from_bytes || a[i].startup_s != b[i].startup_s ||
		    a[i].per_byte_s != b[i].per_byte_s)
			return false;
	return true;
}

static bool same_net(const struct gf_cost_net *a, const struct gf_cost_net *b)
{
	for (size_t i = 0; i < a->nlevels && i < b->nlevels; i++) {
		const struct gf_link_cost *x = &a->links[i], *y = &b->links[i];

		if (a->sizes[i] != b->sizes[i] || x->alpha_s != y->alpha_s ||
		    x->beta_s_per_byte != y->beta_s_per_byte ||
		    x->gamma_s_per_byte != y->gamma_s_per_byte || x->nlarger != y->nlarger ||
		    !same_lines(x->larger, y->larger, x->nlarger))
			return false;
	}
	return a->nlevels == b->nlevels;
}

static const struct gf_fabric_net *net_of(struct gf_replays *r, const struct gf_cost_net *net)
{
	const size_t n = net->nlevels;
	struct gf_fabric_net *to;

	for (size_t i = 0; i < r->nnets; i++)
		if (same_net(&r->nets[i]->cost, net))
			return r->nets[i];
	to = gf_xcalloc(1, sizeof(*to));
	to->links = gf_xmemdup(net->links, n * sizeof(*to->links));
	to->sizes = gf_xmemdup(net->sizes, n * sizeof(*to->sizes));
	for (size_t i = 0; i < n; i++)
		if (net->links[i].nlarger)
			to->links[i].larger =
				gf_xmemdup(net->links[i].larger,
					   net->links[i].nlarger * sizeof(*net->links[i].larger));
	to->cost = (struct gf_cost_net){n, to->sizes, to->links, NULL};
	*gf_array_push(&r->nets, &r->nnets, &r->nets_capacity) = to;
	return to;
}

static void free_net(struct gf_fabric_net *net)
{
	for (size_t i = 0; i < net->cost.nlevels; i++)
		if (net->links[i].nlarger)
			free((struct gf_cost_line *)net->links[i].larger);
	free(net->links);
	free(net->sizes);
	free(net);
}

static bool same(const struct gf_bench *b, const struct gf_fabric_net *net,
		 const struct gf_algorithm *a, const struct gf_coll_args *args)
{
	if (b->net != net || b->args.count_elems != args->count_elems || b->algorithm != a ||
	    b->args.ranks != args->ranks || b->args.servers != args->servers ||
	    b->args.half != args->half || gf_coll_sharers(&b->args) != gf_coll_sharers(args) ||
	    b->args.nfactors != args->nfactors ||
	    !b->args.stage_algorithms != !args->stage_algorithms)
		return false;
	for (size_t i = 0; i < args->nfactors; i++)
		if (b->args.factors[i] != args->factors[i] ||
		    (args->stage_algorithms &&
		     strcmp(b->args.stage_algorithms[i], args->stage_algorithms[i]) != 0))
			return false;
	return true;
}

/* --- replays ----------------------------------------------------------------
 */

static struct gf_bench *bench_of(struct gf_replays *r, const struct gf_fabric_net *net,
				 const struct gf_algorithm *a, const struct gf_coll_args *args)
{
	size_t n = args->nfactors, i;
	struct gf_bench *b;
	char **names;

	for (i = 0; i < r->nbenches; i++)
		if (same(r->benches[i], net, a, args))
			return r->benches[i];
	b = gf_xcalloc(1, sizeof(*b));
	*b = (struct gf_bench){.net = net, .algorithm = a, .args = *args};
	if (n > 0)
		b->args.factors = gf_xmemdup(args->factors, n * sizeof(*args->factors));
	if (args->stage_algorithms) {
		names = gf_xcalloc(n + 1, sizeof(*names));
		for (i = 0; i < n; i++)
			names[i] = gf_xstrdup(args->stage_algorithms[i]);
		b->args.stage_algorithms = (const char *const *)names;
	}
	*gf_array_push(&r->benches, &r->nbenches, &r->capacity) = b;
	return b;
}

/* Its schedules, which take room, go; what is known of them stays. */
static void bench_rest(struct gf_bench *b)
{
	for (int rank = 0; b->ranks && rank < b->args.ranks; rank++)
		gf_schedule_release(&b->ranks[rank]);
	free(b->ranks);
	gf_partners_free(b->partners, b->args.ranks);
	b->ranks = NULL;
	b->partners = NULL;
}

static void bench_free(struct gf_bench *b)
{
	bench_rest(b);
	for (size_t i = 0; b->args.stage_algorithms && i < b->args.nfactors; i++)
		free((char *)b->args.stage_algorithms[i]);
	free((void *)b->args.stage_algorithms);
	free(b->args.nfactors ? (void *)b->args.factors : NULL);
	free(b->replays);
	free(b);
}

static int bench_build(struct gf_bench *b)
{
	int rank, rc = 0;
	size_t nsteps = 0;

	b->sized = true;
	/* every rank sends and receives */
	if (b->args.ranks > GF_DERIVED_STEPS_MOST / 2)
		return -E2BIG;
	b->ranks = gf_xcalloc((size_t)b->args.ranks, sizeof(*b->ranks));
	for (rank = 0; rank < b->args.ranks && rc == 0; rank++) {
		rc = gf_algorithm_schedule(b->algorithm, &b->args, rank, &b->ranks[rank], NULL);
		nsteps += b->ranks[rank].nsteps;
		if (nsteps > GF_DERIVED_STEPS_MOST)
			rc = -E2BIG;
	}
	b->nsteps = nsteps;
	rc = rc ?: gf_verify_shape(b->ranks, b->args.ranks, &b->partners, NULL);
	if (rc < 0)
		bench_rest(b);
	return rc;
}

static int bench_size(struct gf_bench *b)
{
	if (!b->sized)
		b->rc = bench_build(b);
	return b->rc;
}

static double bench_replay(struct gf_bench *b, double bytes, size_t n)
{
	GF_FREED struct gf_replay_message *messages = gf_xcalloc(n, sizeof(*messages));
	const struct gf_replay_input in = {
		.ranks = b->args.ranks,
		.net = &b->net->cost,
		.messages = messages,
		.nmessages = n,
	};
	GF_RELEASED(gf_replay_result_release) struct gf_replay_result result = {0};

	if (!b->ranks)
		bench_build(b);
	for (size_t i = 0; i < n; i++)
		messages[i] = (struct gf_replay_message){
			.ranks = b->ranks,
			.partners = b->partners,
			.element.bytes = bytes / (double)b->args.count_elems,
		};
	return gf_replay(&in, &result, NULL) ? NAN : result.end_s;
}

/* `n` messages at once, each of so many bytes; NAN: too many steps. */
static double bench_s(struct gf_bench *b, double bytes, size_t n)
{
	struct replayed now = {.bytes = bytes, .n = n};

	if (bench_size(b) < 0 || n * b->nsteps > GF_DERIVED_STEPS_MOST)
		return NAN;
	b->nreplayed += n * b->nsteps;
	for (size_t i = 0; i < b->nreplays; i++)
		if (b->replays[i].bytes == bytes && b->replays[i].n == n)
			return b->replays[i].seconds;
	now.seconds = bench_replay(b, bytes, n);
	*gf_array_push(&b->replays, &b->nreplays, &b->capacity) = now;
	return now.seconds;
}

/* --- lines ------------------------------------------------------------------
 */

/*
 * A replayed cost as lines. As long as the order of events stays, every time in a replay is a line
 * over the message's size; so a cost is a chain of lines. They are found by turns of tangents and
 * of the points where these meet. This is exact where the cost is the greatest of a few lines. It
 * is not where another order of events changes the shares of a link; the search then ends at DEPTH.
 */
#define TOLERANCE 1e-3 /* of lines against replays */
#define FORM      1e-9 /* of closed forms: sums in another order */
#define FORM_AT   7    /* sizes */
#define MUCH      1e3
#define DEPTH     5

struct fit {
	struct gf_bench *bench;
	struct gf_line *lines;
	size_t nlines, capacity;
};

static bool agree(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fmax(a, b);
}

/* From its from_bytes on; a cost does not fall as messages grow. */
static void add_line(struct fit *f, struct gf_line l)
{
	struct gf_line *before = f->nlines ? &f->lines[f->nlines - 1] : NULL;

	if (before && before->startup_s == l.startup_s && before->per_byte_s == l.per_byte_s)
		return;
	if (before) {
		l.startup_s = fmax(l.startup_s,
				   gf_line_s(before, l.from_bytes) - l.per_byte_s * l.from_bytes);
		before->below_bytes = l.from_bytes;
	}
	*gf_array_push(&f->lines, &f->nlines, &f->capacity) = l;
}

static struct gf_line through(double from, double from_s, double to, double to_s)
{
	double slope = fmax(0, (to_s - from_s) / (to - from));

	/* no startup is negative */
	slope = fmin(slope, from_s / from);
	return (struct gf_line){from, INFINITY, from_s - slope * from, slope};
}

/* The line that a message of that size follows. */
static struct gf_line tangent(struct gf_bench *b, double bytes)
{
	double longer = bytes * (1 + 0x1p-10);

	return through(bytes, bench_s(b, bytes, 1), longer, bench_s(b, longer, 1));
}

/* Between the sizes where `low` and `high` are tangents. */
static void fit(struct fit *f, struct gf_line low, struct gf_line high, int depth)
{
	struct gf_line middle;
	double from = low.from_bytes, to = high.from_bytes, meet;

	add_line(f, low);
	if (agree(gf_line_s(&low, to), gf_line_s(&high, to), TOLERANCE) &&
	    agree(gf_line_s(&low, from), gf_line_s(&high, from), TOLERANCE))
		return;
	meet = (low.startup_s - high.startup_s) / (high.per_byte_s - low.per_byte_s);
	if (!(meet > from && meet < to))
		meet = sqrt(from * to);
	middle = tangent(f->bench, meet);
	if (agree(gf_line_s(&low, meet), gf_line_s(&middle, meet), TOLERANCE) &&
	    agree(gf_line_s(&high, meet), gf_line_s(&middle, meet), TOLERANCE)) {
		high.from_bytes = meet;
		add_line(f, high);
	} else if (depth) {
		fit(f, low, middle, depth - 1);
		fit(f, middle, high, depth - 1);
	} else {
		add_line(f, through(from, gf_line_s(&low, from), to, gf_line_s(&high, to)));
	}
}

static bool form_holds(struct gf_bench *b, double least, double most)
{
	struct gf_coll_args args = b->args;
	double elems = (double)args.count_elems, bytes;

	for (int i = 0; i < FORM_AT; i++) {
		bytes = least * pow(most / least, i / (FORM_AT - 1.));
		args.elem_bytes = (size_t)fmin(ceil(bytes / elems), 0x1p40);
		bytes = (double)args.elem_bytes * elems;
		if (!agree(b->algorithm->cost(&args, &b->net->cost).s, bench_s(b, bytes, 1), FORM))
			return false;
	}
	return true;
}

/* The lines of one message's cost, to be freed; none where the closed form holds. */
static struct gf_line *bench_lines(struct gf_bench *b, size_t *nlines)
{
	const struct gf_cost_net *net = &b->net->cost;
	struct fit f = {.bench = b};
	double least = INFINITY, most = 0;
	struct gf_line high;
	bool jumps = false;

	for (size_t i = 0; i < net->nlevels; i++) {
		const struct gf_link_cost *l = &net->links[i];
		double bytes = l->alpha_s * (1 / l->beta_s_per_byte);

		if (bytes > 0)
			least = fmin(least, bytes);
		most = fmax(most, bytes);
		jumps |= l->nlarger > 0;
	}
	*nlines = 0;
	if (!(most > 0))
		least = most = 1;
	/* from startups alone to transfers alone */
	least /= MUCH;
	most *= MUCH * b->args.ranks;
	if (jumps || form_holds(b, least, most))
		return NULL;
	high = tangent(b, most);
	fit(&f, tangent(b, least), high, DEPTH);
	if (!agree(gf_line_s(&f.lines[f.nlines - 1], most), gf_line_s(&high, most), TOLERANCE))
		add_line(&f, high);
	f.lines[0].from_bytes = 0;
	*nlines = f.nlines;
	return f.lines;
}

/* --- costs ------------------------------------------------------------------
 */

/* Messages that are replayed at once; gamma of more follows from the last one's. */
#define AT_ONCE_MOST 64

/* gamma_n of startup + gamma_n * per_byte * bytes, 1 <= n <= lanes. */
static void find_contention(struct gf_derived_entry *e, struct gf_bench *b, int lanes)
{
	const double bytes = GF_DERIVED_BYTES, longer = bytes * (1 + 0x1p-10);
	double alone_s = bench_s(b, bytes, 1), end_s, *gamma;
	double drain_s = (bench_s(b, longer, 1) - alone_s) / (longer - bytes) * bytes;
	size_t n;

	e->lanes = lanes;
	if (lanes < 2 || !(drain_s > 0))
		return;
	gamma = gf_xcalloc(AT_ONCE_MOST, sizeof(*gamma));
	gamma[0] = 1;
	for (n = 2; n <= (size_t)lanes && n <= AT_ONCE_MOST; n++) {
		end_s = bench_s(b, bytes, n);
		if (isnan(end_s))
			break;
		gamma[n - 1] = fmax(gamma[n - 2], 1 + (end_s - alone_s) / drain_s);
	}
	free(e->entry.gamma);
	e->entry = (struct gf_contention_entry){.gamma = gamma, .ngamma = n - 1};
	e->contention = (struct gf_contention){&e->entry, 1};
	if (n > 2)
		e->cost.contention = &e->contention;
}

/* One level, on which links carry what their own rank sends and receives: there closed forms are
 * exact, whatever is left over in parts. */
static bool uniform(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	return !args->servers && (net->nlevels == 1 || net->sizes[0] >= args->ranks);
}

static void derive(struct gf_derived *d, struct gf_derived_entry *e)
{
	struct gf_bench *b = e->bench;
	const char *name = b->algorithm->name;
	const bool even = uniform(&b->args, &b->net->cost), first = !e->lanes;

	e->lanes = d->lanes > 1 ? d->lanes : 1;
	if (even && e->lanes < 2)
		return;
	b->nreplayed = 0;
	if (bench_size(b) == 0) {
		if (first && !even) {
			e->lines = bench_lines(b, &e->cost.nlines);
			e->cost.lines = e->lines;
			e->cost.nsteps = b->nsteps;
		}
		find_contention(e, b, e->lanes);
		e->nreplayed += b->nreplayed;
	} else if (!even) {
		d->unpriced = name;
	}
	bench_rest(b);
	if (!e->cost.contention && e->lanes > 1)
		d->unknown = name;
}

static bool has_steps(const struct gf_algorithm *a, const struct gf_coll_args *args,
		      const struct gf_cost_net *net)
{
	for (size_t i = 0; i < net->nlevels; i++)
		if (!(net->links[i].beta_s_per_byte > 0) || !net->sizes)
			return false;
	return args->ranks > 1 && a->build;
}

static struct gf_replays *replays_of(struct gf_derived *d)
{
	return d->replays ? d->replays : &d->own;
}

static struct gf_derived_entry *find(struct gf_derived *d, const struct gf_algorithm *a,
				     const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	const struct gf_fabric_net *on = net_of(replays_of(d), net);
	struct gf_coll_args whole = *args;
	struct gf_derived_entry *e = NULL;

	whole.count_elems = gf_coll_divisible(args);
	for (size_t i = 0; i < d->nentries && !e; i++)
		if (same(d->entries[i]->bench, on, a, &whole))
			e = d->entries[i];
	if (!e) {
		e = gf_xcalloc(1, sizeof(*e));
		e->bench = bench_of(replays_of(d), on, a, &whole);
		*gf_array_push(&d->entries, &d->nentries, &d->capacity) = e;
	}
	if (!e->lanes || e->lanes < d->lanes)
		derive(d, e);
	if (e->counted != d->count)
		d->nreplayed += e->nreplayed;
	e->counted = d->count;
	return e;
}

const struct gf_derived_cost *gf_derived_find(struct gf_derived *d, const struct gf_algorithm *a,
					      const struct gf_coll_args *args,
					      const struct gf_cost_net *net)
{
	static const struct gf_derived_cost nothing;

	return has_steps(a, args, net) ? &find(d, a, args, net)->cost : &nothing;
}

double gf_derived_message_s(struct gf_derived *d, const struct gf_algorithm *a,
			    const struct gf_coll_args *args, const struct gf_cost_net *net,
			    double bytes)
{
	struct gf_bench *b;
	double seconds;

	if (!has_steps(a, args, net) || !args->count_elems)
		return NAN;
	b = bench_of(replays_of(d), find(d, a, args, net)->bench->net, a, args);
	seconds = bench_s(b, bytes, 1);
	bench_rest(b);
	return seconds;
}

void gf_derived_release(struct gf_derived *d)
{
	for (size_t i = 0; i < d->nentries; i++) {
		free(d->entries[i]->lines);
		free(d->entries[i]->entry.gamma);
		free(d->entries[i]);
	}
	free(d->entries);
	gf_replays_release(&d->own);
	memset(d, 0, sizeof(*d));
}

void gf_replays_release(struct gf_replays *r)
{
	for (size_t i = 0; i < r->nbenches; i++)
		bench_free(r->benches[i]);
	for (size_t i = 0; i < r->nnets; i++)
		free_net(r->nets[i]);
	free(r->benches);
	free(r->nets);
	memset(r, 0, sizeof(*r));
}
