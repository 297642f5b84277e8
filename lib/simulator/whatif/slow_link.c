/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/jitter.h"

#include <math.h>

#include "base/heap.h"
#include "simulator/replay/replay_plan.h"

/* A message by itself, with the slow links or without. */
static int alone_s(const struct gf_replay_setting *s, const struct gf_replayed_message *m,
		   bool slow, double *end_s, struct gf_error *err)
{
	struct gf_replay_input in = gf_replay_setting_input(s);
	struct gf_replay_message message = {.ranks = m->ranks, .element = m->element};
	GF_RELEASED(gf_replay_result_release) struct gf_replay_result result = {0};
	int rc;

	in.messages = &message;
	in.nmessages = 1;
	in.nslow_links = slow ? s->nslow_links : 0;
	rc = gf_replay(&in, &result, err);
	if (rc == 0)
		*end_s = result.end_s;
	return rc;
}

/* What the slow links add to the message, or to its half, by itself. */
static int charge(struct gf_replay_setting *s, size_t i, enum gf_coll_half half, double *extra_s,
		  struct gf_error *err)
{
	struct gf_replayed_message *replayed = gf_xcalloc(1, sizeof(*replayed));
	double usual_s = 0, slow_s = 0;
	int rc = gf_replayed_message_init(replayed, s, i, half, err);

	if (rc == -E2BIG)
		rc = gf_error_set(err, -ENOTSUP,
				  "slow links are replayed: want at most %g steps of all ranks and "
				  "messages, got more",
				  GF_REPLAY_STEPS_MOST);
	rc = rc ?: alone_s(s, replayed, false, &usual_s, err);
	rc = rc ?: alone_s(s, replayed, true, &slow_s, err);
	gf_replayed_messages_free(replayed, 1, s->variant.fabric.ranks);
	*extra_s = fmax(slow_s - usual_s, 0);
	return rc;
}

static int charge_message(struct gf_replay_setting *s, size_t i, struct gf_sim_message *m,
			  struct gf_error *err)
{
	double extra_s = 0, gather_s = 0;
	int rc = charge(s, i, GF_COLL_WHOLE, &extra_s, err);

	if (rc == 0 && m->half == GF_HALF_SPLIT)
		rc = charge(s, i, GF_COLL_ALL_GATHER, &gather_s, err);
	if (rc == 0 && m->bytes > 0) {
		m->per_byte_s += (extra_s + gather_s) / m->bytes;
		m->gather_per_byte_s += gather_s / m->bytes;
	}
	return rc;
}

int gf_variant_price(struct gf_variant *v, const struct gf_what_if *w, struct gf_error *err)
{
	GF_RELEASED(gf_replay_setting_release) struct gf_replay_setting s = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	int rc = gf_traffic_init(&v->traffic, &v->plan, &v->fabric, err);

	if (rc < 0 || w->nslow_links == 0)
		return rc;
	rc = gf_replay_setting_init(&s, &v->plan, w, &notes, err);
	for (size_t i = 0; i < v->traffic.nmessages && rc == 0; i++)
		rc = charge_message(&s, i, &v->traffic.messages[i], err);
	return rc;
}
