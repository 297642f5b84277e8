/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SHARD_MODEL_H
#define GF_TESTS_SHARD_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

/*
 * A step under shards, simulated with nothing of lib/simulator and without its order of works: what
 * opens is found anew at each moment, from the words of gf-time(7).
 */
#define MODEL_UNITS 12

struct shard_model {
	int units, lanes, ahead;
	bool dropped;            /* parameters are given back: units are gathered twice */
	bool keep[MODEL_UNITS];  /* in the order of backward */
	bool alone[MODEL_UNITS]; /* starts when nothing is in flight */
	double forward_s, backward_s, update_s;
	double need_s[MODEL_UNITS]; /* of forward's work; falls with the unit */
	double made_s[MODEL_UNITS]; /* of backward's work; grows with the unit */
	double startup_s[2][MODEL_UNITS], drain_s[2][MODEL_UNITS]; /* scatter, gather */
	double gamma[4];                                           /* of n draining, from 1 */
	/* found */
	double bytes[MODEL_UNITS];
	/* Units that are gathered and gradients that are not scattered yet, at once. */
	double peak_bytes;
	double iteration_s;
};

/* What moves: a unit's gather for forward, for backward, or its scatter. */
enum { FORWARD, BACKWARD, SCATTER, KINDS };
enum { WAITS, MOVES, DONE };

struct shard_run {
	struct shard_model *m;
	int state[KINDS][MODEL_UNITS];
	double startup_s[KINDS][MODEL_UNITS], drain_s[KINDS][MODEL_UNITS];
	double now_s, work_s;
	int stage; /* that computes, or waits to; 2 units: all done */
	bool computes;
};

static inline double shard_begin_s(const struct shard_model *m, int stage)
{
	if (stage < m->units)
		return m->need_s[m->units - 1 - stage];
	if (stage == 2 * m->units)
		return m->forward_s + m->backward_s;
	return m->forward_s + (stage == m->units ? 0 : m->made_s[stage - m->units - 1]);
}

static inline int shard_unit_of(const struct shard_model *m, int stage)
{
	return stage < m->units ? m->units - 1 - stage : stage - m->units;
}

/* Is there such a message? */
static inline bool shard_exists(const struct shard_model *m, int kind, int unit)
{
	return kind != BACKWARD ||
	       (m->dropped && unit > 0 && 2 * unit + 1 > m->ahead && !m->keep[unit]);
}

/* The moment in program order at which it opens: twice the border of stages, and one more for a
 * scatter, which comes after the gathers of its border; then the stage, for order among gathers. */
static inline int shard_key(const struct shard_model *m, int kind, int unit)
{
	const int stage = kind == FORWARD ? m->units - 1 - unit : m->units + unit;
	int border = stage - m->ahead;

	if (kind == SCATTER)
		return (stage + 1) * 1000 + 999;
	if (!m->dropped || border < 0)
		border = 0;
	return border * 1000 + stage;
}

static inline bool shard_open(const struct shard_run *r, int kind, int unit)
{
	const struct shard_model *m = r->m;
	const int border = shard_key(m, kind, unit) / 1000;

	return r->work_s >= (border ? shard_begin_s(m, border) : 0) - 1e-12 &&
	       r->stage >= border - 1 &&
	       (r->stage >= border || r->work_s >= shard_begin_s(m, border) - 1e-12);
}

/* Starts what may start: always the first in program order of those that wait. */
static inline void shard_launch(struct shard_run *r)
{
	const struct shard_model *m = r->m;
	int kind, unit, best_kind, best_unit, best, active;

	for (;;) {
		best = active = 0;
		best_kind = -1;
		best_unit = 0;
		for (kind = 0; kind < KINDS; kind++)
			for (unit = 0; unit < m->units; unit++) {
				active += r->state[kind][unit] == MOVES;
				if (r->state[kind][unit] != WAITS || !shard_exists(m, kind, unit))
					continue;
				if (best_kind < 0 || shard_key(m, kind, unit) < best) {
					best = shard_key(m, kind, unit);
					best_kind = kind;
					best_unit = unit;
				}
			}
		if (best_kind < 0 || !shard_open(r, best_kind, best_unit) ||
		    active >= (m->alone[best_unit] ? 1 : m->lanes))
			return;
		r->state[best_kind][best_unit] = MOVES;
		r->startup_s[best_kind][best_unit] = m->startup_s[best_kind != SCATTER][best_unit];
		r->drain_s[best_kind][best_unit] = m->drain_s[best_kind != SCATTER][best_unit];
	}
}

