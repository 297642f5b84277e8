/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"
#include "imports/kineto.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "imports/collectives.h"
#include "json/json.h"

const struct gf_kineto_type *gf_kineto_type(const char *name)
{
	static const struct gf_kineto_type types[] = {
		{"Float", "float", 4, GF_F32, 1},
		{"Double", "double", 8, GF_F64, 1},
		{"Half", "c10::Half", 2, GF_F16, 1},
		{"BFloat16", "c10::BFloat16", 2, GF_BF16, 1},
		{"ComplexFloat", "c10::complex<float>", 8, GF_F32, 2},
		{"ComplexDouble", "c10::complex<double>", 16, GF_F64, 2},
		{"Byte", "unsigned char", 1, 0, 0},
		{"Char", "signed char", 1, 0, 0},
		{"Bool", "bool", 1, 0, 0},
		{"Short", "short int", 2, 0, 0},
		{"Int", "int", 4, 0, 0},
		{"Long", "long int", 8, 0, 0},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(types); i++)
		if (strcmp(types[i].scalar, name) == 0 || strcmp(types[i].aten, name) == 0)
			return &types[i];
	return NULL;
}

/* A collective's group, and its bytes; false: the arguments do not say them. */
static bool read_size(struct gf_json_at *args, struct gf_kineto_span *span)
{
	const struct gf_kineto_type *of;
	GF_FREED char *type = NULL, *ranks = NULL, *name = NULL, *group = NULL;
	size_t elems = 0;
	bool known = gf_json_size(args, "In msg nelems", 1, SIZE_MAX >> 8, &elems, NULL) == 0 &&
		     gf_json_int(args, "Group size", 1, INT_MAX, &span->ranks, NULL) == 0 &&
		     gf_json_string(args, "dtype", &type, NULL) == 0;

	if (known && gf_json_has(args, "Process Group Ranks"))
		gf_json_string(args, "Process Group Ranks", &ranks, NULL);
	if (known && gf_json_has(args, "Process Group Name"))
		gf_json_string(args, "Process Group Name", &name, NULL);
	if (known && gf_json_has(args, "Seq"))
		gf_json_size(args, "Seq", 0, SIZE_MAX / 2, &span->sequence, NULL);
	of = known ? gf_kineto_type(type) : NULL;
	span->elems = of ? elems * of->bytes : 0;
	group = gf_xasprintf("%s %s", ranks ? ranks : "", name ? name : "");
	span->group = gf_collectives_group(group, span->ranks);
	return span->elems > 0;
}

/* A collective of any kind; an all-reduce of a known size counts as one. */
static void take(struct gf_kineto *k, struct gf_kineto_span *span, const char *name, bool sized)
{
	span->collective = gf_collective_kind(name);
	gf_kineto_add(&k->collectives, span);
	if (span->collective != GF_COLLECTIVE_ALL_REDUCE)
		k->other_collectives++;
	else if (!sized)
		k->unsized++;
	else
		gf_kineto_add(&k->reduces, span);
}

void gf_kineto_read_kernel(struct gf_kineto *k, struct gf_json_at *args,
			   struct gf_kineto_span *span)
{
	GF_FREED char *name = NULL;

	if (!args->value || !gf_json_has(args, "Collective name") ||
	    gf_json_string(args, "Collective name", &name, NULL) < 0) {
		k->unsized++;
		span->collective = GF_COLLECTIVE_OTHER;
		gf_kineto_add(&k->collectives, span);
	} else {
		take(k, span, name, read_size(args, span));
	}
}

void gf_kineto_read_gloo(struct gf_kineto *k, struct gf_json_at *args, const char *name,
			 struct gf_kineto_span *span)
{
	struct gf_json_at types;
	GF_FREED char *type = NULL;
	const struct gf_kineto_type *of = NULL;
	size_t count = 0;

