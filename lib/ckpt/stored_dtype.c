/* SPDX-License-Identifier: BSD-3-Clause */
#include "ckpt/safetensors.h"

#include "base/registry.h"

static const struct stored {
	const char *name;
	size_t bytes;
} types[] = {
	{"BOOL", 1},    {"U8", 1},      {"I8", 1},  {"F8_E4M3", 1}, {"I16", 2},
	{"F8_E5M2", 1}, {"F8_E8M0", 1}, {"U16", 2}, {"F16", 2},     {"BF16", 2},
	{"I32", 4},     {"U32", 4},     {"F32", 4}, {"F64", 8},     {"I64", 8},
	{"U64", 8},     {"C64", 8},     {NULL, 0},
};

const char *gf_dtype_intern(const char *name)
{
	const struct stored *s = gf_named_find(types, sizeof(*s), name);

	return s ? s->name : NULL;
}

size_t gf_safetensors_elem_bytes(const char *dtype)
{
	const struct stored *s = gf_named_find(types, sizeof(*s), dtype);

	return s ? s->bytes : 0;
}
