/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/run/snapshot.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"

static size_t bytes_of(const struct gf_state_item *item)
{
	return item->count_elems * gf_safetensors_elem_bytes(item->tensor.dtype);
}

/* -1: there is none. */
static int heir_of(const struct gf_reshard *r, int part)
{
	if (r->heirs)
		return r->heirs[part];
	return part < r->to ? part : -1;
}

/* Is this rank the one to take over what that part's rank had? */
static bool is_heir(const struct gf_reshard *r, int part)
{
	int heir = heir_of(r, part);

	return (heir < 0 ? part % r->to : heir) == r->rank;
}

void gf_reshard_begin(const struct gf_state *s)
{
	for (size_t i = 0; i < s->nitems; i++)
		if (s->items[i].scope == GF_STATE_OWN)
			memset(s->items[i].data, 0, bytes_of(&s->items[i]));
}

static int add_item(const struct gf_safetensors *file, const struct gf_state_item *item,
		    double *squares, struct gf_error *err)
{
	float *sum = item->data, *part;
	int rc;

	assert(strcmp(item->tensor.dtype, "F32") == 0);
	part = malloc(bytes_of(item) + 1);
	if (!part)
		return gf_error_set(err, -ENOMEM, "no memory for %zu elements of \"%s\"",
				    item->count_elems, item->name);
	rc = gf_safetensors_load(file, item->name, item->tensor.dtype, item->count_elems, part,
				 err);
	for (size_t i = 0; i < item->count_elems && !rc; i++) {
		sum[i] += part[i];
		*squares += (double)part[i] * part[i];
	}
	free(part);
	return rc;
}

int gf_reshard_take(const struct gf_reshard *r, int part, const struct gf_safetensors *file,
		    const struct gf_state *s, struct gf_error *err)
{
	double squares = 0;
	int rc = 0;

	for (size_t i = 0; i < s->nitems && !rc; i++) {
		const struct gf_state_item *item = &s->items[i];

		if (item->scope == GF_STATE_OWN && part < r->from &&
		    (item->rule == GF_STATE_MEAN || is_heir(r, part)))
			rc = add_item(file, item, &squares, err);
	}
	/* what all ranks take counts once */
	if (r->carried && part < r->from && heir_of(r, part) < 0 && is_heir(r, part))
		*r->carried += squares;
	return rc;
}

/* In f64, so that a product which f32 can hold is exact. */
static void scale(const struct gf_state_item *item, int by, int over)
{
	float *value = item->data;

	for (size_t i = 0; i < item->count_elems; i++)
		value[i] = (float)((double)value[i] * by / over);
}

void gf_reshard_end(const struct gf_reshard *r, const struct gf_state *s)
{
	for (size_t i = 0; i < s->nitems; i++) {
		const struct gf_state_item *item = &s->items[i];

		assert(item->scope == GF_STATE_SHARED || item->rule == GF_STATE_SUM ||
		       item->rule == GF_STATE_MEAN);
		if (item->rule == GF_STATE_SUM)
			scale(item, r->to, r->from);
		else if (item->rule == GF_STATE_MEAN)
			scale(item, 1, r->from);
		else if (item->rule == GF_STATE_RESTART)
			memset(item->data, 0, bytes_of(item));
	}
}

/* One at least: a damaged set may tell of steps of more samples than there are. */
static size_t steps_of_epoch(size_t samples, size_t of_step)
{
	return of_step && of_step < samples ? samples / of_step : 1;
}

size_t gf_reshard_steps(size_t steps, size_t samples, size_t from_samples, size_t to_samples)
{
	size_t from_steps = steps_of_epoch(samples, from_samples);
	size_t to_steps = steps_of_epoch(samples, to_samples);
	size_t seen = steps % from_steps * from_samples;
	size_t at = to_samples ? (seen + to_samples - 1) / to_samples : 0;

	return steps / from_steps * to_steps + (at < to_steps ? at : to_steps);
}

static int set_heir(int *heirs, int before, int rank, size_t former, struct gf_error *err)
{
	if (former > (size_t)before)
		return gf_error_set(
			err, -EINVAL,
			"former: want below %d, the ranks that wrote the set, got %zu on rank %d",
			before, former - 1, rank);
	if (heirs[former - 1] >= 0)
		return gf_error_set(err, -EINVAL,
				    "former: want each rank to have been another one, got %zu on "
				    "ranks %d and %d",
				    former - 1, heirs[former - 1], rank);
	heirs[former - 1] = rank;
	return 0;
}

int gf_heirs_find(struct gf_team *team, size_t former, int before, int **heirs,
		  struct gf_error *err)
{
	const int ranks = team->comm->ranks;
	size_t *all = gf_xcalloc((size_t)ranks, sizeof(*all));
	int rc = gf_team_allgather(team, &former, sizeof(former), all, err);
	int *found = gf_xcalloc((size_t)before, sizeof(*found)), r, known = 0;

	for (r = 0; r < before; r++)
		found[r] = -1;
	for (r = 0; r < ranks && !rc; r++) {
		if (!all[r])
			continue;
		rc = set_heir(found, before, r, all[r], err);
		known++;
	}
	free(all);
	*heirs = known && !rc ? found : NULL;
	if (!*heirs)
		free(found);
	return rc;
}