	if (gf_json_array(args, "Input type", &types, &count, NULL) == 0 && count > 0 &&
	    gf_json_string(gf_json_item(&types, 0), NULL, &type, NULL) == 0)
		of = gf_kineto_type(type);
	span->elems = of ? gf_kineto_first_shape(args) * of->bytes : 0;
	take(k, span, name + strlen("gloo:"), span->elems > 0);
}

void gf_kineto_read_world(struct gf_kineto *k, struct gf_json_at *root)
{
	struct gf_json_at world = {0};
	int groups = 0;

	if (!gf_json_has(root, "distributedInfo") ||
	    gf_json_object(root, "distributedInfo", &world, NULL) < 0)
		return;
	gf_json_int(&world, "rank", 0, INT_MAX, &k->rank, NULL);
	if (gf_json_int(&world, "pg_count", 1, 1, &groups, NULL) == 0)
		gf_json_int(&world, "world_size", 1, INT_MAX, &k->ranks, NULL);
	gf_json_leave(&world);
}

/* Bytes at `text` that JSON does not allow, and what to read instead; or 0 and the bytes that are
 * well. */
static size_t fault(const char *text, bool in_string, const char **instead, size_t *well)
{
	static const char *const numbers[] = {"-inf",      "inf", "nan",     "-nan",
					      "-Infinity", "NaN", "Infinity"};
	uint32_t code;

	*well = 1;
	if (!in_string) {
		*instead = "null";
		for (size_t i = 0; i < GF_ARRAY_LENGTH(numbers); i++)
			if (strncmp(text, numbers[i], strlen(numbers[i])) == 0)
				return strlen(numbers[i]);
		return 0;
	}
	if (*text == '\\') {
		*instead = "\\\\";
		*well = 2;
		if (text[1] == 'u')
			return strspn(text + 2, "0123456789abcdefABCDEF") < 4;
		return !text[1] || !strchr("\"\\/bfnrt", text[1]);
	}
	*instead = "?";
	*well = gf_text_decode(text, &code);
	return !*well || code < 0x20;
}

/* The text with all of it mended; the number of places and the first. */
static size_t mend(const char *text, size_t size, struct gf_text *out, size_t *first)
{
	size_t i, step, bad, kept = 0, mended = 0;
	bool in_string = false;

	for (i = 0; i < size; i += step) {
		const char *instead;

		bad = fault(text + i, in_string, &instead, &step);
		if (bad) {
			*first = mended++ ? *first : i;
			gf_text_add(out, text + kept, i - kept);
			gf_text_add(out, instead, strlen(instead));
			step = bad;
			kept = i + bad;
		} else if (text[i] == '"') {
			in_string = !in_string;
		}
	}
	gf_text_add(out, text + kept, size - kept);
	return mended;
}

/* Where the exporter is at fault, the user should know. */
static int refuse(const char *found, struct gf_error *err)
{
	const char *remedy = ": what exported the trace wrote no JSON there (a quote inside a "
			     "string?): mend the place, or export it by a newer PyTorch";

	if (strstr(found, ": want "))
		remedy = "";
	else if (strstr(found, "end of file") || strstr(found, "premature end"))
		remedy = ": the trace is cut off: export it anew";
	return gf_error_set(err, -EINVAL, "%s%s", found, remedy);
}

int gf_kineto_parse(const char *text, size_t size, const char *file, struct gf_json **root,
		    size_t *mended, char place[32], struct gf_error *err)
{
	struct gf_error strict = {""};
	GF_RELEASED(gf_text_release) struct gf_text whole = {0};
	size_t first = 0;
	int rc = gf_json_parse_loose(text, size, file, root, &strict);
	int line, column;

	*mended = 0;
	if (rc == 0)
		return 0;
	*mended = mend(text, size, &whole, &first);
	if (*mended)
		rc = gf_json_parse_loose(whole.data, whole.length, file, root, &strict);
	gf_json_place(text, first, &line, &column);
	snprintf(place, 32, "%d:%d", line, column);
	return rc < 0 ? refuse(strict.text, err) : 0;
}
