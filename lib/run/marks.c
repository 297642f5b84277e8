/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/snapshot.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/set.h"
#include "json/json.h"

#define KEY_FORMAT "format"
#define FORMAT     "gf-train 1"

/* Later ones may be absent from sets of earlier versions. */
struct number {
	const char *key;
	size_t value;
	const char *what; /* for people */
	enum { NEEDED, ABSENT_IS_0, ABSENT_IS_ANY } absent;
};

struct words {
	const char *key, *value, *what;
	bool may_be_absent;
};

enum { NUMBERS = 10, WORDS = 7 };

_Static_assert(NUMBERS + WORDS + 2 <= GF_RUN_MARKS,
	       "room for all, and two texts");

struct marks {
	struct number numbers[NUMBERS];
	struct words words[WORDS];
};

static struct marks marks_of(const struct gf_mark_origin *from,
			     const struct gf_run_identity *id)
{
	/* sets of a selection that binds nothing have a 0 there */
	size_t bound = 0;
	const char *binds = gf_selection_binds(id->selection, &bound);

	binds = binds ? binds : "chunk_elems";
	return (struct marks){
		.numbers =
			{
				{GF_CKPT_RANKS, from->ranks, "ranks", NEEDED},
				{GF_MARK_SERVERS, from->servers, "servers",
				 ABSENT_IS_0},
				{GF_CKPT_STEP, from->step, "step", NEEDED},
				{"batch_per_rank", id->batch, "batch", NEEDED},
				{"accumulate", id->accumulate,
				 "accumulated batches", NEEDED},
				{GF_MARK_SAMPLES, from->samples,
				 id->words->samples, NEEDED},
				{"seed", id->seed, "seed", NEEDED},
				{"staleness", id->staleness, "staleness",
				 NEEDED},
				{"pipeline_warmup_steps", id->pipeline_warmup,
				 "warm-up steps of the pipeline",
				 ABSENT_IS_ANY},
				{binds, bound, binds, ABSENT_IS_ANY},
			},
		.words =
			{
				{KEY_FORMAT, FORMAT, "format", false},
				{"model", id->model, "model", false},
				{"method", id->method, "method", false},
				{"optimizer", id->optimizer, "optimizer",
				 false},
				{"codecs", id->codecs, "codecs", true},
				{"loss_scale", id->loss_scale, "loss scale",
				 true},
				{"period", id->period, "period", true},
			},
	};
}

size_t gf_marks_metadata(const struct gf_mark_origin *from,
			 const struct gf_run_identity *id,
			 char numbers[GF_RUN_MARKS][GF_MARK_TEXT],
			 struct gf_metadata metadata[GF_RUN_MARKS])
{
	const struct marks marks = marks_of(from, id);
	size_t i, n = 0;

	for (i = 0; i < WORDS; i++)
		metadata[n++] = (struct gf_metadata){marks.words[i].key,
						     marks.words[i].value};
	for (i = 0; i < NUMBERS; i++) {
		snprintf(numbers[i], GF_MARK_TEXT, "%zu",
			 marks.numbers[i].value);
		metadata[n++] =
			(struct gf_metadata){marks.numbers[i].key, numbers[i]};
	}
	metadata[n++] = (struct gf_metadata){"training", id->training};
	metadata[n++] = (struct gf_metadata){GF_TRAIN_WAYS, id->ways};
	return n;
}

/* The settings as an object's text; where and when is not one of them. */
char *gf_marks_settings(const struct gf_mark_origin *from,
			const struct gf_run_identity *id)
{
	const struct marks marks = marks_of(from, id);
	struct gf_json_writer w = {0};
	size_t i;

	gf_json_open_object(&w, NULL);
	for (i = 0; i < WORDS; i++)
		gf_json_put_string(&w, marks.words[i].key,
				   marks.words[i].value);
	for (i = 0; i < NUMBERS; i++)
		if (strcmp(marks.numbers[i].key, GF_CKPT_RANKS) != 0 &&
		    strcmp(marks.numbers[i].key, GF_CKPT_STEP) != 0)
			gf_json_put_size(&w, marks.numbers[i].key,
					 marks.numbers[i].value);
	gf_json_put_string(&w, GF_TRAIN_WAYS, id->ways);
	gf_json_close_object(&w);
	return gf_text_take(&w.text);
}

static int same_number(const struct gf_safetensors *s, const struct number *n,
		       const struct gf_snapshot_words *words,
		       struct gf_error *err)
{
	bool absent = !gf_safetensors_has_metadata(s, n->key);
	const char *advice =
		strcmp(n->key, GF_CKPT_RANKS) == 0 ? words->other_ranks : NULL;
	size_t got = 0;
	int rc = 0;

	if (absent && n->absent == ABSENT_IS_ANY)
		return 0;
	if (!absent || n->absent == NEEDED)
		rc = gf_safetensors_metadata_size(s, n->key, 0, INT64_MAX, &got,
						  err);
	if (!rc && got != n->value)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s %zu, this run has "
				  "%zu%s%s%s",
				  s->path, n->what, got, n->value,
				  advice ? " (" : "", advice ? advice : "",
				  advice ? ")" : "");
	return rc;
}

static int same_words(const struct gf_safetensors *s, const struct words *w,
		      struct gf_error *err)
{
	char *got = NULL;
	int rc;

	if (w->may_be_absent && !gf_safetensors_has_metadata(s, w->key))
		return 0;
	rc = gf_safetensors_metadata(s, w->key, &got, err);
	if (!rc && strcmp(got, w->value) != 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: was written with %s \"%s\", this run "
				  "has \"%s\"",
				  s->path, w->what, got, w->value);
	free(got);
	return rc;
}

int gf_marks_check(const struct gf_safetensors *s,
		   const struct gf_mark_origin *from,
		   const struct gf_run_identity *id, struct gf_error *err)
{
	const struct marks marks = marks_of(from, id);
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < WORDS; i++)
		rc = same_words(s, &marks.words[i], err);
	for (i = 0; !rc && i < NUMBERS; i++)
		rc = same_number(s, &marks.numbers[i], id->words, err);
	return rc;
}
