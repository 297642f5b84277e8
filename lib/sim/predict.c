/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"
#include "cost/pipe.h"
#include "cost/sparse.h"

#define VALUE_BYTES 4

struct gf_fabric gf_plan_fabric(const struct gf_plan *p)
{
	return (struct gf_fabric){
		.network = p->network,
		.levels = p->levels,
		.nlevels = p->nlevels,
		.ranks = p->ranks + p->servers,
		.servers = p->servers,
	};
}

static bool sparse(const struct gf_plan *p)
{
	return p->selection.method == GF_SELECT_TOPK ||
	       p->selection.method == GF_SELECT_GTOPK;
}

/* Bytes of tensors first..last that travel. */
static double range_bytes(const struct gf_plan *p, size_t first, size_t last)
{
	double bytes = 0;
	size_t i;

	for (i = first; i <= last; i++)
		bytes += (double)gf_tensor_bytes(&p->model->tensors[i]);
	if (p->selection.method == GF_SELECT_CSC)
		bytes *= p->selection.keep;
	return bytes;
}

/* Of a message whose codec is known. */
static double ratio_of(const struct gf_message *m)
{
	return gf_codec_ratio(gf_codec_find(m->codec));
}

/* gTop-k's Table I: the k values of a message of that many elements. */
static int price_sparse(const struct gf_plan *p, const struct gf_fabric *f,
			struct gf_sim_message *m, struct gf_error *err)
{
	double elems = range_bytes(p, m->first, m->last) / VALUE_BYTES;
	double k = fmax(1, floor(p->selection.density * elems));
	struct gf_link_cost link;
	int rc = gf_price_link(f, &link, err);

	if (rc < 0)
		return rc;
	m->startup_s = p->selection.method == GF_SELECT_TOPK
			       ? gf_cost_topk_s(&link, f->ranks, 0)
			       : gf_cost_gtopk_s(&link, f->ranks, 0);
	m->bytes = 2 * VALUE_BYTES * k;
	m->per_byte_s =
		p->selection.method == GF_SELECT_TOPK
			? gf_cost_topk_s(&link, f->ranks, VALUE_BYTES * k)
			: gf_cost_gtopk_s(&link, f->ranks, VALUE_BYTES * k);
	m->per_byte_s = (m->per_byte_s - m->startup_s) / m->bytes;
	return 0;
}

static int price(const struct gf_plan *p, const struct gf_fabric *f,
		 const struct gf_message *from, struct gf_sim_message *m,
		 struct gf_error *err)
{
	const struct gf_codec *codec = gf_codec_find(from->codec);
	struct gf_price cost;
	int rc;

	m->mode = from->mode;
	m->release = from->release;
	m->half = from->half;
	if (sparse(p))
		return price_sparse(p, f, m, err);
	if (!codec)
		return gf_error_set(err, -EINVAL,
				    "want codecs f32, f16, bf16, trunc16 or "
				    "q8, got %s",
				    from->codec);
	rc = gf_price_message(f, from->algorithm, from->stages, from->nstages,
			      &cost, err);
	if (rc < 0)
		return rc;
	m->startup_s = cost.startup_s;
	m->per_byte_s = cost.per_byte_s;
	m->contention = cost.contention;
	m->bytes = range_bytes(p, m->first, m->last) * gf_codec_ratio(codec);
	return 0;
}

/* The same message again is not priced again: closed forms cost time. */
static bool priced_alike(const struct gf_message *a, const struct gf_message *b)
{
	size_t i;

	if (strcmp(a->algorithm, b->algorithm) != 0 ||
	    strcmp(a->codec, b->codec) != 0 || a->nstages != b->nstages)
		return false;
	for (i = 0; i < a->nstages; i++)
		if (a->stages[i].factor != b->stages[i].factor ||
		    strcmp(a->stages[i].algorithm, b->stages[i].algorithm) != 0)
			return false;
	return true;
}

static int price_all(const struct gf_plan *p, const struct gf_fabric *f,
		     struct gf_sim_message *messages, struct gf_error *err)
{
	size_t i;
	int rc;

