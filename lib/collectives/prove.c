/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/prove.h"

#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/verify.h"
#include "documents/algorithm_traits.h"

static int build_all(int ranks, gf_prove_build *build, void *ctx, struct gf_schedule *s,
		     size_t *steps, struct gf_error *err)
{
	int rank, rc;

	for (rank = 0; rank < ranks; rank++) {
		rc = build(ctx, rank, &s[rank], err);
		if (rc)
			return rc;
		*steps += s[rank].nsteps;
		if (*steps > GF_PROVE_STEPS_MOST)
			return gf_error_set(
				err, -ENOTSUP,
				"want at most %d steps of all ranks for a proof, got more",
				GF_PROVE_STEPS_MOST);
	}
	return 0;
}

int gf_prove(int ranks, enum gf_coll_half half, gf_prove_build *build, void *ctx, size_t *steps,
	     struct gf_error *err)
{
	GF_FREED struct gf_schedule *s = NULL;
	size_t count = 0;
	int rank, rc;

	if (ranks > GF_PROVE_RANKS_MOST)
		return gf_error_set(err, -ENOTSUP, "want at most %d ranks for a proof, got %d",
				    GF_PROVE_RANKS_MOST, ranks);
	s = gf_xcalloc((size_t)ranks, sizeof(*s));
	rc = build_all(ranks, build, ctx, s, &count, err);
	if (!rc && gf_verify(s, ranks, half, err))
		rc = 1;
	for (rank = 0; rank < ranks; rank++)
		gf_schedule_release(&s[rank]);
	if (!rc)
		*steps = count;
	return rc;
}

/* --- in words ------------------------------------------------------------- */

char *gf_prove_words(const struct gf_way *way, const struct gf_coll_args *args, const char *type)
{
	static const char *const halves[] = {"", ", reduce-scatter", ", all-gather"};
	struct gf_text t = {0};

	gf_text_addf(&t, "%s", way->algorithm->name);
	for (size_t i = 0; i < way->nfactors; i++) {
		gf_text_addf(&t, "%s%d", i ? "," : " ", way->factors[i]);
		if (gf_way_stage_at(way, i))
			gf_text_addf(&t, ":%s", gf_way_stage_at(way, i));
	}
	gf_text_addf(&t, ", %zu %s%s%s, %s, %d ranks", args->count_elems,
		     gf_algorithm_has(way->algorithm->name, GF_ALGORITHM_SETS) ? "set" : "element",
		     args->count_elems == 1 ? "" : "s", halves[args->half], type, args->ranks);
	if (args->servers)
		gf_text_addf(&t, ", %d of them servers", args->servers);
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

struct own {
	const struct gf_algorithm *algorithm;
	const struct gf_coll_args *args;
};

static int build_own(void *ctx, int rank, struct gf_schedule *s, struct gf_error *err)
{
	const struct own *own = ctx;

	return gf_algorithm_schedule(own->algorithm, own->args, rank, s, err);
}

/* A stage that a library carries out: its steps are not ours. */
static int check_stages(const struct gf_coll_args *args, struct gf_error *err)
{
	for (size_t i = 0; args->stage_algorithms && i < args->nfactors; i++)
		if (gf_stage_has(args->stage_algorithms[i], GF_STAGE_CALL))
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s has no steps of its own, which could be proved", i,
				args->stage_algorithms[i]);
	return 0;
}

int gf_prove_line(const struct gf_way *way, const struct gf_coll_args *args, const char *type,
		  gf_prove_build *build, void *ctx, struct gf_text *out, struct gf_error *err)
{
	struct own own = {way->algorithm, args};
	GF_FREED char *words = gf_prove_words(way, args, type);
	size_t steps = 0;
	int rc = 0;

	if (args->segment_elems && args->count_elems / args->segment_elems > GF_PROVE_STEPS_MOST) {
		rc = gf_error_set(err, -ENOTSUP,
				  "%s: want at most %d steps of all ranks for a proof, got more",
				  words, GF_PROVE_STEPS_MOST);
	} else if (!known(out, words)) {
		rc = check_stages(args, err);
		rc = rc ? rc
			: gf_prove(args->ranks, args->half, build ? build : build_own,
				   build ? ctx : &own, &steps, err);
		if (rc)
			gf_error_prefix(err, "%s", words);
		else
			gf_text_addf(out,
				     "%s: %zu steps, every contribution exactly once, no race, no "
				     "deadlock\n",
				     words, steps);
	}
	return rc;
}
