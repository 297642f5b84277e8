/* SPDX-License-Identifier: BSD-3-Clause */
/* How the predicted time of each message arose. */

#include "cli/human.h"
#include "planner/explain.h"
#include "simulator/predict.h"

static const char *const origins[] = {
	[GF_PRICE_MEASURED] = "measured",
	[GF_PRICE_RESCALED] = "measured on other ranks, carried over",
	[GF_PRICE_DERIVED] = "derived from the levels",
};

/* Sets, and what of the startup is choosing, and encoding and decoding. */
static void add_sets(const struct gf_plan *p, const struct gf_fabric *f,
		     const struct gf_message *as, const struct gf_sim_message *m,
		     struct gf_text *out)
{
	const char *name = gf_selection_name(&p->selection);
	const double choosing_s = gf_selecting_s(f, p, m->first, m->last);
	struct gf_wire wires[GF_WIRES_MOST];
	double codings_s;

	gf_text_addf(out, "sets of %s on the links' figures", name);
	if (choosing_s > 0)
		gf_text_addf(out, " (of it %s: %s)", name, gf_human_time(choosing_s).text);
	gf_plan_wires(p, m->first, m->last, wires);
	codings_s = gf_price_codings_s(f, &wires[0], as->codec);
	if (codings_s > 0)
		gf_text_addf(out, " (of it %s: %s)", as->codec, gf_human_time(codings_s).text);
}

/* What the message would take alone: the line that was found, and its parts. */
static void add_line(const struct gf_plan *p, const struct gf_fabric *f,
		     const struct gf_message *as, const struct gf_sim_message *m,
		     struct gf_text *out)
{
	const struct gf_priced priced = {as->algorithm, as->stages, as->nstages, m->bytes,
					 as->codec};
	const bool reduces = gf_selection_has(&p->selection, GF_SELECT_ADDS);
	struct gf_price price = {0};

	gf_text_addf(out, "%s startup + %s x %.3g ns/B = %s, ", gf_human_time(m->startup_s).text,
		     gf_human_size(m->bytes).text, m->per_byte_s * 1e9,
		     gf_human_time(m->startup_s + m->per_byte_s * m->bytes).text);
	if (!reduces || gf_price_message(f, &priced, &price, NULL) < 0) {
		add_sets(p, f, as, m, out);
		return;
	}
	gf_text_addf(out, "%s", origins[price.origin]);
	if (price.origin == GF_PRICE_DERIVED && gf_stages_call(as->stages, as->nstages))
		gf_text_addf(out, ", a library's call as a ring");
	if (price.codec_s_per_byte > 0)
		gf_text_addf(out, " (of it %s: %.3g ns/B on each of %.3g hops)", as->codec,
			     price.codec_s_per_byte * 1e9, price.hops);
}

/* What became of it in the step: gamma, backward, the wait for a lane. */
static void add_times(const struct gf_predicted_message *t, double alone_s, struct gf_text *out)
{
	double took_s = t->end_s - t->start_s, wait_s = t->start_s - t->ready_s;

	if (alone_s > 0 && took_s > alone_s * 1.005)
		gf_text_addf(out,
			     "; took %s, %.2f times as long, beside other messages or backward",
			     gf_human_time(took_s).text, took_s / alone_s);
	if (wait_s > 1e-9)
		gf_text_addf(out, "; waited %s for a lane", gf_human_time(wait_s).text);
}

int gf_explain_prices(const struct gf_plan *p, const struct gf_fabric *f, struct gf_text *out,
		      struct gf_error *err)
{
	struct gf_traffic traffic;
	size_t i;
	int rc = gf_traffic_init(&traffic, p, f, err);

	for (i = 0; rc == 0 && i < p->nmessages; i++) {
		size_t carrier = traffic.carrier[i];
		const struct gf_sim_message *m = &traffic.messages[carrier];
		const struct gf_message *as = gf_traffic_like(&traffic, p, carrier);

		gf_text_addf(out, "message %zu", i);
		if (as->nstages) {
			gf_text_addf(out, " by ");
			gf_stages_text(out, " ", as->stages, as->nstages);
		}
		gf_text_addf(out, ": ");
		add_line(p, f, as, m, out);
		add_times(&p->predicted->messages[i], m->startup_s + m->per_byte_s * m->bytes, out);
		gf_text_addf(out, "\n");
	}
	gf_traffic_release(&traffic);
	return rc;
}