	for (i = 0; i < p->nmessages; i++) {
		const struct gf_message *from = &p->messages[i];
		struct gf_sim_message *m = &messages[i];

		m->first = from->first;
		m->last = from->last;
		if (i > 0 && !sparse(p) &&
		    priced_alike(from, &p->messages[i - 1])) {
			*m = messages[i - 1];
			m->first = from->first;
			m->last = from->last;
			m->mode = from->mode;
			m->release = from->release;
			m->half = from->half;
			m->bytes = range_bytes(p, m->first, m->last) *
				   ratio_of(from);
			continue;
		}
		rc = price(p, f, from, m, err);
		if (rc < 0) {
			gf_error_prefix(err, "message %zu", i);
			return rc;
		}
	}
	return 0;
}

/*
 * csc's packed messages: kept bytes are evenly spread, so a pack closes behind
 * the tensor with which more than the threshold waits. pack_of[i] is the pack
 * of plan message i's last tensor.
 */
static size_t pack(const struct gf_plan *p, const struct gf_sim_message *dense,
		   struct gf_sim_message *packs, size_t *pack_of)
{
	double waiting = 0;
	size_t n = 0, i, t, first = 0;

	for (i = 0; i < p->nmessages; i++) {
		for (t = dense[i].first; t <= dense[i].last; t++) {
			bool last = t + 1 == p->model->ntensors;

			waiting += range_bytes(p, t, t);
			if (!last && waiting <= (double)p->threshold_bytes)
				continue;
			packs[n] = dense[i];
			packs[n].first = first;
			packs[n].last = t;
			packs[n].bytes = waiting * ratio_of(&p->messages[i]);
			n++;
			first = t + 1;
			waiting = 0;
		}
		pack_of[i] = first > dense[i].last ? n - 1 : n;
	}
	return n;
}

static void run(const struct gf_plan *p, struct gf_sim_message *messages,
		struct gf_sim_result *out)
{
	struct gf_sim_input in = {p->model, messages, p->nmessages, p->lanes};
	struct gf_predicted_message *wanted = out->messages;
	struct gf_sim_message *packs;
	size_t *pack_of, i;

	if (p->selection.method != GF_SELECT_CSC) {
		gf_sim_step(&in, out);
		return;
	}
	packs = gf_xcalloc(p->model->ntensors, sizeof(*packs));
	pack_of = gf_xcalloc(p->nmessages, sizeof(*pack_of));
	in.messages = packs;
	in.nmessages = pack(p, messages, packs, pack_of);
	out->messages = gf_xcalloc(in.nmessages, sizeof(*out->messages));
	gf_sim_step(&in, out);
	for (i = 0; i < p->nmessages; i++)
		wanted[i] = out->messages[pack_of[i]];
	free(out->messages);
	out->messages = wanted;
	free(packs);
	free(pack_of);
}

/* Pipe-SGD: this step's exchange runs beside the next ones' compute. */
static void pipeline(const struct gf_plan *p, struct gf_sim_result *out)
{
	double first = INFINITY, last = 0;
	size_t i;

	for (i = 0; i < p->nmessages; i++) {
		first = fmin(first, out->messages[i].start_s);
		last = fmax(last, out->messages[i].end_s);
	}
	out->iteration_s = gf_pipe_step_s(
		&(struct gf_pipe_times){
			.update_s = p->model->update_s,
			.forward_s = p->model->forward_s,
			.backward_s = p->model->backward_s,
			.communication_s = fmax(last - first, 0),
		},
		p->staleness);
	out->exposed_comm_s = out->iteration_s - out->compute_s;
}

int gf_predict_plan(const struct gf_plan *p, const struct gf_fabric *f,
		    struct gf_sim_result *out, struct gf_error *err)
{
	struct gf_sim_message *messages =
		gf_xcalloc(p->nmessages + 1, sizeof(*messages));
	struct gf_predicted_message *own = NULL;
	int rc = price_all(p, f, messages, err);

	if (rc < 0) {
		free(messages);
		return rc;
	}
	if (!out->messages)
		out->messages = own =
			gf_xcalloc(p->nmessages + 1, sizeof(*own));
	run(p, messages, out);
	if (p->staleness > 1)
		pipeline(p, out);
	if (!isfinite(out->iteration_s))
		rc = gf_error_set(err, -EINVAL,
				  "want times and sizes whose sum is a number, "
				  "got an iteration of %g s",
				  out->iteration_s);
	if (own) {
		free(own);
		out->messages = NULL;
	}
	free(messages);
	return rc;
}
