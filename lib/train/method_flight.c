/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients that have come and wait to be applied: in a checkpoint, and from
 * there. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/method_parts.h"

int gf_method_flight_open(struct gf_method *m, struct gf_error *err)
{
	size_t n = (gf_method_depth(m) - 1) * gf_method_elems(m);

	if (!m->env.params || !n)
		return 0;
	m->flight_bad = gf_xcalloc(gf_method_depth(m), sizeof(*m->flight_bad));
	m->flight_scale =
		gf_xcalloc(gf_method_depth(m), sizeof(*m->flight_scale));
	m->flight = calloc(n, sizeof(*m->flight));
	if (!m->flight)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu gradients in flight of "
				    "%zu parameters",
				    gf_method_depth(m) - 1, gf_method_elems(m));
	return 0;
}

void gf_method_flight_close(struct gf_method *m)
{
	free(m->flight);
	free(m->flight_bad);
	free(m->flight_scale);
}

/* The same on all ranks: what is kept are sums. */
void gf_method_flight_state(struct gf_method *m, struct gf_state *s)
{
	const struct gf_model_profile *model = m->env.plan->model;
	/* scaled gradients come as means, whatever the number of ranks */
	enum gf_state_rule rule =
		m->env.scale.used ? GF_STATE_KEEP : GF_STATE_SUM;
	size_t age, i;

	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.count", "U64",
			   &m->nflight, 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.bad", "U64",
			   m->flight_bad, gf_method_depth(m) - 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.scale", "F64",
			   m->flight_scale, gf_method_depth(m) - 1);
	for (age = 0; age + 1 < gf_method_depth(m); age++)
		for (i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("pipeline.%zu.%s", age,
						  model->tensors[i].name),
				     &m->env.shapes[i],
				     m->flight + age * gf_method_elems(m) +
					     m->updater.offsets[i])
				->rule = rule;
}

float *gf_method_flight_keep(struct gf_method *m, size_t age)
{
	const size_t n = gf_method_elems(m);

	m->nflight = m->begun - m->applied;
	assert(m->nflight < gf_method_depth(m));
	m->flight_bad[age] = 0;
	m->flight_scale[age] = 0;
	return memset(m->flight + age * n, 0, n * sizeof(float));
}

int gf_method_flight_restore(struct gf_method *m, struct gf_error *err)
{
	if (m->nflight >= gf_method_depth(m))
		return gf_error_set(err, -EINVAL,
				    "the checkpoint: want at most %zu "
				    "gradients in flight, got %" PRIu64,
				    gf_method_depth(m) - 1, m->nflight);
	m->begun = m->arrived = m->restored = m->nflight;
	m->applied = 0;
	m->shift = gf_method_depth(m) - m->nflight;
	return 0;
}

/* One of those that have come and wait, or nothing. */
static void keep(struct gf_method *m, size_t age)
{
	const size_t index = m->applied + age;
	float *to = gf_method_flight_keep(m, age);

	if (age >= m->nflight)
		return;
	gf_select_keep(&m->exchange.select, gf_method_slot(m, index), age, to);
	m->flight_bad[age] = gf_method_bad(m, index).found;
	m->flight_scale[age] =
		m->exchange.select.scale[gf_method_slot(m, index)];
}

/* What the last update left on a GPU. */
static int fetch(struct gf_method *m, struct gf_error *err)
{
	int rc;

	if (!m->env.selects_there)
		return 0;
	if (m->exchange.rc) {
		*err = m->exchange.reason;
		return m->exchange.rc;
	}
	rc = gf_update_fetch(&m->updater, err);
	return rc ? rc : gf_exchange_fetch(&m->exchange, err);
}

int gf_method_settle_host(struct gf_method *m, struct gf_error *err)
{
	size_t age;
	int rc = gf_method_take_rest(m, err);

	rc = rc ? rc : gf_method_await(m, m->begun, err);
	rc = rc ? rc : fetch(m, err);
	if (rc || !m->flight)
		return rc;
	for (age = 0; age + 1 < gf_method_depth(m); age++)
		keep(m, age);
	return 0;
}

/* The next step that is begun will be in slot 0: those in flight end there. */
int gf_method_restore_host(struct gf_method *m, struct gf_error *err)
{
	size_t n = gf_method_elems(m), age;
	int rc = 0;

	if (m->env.selects_there) {
		rc = gf_update_send(&m->updater, err);
		rc = rc ? rc
			: m->exchange.select.ops->send(&m->exchange.select,
						       err);
	}
	if (rc || !m->flight)
		return rc;
	rc = gf_method_flight_restore(m, err);
	if (rc)
		return rc;
	for (age = 0; age < m->nflight; age++) {
		gf_select_restore(&m->exchange.select, gf_method_slot(m, age),
				  age, m->flight + age * n);
		m->exchange.select.scale[gf_method_slot(m, age)] =
			m->flight_scale[age];
	}
	return 0;
}
