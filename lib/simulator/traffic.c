/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan's messages as they go, with their prices. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "cost/stat.h"
#include "simulator/predict.h"

/* --- sets -------------------------------------------------------------------
 */

/* The links of the ranks that were measured, without the all-reduces. */
static struct gf_fabric links_of(const struct gf_fabric *f, struct gf_network *links)
{
	struct gf_fabric bare = *f;

	*links = *f->network;
	links->nallreduce = 0;
	bare.network = links;
	bare.derived = NULL;
	bare.servers = 0;
	if (links->ranks && links->ranks != f->ranks) {
		bare.ranks = links->ranks;
		bare.nlevels = 0;
	}
	return bare;
}

/* The runtime moves it, and not another library. */
static bool has_steps(const struct gf_allreduce_cost *c)
{
	const struct gf_algorithm *a = gf_algorithm_find(c->algorithm);

	return a && a->build && !gf_stages_call(c->stages, c->nstages);
}

double gf_price_call_s(const struct gf_fabric *f)
{
	struct gf_network links;
	struct gf_fabric bare;
	struct gf_price form;
	GF_FREED double *beside = NULL;
	size_t n = 0, i;

	if (!f->network || !f->network->nallreduce || !f->network->nlevels)
		return 0;
	bare = links_of(f, &links);
	beside = gf_xcalloc(f->network->nallreduce, sizeof(*beside));
	for (i = 0; i < f->network->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &f->network->allreduce[i];
		const struct gf_priced m = {c->algorithm, c->stages, c->nstages, .bytes = 1};

		if (has_steps(c) && gf_allreduce_plain(c) &&
		    gf_price_message(&bare, &m, &form, NULL) == 0)
			beside[n++] = fmax(0, c->startup_s - form.line.startup_s);
	}
	return n ? gf_stat_median(beside, n) : 0;
}

int gf_price_sets(const struct gf_fabric *f, enum gf_wire_kind kind, double call_s,
		  struct gf_sim_message *m, struct gf_error *err)
{
	const struct gf_allreduce_cost *like =
		f->network ? gf_network_cheapest(f->network, m->bytes) : NULL;
	struct gf_line line;
	int rc = gf_price_set(f, gf_sparse_find(gf_wire_algorithm(kind)), m->bytes, &line, err);

	if (rc < 0)
		return rc;
	m->startup_s = line.startup_s + call_s;
	m->per_byte_s = line.per_byte_s;
	if (like)
		m->mutual = gf_beside_backward_of(like);
	return 0;
}

double gf_price_codings_s(const struct gf_fabric *f, const struct gf_wire *wire, const char *codec)
{
	const struct gf_codec_cost *c = gf_fabric_codec(f, codec);
	const struct gf_wire_handled sets = gf_wire_handled(wire->kind, f->ranks);

	if (!c || !wire->among)
		return 0;
	return sizeof(float) * wire->count_elems *
	       (sets.made * c->set_encode_s_per_byte + sets.taken * c->set_decode_s_per_byte);
}

/* --- messages ---------------------------------------------------------------
 */

/* The codec of the message must be known. */
static double ratio_of(const struct gf_message *m)
{
	return gf_codec_ratio(gf_codec_find(m->codec));
}

/* Closed forms cost time: what the last message was priced at serves those like it. */
struct pricing {
	const struct gf_plan *p;
	const struct gf_fabric *f;
	struct gf_price last;
	const struct gf_message *last_of; /* NULL: none yet */
	double call_s;                    /* of sets */
};

/* Backward loses its share of what the thread that moves messages does. The message is active then,
 * and slows backward: what that leaves of these seconds is lost, too. */
static void hold(const struct pricing *x, const void *cost, double seconds,
		 struct gf_sim_message *m)
{
	const struct gf_processing_entry *e = cost;
	const double slowdown = gf_sim_slowdown(m->mutual, x->p->model->overlap_slowdown, 1);

	if (e)
		m->holds_s += e->backward_share * seconds / fmax(slowdown, 1);
}

/* By the line for m->bytes. */
static int price_reduce(struct pricing *x, const struct gf_message *from, struct gf_sim_message *m,
			struct gf_error *err)
{
	const struct gf_priced priced = gf_traffic_priced(x->p, from, m);
	int rc = 0;

