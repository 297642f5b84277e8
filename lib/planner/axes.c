/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/axes.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "doc/algorithm.h"

const struct gf_axes gf_axes_open = {
	.selection = -1,
	.csc_warmup_steps = SIZE_MAX,
	.decay = -1,
	.nwarmup = SIZE_MAX,
	.putback = -1,
	.release = -1,
	.pipeline_warmup_steps = SIZE_MAX,
};

static bool csc_open(const struct gf_axes *a)
{
	return !(a->keep > 0) && !a->chunk_elems &&
	       a->csc_warmup_steps == SIZE_MAX && a->decay == -1;
}

static bool sparse_open(const struct gf_axes *a)
{
	return !(a->density > 0) && a->nwarmup == SIZE_MAX && a->putback < 0;
}

bool gf_axes_are_open(const struct gf_axes *a)
{
	return !a || (a->selection < 0 && csc_open(a) && sparse_open(a) &&
		      a->release < 0 && !a->staleness &&
		      a->pipeline_warmup_steps == SIZE_MAX && !a->servers &&
		      !a->factored);
}

/* What a method does where nobody says otherwise: as the paper that has it. */
static struct gf_selection method_defaults(enum gf_select method)
{
	struct gf_selection s = {.decay = NAN};
	size_t i;

	for (i = 0; gf_systems[i].name; i++) {
		enum gf_select other = gf_systems[i].selection.method;

		if (other == method ||
		    (other == GF_SELECT_GTOPK && method == GF_SELECT_TOPK)) {
			s = gf_systems[i].selection;
			break;
		}
	}
	s.method = method;
	return s;
}

static int apply_csc(const struct gf_axes *a, struct gf_selection *s,
		     struct gf_error *err)
{
	if (a->keep > 0)
		s->keep = a->keep;
	if (a->chunk_elems)
		s->chunk_elems = a->chunk_elems;
	if (a->csc_warmup_steps != SIZE_MAX)
		s->warmup_steps = a->csc_warmup_steps;
	if (a->decay != -1)
		s->decay = a->decay;
	if (s->method == GF_SELECT_CSC || csc_open(a))
		return 0;
	return gf_error_set(err, -EINVAL, "--%s: want selection csc, got %s",
			    a->keep > 0      ? "keep"
			    : a->chunk_elems ? "chunk"
			    : a->decay != -1 ? "decay"
					     : "csc-warmup",
			    gf_select_names[s->method]);
}

static int apply_sparse(const struct gf_axes *a, struct gf_selection *s,
			struct gf_error *err)
{
	if (a->density > 0)
		s->density = a->density;
	if (a->nwarmup != SIZE_MAX) {
		s->warmup_densities = a->warmup_densities;
		s->nwarmup = a->nwarmup;
	}
	if (a->putback >= 0)
		s->putback = (enum gf_putback)a->putback;
	if (s->method == GF_SELECT_TOPK || s->method == GF_SELECT_GTOPK ||
	    sparse_open(a))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "--%s: want selection topk or gtopk, got %s",
			    a->density > 0    ? "density"
			    : a->putback >= 0 ? "putback"
					      : "warmup-densities",
			    gf_select_names[s->method]);
}

static int check_own_exchange(const struct gf_axes *a,
			      const struct gf_selection *s,
			      struct gf_error *err)
{
	if (s->method != GF_SELECT_TOPK && s->method != GF_SELECT_GTOPK)
		return 0;
	if (!a->servers && !a->factored)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "--%s: want none with selection %s, which has an "
			    "exchange of its own, got some",
			    a->servers ? "servers" : "factors",
			    gf_select_names[s->method]);
}

int gf_axes_apply(const struct gf_axes *axes, struct gf_system *s,
		  struct gf_error *err)
{
	int rc;

