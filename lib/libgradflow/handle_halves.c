/* SPDX-License-Identifier: BSD-3-Clause */
/* Halves of an exchange that has no steps. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "libgradflow/handle.h"

#define API __attribute__((visibility("default")))

/* As gf_embed_enter, of an exchange of halves. */
static int enter(struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	int rc = gf_embed_enter(x, call, err);

	if (rc || x->halves)
		return rc;
	return gf_embed_leave(x, gf_error_set(err, -EINVAL,
					      "%s: want an exchange that was opened with halves, "
					      "got one of steps",
					      call));
}

static int check(const struct gradflow_exchange *x, const char *call, const struct gradflow_half *g,
		 const uint64_t *number, struct gf_error *err)
{
	const enum gf_dtype *dtype = g ? gf_embed_dtype(g->dtype) : NULL;

	if (!g || !number)
		return gf_error_set(err, -EINVAL,
				    "%s: want a half and a place for its number, "
				    "got NULL",
				    call);
	if (g->tensor >= x->ntensors)
		return gf_error_set(err, -EINVAL, "%s: want a tensor below %zu, got %zu", call,
				    x->ntensors, g->tensor);
	if (!dtype || *dtype == GF_F64)
		return gf_error_set(err, -EINVAL, "%s: tensor %zu: want f32, f16 or bf16, got %s",
				    call, g->tensor,
				    dtype ? gf_dtype_names[*dtype] : "no known type");
	if (!g->count || !g->data || (uintptr_t)g->data % gf_dtype_bytes(*dtype))
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu: want elements at a multiple of %zu bytes, got "
				    "%zu at %p",
				    call, g->tensor, gf_dtype_bytes(*dtype), g->count, g->data);
	if (!!g->owners != !!g->nowners)
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu: want owners and nowners, got one of them",
				    call, g->tensor);
	if (!isfinite(g->divisor))
		return gf_error_set(err, -EINVAL, "%s: tensor %zu: divisor: want a number, got %g",
				    call, g->tensor, g->divisor);
	return 0;
}

static int begin(struct gradflow_exchange *x, const char *call, enum gf_coll_half half,
		 const struct gradflow_half *g, uint64_t *number)
{
	struct gf_error *err = gf_embed_error();
	struct gf_exchange_half h = {.half = half};
	struct gf_layout_piece *pieces;
	size_t i;
	int rc = enter(x, call, err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = check(x, call, g, number, err);
	if (rc)
		return gf_embed_leave(x, rc);
	pieces = g->owners ? gf_xcalloc(g->nowners, sizeof(*pieces)) : NULL;
	for (i = 0; pieces && i < g->nowners; i++)
		pieces[i] = (struct gf_layout_piece){g->owners[i].rank, g->owners[i].first,
						     g->owners[i].count};
	h.tensor = x->order[g->tensor];
	h.data = g->data;
	h.count = g->count;
	h.dtype = *gf_embed_dtype(g->dtype);
	h.owners = (struct gf_layout){pieces, pieces ? g->nowners : 0};
	h.divisor = g->divisor;
	rc = gf_exchange_begin_half(x->exchange, &h, number, err);
	free(pieces);
	if (rc)
		gf_error_prefix(err, "%s: tensor %zu (%s)", call, g->tensor,
				x->plan.model->tensors[h.tensor].name);
	return gf_embed_leave(x, rc == -EINVAL ? rc : gf_embed_keep(x, rc, err));
}

API int gradflow_reduce_scatter(struct gradflow_exchange *x, const struct gradflow_half *half,
				uint64_t *number)
{
	return begin(x, "gradflow_reduce_scatter", GF_COLL_REDUCE_SCATTER, half, number);
}

API int gradflow_all_gather(struct gradflow_exchange *x, const struct gradflow_half *half,
			    uint64_t *number)
{
	return begin(x, "gradflow_all_gather", GF_COLL_ALL_GATHER, half, number);
}

API int gradflow_exchange_wait_half(struct gradflow_exchange *x, uint64_t number)
{
	static const char call[] = "gradflow_exchange_wait_half";
	struct gf_error *err = gf_embed_error();
	int rc = enter(x, call, err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_exchange_wait_half(x->exchange, number, err);
	return gf_embed_leave(x, gf_embed_keep(x, rc, err));
}
