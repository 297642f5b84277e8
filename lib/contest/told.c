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

bool gf_contest_told_is(const char *name)
{
	return words_of(name) != NULL;
}

int gf_contest_told_check(const char *name, struct gf_error *err)
{
	const char *words = words_of(name);
	const struct gf_dialect *d;
	struct gf_tuning v;
	int rc = 0;

	if (is_all(words))
		return 0;
	for (d = gf_dialects; d->name; d++) {
		rc = gf_tuning_read(d, words, &v, err);
		if (rc == 0)
			return 0;
	}
	/* the first is MPI's, which gf-allreduce can tell */
	return gf_tuning_read(gf_dialects, words, &v, err);
}

static int refuse(const struct gf_contest_allreduce_config *config,
		  const char *name, struct gf_error *err)
{
	const char *library = config->comm->library;

	if (config->device.gpu)
		return gf_error_set(err, -ENOTSUP,
				    "%s: want --device cpu: NCCL is told by "
				    "its environment (gf-profile --import "
				    "--variant takes its tables)",
				    name);
	if (config->element.codec || config->lanes > 1)
		return gf_error_set(err, -ENOTSUP,
				    "%s: want one message at once, without a "
				    "codec, got %s",
				    name,
				    config->lanes > 1 ? "several" : "a codec");
	return gf_error_set(err, -ENOTSUP,
			    "%s: want Open MPI between the ranks, which can be "
			    "told, got %s",
			    name, *library ? library : config->comm->ops->name);
}

/* Can the library here be told that? */
static int try(const struct gf_contest_allreduce_config *config,
	       const struct gf_way *way, struct gf_error *err)
{
	struct gf_comm_told *told = NULL;
	int rc = gf_contest_told_new(config, way, &told, err);

	if (told)
		told->free(told);
	return rc;
}

int gf_contest_told_ways(const char *name,
			 const struct gf_contest_allreduce_config *config,
			 struct gf_contest_ways *ways, struct gf_error *err)
{
	const char *words = words_of(name);
	char *head = gf_xasprintf("%.*s", (int)(words - 1 - name), name);
	struct gf_way way = {.algorithm = gf_algorithm_find(head)};
	const struct gf_dialect *d = gf_dialect_of(config->comm->library);
	size_t capacity = 0, i;
	struct gf_error why;
	int rc = 0;

	free(head);
	memset(ways, 0, sizeof(*ways));
	if (!d || !config->comm->ops->tell || config->element.codec ||
	    config->lanes > 1 || config->device.gpu)
		return refuse(config, name, err);
	if (!is_all(words)) {
		rc = gf_tuning_read(d, words, &way.tuning, err);
		if (rc == 0)
			rc = try(config, &way, err);
		if (rc == 0)
			*gf_array_push(&ways->list, &ways->count, &capacity) =
				way;
		return rc;
	}
	for (i = 0; gf_tuning_at(d, i, &way.tuning); i++)
		if (try(config, &way, &why) == 0)
			*gf_array_push(&ways->list, &ways->count, &capacity) =
				way;
	return 0;
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
