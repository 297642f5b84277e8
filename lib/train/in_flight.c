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
					     m->pools[0].offsets[i])
				->rule = rule;
}

/* The place of the gradient of that age, filled with zeros. */
static float *room(struct gf_method *m, size_t age)
{
	const size_t n = gf_method_elems(m);

	m->flight_bad[age] = 0;
	m->flight_scale[age] = 0;
	return memset(m->flight + age * n, 0, n * sizeof(float));
}

/* Per gradient: is it bad? A device's flags come from there. */
static int find_bad(struct gf_method *m, struct gf_error *err)
{
	const struct gf_device_flags *f = m->ahead ? &m->ahead->flags : NULL;
	uint32_t *flags;
	size_t age;
	int rc;

	if (!f) {
		for (age = 0; age < m->nflight; age++)
			m->flight_bad[age] =
				gf_method_bad(m, m->applied + age).found;
		return 0;
	}
	flags = gf_xcalloc(f->count, sizeof(*flags));
	rc = gf_device_flags_copy(&m->ahead->flags, m->env.stream, flags,
				  GF_GPU_TO_HOST, err);
	for (age = 0; age < m->nflight; age++)
		m->flight_bad[age] = flags[(m->applied + age) % f->count] != 0;
	free(flags);
	return rc;
}

/* Those that have come and wait. */
static int keep(struct gf_method *m, struct gf_error *err)
{
	size_t age, slot;
	int rc;

	m->nflight = m->begun - m->applied;
	assert(m->nflight < gf_method_depth(m));
	for (age = 0; age + 1 < gf_method_depth(m); age++)
		room(m, age);
	rc = find_bad(m, err);
	for (age = 0; age < m->nflight && !rc; age++) {
		slot = gf_method_slot(m, m->applied + age);
		m->flight_scale[age] = m->select.scale[slot];
		rc = gf_select_keep(&m->select, slot, age, m->flight_bad[age],
				    m->flight + age * gf_method_elems(m), err);
	}
	return rc;
}

int gf_method_settle(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_method_take_rest(m, err);

	if (m->ahead) {
		gf_method_learn(m);
		rc = gf_method_kept(m, err);
		rc = rc ? rc : gf_engine_settle(m->engine, err);
	} else {
		rc = rc ? rc : gf_method_await(m, m->begun, err);
		rc = rc ? rc : gf_method_kept(m, err);
	}
	/* what the last update left on a GPU */
	rc = rc ? rc : gf_update_fetch(&m->updater, err);
	rc = rc ? rc : gf_select_fetch(&m->select, err);
	return rc || !m->flight ? rc : keep(m, err);
}

/* The next step that is begun will be in slot 0: those in flight end there. */
static int count_on(struct gf_method *m, struct gf_error *err)
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

static int send_flags(struct gf_method *m, struct gf_error *err)
{
	uint32_t *flags;
	size_t age;
	int rc;

	if (!m->ahead)
		return 0;
	m->ahead->learnt = 0;
	flags = gf_xcalloc(m->ahead->flags.count, sizeof(*flags));
	for (age = 0; age < m->nflight; age++)
		flags[age] = m->flight_bad[age] != 0;
	rc = gf_device_flags_copy(&m->ahead->flags, m->env.stream, flags,
				  GF_GPU_TO_DEVICE, err);
	free(flags);
	return rc;
}

static int restore(struct gf_method *m, struct gf_error *err)
{
	size_t age, slot;
	int rc = count_on(m, err);

	for (age = 0; age < m->nflight && !rc; age++) {
		slot = gf_method_slot(m, age);
		m->select.scale[slot] = m->flight_scale[age];
		rc = gf_select_restore(&m->select, slot, age,
				       m->flight + age * gf_method_elems(m),
				       err);
	}
	return rc ? rc : send_flags(m, err);
}

/* The parameters are the net's to send. */
int gf_method_restore(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_update_send(&m->updater, err);

	rc = rc ? rc : gf_select_send(&m->select, err);
	if (!rc && m->flight)
		rc = restore(m, err);
	return rc ? rc : gf_method_expect(m, err);
}
