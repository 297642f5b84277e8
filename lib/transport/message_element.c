/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/message_element.h"

#include <stdint.h>

#include "base/registry.h"
#include "gf_kernels.h"

/* ctx is the kernel's place in its table. */
static void reduce_numbers(void *ctx, void *to, const void *from, size_t count)
{
	gf_reduce_fn *const *kernel = ctx;

	(*kernel)(to, from, count);
}

struct gf_element gf_element_number(enum gf_dtype dtype, enum gf_op op)
{
	return (struct gf_element){
		.size_bytes = gf_dtype_bytes(dtype),
		.reduce = reduce_numbers,
		.ctx = (void *)(uintptr_t)&gf_kernels()->reduce[dtype][op],
		.number = true,
		.dtype = dtype,
		.op = op,
	};
}

struct gf_element gf_element_set(size_t size_bytes, gf_merge_fn *merge, void *ctx)
{
	return (struct gf_element){
		.size_bytes = size_bytes,
		.reduce = merge,
		.ctx = ctx,
	};
}

int gf_element_coded(const char *codec, enum gf_op op, struct gf_element *e, struct gf_error *err)
{
	static const struct gf_registry codecs = {gf_codecs, sizeof(*gf_codecs), NULL};
	const struct gf_codec *c = gf_codec_find(codec);

	if (!c)
		return gf_registry_refuse(&codecs, NULL, NULL, codec, err);
	if (c->error > 0 && op != GF_OP_SUM && op != GF_OP_AVG)
		return gf_error_set(err, -EINVAL, "codec %s: want sum or avg, got %s", codec,
				    gf_op_names[op]);
	*e = gf_element_number(GF_F32, op);
	e->codec = c->error > 0 ? c : NULL;
	return 0;
}

void gf_element_finish(const struct gf_element *e, void *data, size_t count, int contributions)
{
	if (e->number && e->op == GF_OP_AVG)
		gf_kernels()->divide[e->dtype](data, count, contributions);
}

size_t gf_element_wire_bytes(const struct gf_element *e, size_t count)
{
	return e->codec ? gf_codec_wire_bytes(e->codec, count) : count * e->size_bytes;
}
