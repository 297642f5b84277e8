/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/search/search.h"

#include "base/heap.h"

/* A draft by `work` has the times of the draft that it expands to. */
struct blocks {
	struct gf_workbench work;
	struct gf_problem problem;
	struct gf_model_profile model;
	size_t *last; /* tensor of each block */
};

static void init(struct blocks *b, const struct gf_workbench *w, size_t most)
{
	const struct gf_model_profile *model = w->in->model;
	size_t per = (w->ntensors + most - 1) / most, n = 0, first, last, i;
	struct gf_tensor *tensors = gf_xcalloc(w->ntensors, sizeof(*tensors));

	b->last = gf_xcalloc(w->ntensors, sizeof(*b->last));
	b->work = *w; /* shares the menu */
	b->work.ready_s = gf_xcalloc(w->ntensors, sizeof(double));
	b->work.prefix_bytes = gf_xcalloc(w->ntensors + 1, sizeof(double));
	b->work.run_last = gf_xcalloc(w->ntensors, sizeof(size_t));
	for (first = 0; first < w->ntensors; first = last + 1, n++) {
		last = first + per - 1;
		if (last > w->run_last[first])
			last = w->run_last[first];
		b->last[n] = last;
		tensors[n] = model->tensors[last]; /* ready when that is */
		b->work.ready_s[n] = w->ready_s[last];
		b->work.prefix_bytes[n + 1] = w->prefix_bytes[last + 1];
	}
	for (i = n; i-- > 0;)
		b->work.run_last[i] = i + 1 < n && w->run_last[b->last[i]] > b->last[i]
					      ? b->work.run_last[i + 1]
					      : i;
	b->model = *model;
	b->model.tensors = tensors;
	b->model.ntensors = n;
	b->problem = *w->in;
	b->problem.model = &b->model;
	b->work.in = &b->problem;
	b->work.ntensors = n;
}

static void expand(const struct blocks *b, struct gf_draft *d)
{
	for (size_t i = 0; i < d->nsends; i++) {
		struct gf_send *s = &d->sends[i];

		s->first = s->first ? b->last[s->first - 1] + 1 : 0;
		s->last = b->last[s->last];
	}
}

static void release(struct blocks *b)
{
	free(b->model.tensors);
	free(b->last);
	free(b->work.ready_s);
	free(b->work.prefix_bytes);
	free(b->work.run_last);
}

void gf_search_blocks(const struct gf_workbench *w, size_t most,
		      void (*search)(const struct gf_workbench *w, struct gf_draft *d),
		      struct gf_draft *d)
{
	struct blocks b;

	init(&b, w, most);
	search(&b.work, d);
	expand(&b, d);
	release(&b);
}
