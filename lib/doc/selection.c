/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/plan_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

const char *const gf_select_names[] = {"dense", "csc", "topk", "gtopk", NULL};
const char *const gf_putback_names[] = {"paper", "conserve", "naive", NULL};

/* A share that is sent: more than nothing, at most all. */
#define MIN_SHARE 1e-12

/* decay: a number, or "momentum" (NAN): the optimiser's. */
static int read_decay(struct gf_json_at *at, const char *key, void *place,
		      struct gf_error *err)
{
	static const char *const names[] = {"momentum", NULL};
	struct gf_selection *s = place;
	int index;

	if (!gf_json_is_string(at, key))
		return gf_json_real(at, key, 0, 1, &s->decay, err);
	s->decay = NAN;
	return gf_json_choice(at, key, names, &index, err);
}

static void write_decay(struct gf_json_writer *w, const char *key,
			const void *place)
{
	const struct gf_selection *s = place;

	if (isnan(s->decay))
		gf_json_put_string(w, key, "momentum");
	else
		gf_json_put_real(w, key, s->decay);
}

static const struct gf_field_own decay_own = {
	.read = read_decay,
	.write = write_decay,
};

#define AT(member) offsetof(struct gf_selection, member)
static const struct gf_field dense_fields[] = {
	{NULL},
};

static const struct gf_field csc_fields[] = {
	{"chunk_elems", GF_FIELD_SIZE, GF_DEFAULTED, .offset = AT(chunk_elems),
	 .low = 1, .high = GF_MAX_SIZE, .absent = 32000},
	{"keep", GF_FIELD_REAL, .offset = AT(keep), .low = MIN_SHARE,
	 .high = 1},
	{"warmup_steps", GF_FIELD_SIZE, GF_DEFAULTED,
	 .offset = AT(warmup_steps), .high = GF_MAX_SIZE},
	{"decay", GF_FIELD_OWN, GF_DEFAULTED, .own = &decay_own},
	{NULL},
};

static const struct gf_field topk_fields[] = {
	{"density", GF_FIELD_REAL, .offset = AT(density), .low = MIN_SHARE,
	 .high = 1},
	{"warmup_densities", GF_FIELD_REALS, GF_DEFAULTED,
	 .offset = AT(warmup_densities), .count_offset = AT(nwarmup),
	 .low = MIN_SHARE, .high = 1},
	{"putback", GF_FIELD_CHOICE, GF_DEFAULTED, .offset = AT(putback),
	 .names = gf_putback_names},
	{NULL},
};

#define SELECTION(table)                                                       \
	{                                                                      \
		.bytes = sizeof(struct gf_selection),                          \
		.extra_offset = AT(extra), .fields = table,                    \
	}

/* By enum gf_select. */
static const struct gf_record methods[] = {
	SELECTION(dense_fields),
	SELECTION(csc_fields),
	SELECTION(topk_fields),
	SELECTION(topk_fields),
};
#undef AT

static int read_selection(struct gf_json_at *at, const char *key, void *place,
			  struct gf_error *err)
{
	struct gf_selection *s = place;
	struct gf_json_at inner;
	int rc, method = GF_SELECT_DENSE;

	rc = gf_json_object(at, key, &inner, err);
	if (rc)
		return rc;
	s->decay = NAN;
	rc = gf_json_choice(&inner, "method", gf_select_names, &method, err);
	if (!rc)
		rc = gf_record_read(&inner, &methods[method], s, err);
	if (!rc)
		s->method = (enum gf_select)method;
	gf_json_leave(&inner);
	return rc;
}

static void write_selection(struct gf_json_writer *w, const char *key,
			    const void *place)
{
	const struct gf_selection *s = place;

	gf_json_open_line(w, key);
	gf_json_put_string(w, "method", gf_select_names[s->method]);
	gf_record_write(w, &methods[s->method], s);
	gf_json_close_object(w);
}

static void release_selection(void *place)
{
	struct gf_selection *s = place;

	free(s->warmup_densities);
	free(s->extra);
	memset(s, 0, sizeof(*s));
}

static void copy_selection(void *place)
{
	struct gf_selection *s = place;

	s->extra = gf_xstrdup_or_null(s->extra);
	if (s->warmup_densities)
		s->warmup_densities = gf_xmemdup(s->warmup_densities,
						 s->nwarmup * sizeof(double));
}

const struct gf_field_own gf_selection_own = {
	.read = read_selection,
	.write = write_selection,
	.release = release_selection,
	.copy = copy_selection,
};
