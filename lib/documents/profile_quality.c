/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict on a profile as a whole, in one line. */
#include "documents/profile.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "cli/human.h"

/* Repeats that scatter by more say something about the machine. */
static const double much_scatter = 0.1;
/* Other programs disturb from this share of the processors on, if hardly any processor was left. */
static const double others_share = 0.1, left_share = 0.15;

/* Less is not worth avoiding. */
#define FALL_LEAST 1.05

struct fits {
	size_t count, rough;
	const char *worst, *kind;
	size_t misses, points;               /* of the worst one */
	double most_bytes, most_s, fitted_s; /* the size it misses most */
};

static const double miss_share = 0.25, misses_share = 0.2, much = 1.5;

/* >= 1 */
static double factor_of(const struct gf_fit *fit, const struct gf_cost_lines *lines, size_t i)
{
	double factor = fit->time_s[i] / gf_cost_lines_s(lines, (double)fit->size_bytes[i]);

	return fmax(factor, 1 / factor);
}

/* How many points are off their line by more than a quarter of it. *most: the one that is so by the
 * largest factor; or NULL. */
static size_t count_misses(const struct gf_fit *fit, const struct gf_cost_lines *lines,
			   size_t *most)
{
	size_t i, count = 0;

	for (i = 0; most && i < fit->npoints; i++)
		if (i == 0 || factor_of(fit, lines, i) > factor_of(fit, lines, *most))
			*most = i;

	for (i = 0; i < fit->npoints; i++) {
		double fitted_s = gf_cost_lines_s(lines, (double)fit->size_bytes[i]);

		count += fabs(fit->time_s[i] - fitted_s) > miss_share * fitted_s;
	}
	return count;
}

/* Do the lines describe the points poorly: are more than a fifth of the points misses, or is one
 * off by half its line or more? */
static bool is_rough(const struct gf_fit *fit, const struct gf_cost_lines *lines)
{
	size_t most = 0, misses = count_misses(fit, lines, &most);

	return fit->npoints && ((double)misses > misses_share * (double)fit->npoints ||
				factor_of(fit, lines, most) >= much);
}

static void look(struct fits *f, const char *kind, const char *name, const struct gf_fit *fit,
		 struct gf_cost_lines lines)
{
	size_t most = 0, misses = count_misses(fit, &lines, &most);

	if (!fit->npoints)
		return;
	f->count++;
	if (!is_rough(fit, &lines))
		return;
	f->rough++;
	if (f->worst && misses * f->points <= f->misses * fit->npoints)
		return;
	f->kind = kind;
	f->worst = name;
	f->misses = misses;
	f->points = fit->npoints;
	f->most_bytes = (double)fit->size_bytes[most];
	f->most_s = fit->time_s[most];
	f->fitted_s = gf_cost_lines_s(&lines, f->most_bytes);
}

static struct fits fits_of(const struct gf_profile *p)
{
	const struct gf_network *net = p->network;
	struct fits f = {0};

	for (size_t i = 0; net && i < net->nallreduce; i++)
		look(&f, "", net->allreduce[i].algorithm, &net->allreduce[i].fit,
		     gf_allreduce_lines(&net->allreduce[i]));
	for (size_t i = 0; net && i < net->nlevels; i++)
		look(&f, "level ", net->levels[i].name, &net->levels[i].fit,
		     gf_level_lines(&net->levels[i]));
	for (size_t i = 0; i < p->ncopies; i++) {
		const struct gf_copy_cost *c = &p->copies[i];

		look(&f, "", c->name, &c->fit,
		     (struct gf_cost_lines){.first = {0, c->alpha_s, c->beta_s_per_byte, NULL}});
	}
	return f;
}

static double scatter_of(const struct gf_model_profile *m)
{
	double all_s = m ? m->forward_s + m->backward_s + m->update_s : 0;

	return all_s > 0 ? m->spread_s / (2 * all_s) : 0;
}

struct load {
	double ranks, processors, own, others;
	bool imported; /* other programs measured */
};

/* `measured` may hold anything. */
static struct load load_of(const struct gf_profile *p)
{
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	struct gf_json_at at = {0}, load = {0};
	struct load l = {0};

