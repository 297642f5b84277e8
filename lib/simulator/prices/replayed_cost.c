/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/prices/price.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "simulator/replay/replay.h"

/* A message that was replayed as it is. */
struct sized {
	size_t count_elems;
	double bytes, seconds;
};

struct gf_derived_entry {
	const struct gf_fabric_net *net;
	const char *algorithm;
	int ranks, servers;
	int *factors;
	const char **stage_algorithms; /* or NULL */
	size_t nfactors;
	struct gf_derived_cost cost;
	struct gf_line *lines;
	size_t nreplayed; /* steps that the cost comes from */
	unsigned counted; /* in the derived's count of that number */
	int lanes;
	struct gf_contention_entry entry;
	struct gf_contention contention;
	struct sized *sized;
	size_t nsized, sized_capacity;
};

static bool same_lines(const struct gf_cost_line *a, const struct gf_cost_line *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].from_bytes != b[i].from_bytes || a[i].startup_s != b[i].startup_s ||
		    a[i].per_byte_s != b[i].per_byte_s)
			return false;
	return true;
}

static bool same_net(const struct gf_cost_net *a, const struct gf_cost_net *b)
{
	size_t i;

	for (i = 0; i < a->nlevels && i < b->nlevels; i++) {
		const struct gf_link_cost *x = &a->links[i], *y = &b->links[i];

		if (a->sizes[i] != b->sizes[i] || x->alpha_s != y->alpha_s ||
		    x->beta_s_per_byte != y->beta_s_per_byte ||
		    x->gamma_s_per_byte != y->gamma_s_per_byte || x->nlarger != y->nlarger ||
		    !same_lines(x->larger, y->larger, x->nlarger))
			return false;
	}
	return a->nlevels == b->nlevels;
}

static const struct gf_fabric_net *net_of(struct gf_derived *d, const struct gf_cost_net *net)
{
	const size_t n = net->nlevels;
	struct gf_fabric_net *to;
	size_t i;

	for (i = 0; i < d->nnets; i++)
		if (same_net(&d->nets[i]->cost, net))
			return d->nets[i];
	to = gf_xcalloc(1, sizeof(*to));
	to->links = gf_xmemdup(net->links, n * sizeof(*to->links));
	to->sizes = gf_xmemdup(net->sizes, n * sizeof(*to->sizes));
	for (i = 0; i < n; i++)
		if (net->links[i].nlarger)
			to->links[i].larger =
				gf_xmemdup(net->links[i].larger,
					   net->links[i].nlarger * sizeof(*net->links[i].larger));
	to->cost = (struct gf_cost_net){n, to->sizes, to->links, NULL};
	*gf_array_push(&d->nets, &d->nnets, &d->nets_capacity) = to;
	return to;
}

static void free_net(struct gf_fabric_net *net)
{
	size_t i;

	for (i = 0; i < net->cost.nlevels; i++)
		if (net->links[i].nlarger)
			free((struct gf_cost_line *)net->links[i].larger);
	free(net->links);
	free(net->sizes);
	free(net);
}

static bool same(const struct gf_derived_entry *e, const struct gf_fabric_net *net,
		 const struct gf_algorithm *a, const struct gf_coll_args *args)
{
	size_t i;

	if (e->net != net || strcmp(e->algorithm, a->name) != 0 || e->ranks != args->ranks ||
	    e->servers != args->servers || e->nfactors != args->nfactors ||
	    !e->stage_algorithms != !args->stage_algorithms)
		return false;
	for (i = 0; i < e->nfactors; i++)
		if (e->factors[i] != args->factors[i] ||
		    (e->stage_algorithms &&
		     strcmp(e->stage_algorithms[i], args->stage_algorithms[i]) != 0))
			return false;
	return true;
}

