/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/feedback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "gf_kernels.h"

/* Elements that stay in cache between two passes. */
#define BLOCK_ELEMS ((size_t)16384)

int gf_feedback_open(struct gf_feedback *f, size_t count_elems,
		     struct gf_error *err)
{
	f->count_elems = count_elems;
	f->residual = calloc(f->count_elems + 1, sizeof(*f->residual));
	if (f->residual)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "no memory for the residual of %zu gradients",
			    f->count_elems);
}

void gf_feedback_close(struct gf_feedback *f)
{
	free(f->residual);
	memset(f, 0, sizeof(*f));
}

void gf_feedback_state(struct gf_feedback *f, struct gf_state *list,
		       const char *name)
{
	const struct gf_shape shape = {1, {f->count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup(name), &shape, f->residual)
		->rule = GF_STATE_SUM;
}

void gf_feedback_add(const struct gf_feedback *f, float *data, size_t first,
		     size_t count)
{
	gf_kernels()->add_f32(data + first, f->residual + first, count);
}

void gf_feedback_commit(struct gf_feedback *f, float *data, size_t first,
			size_t count)
{
	const size_t end = first + count;
	size_t at, n;

	for (at = first; at < end; at += n) {
		n = end - at < BLOCK_ELEMS ? end - at : BLOCK_ELEMS;
		memcpy(f->residual + at, data + at, n * sizeof(*data));
		memset(data + at, 0, n * sizeof(*data));
	}
}
