/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients that have come and wait to be taken: in a checkpoint, and from
 * there. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "exchange/exchange_parts.h"

int gf_exchange_flight_open(struct gf_exchange *x, struct gf_error *err)
{
	size_t n = (x->ledger.depth - 1) * gf_exchange_elems(x);

	if (!x->env.shapes || !n)
		return 0;
	x->flight_bad = gf_xcalloc(x->ledger.depth, sizeof(*x->flight_bad));
	x->flight_scale = gf_xcalloc(x->ledger.depth, sizeof(*x->flight_scale));
	x->flight = calloc(n, sizeof(*x->flight));
	if (!x->flight)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu gradients in flight of "
				    "%zu parameters",
				    x->ledger.depth - 1, gf_exchange_elems(x));
	return 0;
}

void gf_exchange_flight_close(struct gf_exchange *x)
{
	free(x->flight);
	free(x->flight_bad);
	free(x->flight_scale);
}

/* The same on all ranks: what is kept are sums. */
void gf_exchange_flight_state(struct gf_exchange *x, struct gf_state *s)
{
	const struct gf_model_profile *model = x->env.plan->model;
	/* scaled gradients come as means, whatever the number of ranks */
	enum gf_state_rule rule = x->env.scaled ? GF_STATE_KEEP : GF_STATE_SUM;
	size_t age, i;

	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.count", "U64",
			   &x->nflight, 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.bad", "U64",
			   x->flight_bad, x->ledger.depth - 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.scale", "F64",
			   x->flight_scale, x->ledger.depth - 1);
	for (age = 0; age + 1 < x->ledger.depth; age++)
		for (i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("pipeline.%zu.%s", age,
						  model->tensors[i].name),
				     &x->env.shapes[i],
				     x->flight + age * gf_exchange_elems(x) +
					     x->pools[0].offsets[i])
				->rule = rule;
}

/* The place of the gradient of that age, filled with zeros. */
static float *room(struct gf_exchange *x, size_t age)
{
	const size_t n = gf_exchange_elems(x);

	x->flight_bad[age] = 0;
	x->flight_scale[age] = 0;
	return memset(x->flight + age * n, 0, n * sizeof(float));
}

/* Per gradient: is it bad? A device's flags come from there. */
static int find_bad(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_flags *f =
		x->env.place.nccl ? &x->flags : NULL;
	uint32_t *flags;
	size_t age;
	int rc;

	if (!f) {
		for (age = 0; age < x->nflight; age++)
			x->flight_bad[age] =
				gf_exchange_bad_of(x, x->ledger.taken + age)
					.found;
		return 0;
	}
	flags = gf_xcalloc(f->count, sizeof(*flags));
	rc = gf_exchange_flags_copy(&x->flags, x->env.place.stream, flags,
				    GF_GPU_TO_HOST, err);
	for (age = 0; age < x->nflight; age++)
		x->flight_bad[age] =
			flags[(x->ledger.taken + age) % f->count] != 0;
	free(flags);
	return rc;
}

/* Those that have come and wait. */
int gf_exchange_flight_keep(struct gf_exchange *x, struct gf_error *err)
{
	size_t age, slot;
	int rc;

	x->nflight = gf_ledger_waiting(&x->ledger);
	assert(x->nflight < x->ledger.depth);
	for (age = 0; age + 1 < x->ledger.depth; age++)
		room(x, age);
	rc = find_bad(x, err);
	for (age = 0; age < x->nflight && !rc; age++) {
		slot = gf_exchange_slot(x, x->ledger.taken + age);
		x->flight_scale[age] = x->steps[slot].scale;
		rc = gf_select_keep(x->select, slot, age, x->flight_bad[age],
				    x->flight + age * gf_exchange_elems(x),
				    err);
	}
	return rc;
}

static int send_flags(struct gf_exchange *x, struct gf_error *err)
{
	uint32_t *flags;
	size_t age;
	int rc;

	if (!x->env.place.nccl)
		return 0;
	flags = gf_xcalloc(x->flags.count, sizeof(*flags));
	for (age = 0; age < x->nflight; age++)
		flags[age] = x->flight_bad[age] != 0;
	rc = gf_exchange_flags_copy(&x->flags, x->env.place.stream, flags,
				    GF_GPU_TO_DEVICE, err);
	free(flags);
	return rc;
}

int gf_exchange_flight_restore(struct gf_exchange *x, struct gf_error *err)
{
	size_t age, slot;
	int rc = gf_ledger_restore(&x->ledger, x->nflight, err);

	for (age = 0; age < x->nflight && !rc; age++) {
		slot = gf_exchange_slot(x, age);
		x->steps[slot] = (struct gf_exchange_step){
			.of = x,
			.scale = x->flight_scale[age],
			.grads = x->pools[slot].data,
			.flag = x->env.place.nccl
					? gf_exchange_flag(&x->flags, age)
					: NULL,
		};
		rc = gf_select_restore(x->select, slot, age,
				       x->flight + age * gf_exchange_elems(x),
				       err);
	}
	return rc ? rc : send_flags(x, err);
}
