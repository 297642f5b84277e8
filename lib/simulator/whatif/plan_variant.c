/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/plan_variant.h"

#include <string.h>

#include "base/heap.h"
#include "documents/algorithm_traits.h"

/* How many of the plan's factors so many ranks have: fewer ranks fill the inner ones first, as
 * hosts of a rack are. */
static size_t stages_for(const struct gf_message *m, int ranks, int *inner)
{
	size_t i;

	*inner = 1;
	for (i = 0; i + 1 < m->nstages; i++) {
		if (*inner * m->stages[i].factor >= ranks &&
		    !gf_algorithm_has(m->algorithm, GF_ALGORITHM_TWO_LEVELS))
			break;
		*inner *= m->stages[i].factor;
	}
	return i + 1;
}

/* Factors for other ranks: the inner ones stay, the last takes the rest. Sets have an exchange of
 * their own. */
static int fit_stages(struct gf_message *m, const struct gf_selection *s, int ranks,
		      struct gf_error *err)
{
	size_t n, i;
	int inner;

	if (m->nstages == 0 || gf_selection_has(s, GF_SELECT_SETS))
		return 0;
	n = stages_for(m, ranks, &inner);
	if (ranks % inner != 0 || ranks / inner < 2)
		return gf_error_set(err, -EINVAL,
				    "want a multiple of the plan's inner factors (%d together), at "
				    "least %d, got %d",
				    inner, 2 * inner, ranks);
	for (i = n; i < m->nstages; i++) {
		free(m->stages[i].algorithm);
		free(m->stages[i].extra);
	}
	m->nstages = n;
	i = n - 1;
	m->stages[i].factor = ranks / inner;
	if (gf_stage_takes(m->stages[i].algorithm, m->stages[i].factor))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want ranks that leave a power of two to the plan's last stage, as %s "
			    "wants it, got %d, which leave %d; --replan makes another plan",
			    m->stages[i].algorithm, ranks, m->stages[i].factor);
}

static int use_bandwidth(struct gf_variant *v, double rate, struct gf_error *err)
{
	struct gf_fabric *f = &v->fabric;
	struct gf_link_cost link;
	int rc;

	if (f->nlevels > 0) {
		v->levels = gf_levels_copy(f->levels, f->nlevels);
	} else {
		/* a uniform network with the startup that was measured; of short messages, for what
		 * it is in long ones goes with their rate */
		rc = gf_price_link(f, 0, &link, err);
		if (rc < 0)
			return rc;
		v->levels = gf_xcalloc(1, sizeof(*v->levels));
		v->levels[0].name = gf_xstrdup("net");
		v->levels[0].link = gf_xstrdup("net");
		v->levels[0].size = (size_t)f->ranks;
		v->levels[0].latency_s = link.alpha_s;
		f->nlevels = 1;
	}
	v->levels[f->nlevels - 1].bandwidth_bytes_per_s = rate;
	f->levels = v->levels;
	f->network = NULL;
	return 0;
}

int gf_variant_init(struct gf_variant *v, const struct gf_plan *p, const struct gf_what_if *w,
		    struct gf_error *err)
{
	int rc = 0;

	memset(v, 0, sizeof(*v));
	gf_plan_copy(&v->plan, p);
	v->model = *p->model;
	if (w->ranks && w->ranks != p->ranks) {
		v->plan.ranks = w->ranks;
		if (p->shard.group_ranks == p->ranks || p->shard.group_ranks > w->ranks)
			v->plan.shard.group_ranks = w->ranks;
		for (size_t i = 0; i < p->nmessages && rc == 0; i++)
			rc = fit_stages(&v->plan.messages[i], &v->plan.selection, w->ranks, err);
	}
	v->fabric = gf_plan_fabric(&v->plan);
	v->fabric.derived = &v->derived;
	if (w->levels) {
		v->fabric.levels = w->levels;
		v->fabric.nlevels = w->nlevels;
		v->fabric.network = NULL;
	}
	if (w->network)
		v->fabric.network = w->network;
	if (rc == 0 && w->bandwidth_bytes_per_s > 0)
		rc = use_bandwidth(v, w->bandwidth_bytes_per_s, err);
	return rc;
}

void gf_variant_release(struct gf_variant *v)
{
	if (v->levels)
		gf_levels_free(v->levels, v->fabric.nlevels);
	gf_traffic_release(&v->traffic);
	gf_derived_release(&v->derived);
	gf_plan_release(&v->plan);
}

void gf_variant_scale(struct gf_variant *v, double factor)
{
	struct gf_model_profile *m = v->plan.model;

	m->forward_s = v->model.forward_s * factor;
	m->backward_s = v->model.backward_s * factor;
	m->issue_s = v->model.issue_s * factor;
	for (size_t i = 0; i < m->ntensors; i++) {
		m->tensors[i].ready_s = v->model.tensors[i].ready_s * factor;
		m->tensors[i].need_s = v->model.tensors[i].need_s * factor;
	}
}

int gf_variant_run(struct gf_variant *v, double factor, struct gf_sim_result *out,
		   struct gf_error *err)
{
	gf_variant_scale(v, factor);
	return gf_predict_traffic(&v->plan, &v->traffic, out, err);
}
