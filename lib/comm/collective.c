/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/collective.h"

#include <stdlib.h>

#include "base/heap.h"

#define SIZES 8

/* One size. */
struct entry {
	size_t count_elems;
	struct gf_schedule schedule;
	struct gf_exec_run *run; /* NULL: free */
	uint64_t used;           /* when last */
};

struct gf_collective {
	struct gf_exec *exec;
	struct gf_collective_config config;
	struct entry *entries;
	uint64_t uses;
	struct gf_exec_run *run;
};

struct gf_collective *
gf_collective_new(struct gf_exec *x, const struct gf_collective_config *config)
{
	struct gf_collective *c = gf_xcalloc(1, sizeof(*c));
	struct gf_collective_config *own = &c->config;

	c->exec = x;
	*own = *config;
	if (!own->sizes)
		own->sizes = SIZES;
	if (!own->element.size_bytes)
		own->element = gf_element_number(GF_F32, GF_OP_SUM);
	own->args.elem_bytes = own->element.size_bytes;
	own->args.lossy = gf_element_lossy(&own->element);
	c->entries = gf_xcalloc(own->sizes, sizeof(*c->entries));
	return c;
}

static void clear(struct entry *e)
{
	gf_exec_run_free(e->run);
	e->run = NULL;
	gf_schedule_release(&e->schedule);
}

void gf_collective_free(struct gf_collective *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->config.sizes; i++)
		clear(&c->entries[i]);
	free(c->entries);
	free(c);
}

static int fill(struct gf_collective *c, struct entry *e, size_t count_elems,
		struct gf_error *err)
{
	const struct gf_algorithm *a = c->config.algorithm;
	struct gf_coll_args args = c->config.args;
	struct gf_exec_config config = {
		.schedule = a->build ? &e->schedule : NULL,
		.count_elems = count_elems,
		.element = c->config.element,
		.half = args.half,
		.channel = c->config.channel,
	};
	int rc = 0;

	args.count_elems = count_elems;
	if (a->build)
		rc = gf_algorithm_schedule(a, &args,
					   gf_exec_comm(c->exec)->rank,
					   &e->schedule, err);
	rc = rc ? rc : gf_exec_run_new(c->exec, &config, &e->run, err);
	if (rc)
		clear(e);
	e->count_elems = count_elems;
	return rc;
}

/* The entry of that size: the one there is, or a free one, or the one that was
 * not used for longest. */
static int find(struct gf_collective *c, size_t count_elems,
		struct entry **found, struct gf_error *err)
{
	struct entry *e, *oldest = c->entries;
	int rc = 0;

	for (e = c->entries; e < c->entries + c->config.sizes; e++) {
		if (e->run && e->count_elems == count_elems)
			break;
		if (e->used < oldest->used)
			oldest = e;
	}
	if (e == c->entries + c->config.sizes) {
		e = oldest;
		if (e->run == c->run)
			c->run = NULL;
		clear(e);
		rc = fill(c, e, count_elems, err);
	}
	e->used = rc ? 0 : ++c->uses;
	*found = e;
	return rc;
}

int gf_collective_prepare(struct gf_collective *c, size_t count_elems,
			  struct gf_error *err)
{
	struct entry *e;

	return find(c, count_elems, &e, err);
}

int gf_collective_start(struct gf_collective *c, void *data, size_t count_elems,
			struct gf_error *err)
{
	struct entry *e;
	int rc = find(c, count_elems, &e, err);

	if (rc)
		return rc;
	c->run = e->run;
	return gf_exec_start(e->run, data, err);
}

struct gf_exec_run *gf_collective_run(const struct gf_collective *c)
{
	return c->run;
}
