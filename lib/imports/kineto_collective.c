/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/kineto.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "imports/collectives.h"

/* c10's scalar types, as NCCL's kernels have them, and ATen's names for them, as operators' inputs
 * have them. */
static size_t bytes_of(const char *type)
{
	static const struct {
		const char *scalar, *aten;
		size_t bytes;
	} types[] = {
		{"Float", "float", 4},        {"BFloat16", "c10::BFloat16", 2},
		{"Half", "c10::Half", 2},     {"Double", "double", 8},
		{"Byte", "unsigned char", 1}, {"Char", "signed char", 1},
		{"Bool", "bool", 1},          {"Int", "int", 4},
		{"Long", "long int", 8},      {"Short", "short int", 2},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(types); i++)
		if (strcmp(types[i].scalar, type) == 0 || strcmp(types[i].aten, type) == 0)
			return types[i].bytes;
	return 0;
}

/* A collective's group, and its bytes; false: the arguments do not say them. */
static bool read_size(struct gf_json_at *args, struct gf_kineto_span *span)
{
	char *type = NULL, *ranks = NULL;
	size_t elems = 0;
	bool known = gf_json_size(args, "In msg nelems", 1, SIZE_MAX >> 8, &elems, NULL) == 0 &&
		     gf_json_int(args, "Group size", 1, INT_MAX, &span->ranks, NULL) == 0 &&
		     gf_json_string(args, "dtype", &type, NULL) == 0;

	if (known && gf_json_has(args, "Process Group Ranks"))
		gf_json_string(args, "Process Group Ranks", &ranks, NULL);
	if (known && gf_json_has(args, "Seq"))
		gf_json_size(args, "Seq", 0, SIZE_MAX / 2, &span->sequence, NULL);
	span->elems = known ? elems * bytes_of(type) : 0;
	span->group = gf_collectives_group(ranks ? ranks : "", span->ranks);
	free(type);
	free(ranks);
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
	char *name = NULL;

	if (!args->value || !gf_json_has(args, "Collective name") ||
	    gf_json_string(args, "Collective name", &name, NULL) < 0) {
		k->unsized++;
		span->collective = GF_COLLECTIVE_OTHER;
		gf_kineto_add(&k->collectives, span);
	} else {
		take(k, span, name, read_size(args, span));
	}
	free(name);
}

void gf_kineto_read_gloo(struct gf_kineto *k, struct gf_json_at *args, const char *name,
			 struct gf_kineto_span *span)
{
	struct gf_json_at types;
	char *type = NULL;
	size_t count = 0;
	bool sized;

	span->elems = gf_kineto_first_shape(args);
	sized = span->elems > 0 && gf_json_array(args, "Input type", &types, &count, NULL) == 0 &&
		count > 0 && gf_json_string(gf_json_item(&types, 0), NULL, &type, NULL) == 0 &&
		bytes_of(type) > 0;
	span->elems = sized ? span->elems * bytes_of(type) : 0;
	take(k, span, name + strlen("gloo:"), sized);
	free(type);
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