	if (!x->last_of || from->half != x->last_of->half ||
	    !gf_message_goes_as(from, x->last_of) || !gf_line_holds(&x->last.line, m->bytes))
		rc = gf_price_message(x->f, &priced, &x->last, err);
	if (rc < 0)
		return rc;
	x->last_of = from;
	m->startup_s = x->last.line.startup_s;
	m->per_byte_s = x->last.line.per_byte_s;
	m->gather_startup_s = x->last.gather.startup_s;
	m->gather_per_byte_s = x->last.gather.per_byte_s;
	m->load_per_byte_s = x->last.load_per_byte_s;
	m->contention = x->last.contention;
	m->mutual = x->last.mutual;
	hold(x, gf_fabric_codec(x->f, from->codec), x->last.handling_s_per_byte * m->bytes, m);
	return 0;
}

static int price_wire(struct pricing *x, const struct gf_message *from, const struct gf_wire *wire,
		      struct gf_sim_message *m, struct gf_error *err)
{
	double codings_s;
	int rc;

	m->bytes = gf_wire_set_bytes(wire, from->codec);
	if (wire->kind == GF_WIRE_REDUCE) {
		m->bytes = wire->size_bytes * wire->share * ratio_of(from);
		return price_reduce(x, from, m, err);
	}
	rc = gf_price_sets(x->f, wire->kind, x->call_s, m, err);
	codings_s = gf_price_codings_s(x->f, wire, from->codec);
	m->startup_s += codings_s;
	hold(x, gf_fabric_codec(x->f, from->codec), codings_s, m);
	return rc;
}

/* The collectives of a message, one after the other, cost what one of the sum of their startups and
 * bytes does. */
static int price_wires(struct pricing *x, const struct gf_message *from, struct gf_sim_message *m,
		       struct gf_error *err)
{
	struct gf_wire wires[GF_WIRES_MOST];
	size_t n = gf_plan_wires(x->p, m->first, m->last, wires), i;
	int rc = price_wire(x, from, &wires[0], m, err);

	for (i = 1; i < n && rc == 0; i++) {
		struct gf_sim_message next = *m;
		const double had = m->bytes;

		next.gather_startup_s = next.gather_per_byte_s = next.load_per_byte_s = 0;
		rc = price_wire(x, from, &wires[i], &next, err);
		m->startup_s += next.startup_s;
		m->gather_startup_s += next.gather_startup_s;
		m->holds_s = next.holds_s;
		m->bytes += next.bytes;
		m->per_byte_s = (m->per_byte_s * had + next.per_byte_s * next.bytes) / m->bytes;
		m->gather_per_byte_s =
			(m->gather_per_byte_s * had + next.gather_per_byte_s * next.bytes) /
			m->bytes;
		m->load_per_byte_s =
			(m->load_per_byte_s * had + next.load_per_byte_s * next.bytes) / m->bytes;
	}
	return rc;
}

double gf_selecting_s(const struct gf_fabric *f, const struct gf_plan *p, size_t first, size_t last)
{
	const struct gf_selection_cost *c =
		gf_fabric_selection(f, gf_selection_name(&p->selection));
	struct gf_wire wires[GF_WIRES_MOST];
	double bytes = 0, handled = 0;
	size_t n, i;

	const double own = gf_selection_s_per_byte(&p->selection);

	for (i = first; i <= last; i++)
		bytes += (double)gf_tensor_bytes(&p->model->tensors[i]);
	if (own > 0 || !c)
		return own * bytes;
	n = gf_plan_wires(p, first, last, wires);
	for (i = 0; i < n; i++)
		handled += gf_wire_handled_bytes(&wires[i], f->ranks);
	return gf_selection_passes_s(c, bytes, (double)gf_model_profile_bytes(p->model)) +
	       c->sent_s_per_byte * handled;
}

/* The thread that moves the message does that before and after it goes. */
static void price_selection(const struct pricing *x, struct gf_sim_message *m)
{
	const double seconds = gf_selecting_s(x->f, x->p, m->first, m->last);

	m->startup_s += seconds;
	if (m->half == GF_HALF_SPLIT)
		m->gather_startup_s += seconds / 2;
	hold(x, gf_fabric_selection(x->f, gf_selection_name(&x->p->selection)), seconds, m);
}