	if (!p->measured ||
	    gf_json_parse(p->measured, strlen(p->measured), "measured", &root, NULL) < 0)
		return l;
	if (gf_json_root(root, "measured", &at, NULL) == 0 && gf_json_has(&at, "load") &&
	    gf_json_object(&at, "load", &load, NULL) == 0 &&
	    (gf_json_real(&load, "ranks", 1, 1e9, &l.ranks, NULL) < 0 ||
	     gf_json_real(&load, "processors", 1, 1e9, &l.processors, NULL) < 0 ||
	     gf_json_real(&load, "own", 0, 1e9, &l.own, NULL) < 0 ||
	     gf_json_real(&load, "others", 0, 1e9, &l.others, NULL) < 0))
		l = (struct load){0};
	l.imported = at.value && gf_json_has(&at, "imported_from");
	gf_json_leave(&load);
	gf_json_leave(&at);
	return l;
}

static void add_findings(const struct fits *f, double scatter, struct gf_text *out)
{
	if (f->rough)
		gf_text_addf(out,
			     "%zu of %zu fits %s rough (worst: %s%.40s, %zu of %zu sizes off by "
			     "more than a quarter; most at %s: %s measured, %s by the fit)",
			     f->rough, f->count, f->rough == 1 ? "is" : "are", f->kind, f->worst,
			     f->misses, f->points, gf_human_size(f->most_bytes).text,
			     gf_human_time(f->most_s).text, gf_human_time(f->fitted_s).text);
	if (scatter > much_scatter)
		gf_text_addf(out, "%srepeats of compute scatter by %.0f %%", f->rough ? ", " : "",
			     100 * scatter);
}

void gf_profile_quality(const struct gf_profile *p, struct gf_text *out)
{
	struct fits f = fits_of(p);
	double scatter = scatter_of(p->model);
	struct load l = load_of(p);
	bool found = f.rough || scatter > much_scatter;
	bool crowded = l.ranks > l.processors;
	bool busy = l.processors > 0 && l.others >= others_share * l.processors &&
		    l.own + l.others >= (1 - left_share) * l.processors;

	if (!found && !busy)
		return;
	add_findings(&f, scatter, out);
	if (busy)
		gf_text_addf(out, "%sother programs kept %.2g of %g processor%s busy",
			     found ? ": " : "", l.others, l.processors,
			     l.processors == 1 ? "" : "s");
	if (crowded)
		gf_text_addf(out, "%s%g ranks shared %g processor%s",
			     busy    ? ", and "
			     : found ? ": "
				     : "",
			     l.ranks, l.processors, l.processors == 1 ? "" : "s");
	if (!l.imported)
		gf_text_addf(out, "; measure again %s",
			     busy      ? "on an idle machine"
			     : crowded ? "with no more ranks than processors"
				       : "for longer (--points time, --repeats)");
	gf_text_addf(out, "\n");
}

/* The size from which messages up to the fall at `larger` take longer than what it falls to. */
static double dear_from(const struct gf_cost_lines *lines, size_t fall, double to_s)
{
	const struct gf_cost_line *l = fall ? &lines->larger[fall - 1] : &lines->first;
	double from = (double)l->from_bytes;

	return l->per_byte_s > 0 ? fmax(from, (to_s - l->startup_s) / l->per_byte_s) : from;
}

void gf_cost_falls(const char *name, const struct gf_cost_lines *lines, struct gf_text *out)
{
	for (size_t i = 0; i < lines->nlarger; i++) {
		const double at = (double)lines->larger[i].from_bytes;
		const double to_s = gf_cost_lines_s(lines, at);
		const double most_s = gf_cost_lines_s(lines, at - 1);

		if (most_s > to_s * FALL_LEAST)
			gf_text_addf(out,
				     "%s: a message of %s takes %s, shorter ones from %s on up to "
				     "%s: avoid these sizes\n",
				     name, gf_human_size(at).text, gf_human_time(to_s).text,
				     gf_human_size(dear_from(lines, i, to_s)).text,
				     gf_human_time(most_s).text);
	}
}

void gf_profile_falls(const struct gf_profile *p, struct gf_text *out)
{
	const struct gf_network *net = p->network;

	for (size_t i = 0; net && i < net->nallreduce; i++) {
		const struct gf_cost_lines lines = gf_allreduce_lines(&net->allreduce[i]);

		gf_cost_falls(net->allreduce[i].algorithm, &lines, out);
	}
}
