/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/period_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

void gf_period_walk_init(struct gf_period_walk *w,
			 const struct gf_period *period,
			 const struct gf_group_kind *kinds, size_t nkinds,
			 uint64_t seed)
{
	size_t groups = 0, k, i;

	*w = (struct gf_period_walk){
		.period = period,
		.kinds = kinds,
		.nkinds = nkinds,
		.sums_s = gf_xcalloc(nkinds, sizeof(*w->sums_s)),
	};
	for (k = 0; k < nkinds; k++) {
		groups += kinds[k].groups;
		w->sums_s[k] = gf_xcalloc(kinds[k].nsteps + 1, sizeof(double));
		for (i = 0; i < kinds[k].nsteps; i++)
			w->sums_s[k][i + 1] =
				w->sums_s[k][i] + kinds[k].steps_s[i];
	}
	w->now_s = gf_xcalloc(groups, sizeof(*w->now_s));
	gf_rng_init(&w->rng, seed, 0);
}

void gf_period_walk_release(struct gf_period_walk *w)
{
	size_t k;

	for (k = 0; k < w->nkinds; k++)
		free(w->sums_s[k]);
	free(w->sums_s);
	free(w->now_s);
	memset(w, 0, sizeof(*w));
}

/* n steps that followed each other; after the last comes the first. */
static double block_s(const double *sums_s, size_t nsteps, size_t n,
		      struct gf_rng *rng)
{
	const size_t first = gf_rng_below(rng, nsteps), end = first + n;

	return (double)(end / nsteps) * sums_s[nsteps] + sums_s[end % nsteps] -
	       sums_s[first];
}

static double stretch_s(struct gf_period_walk *w, size_t kind, size_t n)
{
	const double *sums_s = w->sums_s[kind];
	const size_t nsteps = w->kinds[kind].nsteps, blocks = n / GF_WALK_BLOCK,
		     drawn = blocks < GF_WALK_DRAWN ? blocks : GF_WALK_DRAWN;
	const double mean_s =
		sums_s[nsteps] / (double)nsteps * (double)GF_WALK_BLOCK;
	double sum_s = 0;
	size_t i;

	for (i = 0; i < drawn; i++)
		sum_s += block_s(sums_s, nsteps, GF_WALK_BLOCK, &w->rng);
	if (blocks > drawn)
		sum_s = fmax(0,
			     (double)blocks * mean_s +
				     sqrt((double)blocks / (double)drawn) *
					     (sum_s - (double)drawn * mean_s));
	return sum_s + block_s(sums_s, nsteps, n % GF_WALK_BLOCK, &w->rng);
}

/* When a group that is at now_s has taken steps of step_s beside an exchange,
 * during which they take `factor` times as long, and waited for its end. */
static double waited_s(double now_s, double step_s, double start_s,
		       double end_s, double factor)
{
	const double left_s = fmax(0, step_s - (start_s - now_s));

	return end_s + fmax(0, left_s - (end_s - start_s) / factor);
}

double gf_period_walk_on(struct gf_period_walk *w,
			 const struct gf_outer_time *fragments)
{
	const struct gf_period *p = w->period;
	const size_t alone = p->steps / p->fragments - p->delay;
	double last_s = 0;
	size_t f, k, i, g;

	for (f = 0; f < p->fragments; f++) {
		double start_s = 0;

		for (k = 0, g = 0; k < w->nkinds; k++)
			for (i = 0; i < w->kinds[k].groups; i++, g++) {
				w->now_s[g] += stretch_s(w, k, alone);
				start_s = fmax(start_s, w->now_s[g]);
			}
		last_s = 0;
		for (k = 0, g = 0; k < w->nkinds; k++) {
			const struct gf_group_kind *kind = &w->kinds[k];
			const double factor =
				gf_sim_beside_factor(kind->model, &kind->step,
						     fragments[f].slowdown);

			for (i = 0; i < kind->groups; i++, g++) {
				w->now_s[g] =
					waited_s(
						w->now_s[g],
						stretch_s(w, k, p->delay),
						start_s,
						start_s +
							fragments[f].exchange_s,
						factor) +
					fragments[f].work_s;
				last_s = fmax(last_s, w->now_s[g]);
			}
		}
	}
	return last_s;
}
