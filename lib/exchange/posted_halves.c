/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/posted_halves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "exchange/exchange_parts.h"
#include "gf_kernels.h"

struct gf_halves_form {
	const struct gf_message *how;
	enum gf_coll_half half;
	size_t count;
	enum gf_dtype dtype;
	struct gf_layout owners; /* its own */
	struct gf_way way;
	struct gf_element element;
	const struct gf_codec_fns *packs; /* 16 bits; NULL: it moves where it lies */
	char *name;
};

int gf_exchange_check_halves(const struct gf_plan *plan, struct gf_error *err)
{
	size_t i;

	if (!gf_selection_has(&plan->selection, GF_SELECT_HALVES))
		return gf_error_set(err, -ENOTSUP, "halves: want dense gradients, got %s",
				    gf_selection_name(&plan->selection));
	if (gf_plan_copies(plan) > 1)
		return gf_error_set(err, -ENOTSUP,
				    "halves: want shards across all %d ranks, got %d: copies are "
				    "another exchange's",
				    plan->ranks, plan->shard.group_ranks);
	for (i = 0; i < plan->nmessages; i++)
		if (!gf_algorithm_has(plan->messages[i].algorithm, GF_ALGORITHM_HALVES))
			return gf_error_set(err, -ENOTSUP,
					    "message %zu: halves: want an algorithm that has a "
					    "reduce-scatter, got %s",
					    i, plan->messages[i].algorithm);
	return 0;
}

/* --- how a message moves --------------------------------------------------- */

static bool same_owners(const struct gf_layout *a, const struct gf_layout *b)
{
	size_t i;

	for (i = 0; a->npieces == b->npieces && i < a->npieces; i++)
		if (a->pieces[i].rank != b->pieces[i].rank ||
		    a->pieces[i].first != b->pieces[i].first ||
		    a->pieces[i].count != b->pieces[i].count)
			return false;
	return a->npieces == b->npieces;
}

/* What travels of elements of 16 bits: they themselves, unless the codec takes less. */
static const struct gf_codec *codec_of(const struct gf_halves_form *f)
{
	const struct gf_codec *asked = gf_codec_find(f->how->codec);
	const size_t bytes = gf_dtype_bytes(f->dtype);

	return f->dtype == GF_F32 || gf_codec_wire_bytes(asked, f->count) < bytes * f->count
		       ? asked
		       : gf_memory_codec(f->dtype);
}

static int complete(struct gf_halves_form *f, const char *tensor, struct gf_error *err)
{
	const bool gathers = f->half == GF_COLL_ALL_GATHER;
	const struct gf_codec *codec = codec_of(f);
	int rc = gf_way_of_message(f->how, &f->way, err);

	f->name = gf_xasprintf("%s of %s (%zu elements of %s)", gf_coll_half_names[f->half], tensor,
			       f->count, gf_dtype_names[f->dtype]);
	if (gathers && codec == gf_memory_codec(f->dtype)) {
		f->element = gf_element_number(f->dtype, GF_OP_SUM);
		return rc;
	}
	if (f->dtype != GF_F32)
		f->packs = &gf_kernels()->codecs[gf_codec_number(gf_memory_codec(f->dtype))];
	return rc ? rc : gf_element_coded(codec->name, GF_OP_SUM, &f->element, err);
}

static void free_form(struct gf_halves_form *f)
{
	free((void *)f->owners.pieces);
	free(f->name);
	free(f);
}

static int make_form(struct gf_halves *h, const struct gf_exchange_half *want,
		     const struct gf_message *how, struct gf_halves_form **out,
		     struct gf_error *err)
{
	const struct gf_plan *plan = h->env->plan;
	const size_t bytes = want->owners.npieces * sizeof(*want->owners.pieces);
	struct gf_halves_form *f = gf_xcalloc(1, sizeof(*f));
	int rc = want->owners.npieces
			 ? gf_layout_check(&want->owners, plan->ranks, want->count, err)
			 : 0;

	f->how = how;
	f->half = want->half;
	f->count = want->count;
	f->dtype = want->dtype;
	f->owners = gf_layout_even(plan->ranks, want->count);
	if (!rc && want->owners.npieces) {
		free((void *)f->owners.pieces);
		f->owners =
			(struct gf_layout){memcpy(gf_xmalloc(bytes), want->owners.pieces, bytes),
					   want->owners.npieces};
	}
	rc = rc ? rc : complete(f, plan->model->tensors[want->tensor].name, err);
	if (rc)
		free_form(f);
	else
		*gf_array_push(&h->forms, &h->nforms, &h->capacity) = *out = f;
	return rc;
}

static int find_form(struct gf_halves *h, const struct gf_exchange_half *want,
		     struct gf_halves_form **out, struct gf_error *err)
{
	const struct gf_plan *plan = h->env->plan;
	struct gf_layout even = {0};
	size_t i, message = 0;
	int rc = 0;

	while (plan->messages[message].last < want->tensor)
		message++;
	if (!want->owners.npieces)
		even = gf_layout_even(plan->ranks, want->count);
	for (i = 0, *out = NULL; i < h->nforms && !*out; i++) {
		struct gf_halves_form *f = h->forms[i];

		if (f->how == &plan->messages[message] && f->half == want->half &&
		    f->count == want->count && f->dtype == want->dtype &&
		    same_owners(&f->owners, even.pieces ? &even : &want->owners))
			*out = f;
	}
	free((void *)even.pieces);
	if (!*out)
		rc = make_form(h, want, &plan->messages[message], out, err);
	return rc;
}

