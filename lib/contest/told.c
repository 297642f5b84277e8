/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "doc/algorithm_traits.h"

/* What stands behind the algorithm of that trait; NULL: no such name. */
static const char *words_of(const char *name)
{
	const char *colon = strchr(name, ':');
	char *head;
	bool told;

	if (!colon)
		return NULL;
	head = gf_xasprintf("%.*s", (int)(colon - name), name);
	told = gf_algorithm_has(head, GF_ALGORITHM_TOLD);
	free(head);
	return told ? colon + 1 : NULL;
}

static bool is_all(const char *words)
{
	return strcmp(words, "all") == 0;
}

static bool is_blocking(const char *words)
{
	return strcmp(words, gf_dialect_blocking.as_it_is) == 0;
}

bool gf_contest_told_is(const char *name)
{
	return words_of(name) != NULL;
}

/* Those of GPUs have protocols. The reason is of the library that has the
 * algorithm, if any has it. */
int gf_contest_told_check(const char *name, bool gpus, struct gf_error *err)
{
	const char *words = words_of(name);
	const struct gf_dialect *d, *nearest = NULL;
	struct gf_error why;
	struct gf_tuning v;

	if (is_all(words) || is_blocking(words))
		return 0;
	for (d = gf_dialects; d->name; d++) {
		if (gpus && !d->protocols)
			continue;
		if (gf_tuning_read(d, words, &v, &why) == 0)
			return 0;
		if (!nearest || (!gf_dialect_has(nearest, words) &&
				 gf_dialect_has(d, words)))
			nearest = d;
	}
	return gf_tuning_read(nearest, words, &v, err);
}

static int refuse(const struct gf_contest_allreduce_config *config,
		  const char *name, struct gf_error *err)
{
	const struct gf_contest_device *d = &config->device;
	const char *library = config->comm->library;

	if (config->element.codec || config->lanes > 1)
		return gf_error_set(err, -ENOTSUP,
				    "%s: want one message at once, without a "
				    "codec, got %s",
				    name,
				    config->lanes > 1 ? "several" : "a codec");
	if (is_blocking(words_of(name)))
		return gf_error_set(err, -ENOTSUP,
				    "%s: want MPI between the ranks, which has "
				    "a blocking all-reduce, got %s",
				    name,
				    d->nccl ? "NCCL" : config->comm->ops->name);
	if (d->gpu)
		return gf_error_set(err, -ENOTSUP,
				    "%s: want messages by NCCL, which can be "
				    "told, got them by the host: %s",
				    name, d->why);
	return gf_error_set(err, -ENOTSUP,
			    "%s: want Open MPI between the ranks, which can be "
			    "told, got %s",
			    name, *library ? library : config->comm->ops->name);
}

/* The dialect of the library that reduces messages here; NULL: it cannot be
 * told how. */
static const struct gf_dialect *
dialect_of(const struct gf_contest_allreduce_config *config, const char *words)
{
	const struct gf_contest_device *d = &config->device;
	char library[GF_CONTEST_LIBRARY_TEXT];

	if (config->element.codec || config->lanes > 1 ||
	    (!d->nccl && !config->comm->ops->tell))
		return NULL;
	if (is_blocking(words))
		return d->nccl ? NULL : &gf_dialect_blocking;
	if (!d->nccl && d->gpu)
		return NULL;
	return gf_dialect_of(gf_contest_device_library(&config->device,
						       config->comm, library));
}

int gf_contest_told_ways(const char *name,
			 const struct gf_contest_allreduce_config *config,
			 struct gf_contest_ways *ways, struct gf_error *err)
{
	const char *words = words_of(name);
	char *head = gf_xasprintf("%.*s", (int)(words - 1 - name), name);
	struct gf_way way = {.algorithm = gf_algorithm_find(head)};
	const struct gf_dialect *d = dialect_of(config, words);
	size_t capacity = 0, i;
	int rc = 0;

	free(head);
	memset(ways, 0, sizeof(*ways));
	if (!d)
		return refuse(config, name, err);
	if (!is_all(words)) {
		rc = gf_tuning_read(d, words, &way.tuning, err);
		if (rc == 0)
			*gf_array_push(&ways->list, &ways->count, &capacity) =
				way;
		return rc;
	}
	for (i = 0; gf_tuning_at(d, i, &way.tuning); i++)
		*gf_array_push(&ways->list, &ways->count, &capacity) = way;
	return 0;
}

void gf_contest_told_remark(const struct gf_contest_allreduce_config *config,
			    struct gf_text *out)
{
	if (config->device.nccl && config->comm->rank == 0)
		gf_nccl_remark(out);
}

bool gf_contest_told_named(const char *const *names, const struct gf_way *way)
{
	struct gf_tuning v;
	const char *words;

	for (; *names; names++) {
		words = words_of(*names);
		if (words && !is_all(words) &&
		    gf_tuning_read(way->tuning.dialect, words, &v, NULL) == 0 &&
		    gf_tuning_same(&v, &way->tuning))
			return true;
	}
	return false;
}

int gf_contest_told_new(const struct gf_contest_allreduce_config *config,
			const struct gf_way *way, struct gf_comm_told **told,
			struct gf_error *err)
{
	const struct gf_tuning *v = &way->tuning;

	return config->comm->ops->tell(config->comm,
				       v->algorithm ? v->algorithm->number : 0,
				       v->segment_bytes, told, err);
}

int gf_contest_told_send(const struct gf_contest_allreduce *b,
			 struct gf_comm_told *told, size_t count_elems,
			 struct gf_error *err)
{
	const struct gf_element *e = &b->config.element;
	int rc = told->allreduce(told, b->work, count_elems, e, err);

	if (rc == 0)
		gf_element_finish(e, b->work, count_elems,
				  b->config.comm->ranks);
	return rc;
}

void gf_contest_hold(const struct gf_contest_allreduce_config *config,
		     bool begins)
{
	if (config->hold)
		config->hold(config->hold_ctx, begins);
}
