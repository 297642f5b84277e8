/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_MESSAGE_ELEMENT_H
#define GF_TRANSPORT_MESSAGE_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "collectives/codecs/codec.h"

/*
 * The element of a message: its size, how two elements are reduced, and how elements travel. Ranges
 * of a schedule count such elements.
 *
 *	gf_element_number(GF_F32, GF_OP_SUM)		gradients
 *	gf_element_coded("q8", GF_OP_SUM, &e, err)	coded in every hop
 *	gf_element_set(bytes, merge, ctx)		sparse sets
 *
 * A codec wants a schedule that was built with args.lossy (gf_element_lossy).
 *
 * SETS. An element is `bytes` long, whatever the set inside. A step sends, receives and copies
 * whole elements. It reduces by merge(ctx, to, from, count): each of the `count` neighbouring
 * elements at `to` becomes the merge of itself and of its partner at `from`. merge must commute.
 * The thread that calls the executor calls merge, in program order if one result is merged again.
 * merge may keep things in ctx (dropped partial sums). `from` may be memory of another rank: it is
 * only read, and perhaps unaligned to more than the least of what bytes and the buffer are aligned
 * to.
 */
typedef void gf_merge_fn(void *ctx, void *to, const void *from, size_t count);

struct gf_element {
	size_t size_bytes; /* in memory */
	gf_merge_fn *reduce;
	void *ctx; /* of reduce */
	/* Numbers (of dtype, under op), which a library may reduce, too? */
	bool number;
	enum gf_dtype dtype;
	enum gf_op op;
	const struct gf_codec *codec; /* NULL: they travel as they are */
};

struct gf_element gf_element_number(enum gf_dtype dtype, enum gf_op op);
struct gf_element gf_element_set(size_t size_bytes, gf_merge_fn *merge, void *ctx);
/* f32 sums or averages under a codec of collectives/codecs/codec.h; "f32": without one. -EINVAL: no
 * such codec, or another operation under one. */
int gf_element_coded(const char *codec, enum gf_op op, struct gf_element *e, struct gf_error *err);

/* Does it leave a sender with other bits: args.lossy? */
static inline bool gf_element_lossy(const struct gf_element *e)
{
	return e->codec != NULL;
}

static inline void gf_element_reduce(const struct gf_element *e, void *to, const void *from,
				     size_t count)
{
	e->reduce(e->ctx, to, from, count);
}

/* The last work on a reduced message: an average is divided by the number of contributions. The
 * executor calls this. */
void gf_element_finish(const struct gf_element *e, void *data, size_t count, int contributions);

/* Bytes that a message of count elements takes on the wire. */
size_t gf_element_wire_bytes(const struct gf_element *e, size_t count);

#endif
