/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/dataset.h"

#include <stdint.h>
#include <string.h>

#include "json/record.h"
#include "doc/shared.h"

#define FORMAT "gf-data"

/* --- a part -------------------------------------------------------------- */

static int check_name(const struct gf_json_at *at, const char *key,
		      const char *name, struct gf_error *err)
{
	if (*name && !strchr(name, '/'))
		return 0;
	return gf_json_refuse(at, key, err,
			      "want the name of a file beside this one, got "
			      "\"%.60s\"",
			      name);
}

static int finish_part(const struct gf_json_at *at, void *item,
		       struct gf_error *err)
{
	const struct gf_data_part *p = item;
	int rc = check_name(at, "images", p->images, err);

	return rc ? rc : check_name(at, "labels", p->labels, err);
}

#define AT(member) offsetof(struct gf_data_part, member)
static const struct gf_field part_fields[] = {
	{"count", GF_FIELD_SIZE, .offset = AT(count), .low = 1,
	 .high = GF_MAX_COUNT},
	{"images", GF_FIELD_STRING, .offset = AT(images)},
	{"labels", GF_FIELD_STRING, .offset = AT(labels)},
	{NULL},
};

static const struct gf_record part_record = {
	.bytes = sizeof(struct gf_data_part),
	.extra_offset = AT(extra),
	.fields = part_fields,
	.finish = finish_part,
};
#undef AT

/* --- the document -------------------------------------------------------- */

/* Both or neither. */
static int check_channels(const struct gf_json_at *at, const char *key,
			  size_t count, size_t channels, struct gf_error *err)
{
	if (count == channels)
		return 0;
	return gf_json_refuse(at, key, err,
			      "want %zu numbers, one per channel, got %zu",
			      channels, count);
}

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_data_header *h = item;
	size_t channels = h->shape.rank == 3 ? h->shape.dims[0] : 1;
	int rc;

	if (h->label_bytes == 3)
		return gf_json_refuse(at, "label_bytes", err,
				      "want 1, 2 or 4, got 3");
	if (!h->nmean && !h->ndeviation)
		return 0;
	rc = check_channels(at, "mean", h->nmean, channels, err);
	return rc ? rc
		  : check_channels(at, "deviation", h->ndeviation, channels,
				   err);
}

#define AT(member) offsetof(struct gf_data_header, member)
static const struct gf_field header_fields[] = {
	{"producer", GF_FIELD_STRING, GF_OMITTED, .offset = AT(producer)},
	{"name", GF_FIELD_STRING, .offset = AT(name)},
	{"shape", GF_FIELD_OWN, .offset = AT(shape), .own = &gf_shape_own},
	{"classes", GF_FIELD_SIZE, .offset = AT(classes), .low = 1,
	 .high = GF_MAX_COUNT},
	{"max_byte", GF_FIELD_SIZE, GF_DEFAULTED, .offset = AT(max_byte),
	 .low = 1, .high = 255, .absent = 255},
	{"mean", GF_FIELD_REALS, GF_OMITTED, .offset = AT(mean),
	 .count_offset = AT(nmean), .low = -1e6, .high = 1e6},
	{"deviation", GF_FIELD_REALS, GF_OMITTED, .offset = AT(deviation),
	 .count_offset = AT(ndeviation), .low = 1e-6, .high = 1e6},
	{"label_bytes", GF_FIELD_SIZE, GF_DEFAULTED, .offset = AT(label_bytes),
	 .low = 1, .high = 4, .absent = 1},
	{"train", GF_FIELD_OBJECT, .offset = AT(train), .record = &part_record},
	{"test", GF_FIELD_OBJECT, .offset = AT(test), .record = &part_record},
	{NULL},
};

static const struct gf_record header_record = {
	.bytes = sizeof(struct gf_data_header),
	.extra_offset = AT(extra),
	.fields = header_fields,
	.finish = finish,
};
#undef AT

int gf_data_header_read(const struct gf_json *root, const char *file,
			struct gf_data_header *h, struct gf_error *err)
{
	return gf_document_read(root, file, FORMAT, &header_record, h, err);
}

void gf_data_header_release(struct gf_data_header *h)
{
	gf_record_release(&header_record, h);
}
