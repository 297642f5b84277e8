/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/prove.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"
#include "coll/prove.h"
#include "doc/algorithm.h"
#include "sim/replay_parts.h"

/* The subject of a proof, in words: two messages of the same words have the
 * same schedules. */
static char *describe(const struct gf_way *way, const struct gf_coll_args *args,
		      const char *codec)
{
	static const char *const halves[] = {"", ", reduce-scatter",
					     ", all-gather"};
	struct gf_text t = {0};
	size_t i;

	gf_text_addf(&t, "%s", way->algorithm->name);
	for (i = 0; i < way->nfactors; i++)
		gf_text_addf(&t, "%s%d:%s", i ? "," : " ", way->factors[i],
			     way->stages[i]);
	gf_text_addf(&t, ", %zu %s%s%s, %s, %d ranks", args->count_elems,
		     gf_algorithm_has(way->algorithm->name, GF_ALGORITHM_SETS)
			     ? "set"
			     : "element",
		     args->count_elems == 1 ? "" : "s", halves[args->half],
		     codec, args->ranks);
	if (args->segment_elems)
		gf_text_addf(&t, ", segments of %zu", args->segment_elems);
	return gf_text_take(&t);
}

static bool known(const struct gf_text *out, const char *words)
{
	size_t length = strlen(words);
	const char *line;

	for (line = out->data; line && *line; line = strchr(line, '\n') + 1)
		if (!strncmp(line, words, length) && line[length] == ':')
			return true;
	return false;
}

static int prove(const struct gf_way *way, const struct gf_coll_args *args,
		 const char *codec, struct gf_text *out, struct gf_error *err)
{
	char *words = describe(way, args, codec);
	size_t steps = 0;
	int rc = 0;

	if (!known(out, words)) {
		rc = gf_prove(way->algorithm, args, &steps, err);
		if (rc)
			gf_error_prefix(err, "%s", words);
		else
			gf_text_addf(out,
				     "%s: %zu steps, every contribution "
				     "exactly once, no race, no deadlock\n",
				     words, steps);
	}
	free(words);
	return rc;
}

static int prove_part(const struct gf_plan *p, struct gf_replay_part *part,
		      const char *codec, struct gf_text *out,
		      struct gf_error *err)
{
	const struct gf_algorithm *a = part->way.algorithm;
	int rc;

	part->args.lossy = gf_codec_find(codec)->error > 0;
	if (gf_algorithm_find(a->name) == a)
		part->args.segment_elems =
			p->segment_bytes / part->args.elem_bytes;
	rc = prove(&part->way, &part->args, codec, out, err);
	if (rc || part->args.half != GF_COLL_REDUCE_SCATTER)
		return rc;
	part->args.half = GF_COLL_ALL_GATHER;
	return prove(&part->way, &part->args, codec, out, err);
}

static int prove_message(const struct gf_replay_setting *s, size_t i,
			 struct gf_text *out, struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const char *codec = p->messages[s->traffic.plan_message[i]].codec;
	struct gf_replay_part parts[GF_WIRES_MOST];
	int n = gf_replay_parts(s, i, parts, err), k, rc = n < 0 ? n : 0;

	for (k = 0; k < n && !rc; k++)
		rc = prove_part(p, &parts[k], codec, out, err);
	return rc;
}

int gf_prove_plan(const struct gf_plan *p, const struct gf_what_if *w,
		  struct gf_text *out, struct gf_error *err)
{
	struct gf_replay_setting s = {0};
	struct gf_text notes = {0}; /* about times */
	int rc = gf_replay_setting_init(&s, p, w, &notes, err);
	size_t i;

	for (i = 0; i < s.traffic.nmessages && !rc; i++) {
		rc = prove_message(&s, i, out, err);
		if (rc)
			gf_error_prefix(err, "message %zu", i);
	}
	gf_replay_setting_release(&s);
	gf_text_release(&notes);
	return rc;
}