static struct gf_derived_entry *add(struct gf_derived *d, const struct gf_fabric_net *net,
				    const struct gf_algorithm *a, const struct gf_coll_args *args)
{
	struct gf_derived_entry *e = gf_xcalloc(1, sizeof(*e));
	size_t n = args->nfactors, i;

	e->net = net;
	e->algorithm = a->name;
	e->ranks = args->ranks;
	e->servers = args->servers;
	e->nfactors = n;
	if (n > 0)
		e->factors = gf_xmemdup(args->factors, n * sizeof(*e->factors));
	if (n > 0 && args->stage_algorithms) {
		e->stage_algorithms = gf_xcalloc(n, sizeof(*e->stage_algorithms));
		for (i = 0; i < n; i++)
			e->stage_algorithms[i] = gf_xstrdup(args->stage_algorithms[i]);
	}
	*gf_array_push(&d->entries, &d->nentries, &d->capacity) = e;
	return e;
}

/* --- replays ----------------------------------------------------------------
 */

/*
 * An algorithm's schedules on the network of a closed form, to be replayed at any size: that of an
 * element is the replay's, their number the schedule's.
 */
struct bench {
	const struct gf_algorithm *algorithm;
	struct gf_coll_args args;
	const struct gf_cost_net *net;
	struct gf_schedule *ranks;
	size_t nsteps;
	size_t nreplayed; /* steps so far */
};

/* -E2BIG: more than GF_DERIVED_STEPS_MOST steps. Released in either case; the network is
 * borrowed. */
static int bench_init(struct bench *b, const struct gf_algorithm *a,
		      const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	int rank, rc = 0;

	*b = (struct bench){.algorithm = a, .args = *args, .net = net};
	/* every rank sends and receives */
	if (args->ranks > GF_DERIVED_STEPS_MOST / 2)
		return -E2BIG;
	b->ranks = gf_xcalloc((size_t)args->ranks, sizeof(*b->ranks));
	for (rank = 0; rank < args->ranks && rc == 0; rank++) {
		rc = gf_algorithm_schedule(a, args, rank, &b->ranks[rank], NULL);
		b->nsteps += b->ranks[rank].nsteps;
		if (b->nsteps > GF_DERIVED_STEPS_MOST)
			rc = -E2BIG;
	}
	return rc;
}

static void bench_release(struct bench *b)
{
	int rank;

	for (rank = 0; b->ranks && rank < b->args.ranks; rank++)
		gf_schedule_release(&b->ranks[rank]);
	free(b->ranks);
	*b = (struct bench){0};
}

