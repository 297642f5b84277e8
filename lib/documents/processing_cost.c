/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/processing_cost.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "documents/profile.h"
#include "documents/selections/selection.h"
#include "json/record.h"

#define OF(member) offsetof(struct gf_processing_entry, member)
static const struct gf_field common_fields[] = {
	{"backward_share", GF_FIELD_REAL, GF_OMITTED, .offset = OF(backward_share), .high = 1},
	{"assumed", GF_FIELD_BOOL, GF_OMITTED, .offset = OF(assumed)},
	{"fit", GF_FIELD_GROUP, GF_OMITTED, .offset = OF(fit), .record = &gf_fit_record},
	{NULL},
};
static const struct gf_record common = {.fields = common_fields};

#define AT(member) offsetof(struct gf_codec_cost, member)
static const struct gf_field codec_fields[] = {
	{"codec", GF_FIELD_STRING, .offset = OF(name)},
	{"device", GF_FIELD_STRING, .offset = OF(device)},
	{GF_MEMBER(encode_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(decode_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(set_encode_s_per_byte, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(set_decode_s_per_byte, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(scale_s_per_byte, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{GF_INCLUDE(common)},
	{NULL},
};
#undef AT

static int finish_codec(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_codec_cost *c = item;
	GF_FREED char *names = NULL;

	if (gf_codec_find(c->of.name))
		return 0;
	names = gf_codec_names(false, "\"");
	return gf_json_refuse(at, "codec", err, "want %s, got \"%.40s\"", names, c->of.name);
}

const struct gf_record gf_codec_cost_record = {
	.bytes = sizeof(struct gf_codec_cost),
	.extra_offset = OF(extra),
	.fields = codec_fields,
	.finish = finish_codec,
};

#define AT(member) offsetof(struct gf_selection_cost, member)
static const struct gf_field selection_fields[] = {
	{"method", GF_FIELD_STRING, .offset = OF(name)},
	{"device", GF_FIELD_STRING, .offset = OF(device)},
	{GF_MEMBER(alpha_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(beta_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(sent_s_per_byte, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{GF_INCLUDE(common)},
	{NULL},
};
#undef OF

static int finish_selection(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_selection_cost *c = item;
	const struct gf_fit *f = &c->of.fit;
	size_t i, before = 0;

	if (!gf_select_plan_find(c->of.name))
		return gf_json_refuse(at, "method", err,
				      "want the name of a selection, got \"%.40s\"", c->of.name);
	for (i = 0; i < f->npoints; before = f->size_bytes[i++])
		if (f->size_bytes[i] <= before)
			return gf_json_refuse(at, "fit/size_bytes", err,
					      "want sizes > 0 that ascend, got %zu after %zu",
					      f->size_bytes[i], before);
	return 0;
}

const struct gf_record gf_selection_cost_record = {
	.bytes = sizeof(struct gf_selection_cost),
	.extra_offset = offsetof(struct gf_selection_cost, of.extra),
	.fields = selection_fields,
	.finish = finish_selection,
};

/* Linear between the measured points, per byte as the last one beyond it. */
static double fitted_s(const struct gf_fit *f, double bytes)
{
	const double last = (double)f->size_bytes[f->npoints - 1];
	size_t i = 0;
	double from, to;

	if (bytes >= last)
		return f->time_s[f->npoints - 1] * bytes / last;
	while ((double)f->size_bytes[i] < bytes)
		i++;
	if (i == 0)
		return f->time_s[0];
	from = (double)f->size_bytes[i - 1];
	to = (double)f->size_bytes[i];
	return f->time_s[i - 1] + (f->time_s[i] - f->time_s[i - 1]) * (bytes - from) / (to - from);
}

double gf_selection_passes_s(const struct gf_selection_cost *c, double message_bytes,
			     double model_bytes)
{
	const struct gf_fit *f = &c->of.fit;
	double start_s;

	if (f->npoints == 0 || !(model_bytes > 0))
		return c->alpha_s + c->beta_s_per_byte * message_bytes;
	start_s = fmin(c->alpha_s, f->time_s[0]);
	return start_s + fmax(0, fitted_s(f, model_bytes) - start_s) * message_bytes / model_bytes;
}

/* --- lists of either kind of entry ---------------------------------------- */

static struct gf_processing_entry *entry(const struct gf_record *r, const void *items, size_t i)
{
	return (struct gf_processing_entry *)((char *)items + i * r->bytes);
}

/* The index of the first entry of that name and device; count: none. */
static size_t index_of(const struct gf_record *r, const void *items, size_t count, const char *name,
		       const char *device)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct gf_processing_entry *e = entry(r, items, i);

		if (strcmp(e->name, name) == 0 && strcmp(e->device, device) == 0)
			break;
	}
	return i;
}

/* index_of, and of an estimate the processor's (gf_device_is_gpu) where a data sheet has none. */
static size_t index_for(const struct gf_record *r, const void *items, size_t count,
			const char *name, const char *device)
{
	size_t i = index_of(r, items, count, name, device);

	return i == count && strcmp(device, GF_DEVICE_ESTIMATE) == 0
		       ? index_of(r, items, count, name, "cpu")
		       : i;
}

const struct gf_codec_cost *gf_processing_codec(const struct gf_processing *p, const char *codec,
						const char *device)
{
	size_t i = index_for(&gf_codec_cost_record, p->codecs, p->ncodecs, codec, device);

	return i < p->ncodecs ? &p->codecs[i] : NULL;
}

const struct gf_selection_cost *gf_processing_selection(const struct gf_processing *p,
							const char *method, const char *device)
{
	size_t i =
		index_for(&gf_selection_cost_record, p->selections, p->nselections, method, device);

	return i < p->nselections ? &p->selections[i] : NULL;
}

struct gf_selection_cost *gf_processing_selection_of(struct gf_processing *p, const char *method,
						     const char *device)
{
	const struct gf_record *r = &gf_selection_cost_record;
	size_t i = index_of(r, p->selections, p->nselections, method, device);
	struct gf_selection_cost costs = {0}, *c;

	if (i == p->nselections) {
		p->selections = gf_xreallocarray(p->selections, i + 1, sizeof(*p->selections));
		p->nselections++;
	} else {
		costs = p->selections[i];
		costs.of = (struct gf_processing_entry){.backward_share = costs.of.backward_share};
		gf_record_release(r, &p->selections[i]);
	}
	c = &p->selections[i];
	*c = costs;
	c->of.name = gf_xstrdup(method);
	c->of.device = gf_xstrdup(device);
	return c;
}

/* Copies to *to (`n` entries, grown) what it lacks of the `count` items. */
static void take(const struct gf_record *r, void **to, size_t *n, const void *items, size_t count)
{
	size_t i, k;

	for (i = 0; i < count; i++) {
		const struct gf_processing_entry *e = entry(r, items, i);

		k = index_of(r, *to, *n, e->name, e->device);
		if (k < *n && (e->assumed || !entry(r, *to, k)->assumed))
			continue;
		if (k < *n) {
			gf_record_release(r, entry(r, *to, k));
		} else {
			*to = gf_xreallocarray(*to, *n + 1, r->bytes);
			++*n;
		}
		gf_record_copy(r, entry(r, *to, k), e);
	}
}

void gf_processing_add(struct gf_processing *to, const struct gf_processing *from)
{
	void *codecs = to->codecs, *selections = to->selections;

	take(&gf_codec_cost_record, &codecs, &to->ncodecs, from->codecs, from->ncodecs);
	take(&gf_selection_cost_record, &selections, &to->nselections, from->selections,
	     from->nselections);
	to->codecs = codecs;
	to->selections = selections;
}

void gf_processing_release(struct gf_processing *p)
{
	gf_list_free(&gf_codec_cost_record, p->codecs, p->ncodecs);
	gf_list_free(&gf_selection_cost_record, p->selections, p->nselections);
	memset(p, 0, sizeof(*p));
}

static int check_once(const struct gf_json_at *at, const struct gf_record *r, const void *items,
		      size_t count, struct gf_error *err)
{
	const char *list = r == &gf_codec_cost_record ? "codecs" : "selections";

	if (count > GF_PROCESSING_MOST)
		return gf_json_refuse(at, list, err, "want at most %d entries, got %zu",
				      GF_PROCESSING_MOST, count);
	for (size_t i = 0; i < count; i++) {
		const struct gf_processing_entry *e = entry(r, items, i);

		if (index_of(r, items, count, e->name, e->device) == i)
			continue;
		return gf_json_refuse(
			at, gf_json_path("%s/%zu", list, i).text, err,
			"want each pair of %s and device once, got \"%.40s\" and \"%.40s\" again",
			r->fields[0].key, e->name, e->device);
	}
	return 0;
}

int gf_processing_check(const struct gf_json_at *at, const struct gf_processing *p,
			struct gf_error *err)
{
	int rc = check_once(at, &gf_codec_cost_record, p->codecs, p->ncodecs, err);

	return rc ?: check_once(at, &gf_selection_cost_record, p->selections, p->nselections, err);
}