	if (!axes)
		return 0;
	if (axes->selection >= 0 && axes->selection != (int)s->selection.method)
		s->selection = method_defaults((enum gf_select)axes->selection);
	rc = apply_csc(axes, &s->selection, err);
	if (rc == 0)
		rc = apply_sparse(axes, &s->selection, err);
	if (rc == 0)
		rc = check_own_exchange(axes, &s->selection, err);
	if (axes->release >= 0)
		s->release = (enum gf_release)axes->release;
	if (axes->staleness)
		s->staleness = axes->staleness;
	if (axes->pipeline_warmup_steps != SIZE_MAX)
		s->pipeline_warmup_steps = axes->pipeline_warmup_steps;
	if (rc == 0 && s->pipeline_warmup_steps && s->staleness <= 1)
		rc = gf_error_set(err, -EINVAL,
				  "--pipeline-warmup: want a staleness > 1, "
				  "got %d",
				  s->staleness);
	s->servers = axes->servers;
	return rc;
}

static void follow_selection(struct gf_axes *a, const struct gf_selection *s)
{
	if (a->selection >= 0 && a->selection != (int)s->method)
		return;
	a->selection = (int)s->method;
	if (s->method == GF_SELECT_CSC) {
		a->keep = a->keep > 0 ? a->keep : s->keep;
		a->chunk_elems =
			a->chunk_elems ? a->chunk_elems : s->chunk_elems;
		if (a->csc_warmup_steps == SIZE_MAX)
			a->csc_warmup_steps = s->warmup_steps;
		if (a->decay == -1)
			a->decay = s->decay;
	} else if (s->method != GF_SELECT_DENSE) {
		a->density = a->density > 0 ? a->density : s->density;
		if (a->nwarmup == SIZE_MAX) {
			a->warmup_densities = s->warmup_densities;
			a->nwarmup = s->nwarmup;
		}
		if (a->putback < 0)
			a->putback = (int)s->putback;
	}
}

void gf_axes_follow(struct gf_axes *a, const struct gf_plan *p)
{
	follow_selection(a, &p->selection);
	if (!a->staleness)
		a->staleness = p->staleness;
	if (a->pipeline_warmup_steps == SIZE_MAX && a->staleness > 1)
		a->pipeline_warmup_steps = p->pipeline_warmup_steps;
	if (!a->servers)
		a->servers = p->servers;
}

static int check_factors(const struct gf_axes *a, int ranks,
			 const char *algorithm, struct gf_error *err)
{
	double product = 1;
	size_t i;

	for (i = 0; i < a->nfactors; i++)
		product *= a->factors[i].factor;
	if (product != ranks)
		return gf_error_set(
			err, -EINVAL,
			"--factors: want a product of the %d ranks, "
			"got %.0f",
			ranks, product);
	if (gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS) &&
	    a->nfactors != 2)
		return gf_error_set(err, -EINVAL,
				    "--factors: want two for %s, got %zu",
				    algorithm, a->nfactors);
	return 0;
}

int gf_axes_algorithm(const struct gf_axes *axes, int ranks,
		      const char **algorithm, struct gf_error *err)
{
	const char *asked = *algorithm;

	if (!axes)
		return 0;
	if (axes->servers && axes->factored)
		return gf_error_set(err, -EINVAL,
				    "want --factors or --servers, got both");
	if (axes->servers) {
		if (asked && !gf_algorithm_has(asked, GF_ALGORITHM_SERVERS))
			return gf_error_set(
				err, -EINVAL,
				"--algorithm: want ps with --servers, got "
				"%s",
				asked);
		if (!asked)
			*algorithm = "ps";
	}
	/* one rank has no other factors than 1 */
	if (!axes->factored || (ranks == 1 && !axes->nfactors))
		return 0;
	if (!asked)
		*algorithm = "blueconnect";
	else if (!gf_algorithm_has(asked, GF_ALGORITHM_LEVELS))
		return gf_error_set(err, -EINVAL,
				    "--algorithm: want blueconnect or "
				    "hierarchical with --factors, got %s",
				    asked);
	return check_factors(axes, ranks, *algorithm, err);
}