/* --- on the engine's thread ------------------------------------------------- */

/* Calls for this rank's pieces, or for all. */
static void each(const struct gf_halves *h, struct gf_halves_slot *s, bool own,
		 void (*fn)(struct gf_halves_slot *s, size_t first, size_t count))
{
	const struct gf_layout *l = &s->form->owners;
	size_t i;

	if (!own)
		fn(s, 0, s->form->count);
	for (i = 0; own && i < l->npieces; i++)
		if (l->pieces[i].rank == h->env->comm->rank)
			fn(s, l->pieces[i].first, l->pieces[i].count);
}

static char *packed_at(const struct gf_halves_slot *s, size_t first)
{
	return (char *)s->data + first * gf_dtype_bytes(s->form->dtype);
}

static void unpack(struct gf_halves_slot *s, size_t first, size_t count)
{
	s->form->packs->decode(s->unpacked + first, packed_at(s, first), count, 0);
}

static void pack(struct gf_halves_slot *s, size_t first, size_t count)
{
	s->form->packs->encode(packed_at(s, first), s->unpacked + first, count, 0);
}

static void divide(struct gf_halves_slot *s, size_t first, size_t count)
{
	float *sums = (s->form->packs ? s->unpacked : (float *)s->data) + first;
	size_t i;

	for (i = 0; i < count; i++)
		sums[i] /= s->divisor;
}

static void count_copied(struct gf_halves *h, const struct gf_halves_slot *s)
{
	atomic_fetch_add_explicit(&h->copied_bytes, s->form->count * gf_dtype_bytes(s->form->dtype),
				  memory_order_relaxed);
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_halves *h = ctx;
	struct gf_halves_slot *s = &h->slots[slot];

	(void)message, (void)q, (void)err;
	if (s->form->packs) {
		each(h, s, s->form->half == GF_COLL_ALL_GATHER, unpack);
		count_copied(h, s);
	}
	return 0;
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct gf_halves *h = ctx;
	struct gf_halves_slot *s = &h->slots[slot];
	const bool gathers = s->form->half == GF_COLL_ALL_GATHER;

	(void)message, (void)q, (void)err;
	if (!gathers && s->divisor != 1)
		each(h, s, true, divide);
	if (s->form->packs) {
		each(h, s, !gathers, pack);
		count_copied(h, s);
	}
	return 0;
}

struct gf_engine_hooks gf_halves_hooks(struct gf_halves *h)
{
	return (struct gf_engine_hooks){.prepare = prepare, .finish = finish, .ctx = h};
}

/* --- calls ------------------------------------------------------------------- */

/* The slot of the next one, when no other is in it. */
static int next_slot(struct gf_halves *h, struct gf_halves_slot **s, struct gf_error *err)
{
	int rc = gf_engine_check(h->engine, err);

	*s = &h->slots[h->begun % GF_HALVES_DEPTH];
	if (!rc && h->begun - h->ended == GF_HALVES_DEPTH) {
		rc = gf_engine_wait(h->engine, err);
		h->ended += !rc;
	}
	return rc;
}

static void *room(struct gf_halves_slot *s, size_t count)
{
	if (count > s->room) {
		free(s->unpacked);
		s->unpacked = gf_xreallocarray(NULL, count, sizeof(*s->unpacked));
		s->room = count;
	}
	return s->unpacked;
}

int gf_exchange_begin_half(struct gf_exchange *x, const struct gf_exchange_half *half,
			   uint64_t *number, struct gf_error *err)
{
	struct gf_halves *h = x->halves;
	struct gf_halves_form *f;
	struct gf_halves_slot *s;
	int rc = find_form(h, half, &f, err);

	rc = rc ? rc : next_slot(h, &s, err);
	if (rc)
		return rc;
	s->form = f;
	s->data = half->data;
	s->divisor = half->divisor != 0 ? (float)half->divisor : (float)h->env->plan->ranks;
	s->work = (struct gf_work){
		.simultaneous = f->how->mode == GF_MODE_SIMULTANEOUS,
		.way = &f->way,
		.half = f->half,
		.owners = &f->owners,
		.element = f->element,
		.data = f->packs ? room(s, f->count) : half->data,
		.count_elems = f->count,
		.name = f->name,
	};
	gf_engine_begin_work(h->engine, &s->work, 1);
	gf_engine_backward_end(h->engine);
	*number = ++h->begun;
	return 0;
}

int gf_exchange_wait_half(struct gf_exchange *x, uint64_t number, struct gf_error *err)
{
	struct gf_halves *h = x->halves;
	int rc = 0;

	while (!rc && h->ended < number && h->ended < h->begun) {
		rc = gf_engine_wait(h->engine, err);
		h->ended += !rc;
	}
	return rc;
}

void gf_halves_close(struct gf_halves *h)
{
	size_t i;

	for (i = 0; h && i < h->nforms; i++)
		free_form(h->forms[i]);
	for (i = 0; h && i < GF_HALVES_DEPTH; i++)
		free(h->slots[i].unpacked);
	if (h) {
		free(h->forms);
		free(h->pool.offsets);
	}
	free(h);
}