/* May compute go on from where it is? */
static inline bool shard_computes(const struct shard_run *r)
{
	const struct shard_model *m = r->m;
	const int unit = shard_unit_of(m, r->stage);

	if (r->stage == 2 * m->units)
		return false;
	if (r->work_s < shard_begin_s(m, r->stage) - 1e-12)
		return true; /* what is before the first unit */
	if (r->stage < m->units)
		return r->state[FORWARD][unit] == DONE;
	return r->state[shard_exists(m, BACKWARD, unit) ? BACKWARD : FORWARD][unit] == DONE;
}

static inline void shard_count(struct shard_run *r)
{
	const struct shard_model *m = r->m;
	double sum = 0;
	int unit;

	for (unit = 0; unit < m->units; unit++) {
		const bool again = shard_exists(m, BACKWARD, unit);
		const bool first = r->state[FORWARD][unit] != WAITS &&
				   r->stage <= (again ? m->units - 1 - unit : m->units + unit);
		const bool second =
			again && r->state[BACKWARD][unit] != WAITS && r->stage <= m->units + unit;

		const bool made = (r->stage > m->units + unit ||
				   (r->stage == m->units + unit && shard_computes(r))) &&
				  r->state[SCATTER][unit] != DONE;

		sum += m->bytes[unit] * (first + second + made);
	}
	if (m->dropped)
		r->m->peak_bytes = fmax(r->m->peak_bytes, sum);
}

/* To the next moment at which something changes; false: nothing will. */
static inline bool shard_pass(struct shard_run *r)
{
	const struct shard_model *m = r->m;
	const bool computes = shard_computes(r);
	double next_s = INFINITY, to_s = 0;
	int kind, unit, draining = 0;

	if (computes) {
		to_s = shard_begin_s(m, r->stage);
		if (r->work_s >= to_s - 1e-12)
			to_s = shard_begin_s(m, r->stage + 1);
		next_s = to_s - r->work_s;
	}
	for (kind = 0; kind < KINDS; kind++)
		for (unit = 0; unit < m->units; unit++)
			draining += r->state[kind][unit] == MOVES && r->startup_s[kind][unit] <= 0;
	for (kind = 0; kind < KINDS; kind++)
		for (unit = 0; unit < m->units; unit++)
			if (r->state[kind][unit] == MOVES)
				next_s = fmin(next_s, r->startup_s[kind][unit] > 0
							      ? r->startup_s[kind][unit]
							      : r->drain_s[kind][unit] *
									m->gamma[draining - 1]);
	if (isinf(next_s))
		return false;
	r->now_s += next_s;
	for (kind = 0; kind < KINDS; kind++)
		for (unit = 0; unit < m->units; unit++) {
			if (r->state[kind][unit] != MOVES)
				continue;
			if (r->startup_s[kind][unit] > 0) {
				r->startup_s[kind][unit] -= next_s;
				if (r->startup_s[kind][unit] < 1e-12)
					r->startup_s[kind][unit] = 0;
			} else {
				r->drain_s[kind][unit] -= next_s / m->gamma[draining - 1];
			}
			if (r->startup_s[kind][unit] <= 0 && r->drain_s[kind][unit] < 1e-12)
				r->state[kind][unit] = DONE;
		}
	if (computes) {
		r->work_s = next_s >= to_s - r->work_s - 1e-12 ? to_s : r->work_s + next_s;
		if (r->stage < 2 * m->units && r->work_s >= shard_begin_s(m, r->stage + 1) - 1e-12)
			r->stage++;
	}
	return true;
}

static inline void shard_simulate(struct shard_model *m)
{
	struct shard_run r = {.m = m};

	m->peak_bytes = 0;
	do {
		shard_launch(&r);
		shard_count(&r);
	} while (shard_pass(&r));
	m->iteration_s = r.now_s + m->update_s;
}

#endif
