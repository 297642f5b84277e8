/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/shared_records.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "documents/profile.h"
#include "json/record_schema.h"

/* --- the function -------------------------------------------------------- */

static double entry_gamma(const struct gf_contention_entry *e, int n)
{
	size_t last = e->ngamma;

	if ((size_t)n <= last)
		return e->gamma[n - 1];
	return last ? n * e->gamma[last - 1] / (double)last : n;
}

struct gf_contention_place gf_contention_find(const struct gf_contention *c, size_t size_bytes)
{
	const struct gf_contention_entry *e = c->entries;
	size_t count = c->nentries, i = 0, last;
	double low, high;

	if (!count)
		return (struct gf_contention_place){0};
	if (count == 1 || size_bytes <= e[0].size_bytes)
		return (struct gf_contention_place){&e[0], &e[0], 0};
	if (size_bytes >= e[count - 1].size_bytes)
		return (struct gf_contention_place){&e[count - 1], &e[count - 1], 0};
	/* the last entry below the size, and the next */
	for (last = count - 1; last - i > 1;) {
		size_t middle = (i + last) / 2;

		if (size_bytes > e[middle].size_bytes)
			i = middle;
		else
			last = middle;
	}
	i++;
	low = log2((double)e[i - 1].size_bytes);
	high = log2((double)e[i].size_bytes);
	return (struct gf_contention_place){
		.below = &e[i - 1],
		.above = &e[i],
		.share = (log2((double)size_bytes) - low) / (high - low),
	};
}

double gf_contention_at(const struct gf_contention_place *p, int n)
{
	if (!p->below)
		return n;
	if (p->share == 0)
		return entry_gamma(p->below, n);
	return entry_gamma(p->below, n) * (1 - p->share) + entry_gamma(p->above, n) * p->share;
}

double gf_contention_gamma(const struct gf_contention *c, size_t size_bytes, int n)
{
	struct gf_contention_place p = gf_contention_find(c, size_bytes);

	return gf_contention_at(&p, n);
}

/* --- the document -------------------------------------------------------- */

/* Searches look at every size. */
#define SIZES_MOST 1000

/* 1, and then nothing smaller than before. */
static int read_gamma(struct gf_json_at *row, size_t count, struct gf_contention_entry *e,
		      struct gf_error *err)
{
	char place[32];
	int rc;

	if (!count)
		return gf_json_refuse(row, NULL, err, "want at least one number, got none");
	e->gamma = gf_xcalloc(count, sizeof(double));
	e->ngamma = count;
	for (size_t i = 0; i < count; i++) {
		rc = gf_json_real(gf_json_item(row, i), NULL, 1, 1e9, &e->gamma[i], err);
		if (rc)
			return rc;
		snprintf(place, sizeof(place), "%zu", i);
		if (i == 0 && e->gamma[0] != 1)
			return gf_json_refuse(row, place, err, "want 1, got %g", e->gamma[0]);
		if (i > 0 && e->gamma[i] < e->gamma[i - 1])
			return gf_json_refuse(row, place, err,
					      "want a number >= %g, the one before it, got %g",
					      e->gamma[i - 1], e->gamma[i]);
	}
	return 0;
}

static int read_entry(struct gf_json_at *list, size_t index, struct gf_contention_entry *e,
		      struct gf_error *err)
{
	size_t smallest = index ? e[-1].size_bytes + 1 : 1, count;
	struct gf_json_at at, row;
	int rc = gf_json_object(gf_json_item(list, index), NULL, &at, err);

	if (rc)
		return rc;
	rc = gf_json_size(&at, "size_bytes", smallest, (size_t)GF_MAX_SIZE, &e->size_bytes, err);
	rc = rc ?: gf_json_array(&at, "gamma", &row, &count, err);
	rc = rc ?: read_gamma(&row, count, e, err);
	rc = rc ?: gf_json_end(&at, &e->extra, err);
	gf_json_leave(&at);
	return rc;
}

static void release(void *place)
{
	struct gf_contention *c = place;

	for (size_t i = 0; i < c->nentries; i++) {
		free(c->entries[i].gamma);
		free(c->entries[i].extra);
	}
	free(c->entries);
	memset(c, 0, sizeof(*c));
}

static int read(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	struct gf_contention *c = place;
	struct gf_json_at list;
	size_t count, i;
	int rc = gf_json_array(at, key, &list, &count, err);

	if (rc || !count)
		return rc;
	c->nentries = gf_json_is_object(gf_json_item(&list, 0), NULL) ? count : 1;
	if (c->nentries > SIZES_MOST) {
		*c = (struct gf_contention){0};
		return gf_json_refuse(&list, NULL, err, "want at most %d sizes, got %zu",
				      SIZES_MOST, count);
	}
	c->entries = gf_xcalloc(c->nentries, sizeof(*c->entries));
	if (!gf_json_is_object(gf_json_item(&list, 0), NULL))
		rc = read_gamma(&list, count, c->entries, err);
	else
		for (i = 0; i < count && !rc; i++)
			rc = read_entry(&list, i, &c->entries[i], err);
	if (rc)
		release(c);
	return rc;
}

static void write_gamma(struct gf_json_writer *w, const char *key,
			const struct gf_contention_entry *e)
{
	gf_json_open_row(w, key);
	for (size_t i = 0; i < e->ngamma; i++)
		gf_json_put_real(w, NULL, e->gamma[i]);
	gf_json_close_array(w);
}

static void write(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_contention *c = place;

	if (c->nentries == 1 && !c->entries[0].size_bytes) {
		write_gamma(w, key, &c->entries[0]);
		return;
	}
	gf_json_open_array(w, key);
	for (size_t i = 0; i < c->nentries; i++) {
		gf_json_open_line(w, NULL);
		gf_json_put_size(w, "size_bytes", c->entries[i].size_bytes);
		write_gamma(w, "gamma", &c->entries[i]);
		gf_json_put_extra(w, c->entries[i].extra);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

static bool absent(const void *place)
{
	const struct gf_contention *c = place;

	return !c->nentries;
}

static void copy(void *place)
{
	struct gf_contention *c = place;

	if (!c->nentries)
		return;
	c->entries = gf_xmemdup(c->entries, c->nentries * sizeof(*c->entries));
	for (size_t i = 0; i < c->nentries; i++) {
		struct gf_contention_entry *e = &c->entries[i];

		e->gamma = gf_xmemdup(e->gamma, e->ngamma * sizeof(double));
		e->extra = gf_xstrdup_or_null(e->extra);
	}
}

static void schema(struct gf_text *out)
{
	static const char gamma[] = "{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}], "
				    "\"items\": {\"type\": \"number\", \"minimum\": 1, "
				    "\"maximum\": 1e9}%s}";

	gf_text_addf(out, "{\"anyOf\": [");
	gf_text_addf(out, gamma, "");
	gf_text_addf(out,
		     ", {\"type\": \"array\", \"maxItems\": %d, \"items\": "
		     "{\"type\": \"object\", \"required\": [\"size_bytes\", \"gamma\"], "
		     "\"properties\": {\"size_bytes\": ",
		     SIZES_MOST);
	gf_schema_size(1, GF_MAX_SIZE, out);
	gf_text_addf(out, ", \"gamma\": ");
	gf_text_addf(out, gamma, ", \"minItems\": 1");
	gf_text_addf(out, "}, \"patternProperties\": {\"^x-\": {}}, "
			  "\"additionalProperties\": false}}]}");
}

const struct gf_field_own gf_contention_own = {
	.read = read,
	.write = write,
	.absent = absent,
	.release = release,
	.copy = copy,
	.schema = schema,
};
