/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/optimizer_bounds.h"

#include <math.h>

#include "base/registry.h"

/* How far below the edge of stability a suitable rate / (1 - momentum) is kept: curvature grows
 * while a net is trained, and gradients are noisy (docs/methods.md has what was measured). */
#define MARGIN 5

/* z - x at an angle of the unit circle. */
static double phase(double angle, double x)
{
	return atan2(sin(angle), cos(angle) - x);
}

static double size(double angle, double x)
{
	return hypot(sin(angle), cos(angle) - x);
}

double gf_delay_bound(size_t delay, bool nesterov, double momentum)
{
	const double m = momentum, zero = nesterov ? m / (1 + m) : 0;
	double low = 0, high = M_PI, a;

	for (int i = 0; i < 60; i++) {
		a = (low + high) / 2;
		if (phase(a, 1) + phase(a, m) + (double)delay * a - phase(a, zero) < M_PI)
			low = a;
		else
			high = a;
	}
	return size(high, 1) * size(high, m) / size(high, zero) / (nesterov ? 1 + m : 1);
}

struct gf_wants gf_plan_wants(const struct gf_plan *p, bool nesterov, double momentum,
			      struct gf_text *why)
{
	const struct gf_select_plan *select = gf_selection_plan(&p->selection);
	const char *less = select->less_momentum;
	const bool ahead = !(select->traits & GF_SELECT_MOMENTUM);
	const int late = p->staleness - 1;
	struct gf_wants w = {
		.momentum = less ? select->most_momentum : INFINITY,
		.share = select->rate_share > 0 ? select->rate_share : 1,
	};

	w.clipped = select->clipped_share > 0 ? select->clipped_share : w.share;
	if (less && why)
		gf_text_addf(why, "%s", less);
	if (late < 1)
		return w;
	if (why)
		gf_text_addf(why, "%sgradients are %d step%s late", less ? ", and " : "", late,
			     late == 1 ? "" : "s");
	momentum = fmin(momentum, w.momentum);
	w.share = fmin(w.share, gf_delay_bound((size_t)late, nesterov && ahead, momentum) /
					(1 - momentum) / MARGIN);
	w.clipped = fmin(w.clipped, w.share);
	w.nesterov = ahead && w.momentum > 0;
	return w;
}

static const struct state {
	const char *name, *description;
	size_t slots; /* of f32 */
} states[] = {
	{"sgd", NULL, 1},        {"nesterov", NULL, 1}, {"lars", NULL, 1},
	{"lars-paper", NULL, 1}, {"adamw", NULL, 2},    {0},
};

int gf_optimizer_state_bytes(const char *name, double *bytes, struct gf_error *err)
{
	static const struct gf_registry all = {states, sizeof(*states), NULL};
	const struct state *s = gf_named_find(states, sizeof(*states), name);

	if (!s)
		return gf_registry_refuse(&all, NULL, NULL, name, err);
	*bytes = 4 * (double)s->slots;
	return 0;
}
