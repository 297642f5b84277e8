/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/uneven_ranks.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/units.h"
#include "cost/stat.h"
#include "json/json.h"

#define FACTOR_LEAST 1e-3
#define FACTOR_MOST  1e6

void gf_uneven_release(struct gf_uneven *u)
{
	for (size_t i = 0; i < u->nlinks; i++)
		free(u->links[i].level);
	free(u->links);
	free(u->slow);
	memset(u, 0, sizeof(*u));
}

/* --- words ---------------------------------------------------------------- */

static int read_slow(const char *text, const char *form, double least, struct gf_slow_rank *slow,
		     struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *colon = strchr(copy, ':');
	long long rank = 0;
	int rc;

	if (colon)
		*colon++ = '\0';
	rc = colon ? gf_units_int(copy, 0, 1 << 24, &rank, err)
		   : gf_error_set(err, -EINVAL, "want %s, got \"%s\"", form, text);
	rc = rc ?: gf_units_real(colon, least, FACTOR_MOST, &slow->factor, err);
	free(copy);
	slow->rank = (int)rank;
	return rc;
}

int gf_uneven_add_slow(const char *text, void *uneven, struct gf_error *err)
{
	struct gf_uneven *u = uneven;
	struct gf_slow_rank slow;
	int rc = read_slow(text, "RANK:FACTOR", FACTOR_LEAST, &slow, err);

	if (rc == 0)
		*gf_array_push(&u->slow, &u->nslow, &u->slow_capacity) = slow;
	return rc;
}

static int add_link(struct gf_uneven *u, const char *text, struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *at = strchr(copy, '@');
	struct gf_slow_rank slow;
	int rc;

	if (at)
		*at++ = '\0';
	rc = read_slow(copy, "RANK:FACTOR or RANK:FACTOR@LEVEL", 1, &slow, err);
	if (rc == 0)
		*gf_array_push(&u->links, &u->nlinks, &u->links_capacity) = (struct gf_what_link){
			slow.rank, at ? gf_xstrdup(at) : NULL, slow.factor, slow.factor};
	free(copy);
	return rc;
}

int gf_uneven_add_links(const char *text, void *uneven, struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	int rc = 0;

	while (rc == 0 && (part = strsep(&rest, ",")))
		rc = add_link(uneven, part, err);
	free(copy);
	return rc;
}

/* --- rows of gf-profile --pairs --------------------------------------------
 */

/* One direction of a member's traffic. */
struct direction {
	double best_bytes_per_s;
	bool fine; /* a way that is not slow */
};

struct member {
	int rank;
	struct direction out, in;
};

struct members {
	struct member *list;
	size_t n, capacity;
	size_t *places; /* per rank: in the list, from 1; 0: not there */
	size_t nplaces;
};

static struct member *member_of(struct members *m, int rank)
{
	size_t n = (size_t)rank + 1;
	struct member *new;

	if (n > m->nplaces) {
		n = n > 2 * m->nplaces ? n : 2 * m->nplaces;
		m->places = gf_xreallocarray(m->places, n, sizeof(size_t));
		memset(m->places + m->nplaces, 0, (n - m->nplaces) * sizeof(size_t));
		m->nplaces = n;
	}
	if (m->places[rank])
		return &m->list[m->places[rank] - 1];
	new = gf_array_push(&m->list, &m->n, &m->capacity);
	new->rank = rank;
	m->places[rank] = m->n;
	return new;
}

static void take(struct direction *d, double rate, bool slow)
{
	d->best_bytes_per_s = fmax(d->best_bytes_per_s, rate);
	d->fine |= !slow;
}

static int read_row(struct members *m, const struct gf_json *root, const char *file,
		    struct gf_error *err)
{
	struct gf_json_at at;
	double rate = 0;
	int from = 0, to = 0, rc = gf_json_root(root, file, &at, err);
	bool slow = false;

	if (rc < 0)
		return rc;
	rc = gf_json_int(&at, "from_rank", 0, 1 << 24, &from, err);
	rc = rc ?: gf_json_int(&at, "to_rank", 0, 1 << 24, &to, err);
	rc = rc ?: gf_json_real(&at, "rate_bytes_per_s", 1e-3, 1e18, &rate, err);
	rc = rc ?: gf_json_bool(&at, "slow", &slow, err);
	if (rc == 0) {
		take(&member_of(m, from)->out, rate, slow);
		take(&member_of(m, to)->in, rate, slow);
	}
	gf_json_leave(&at);
	return rc;
}

static double median_of(const struct members *m, bool out)
{
	GF_FREED double *best = gf_xcalloc(m->n, sizeof(*best));

	for (size_t i = 0; i < m->n; i++)
		best[i] = out ? m->list[i].out.best_bytes_per_s : m->list[i].in.best_bytes_per_s;
	return gf_stat_median(best, m->n);
}

static double factor_of(const struct direction *d, double median)
{
	if (d->fine || d->best_bytes_per_s <= 0)
		return 1;
	return fmin(fmax(1, median / d->best_bytes_per_s), FACTOR_MOST);
}

static int read_rows(struct members *m, const char *text, size_t size, const char *file,
		     struct gf_error *err)
{
	struct gf_json *root = NULL;
	size_t used = 0;
	int rc;

	do {
		rc = gf_json_parse_next(text, size, file, &used, &root, err);
		if (rc == 0 && root)
			rc = read_row(m, root, file, err);
		if (rc == 0 && !root && m->n == 0)
			rc = -EINVAL;
		if (root)
			gf_json_free(root);
	} while (rc == 0 && root);
	if (rc == -EINVAL && m->n == 0)
		gf_error_set(err, -EINVAL,
			     "%s: want rows of gf-profile --pairs --table=json, found none", file);
	return rc;
}

static void add_slow_links(struct gf_uneven *u, const struct members *m, struct gf_text *notes)
{
	double out = median_of(m, true), in = median_of(m, false);

	for (size_t i = 0; i < m->n; i++) {
		struct gf_what_link link = {
			.rank = m->list[i].rank,
			.out = factor_of(&m->list[i].out, out),
			.in = factor_of(&m->list[i].in, in),
		};

		if (!(link.out > 1 || link.in > 1))
			continue;
		*gf_array_push(&u->links, &u->nlinks, &u->links_capacity) = link;
		gf_text_addf(notes,
			     "slow: the link of rank %d has 1/%.3g of the median bandwidth out, "
			     "1/%.3g in\n",
			     link.rank, link.out, link.in);
	}
}

int gf_uneven_read_pairs(struct gf_uneven *u, const char *file, struct gf_text *notes,
			 struct gf_error *err)
{
	struct members m = {0};
	size_t size = 0;
	GF_FREED char *text = NULL;
	int rc = gf_file_read(file, &text, &size, err);

	rc = rc ?: read_rows(&m, text, size, file, err);
	if (rc == 0)
		add_slow_links(u, &m, notes);
	free(m.list);
	free(m.places);
	return rc;
}