static int price(struct pricing *x, const struct gf_message *from, struct gf_sim_message *m,
		 struct gf_error *err)
{
	int rc;

	m->first = from->first;
	m->last = from->last;
	m->mode = from->mode;
	m->release = from->release;
	m->half = from->half;
	m->holds_s = m->gather_startup_s = m->gather_per_byte_s = m->load_per_byte_s = 0;
	rc = price_wires(x, from, m, err);
	if (rc == 0)
		price_selection(x, m);
	return rc;
}

static int price_all(struct pricing *x, struct gf_sim_message *messages, struct gf_error *err)
{
	for (size_t i = 0; i < x->p->nmessages; i++) {
		int rc = price(x, &x->p->messages[i], &messages[i], err);

		if (rc < 0) {
			gf_error_prefix(err, "message %zu", i);
			return rc;
		}
	}
	return 0;
}

/*
 * Messages that are cut anew: kept bytes are evenly spread, so a pack closes after the tensor with
 * which more than the threshold waits.
 */
static int pack(struct pricing *x, struct gf_traffic *t, struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	GF_FREED struct gf_sim_message *dense = t->messages;
	size_t room = p->model->ntensors, n = 0, first = 0, i, k;
	struct gf_wire wires[GF_WIRES_MOST];
	double waiting = 0;
	int rc = 0;

	gf_plan_wires(p, 0, p->model->ntensors - 1, wires);
	t->messages = gf_xcalloc(room + 1, sizeof(*t->messages));
	free(t->plan_message);
	t->plan_message = gf_xcalloc(room + 1, sizeof(*t->plan_message));
	for (i = 0; i < p->nmessages; i++) {
		for (k = dense[i].first; k <= dense[i].last; k++) {
			bool last = k + 1 == p->model->ntensors;

			waiting += wires[0].share * (double)gf_tensor_bytes(&p->model->tensors[k]);
			if (!last && waiting <= (double)p->threshold_bytes)
				continue;
			t->messages[n] = dense[i];
			t->messages[n].first = first;
			t->messages[n].last = k;
			t->messages[n].holds_s = 0;
			t->messages[n].bytes = waiting * ratio_of(&p->messages[i]);
			rc = rc ?: price_reduce(x, &p->messages[i], &t->messages[n], err);
			price_selection(x, &t->messages[n]);
			t->plan_message[n++] = i;
			first = k + 1;
			waiting = 0;
		}
		t->carrier[i] = first > dense[i].last ? n - 1 : n;
	}
	t->nmessages = n;
	return rc;
}

/* The numbers of its own that a selection sums when all messages have gone; by the algorithm of the
 * last message where nothing says what its own costs. */
static int append_own(struct pricing *x, struct gf_traffic *t, struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	struct gf_sim_message *m = &t->messages[t->nmessages];
	const size_t elems =
		gf_selection_own_elems(&p->selection, gf_model_profile_elems(p->model), p->ranks);
	int rc;

	if (!elems)
		return 0;
	*m = (struct gf_sim_message){
		.last = p->model->ntensors - 1,
		.mode = GF_MODE_NORMAL,
		.release = GF_RELEASE_BACKWARD_END,
		.bytes = (double)elems * sizeof(float),
	};
	rc = price_reduce(x, &gf_select_own_message, m, err);
	if (rc == -ENOTSUP)
		rc = price_reduce(x, &p->messages[p->nmessages - 1], m, err);
	t->plan_message[t->nmessages++] = p->nmessages;
	return rc;
}

/* A message's collective by its line, or as it is; no steps: the same. */
static int price_again(const struct pricing *x, const struct gf_traffic *t, size_t i, bool exactly,
		       struct gf_price *price, struct gf_error *err)
{
	const struct gf_sim_message *m = &t->messages[i];
	const struct gf_message *from = &x->p->messages[t->plan_message[i]];
	struct gf_priced priced = gf_traffic_priced(x->p, from, m);
	struct gf_wire wires[GF_WIRES_MOST];

	*price = (struct gf_price){0};
	if (gf_plan_wires(x->p, m->first, m->last, wires) > 1 || wires[0].kind != GF_WIRE_REDUCE)
		return 0;
	if (exactly)
		priced.count_elems = gf_wire_elems(&wires[0]);
	return gf_price_message(x->f, &priced, price, err);
}