/* `n` messages at once, each of so many bytes; NAN: too many steps. */
static double bench_s(struct bench *b, double bytes, size_t n)
{
	struct gf_replay_message *messages;
	struct gf_replay_input in = {.ranks = b->args.ranks, .net = b->net};
	struct gf_replay_result result;
	double end_s = NAN;
	size_t i;

	if (n * b->nsteps > GF_DERIVED_STEPS_MOST)
		return NAN;
	b->nreplayed += n * b->nsteps;
	messages = gf_xcalloc(n, sizeof(*messages));
	for (i = 0; i < n; i++)
		messages[i] = (struct gf_replay_message){
			.ranks = b->ranks,
			.element.bytes = bytes / (double)b->args.count_elems,
		};
	in.messages = messages;
	in.nmessages = n;
	if (!gf_replay(&in, &result, NULL)) {
		end_s = result.end_s;
		gf_replay_result_release(&result);
	}
	free(messages);
	return end_s;
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
	struct bench *bench;
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
static struct gf_line tangent(struct bench *b, double bytes)
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

static bool form_holds(struct bench *b, double least, double most)
{
	struct gf_coll_args args = b->args;
	double elems = (double)args.count_elems, bytes;
	int i;

	for (i = 0; i < FORM_AT; i++) {
		bytes = least * pow(most / least, i / (FORM_AT - 1.));
		args.elem_bytes = (size_t)fmin(ceil(bytes / elems), 0x1p40);
		bytes = (double)args.elem_bytes * elems;
		if (!agree(b->algorithm->cost(&args, b->net).s, bench_s(b, bytes, 1), FORM))
			return false;
	}
	return true;
}

/* The lines of one message's cost, to be freed; none where the closed form holds. */
static struct gf_line *bench_lines(struct bench *b, size_t *nlines)
{
	struct fit f = {.bench = b};
	double least = INFINITY, most = 0;
	struct gf_line high;
	bool jumps = false;
	size_t i;

	for (i = 0; i < b->net->nlevels; i++) {
		const struct gf_link_cost *l = &b->net->links[i];
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

/* gamma_n of startup + gamma_n * per_byte * bytes, 1 <= n <= lanes. */
static void find_contention(struct gf_derived_entry *e, struct bench *b, int lanes)
{
	const double bytes = GF_DERIVED_BYTES, longer = bytes * (1 + 0x1p-10);
	double alone_s = bench_s(b, bytes, 1), end_s, *gamma;
	double drain_s = (bench_s(b, longer, 1) - alone_s) / (longer - bytes) * bytes;
	size_t n;

	e->lanes = lanes;
	if (lanes < 2 || !(drain_s > 0))
		return;
	gamma = gf_xcalloc((size_t)lanes, sizeof(*gamma));
	gamma[0] = 1;
	for (n = 2; n <= (size_t)lanes; n++) {
		end_s = bench_s(b, bytes, n);
		if (isnan(end_s)) /* the rest follows from the last one */
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

static void derive(struct gf_derived *d, struct gf_derived_entry *e, const struct gf_algorithm *a,
		   const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	struct gf_coll_args whole = *args;
	bool first = !e->lanes;
	struct bench b;

	whole.count_elems = gf_coll_divisible(args);
	e->lanes = d->lanes > 1 ? d->lanes : 1;
	if (uniform(args, net) && e->lanes < 2)
		return;
	if (bench_init(&b, a, &whole, net) == 0) {
		if (first && !uniform(args, net)) {
			e->lines = bench_lines(&b, &e->cost.nlines);
			e->cost.lines = e->lines;
			e->cost.nsteps = b.nsteps;
		}
		find_contention(e, &b, e->lanes);
		e->nreplayed += b.nreplayed;
	} else if (!uniform(args, net)) {
		d->unpriced = e->algorithm;
	}
	bench_release(&b);
	if (!e->cost.contention && e->lanes > 1)
		d->unknown = e->algorithm;
}

static bool has_steps(const struct gf_algorithm *a, const struct gf_coll_args *args,
		      const struct gf_cost_net *net)
{
	size_t i;

	for (i = 0; i < net->nlevels; i++)
		if (!(net->links[i].beta_s_per_byte > 0) || !net->sizes)
			return false;
	return args->ranks > 1 && a->build;
}

static struct gf_derived_entry *find(struct gf_derived *d, const struct gf_algorithm *a,
				     const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	const struct gf_fabric_net *on = net_of(d, net);
	struct gf_derived_entry *e = NULL;
	size_t i;

	for (i = 0; i < d->nentries && !e; i++)
		if (same(d->entries[i], on, a, args))
			e = d->entries[i];
	if (!e)
		e = add(d, on, a, args);
	if (!e->lanes || e->lanes < d->lanes)
		derive(d, e, a, args, net);
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
	struct sized *s, now = {args->count_elems, bytes, NAN};
	struct gf_derived_entry *e;
	struct bench b;
	size_t i;

	if (!has_steps(a, args, net) || !args->count_elems)
		return NAN;
	e = find(d, a, args, net);
	for (i = 0; i < e->nsized; i++) {
		s = &e->sized[i];
		if (s->count_elems == now.count_elems && s->bytes == bytes)
			return s->seconds;
	}
	if (bench_init(&b, a, args, net) == 0)
		now.seconds = bench_s(&b, bytes, 1);
	bench_release(&b);
	*gf_array_push(&e->sized, &e->nsized, &e->sized_capacity) = now;
	return now.seconds;
}

void gf_derived_release(struct gf_derived *d)
{
	size_t i, k;

	for (i = 0; i < d->nentries; i++) {
		struct gf_derived_entry *e = d->entries[i];

		for (k = 0; e->stage_algorithms && k < e->nfactors; k++)
			free((char *)e->stage_algorithms[k]);
		free(e->stage_algorithms);
		free(e->factors);
		free(e->lines);
		free(e->sized);
		free(e->entry.gamma);
		free(e);
	}
	for (i = 0; i < d->nnets; i++)
		free_net(d->nets[i]);
	free(d->entries);
	free(d->nets);
	memset(d, 0, sizeof(*d));
}
