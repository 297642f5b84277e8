/* SPDX-License-Identifier: BSD-3-Clause */
#include "ckpt/safetensors.h"

#include <string.h>

#include "base/array.h"

static const struct {
	const char *name;
	size_t bytes;
} types[] = {
	{"BOOL", 1},    {"U8", 1},      {"I8", 1},  {"F8_E4M3", 1}, {"I16", 2},
	{"F8_E5M2", 1}, {"F8_E8M0", 1}, {"U16", 2}, {"F16", 2},     {"BF16", 2},
	{"I32", 4},     {"U32", 4},     {"F32", 4}, {"F64", 8},     {"I64", 8},
	{"U64", 8},     {"C64", 8},
};

const char *gf_dtype_intern(const char *name)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].name;
	return NULL;
}

size_t gf_safetensors_elem_bytes(const char *dtype)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(types); i++)
		if (strcmp(types[i].name, dtype) == 0)
			return types[i].bytes;
	return 0;
}
