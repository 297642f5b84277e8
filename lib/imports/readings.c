/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/readings.h"

#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/algorithm_traits.h"
#include "documents/library_tuning.h"
#include "profiler/curve.h"

/* No program sweeps so many; the others are left out. */
enum { CURVES_MOST = 1000, SIZES_MOST = 10000 };

/* NULL: there are too many. */
static struct gf_readings_curve *curve_of(struct gf_readings *all, const struct gf_reading *r)
{
	const char *name = r->variant ? r->variant : r->algorithm;
	struct gf_readings_curve *c;
	size_t i;

	for (i = 0; i < all->ncurves; i++) {
		c = &all->curves[i];
		if (c->collective == r->collective && c->told == (r->variant != NULL) &&
		    strcmp(c->algorithm, name) == 0 && strcmp(c->factors, r->factors) == 0)
			return c;
	}
	if (i == CURVES_MOST)
		return NULL;
	c = gf_array_push(&all->curves, &all->ncurves, &all->capacity);
	c->collective = r->collective;
	c->algorithm = gf_xstrdup(name);
	c->told = r->variant;
	c->factors = gf_xstrdup(r->factors);
	return c;
}

/* Of two times of one size the first counts: `auto` repeats an algorithm that may stand in a row of
 * its own. */
static bool insert(struct gf_readings_curve *c, const struct gf_reading *r)
{
	const struct gf_readings_point new = {r->size_bytes, r->time_s, r->spread_s};
	size_t i = 0, end = c->npoints, middle;

	while (i < end) {
		middle = (i + end) / 2;
		if (c->points[middle].size_bytes < new.size_bytes)
			i = middle + 1;
		else
			end = middle;
	}
	if (i < c->npoints && c->points[i].size_bytes == new.size_bytes)
		return false;
	gf_array_push(&c->points, &c->npoints, &c->point_capacity);
	memmove(&c->points[i + 1], &c->points[i], (c->npoints - 1 - i) * sizeof(new));
	c->points[i] = new;
	c->unspread |= !(r->spread_s > 0);
	return true;
}

int gf_readings_take(struct gf_readings *all, const struct gf_reading *r, struct gf_error *err)
{
	const bool blocking = r->variant && strcmp(r->variant, gf_dialect_blocking.as_it_is) == 0;
	struct gf_readings_curve *c = NULL;
	const char *left_out = NULL;

	if (all->ranks && r->ranks && all->ranks != r->ranks)
		return gf_error_set(err, -EINVAL, "want one number of ranks, got %d and %d",
				    all->ranks, r->ranks);
	if (r->ranks)
		all->ranks = r->ranks;
	if (r->hosts)
		all->hosts = r->hosts;
	all->told |= r->variant && !blocking;
	if (r->library && *r->library && !all->library)
		all->library = gf_xstrdup(r->library);
	if (!r->dense || gf_algorithm_has(r->algorithm, GF_ALGORITHM_SETS))
		left_out = "rows of codecs, sparse sets, plans or several messages";
	else if (blocking)
		left_out = r->collective ? "rows of MPI's blocking calls, which no plan runs"
					 : "rows of the blocking MPI_Allreduce, which no plan runs";
	else if (r->size_bytes == 0 || !(r->time_s > 0))
		left_out = "rows without bytes or time";
	else if (!(c = curve_of(all, r)) || c->npoints == SIZES_MOST)
		left_out = "rows beyond 1000 algorithms and 10000 sizes";
	else if (!insert(c, r))
		left_out = "rows of a size that stands above";
	if (left_out)
		gf_imported_leave(all->imported, left_out, r->place);
	if (r->wrong > 0 && !all->nwrong++)
		all->first_wrong = r->place;
	return 0;
}

/* "2x4:halving,ring" as stages; without names they are rings. */
static int read_stages(const char *text, struct gf_allreduce_cost *cost, struct gf_error *err)
{
	const char *names = strchr(text, ':');
	char *end = (char *)text;
	long factor = 2;

	names = names ? names + 1 : "";
	while (text[0] && (end == text || *end == 'x')) {
		size_t length = strcspn(names, ",");
		struct gf_stage *stage;

		factor = strtol(end + (end != text), &end, 10);
		if (factor < 2 || factor > INT_MAX)
			break;
		cost->stages =
			gf_xreallocarray(cost->stages, cost->nstages + 1, sizeof(*cost->stages));
		stage = &cost->stages[cost->nstages++];
		*stage = (struct gf_stage){.factor = (int)factor,
					   .algorithm =
						   length ? gf_xasprintf("%.*s", (int)length, names)
							  : gf_xstrdup("ring")};
		names += length + (names[length] == ',');
	}
	if (!text[0] || (factor >= 2 && (*end == '\0' || *end == ':')))
		return 0;
	return gf_error_set(err, -EINVAL, "%s: want factors as 2x4, got %.40s", cost->algorithm,
			    text);
}

/* Appends the algorithm's cost to net. -EINVAL: no line fits the times. */
static int fit_curve(const struct gf_import *in, const struct gf_readings_curve *c,
		     struct gf_network *net, struct gf_error *err)
{
	struct gf_allreduce_cost *cost;
	int rc;

