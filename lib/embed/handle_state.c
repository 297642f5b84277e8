/* SPDX-License-Identifier: BSD-3-Clause */
/* What an exchange's selection holds back, and what is known of it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "embed/handle.h"

#define API __attribute__((visibility("default")))

/* --- what is held back ---------------------------------------------------- */

/* All ranks do alike, so that nothing has to be told. */
static int change(struct gradflow_exchange *x, const char *call, double factor)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_state *s = &x->job.state;
	int rc = gf_embed_enter(x, call, err);
	size_t i, k;

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_embed_between(x, call, err);
	if (!rc && !isfinite(factor))
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a finite factor, got %g", call,
				  factor);
	rc = rc ? rc : gf_embed_settle(&x->job, err);
	for (i = 0; i < s->nitems && !rc; i++) {
		float *values = s->items[i].data;

		if (s->items[i].scope != GF_STATE_OWN)
			continue;
		for (k = 0; k < s->items[i].count_elems; k++)
			values[k] =
				factor == 0 ? 0 : (float)(values[k] * factor);
	}
	rc = rc ? rc : gf_embed_restore(&x->job, err);
	return gf_embed_leave(x, rc);
}

API int gradflow_drop(struct gradflow_exchange *x)
{
	return change(x, "gradflow_drop", 0);
}

API int gradflow_rescale(struct gradflow_exchange *x, double factor)
{
	return change(x, "gradflow_rescale", factor);
}

API int gradflow_exchange_save(struct gradflow_exchange *x, const char *folder)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_exchange_save", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_embed_between(x, "gradflow_exchange_save", err);
	return gf_embed_leave(x, rc ? rc : gf_job_save(&x->job, folder, err));
}

API int gradflow_exchange_load(struct gradflow_exchange *x, const char *folder)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_exchange_load", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_embed_between(x, "gradflow_exchange_load", err);
	return gf_embed_leave(
		x, rc ? rc : gf_job_load(&x->job, folder, &x->carried, err));
}

API double gradflow_carried(const struct gradflow_exchange *x)
{
	return x ? x->carried : 0;
}

API int gradflow_exchange_state(struct gradflow_exchange *x, size_t index,
				struct gradflow_array *array)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_state_item *item;
	int rc = gf_embed_enter(x, "gradflow_exchange_state", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_embed_between(x, "gradflow_exchange_state", err);
	if (!rc && !array)
		rc = gf_error_set(err, -EINVAL,
				  "gradflow_exchange_state: want a place for "
				  "the array, got NULL");
	if (!rc && index >= x->job.state.nitems)
		rc = gf_error_set(err, -ENOENT,
				  "gradflow_exchange_state: want an array "
				  "below %zu, got %zu",
				  x->job.state.nitems, index);
	rc = rc ? rc : gf_embed_settle(&x->job, err);
	if (!rc) {
		item = &x->job.state.items[index];
		*array = (struct gradflow_array){
			.name = item->name,
			.data = item->data,
			.size_bytes =
				item->count_elems *
				gf_safetensors_elem_bytes(item->tensor.dtype),
			.shared = item->scope == GF_STATE_SHARED,
		};
	}
	return gf_embed_leave(x, rc);
}

API int gradflow_exchange_restored(struct gradflow_exchange *x, uint64_t steps)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_exchange_restored", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	rc = gf_embed_between(x, "gradflow_exchange_restored", err);
	rc = rc ? rc : gf_embed_restore(&x->job, err);
	if (!rc) {
		x->job.steps = steps;
		gf_exchange_count_from(x->job.exchange, steps);
	}
	return gf_embed_leave(x, rc);
}

/* --- what is there -------------------------------------------------------- */

API int gradflow_exchange_rank(const struct gradflow_exchange *x)
{
	return x ? x->job.comm->rank : -EINVAL;
}

API int gradflow_exchange_ranks(const struct gradflow_exchange *x)
{
	return x ? x->job.comm->ranks : -EINVAL;
}

API const char *gradflow_exchange_host(const struct gradflow_exchange *x,
				       int rank)
{
	return x && rank >= 0 && rank < x->job.comm->ranks ? x->hosts[rank].name
							   : NULL;
}

API int gradflow_exchange_missing(struct gradflow_exchange *x, int *ranks,
				  size_t most)
{
	static const char call[] = "gradflow_exchange_missing";
	struct gf_error *err = gf_embed_error();
	int rank, found = 0, rc = gf_embed_reach(x, call, err);
	bool *missing;

	if (rc)
		return rc;
	if (most && !ranks)
		return gf_embed_leave(
			x, gf_error_set(err, -EINVAL,
					"%s: want a place for %zu ranks, got "
					"NULL",
					call, most));
	GF_EMBED_GUARD(x);
	missing = gf_xcalloc((size_t)x->job.comm->ranks, sizeof(*missing));
	rc = x->job.exchange && !gf_job_is_lost(&x->job)
		     ? gf_exchange_missing(x->job.exchange, missing)
		     : -ENODATA;
	if (rc)
		gf_error_set(err, rc,
			     "%s: not known after a failure outside of steps",
			     call);
	for (rank = 0; !rc && rank < x->job.comm->ranks; rank++) {
		if (!missing[rank])
			continue;
		if ((size_t)found < most)
			ranks[found] = rank;
		found++;
	}
	free(missing);
	return gf_embed_leave(x, rc ? rc : found);
}

API int gradflow_exchange_local_rank(const struct gradflow_exchange *x)
{
	return x ? x->job.comm->local_rank : -EINVAL;
}

API const char *gradflow_exchange_ways(const struct gradflow_exchange *x)
{
	return x ? x->job.ways : NULL;
}

API size_t gradflow_exchange_messages(const struct gradflow_exchange *x)
{
	return x ? x->job.plan.nmessages : 0;
}

API size_t gradflow_exchange_message(const struct gradflow_exchange *x,
				     size_t tensor)
{
	const struct gf_plan *plan = x ? &x->job.plan : NULL;
	size_t i;

	if (!x || !x->job.exchange || tensor >= x->job.ntensors)
		return SIZE_MAX;
	for (i = 0; plan->messages[i].last < x->job.order[tensor]; i++)
		;
	return i;
}

API uint64_t gradflow_exchange_steps(const struct gradflow_exchange *x)
{
	return x ? x->job.steps : 0;
}

API uint64_t gradflow_exchange_sent_bytes(const struct gradflow_exchange *x)
{
	return x && x->job.exchange
		       ? gf_exchange_totals(x->job.exchange).waited_bytes
		       : 0;
}

API uint64_t gradflow_copied_bytes(const struct gradflow_exchange *x)
{
	return x && x->job.exchange ? gf_exchange_copied_bytes(x->job.exchange)
				    : 0;
}
