/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay_plan.h"

#include "codec/codec.h"
#include "coll/prove.h"
#include "sim/replay_parts.h"

static int prove_part(struct gf_replay_part *part, const char *codec,
		      struct gf_text *out, struct gf_error *err)
{
	int rc = gf_prove_line(&part->way, &part->args, codec, NULL, NULL, out,
			       err);
	if (rc || part->args.half != GF_COLL_REDUCE_SCATTER)
		return rc;
	part->args.half = GF_COLL_ALL_GATHER;
	return gf_prove_line(&part->way, &part->args, codec, NULL, NULL, out,
			     err);
}

static int prove_message(const struct gf_replay_setting *s, size_t i,
			 struct gf_text *out, struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const char *codec = gf_traffic_like(&s->traffic, p, i)->codec;
	struct gf_replay_part parts[GF_WIRES_MOST];
	int n = gf_replay_parts(s, i, parts, err), k, rc = n < 0 ? n : 0;

	for (k = 0; k < n && !rc; k++)
		rc = prove_part(&parts[k], codec, out, err);
	return rc;
}

/* The exchange of a group, then that of all ranks. */
static int prove_period(const struct gf_plan *p, const struct gf_what_if *w,
			struct gf_text *out, struct gf_error *err)
{
	struct gf_what_if there = *w;
	struct gf_plan part;
	int rc;

	there.ranks = 0;
	gf_period_inner(p, &part);
	rc = gf_prove_plan(&part, &there, out, err);
	gf_plan_release(&part);
	if (rc)
		return rc;
	gf_period_outer(p, &part);
	rc = gf_prove_plan(&part, w, out, err);
	gf_plan_release(&part);
	return rc;
}

int gf_prove_plan(const struct gf_plan *p, const struct gf_what_if *w,
		  struct gf_text *out, struct gf_error *err)
{
	struct gf_replay_setting s = {0};
	struct gf_text notes = {0}; /* about times */
	size_t i;
	int rc;

	if (!gf_period_has(&p->period, GF_PERIOD_EVERY))
		return prove_period(p, w, out, err);
	rc = gf_replay_setting_init(&s, p, w, &notes, err);

	for (i = 0; i < s.traffic.nmessages && !rc; i++) {
		rc = prove_message(&s, i, out, err);
		if (rc)
			gf_error_prefix(err, "message %zu", i);
	}
	gf_replay_setting_release(&s);
	gf_text_release(&notes);
	return rc;
}