	net->allreduce =
		gf_xreallocarray(net->allreduce, net->nallreduce + 1, sizeof(*net->allreduce));
	cost = &net->allreduce[net->nallreduce++];
	*cost = (struct gf_allreduce_cost){
		.algorithm = gf_xstrdup(c->algorithm),
		.collective = c->collective,
		.fit = {.npoints = c->npoints,
			.size_bytes = gf_xcalloc(c->npoints, sizeof(size_t)),
			.time_s = gf_xcalloc(c->npoints, sizeof(double)),
			.spread_s = c->unspread ? NULL : gf_xcalloc(c->npoints, sizeof(double))},
	};
	for (size_t i = 0; i < c->npoints; i++) {
		cost->fit.size_bytes[i] = c->points[i].size_bytes;
		cost->fit.time_s[i] = c->points[i].time_s;
		if (!c->unspread)
			cost->fit.spread_s[i] = c->points[i].spread_s;
	}
	rc = gf_measure_fit(cost, GF_FIT_LINES_MOST, err);
	if (rc < 0)
		gf_error_prefix(err, "%s", in->file);
	return rc;
}

static int add_curve(const struct gf_import *in, const struct gf_readings *all,
		     const struct gf_readings_curve *c, struct gf_network *net,
		     struct gf_error *err)
{
	int rc;

	if (!c->npoints || c->points[c->npoints - 1].size_bytes / 2 < c->points->size_bytes) {
		char *what = gf_xasprintf(
			"algorithms of one size, or of sizes within a factor of two, as %s",
			c->algorithm);

		gf_imported_leave(all->imported, what, 0);
		free(what);
		return 0;
	}
	gf_imported_find(all->imported, "%s%s%s of %zu sizes", c->algorithm,
			 c->collective ? ", " : "",
			 c->collective ? gf_coll_half_names[c->collective] : "", c->npoints);
	rc = fit_curve(in, c, net, err);
	if (rc < 0)
		return rc;
	if (c->told) {
		net->variants =
			gf_xreallocarray(net->variants, net->nvariants + 1, sizeof(*net->variants));
		net->variants[net->nvariants++] = net->allreduce[--net->nallreduce];
		return 0;
	}
	rc = read_stages(c->factors, &net->allreduce[net->nallreduce - 1], err);
	if (rc < 0)
		gf_error_prefix(err, "%s", in->file);
	return rc;
}

/* The library's row is that of in->variant, and of nothing else unless that is the default. */
static int tell(const struct gf_import *in, const struct gf_readings *all, struct gf_network *net,
		struct gf_error *err)
{
	const struct gf_dialect *dialect = gf_dialect_of(all->library);
	struct gf_tuning tuning;
	int rc;

	if (all->told)
		return gf_error_set(err, -EINVAL,
				    "--imported: variant: %s says itself what the library was told",
				    in->file);
	if (!dialect || net->nallreduce != 1 ||
	    !gf_algorithm_has(net->allreduce->algorithm, GF_ALGORITHM_TOLD))
		return gf_error_set(
			err, -EINVAL,
			"--imported: variant: want the table of NCCL's, RCCL's or Open MPI's own "
			"all-reduce, got %s, %s",
			in->file, in->imported->kind);
	rc = gf_tuning_read(dialect, in->variant, &tuning, err);
	if (rc) {
		gf_error_prefix(err, "--imported: variant");
		return rc;
	}
	net->variants = gf_xcalloc(1, sizeof(*net->variants));
	net->nvariants = 1;
	if (tuning.algorithm) {
		*net->variants = net->allreduce[--net->nallreduce];
	} else {
		gf_allreduce_cost_copy(net->variants, net->allreduce);
	}
	free(net->variants->algorithm);
	net->variants->algorithm = gf_xcalloc(GF_TUNING_TEXT, 1);
	gf_tuning_text(&tuning, net->variants->algorithm);
	return 0;
}

int gf_readings_finish(const struct gf_readings *all, const struct gf_import *in,
		       struct gf_profile *out, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_network *net = gf_xcalloc(1, sizeof(*net));
	int rc = 0;

	out->network = net;
	net->ranks = in->ranks > 0 ? in->ranks : all->ranks;
	net->hosts = all->hosts;
	if (net->ranks)
		gf_imported_find(all->imported, "%d ranks", net->ranks);
	for (size_t i = 0; i < all->ncurves && rc == 0; i++)
		rc = add_curve(in, all, &all->curves[i], net, err);
	if (all->nwrong)
		gf_text_addf(remarks,
			     "%s: the run failed its check: results are wrong in %zu of its rows, "
			     "first in %s %zu; its times may be wrong, too\n",
			     in->file, all->nwrong,
			     all->imported->unit ? all->imported->unit : "line", all->first_wrong);
	if (rc == 0 && !net->nallreduce && !net->nvariants) {
		char *found = gf_imported_line(all->imported, in->file);

		rc = gf_error_set(err, -EINVAL,
				  "%s: want dense messages by one algorithm of two sizes or more, "
				  "the largest at least twice the smallest",
				  found);
		free(found);
	}
	if (rc == 0 && !net->ranks)
		rc = gf_import_want_ranks(in, err);
	if (rc == 0 && in->variant)
		rc = tell(in, all, net, err);
	if (net->nvariants)
		net->library = gf_xstrdup_or_null(all->library);
	return rc;
}

void gf_readings_release(struct gf_readings *all)
{
	for (size_t i = 0; i < all->ncurves; i++) {
		free(all->curves[i].algorithm);
		free(all->curves[i].factors);
		free(all->curves[i].points);
	}
	free(all->curves);
	free(all->library);
	memset(all, 0, sizeof(*all));
}