/*
 * Prices messages as just so many elements take, replayed: what is left over in their parts may let
 * messages pass each other that otherwise wait. All of them, or none where these are too many
 * steps.
 */
static int replay_messages(const struct pricing *x, struct gf_traffic *t, struct gf_error *err)
{
	struct gf_price line, exact;
	size_t nsteps = 0, i;
	int rc = 0;

	for (i = 0; i < t->nmessages && rc == 0; i++) {
		rc = price_again(x, t, i, false, &line, err);
		nsteps += line.nsteps;
		if (nsteps > GF_DERIVED_STEPS_MOST)
			return rc;
	}
	for (i = 0; i < t->nmessages && rc == 0; i++) {
		struct gf_sim_message *m = &t->messages[i];

		rc = price_again(x, t, i, false, &line, err);
		if (rc < 0 || !line.nsteps)
			continue;
		rc = price_again(x, t, i, true, &exact, err);
		m->startup_s += exact.line.startup_s - line.line.startup_s;
		m->per_byte_s += exact.line.per_byte_s - line.line.per_byte_s;
		m->gather_startup_s += exact.gather.startup_s - line.gather.startup_s;
		m->gather_per_byte_s += exact.gather.per_byte_s - line.gather.per_byte_s;
	}
	return rc;
}

int gf_traffic_init(struct gf_traffic *t, const struct gf_plan *p, const struct gf_fabric *f,
		    struct gf_error *err)
{
	struct gf_fabric on = *f;
	struct pricing x = {.p = p, .f = &on};
	double flights;
	int rc;

	memset(t, 0, sizeof(*t));
	t->call_s = x.call_s = gf_price_call_s(f);
	t->nmessages = p->nmessages;
	t->messages = gf_xcalloc(p->nmessages + 1, sizeof(*t->messages));
	t->plan_message = gf_xcalloc(p->nmessages + 1, sizeof(size_t));
	t->carrier = gf_xcalloc(p->nmessages + 1, sizeof(size_t));
	for (size_t i = 0; i < p->nmessages; i++)
		t->plan_message[i] = t->carrier[i] = i;
	if (!on.derived)
		on.derived = &t->derived;
	/* more messages than there are never go at once */
	flights = (double)(gf_selection_has(&p->selection, GF_SELECT_RECUTS) ? p->model->ntensors
									     : p->nmessages);
	flights = fmax(1, flights * p->staleness);
	if (on.derived->lanes < fmin(p->lanes, flights))
		on.derived->lanes = (int)fmin(p->lanes, flights);
	rc = price_all(&x, t->messages, err);
	if (rc == 0 && gf_selection_has(&p->selection, GF_SELECT_RECUTS))
		rc = pack(&x, t, err);
	rc = rc ?: replay_messages(&x, t, err);
	rc = rc ?: append_own(&x, t, err);
	if (rc == 0 && gf_shard_is_used(&p->shard)) {
		t->works = gf_xcalloc(3 * p->nmessages + 1, sizeof(*t->works));
		t->nworks = gf_shard_order(&p->shard, p->messages, p->nmessages, 1, t->works);
	}
	if (rc < 0)
		gf_traffic_release(t);
	return rc;
}

const struct gf_message *gf_traffic_like(const struct gf_plan *p, size_t plan_message)
{
	return plan_message < p->nmessages ? &p->messages[plan_message] : &gf_select_own_message;
}

struct gf_priced gf_traffic_priced(const struct gf_plan *p, const struct gf_message *like,
				   const struct gf_sim_message *m)
{
	return (struct gf_priced){
		.algorithm = like->algorithm,
		.stages = like->stages,
		.nstages = like->nstages,
		.bytes = m->bytes,
		.codec = like->codec,
		.split = m->half == GF_HALF_SPLIT,
		.copies = gf_plan_copies(p),
	};
}

void gf_traffic_release(struct gf_traffic *t)
{
	free(t->messages);
	free(t->plan_message);
	free(t->carrier);
	free(t->works);
	gf_derived_release(&t->derived);
	memset(t, 0, sizeof(*t));
}
