/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/report/report.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "cost/stat.h"
#include "documents/plan_brief.h"
#include "imports/import.h"
#include "planner/make.h"
#include "planner/plan_sweep.h"
#include "planner/refine.h"
#include "simulator/prices/price.h"

/* No cluster that is planned for is larger. */
enum { SCALE_MOST = 4096, DOUBLINGS_MOST = 12 };

/* --- steps ------------------------------------------------------------------
 */

const char *const gf_report_parts[] = {"step", "compute", "communication", "exposed"};

static double part_of(const struct gf_import_job_step *s, size_t part)
{
	const double of[] = {s->end_s - s->start_s, s->compute_s, s->communication_s, s->exposed_s};

	return of[part];
}

/* Sorts the values; NAN if there are none. */
static struct gf_report_times times_of(double *values, size_t n)
{
	const size_t out = (size_t)fmax(0, ((double)n - 1.96 * sqrt(n)) / 2);
	double mean_s = 0;

	if (!n)
		return (struct gf_report_times){NAN, NAN, NAN, NAN, NAN, NAN};
	for (size_t i = 0; i < n; i++)
		mean_s += values[i] / (double)n;
	return (struct gf_report_times){gf_stat_median(values, n),
					gf_stat_quantile(values, n, 0.25),
					gf_stat_quantile(values, n, 0.75),
					values[out],
					values[n - 1 - out],
					mean_s};
}

/* Of the last nsteps steps of ranks [first, end). */
static struct gf_report_times step_times(const struct gf_report_whole *r, size_t first, size_t end,
					 size_t part)
{
	GF_FREED double *values = gf_xcalloc((end - first) * r->nsteps + 1, sizeof(*values));
	size_t n = 0, i, k;

	for (i = first; i < end; i++) {
		const struct gf_import_job_rank *rank = &r->job->ranks[i];

		for (k = rank->nsteps - r->nsteps; k < rank->nsteps; k++)
			values[n++] = part_of(&rank->steps[k], part);
	}
	return times_of(values, n);
}

static void find_steps(struct gf_report_whole *r)
{
	r->nsteps = gf_import_job_steps(r->job);
	for (size_t i = 0; i < r->nranks; i++)
		r->ranks[i].rank = r->job->ranks[i].rank;
	for (size_t part = 0; part < GF_REPORT_PARTS; part++) {
		r->parts[part] = step_times(r, 0, r->nranks, part);
		for (size_t i = 0; i < r->nranks; i++)
			r->ranks[i].parts[part] = step_times(r, i, i + 1, part);
	}
}

/* --- who came last ----------------------------------------------------------
 */

/* A rank's part of a message. */
struct part {
	const struct gf_import_job_message *of;
	size_t rank; /* an index */
};

/* A message that all traced ranks of its group have. */
struct met {
	enum gf_collective_kind kind;
	int ranks;
	size_t size_bytes;
	double time_s, waited_s;
};

struct mets {
	struct met *all;
	size_t count, capacity;
	/* Per rank and message: how long all others waited for it alone. */
	double **alone_s;
};

static double time_s(const struct part *p)
{
	return p->of->end_s - p->of->start_s;
}

/* Parts of one message together, that of the rank that came last first. */
GF_ORDER(by_message, struct part,
	 GF_BY(x->of->group, y->of->group)
	 ?: GF_BY(x->of->sequence, y->of->sequence)
	 ?: GF_BY(x->of->kind, y->of->kind)
	 ?: GF_BY(time_s(x), time_s(y)) ?: GF_BY(x->rank, y->rank))

GF_ORDER(by_size, struct met,
	 GF_BY(x->kind, y->kind) ?: GF_BY(x->ranks, y->ranks)
	 ?: GF_BY(x->size_bytes, y->size_bytes) ?: GF_BY(x->time_s, y->time_s))

/* How many parts the message has that begins here. */
static size_t parts_of(const struct part *p, const struct part *end)
{
	const struct part *q = p + 1;

	while (q < end && q->of->group == p->of->group && q->of->sequence == p->of->sequence &&
	       q->of->kind == p->of->kind)
		q++;
	return (size_t)(q - p);
}

/* Which message last had a part of each rank. */
struct stamps {
	size_t *of, last;
};

/* Does each part belong to another rank? */
static bool apart(const struct part *p, size_t n, struct stamps *s)
{
	size_t i;

	s->last++;
	for (i = 0; i < n && s->of[p[i].rank] < s->last; i++)
		s->of[p[i].rank] = s->last;
	return i == n;
}

/* Those of a group that are traced: as many as its best matched message has. */
static size_t traced_of(const struct part *p, const struct part *end, struct stamps *s)
{
	const struct part *at;
	size_t most = 1, n;

	for (at = p; at < end && at->of->group == p->of->group; at += n) {
		n = parts_of(at, end);
		if (n > most && apart(at, n, s))
			most = n;
	}
	return most;
}

static void meet(struct gf_report_whole *r, struct mets *m, const struct part *p, size_t n)
{
	struct met *to = gf_array_push(&m->all, &m->count, &m->capacity);

	to->kind = p->of->kind;
	to->ranks = p->of->ranks;
	to->size_bytes = p->of->size_bytes;
	to->time_s = time_s(p);
	for (size_t i = 1; i < n; i++)
		to->waited_s += (time_s(&p[i]) - time_s(p)) / (double)(n - 1);
	if (n > 1) {
		r->ranks[p->rank].last++;
		m->alone_s[p->rank][p->of - r->job->ranks[p->rank].messages] =
			time_s(&p[1]) - time_s(p);
		r->matched++;
	}
}

static void sum_sizes(struct gf_report_whole *r, struct mets *m)
{
	GF_FREED double *times = gf_xcalloc(m->count + 1, sizeof(*times));
	size_t i, n;

	if (m->count)
		qsort(m->all, m->count, sizeof(*m->all), by_size);
	r->sizes = gf_xcalloc(m->count + 1, sizeof(*r->sizes));
	for (i = 0; i < m->count; i += n) {
		const struct met *first = &m->all[i];
		struct gf_report_size *to = &r->sizes[r->nsizes++];

		for (n = 0;
		     i + n < m->count && first[n].kind == first->kind &&
		     first[n].ranks == first->ranks && first[n].size_bytes == first->size_bytes;
		     n++) {
			times[n] = first[n].time_s;
			to->waited_s += first[n].waited_s;
		}
		to->waited_s /= (double)n;
		to->kind = first->kind;
		to->ranks = first->ranks;
		to->size_bytes = first->size_bytes;
		to->count = n;
		to->times = times_of(times, n);
		to->expected_s = NAN;
	}
}

/* By how much a rank is late in messages [first, end). Of messages for which the others wait at the
 * same time, they waited out none before they came to the next: the longest wait counts. */
static double late_s(const struct gf_import_job_message *m, const double *alone_s, size_t first,
		     size_t end)
{
	double longest_s = 0, sum_s = 0, from_s = INFINITY;

	while (end-- > first) {
		if (!(alone_s[end] > 0))
			continue;
		if (m[end].start_s <= from_s) {
			sum_s += longest_s;
			longest_s = 0;
		}
		longest_s = fmax(longest_s, alone_s[end]);
		from_s = fmin(from_s, m[end].start_s - alone_s[end]);
	}
	return sum_s + longest_s;
}

/* Of the steps that all ranks have, or of messages where there are no steps. */
static void find_latest(struct gf_report_whole *r, const struct mets *m)
{
	double all_s = 0, whole_s = r->parts[GF_REPORT_STEP].median_s;

	for (size_t i = 0; i < r->nranks; i++) {
		const struct gf_import_job_rank *of = &r->job->ranks[i];
		double *to = &r->ranks[i].late_s;

		for (size_t k = of->nsteps - r->nsteps; k < of->nsteps; k++)
			*to += late_s(of->messages, m->alone_s[i], of->steps[k].first,
				      of->steps[k].first + of->steps[k].count) /
			       (double)r->nsteps;
		for (size_t k = 0; k < of->nmessages && !r->nsteps; k++)
			*to += m->alone_s[i][k] / (double)r->matched;
		all_s += *to;
		if (*to > r->ranks[r->latest].late_s)
			r->latest = i;
	}
	for (size_t i = 0; i < m->count && !r->nsteps; i++)
		whole_s = (i ? whole_s : 0) +
			  (m->all[i].time_s + m->all[i].waited_s) / (double)m->count;
	r->late = r->nranks && r->ranks[r->latest].late_s >
				       fmax(GF_REPORT_LATE * whole_s, GF_REPORT_ALONE * all_s);
}

static void find_arrivals(struct gf_report_whole *r)
{
	const struct gf_import_job *job = r->job;
	GF_FREED struct part *parts = NULL;
	struct part *at, *end;
	struct stamps stamps = {gf_xcalloc(job->nranks + 1, sizeof(*stamps.of)), 0};
	struct mets m = {.alone_s = gf_xcalloc(job->nranks + 1, sizeof(*m.alone_s))};
	size_t i, k, n = 0, traced = 1;

	for (i = 0; i < job->nranks; i++) {
		n += job->ranks[i].nmessages;
		m.alone_s[i] = gf_xcalloc(job->ranks[i].nmessages + 1, sizeof(**m.alone_s));
	}
	parts = at = gf_xcalloc(n + 1, sizeof(*parts));
	for (i = 0; i < job->nranks; i++)
		for (k = 0; k < job->ranks[i].nmessages; k++)
			*at++ = (struct part){&job->ranks[i].messages[k], i};
	end = at;
	qsort(parts, n, sizeof(*parts), by_message);
	for (at = parts; at < end; at += n) {
		n = parts_of(at, end);
		if (at == parts || at->of->group != at[-1].of->group)
			traced = traced_of(at, end, &stamps);
		if (n == traced && apart(at, n, &stamps))
			meet(r, &m, at, n);
		else
			r->unmatched++;
		if (at->of->ranks > r->of_ranks)
			r->of_ranks = at->of->ranks;
	}
	find_latest(r, &m);
	sum_sizes(r, &m);
	for (i = 0; i < job->nranks; i++)
		free(m.alone_s[i]);
	free(m.alone_s);
	free(stamps.of);
	free(m.all);
}

/* --- what is expected -------------------------------------------------------
 */

/* What the cheapest algorithm takes; NAN: nothing is known. */
static double expected_s(const struct gf_fabric *f, double bytes)
{
	double best_s = NAN;

	for (size_t i = 0; gf_algorithms[i]; i++) {
		const struct gf_priced m = {.algorithm = gf_algorithms[i]->name, .bytes = bytes};
		struct gf_price p;

		if (gf_price_message(f, &m, &p, NULL) == 0)
			best_s = fmin(best_s, gf_line_s(&p.line, bytes));
	}
	return best_s;
}

static void expect(struct gf_report_whole *r, const struct gf_documents *d)
{
	struct gf_fabric f = {
		.network = d->profile ? d->profile->network : NULL,
		.levels = d->topology ? d->topology->levels : NULL,
		.nlevels = d->topology ? d->topology->nlevels : 0,
	};

	for (size_t i = 0; i < r->nsizes && (f.network || f.levels); i++) {
		struct gf_report_size *s = &r->sizes[i];

		f.ranks = s->ranks;
		if (s->kind == GF_COLLECTIVE_ALL_REDUCE && s->ranks > 1)
			s->expected_s = expected_s(&f, (double)s->size_bytes);
	}
}

/* --- the best plan, and other ranks --------------------------------------- */

static int add_scale(struct gf_report_whole *r, struct gf_text *notes, struct gf_error *err)
{
	struct gf_plan *plans[] = {r->best};
	char *names[] = {(char *)"best"};
	int ranks[DOUBLINGS_MOST];
	struct gf_sweep s = {
		.plans = plans, .names = names, .nplans = 1, .ranks = ranks, .replan = true};
	GF_RELEASED(gf_swept_release) struct gf_swept found = {0};
	int n = r->best->ranks, rc;

	for (; n <= SCALE_MOST && s.nranks < DOUBLINGS_MOST; n *= 2)
		ranks[s.nranks++] = n;
	rc = gf_sweep_run(&s, &found, err);
	if (rc < 0)
		return rc;
	r->scale = gf_xcalloc(found.nrows + 1, sizeof(*r->scale));
	for (size_t i = 0; i < found.nrows; i++) {
		const struct gf_row *row = &found.rows[i];

		if (row->plan == r->best) /* the plan of fewer ranks */
			continue;
		if (row->left_out) {
			gf_text_addf(notes, "%d ranks are left out: %s\n", row->outcome.ranks,
				     row->left_out);
			continue;
		}
		r->scale[r->nscale++] = (struct gf_report_scale){
			.ranks = row->outcome.ranks,
			.iteration_s = row->outcome.iteration_s,
			.low_s = row->outcome.low_s,
			.high_s = row->outcome.high_s,
			.efficiency = row->outcome.efficiency,
		};
		if (!r->knee && row->outcome.efficiency < GF_REPORT_KNEE)
			r->knee = row->outcome.ranks;
	}
	return 0;
}

/* What cannot be planned is a note. */
static int plan(struct gf_report_whole *r, const struct gf_documents *d,
		const struct gf_profile *own, struct gf_text *notes, struct gf_error *err)
{
	struct gf_documents known = {
		.topology = d->topology, .plan = d->plan, .profile = (struct gf_profile *)own};
	const char *codecs[GF_CODECS_MOST + 1];
	struct gf_request request = {0};
	struct gf_error why = {""};
	struct gf_axes axes;
	int rc = 0;

	if (!own || !own->model)
		return 0;
	gf_axes_init(&axes);
	request.axes = &axes;
	/* what the job does to gradients stays */
	if (gf_report_plan(d)) {
		gf_axes_follow(&axes, d->plan);
		request.codecs = gf_plan_codecs(d->plan, codecs);
	}
	gf_request_documents(&request, &known);
	request.rule = NULL;
	if (!request.fabric.network && d->profile)
		request.fabric.network = d->profile->network;
	if (!request.fabric.ranks)
		request.fabric.ranks = r->of_ranks;
	if (request.fabric.ranks < 2 || request.fabric.ranks > SCALE_MOST)
		rc = gf_error_set(&why, -EINVAL, "want 2 to %d ranks, found %d", SCALE_MOST,
				  request.fabric.ranks);
	else if (!request.fabric.network && !request.fabric.levels)
		rc = gf_error_set(&why, -EINVAL, "nothing says what an all-reduce costs (--costs)");
	if (rc == 0) {
		r->best = gf_xcalloc(1, sizeof(*r->best));
		rc = gf_request_plan(&request, r->best, notes, &why);
	}
	gf_axes_release(&axes);
	if (rc < 0) {
		gf_text_addf(notes, "no plan is made: %s\n", why.text);
		free(r->best);
		r->best = NULL;
		return 0;
	}
	return r->scales ? add_scale(r, notes, err) : 0;
}

/* --- the whole --------------------------------------------------------------
 */

int gf_report_see(struct gf_report_whole *r, const struct gf_import_job *job, struct gf_error *err)
{
	size_t i, found = 0;

	r->job = job;
	r->kind = job->imported.kind;
	r->nranks = job->nranks;
	r->ranks = gf_xcalloc(job->nranks + 1, sizeof(*r->ranks));
	for (i = 0; i < job->nranks; i++)
		found += job->ranks[i].nsteps + job->ranks[i].nmessages;
	if (found == 0)
		return gf_error_set(err, -EINVAL, "want steps or messages, found none");
	find_steps(r);
	find_arrivals(r);
	return 0;
}

int gf_report_find(struct gf_report_whole *r, const struct gf_import_job *job,
		   const struct gf_documents *d, const struct gf_profile *own,
		   struct gf_text *notes, struct gf_error *err)
{
	struct gf_error why = {""};
	int rc = gf_report_see(r, job, err);

	if (rc < 0)
		return rc;
	expect(r, d);
	if (!job->timed)
		gf_text_addf(&r->why_not, "such files do not say when steps begin");
	else if ((size_t)r->of_ranks > r->nranks)
		gf_text_addf(&r->why_not, "want the traces of all %d ranks, found %zu", r->of_ranks,
			     r->nranks);
	else if (gf_stragglers_find(job, gf_report_plan(d), &r->stragglers, &why) < 0)
		gf_text_addf(&r->why_not, "%s", why.text);
	return plan(r, d, own, notes, err);
}

void gf_report_whole_release(struct gf_report_whole *r)
{
	if (r->best)
		gf_plan_release(r->best);
	free(r->best);
	free(r->scale);
	free(r->sizes);
	free(r->ranks);
	gf_stragglers_release(&r->stragglers);
	gf_text_release(&r->why_not);
	memset(r, 0, sizeof(*r));
}

/* Of a run of a plan, the model and network as the run showed them. */
static int refined(const char *path, const struct gf_plan *p, struct gf_profile *out,
		   struct gf_text *notes, struct gf_error *err)
{
	GF_RELEASED(gf_refined_release) struct gf_refined r = {0};
	int rc = gf_refine_trace(p, path, &r, notes, err);

	if (rc < 0)
		return rc;
	out->producer = gf_xstrdup("gf-report " GF_VERSION);
	out->model = gf_model_profile_copy(r.model);
	if (r.network)
		out->network = gf_network_copy(r.network);
	gf_processing_add(&out->processing, &r.processing);
	return 0;
}

int gf_report_profile(const char *path, const struct gf_plan *p, struct gf_profile *out,
		      struct gf_text *notes, struct gf_error *err)
{
	struct gf_import in = {.file = path, .forward_s = NAN, .backward_s = NAN};

	if (p)
		return refined(path, p, out, notes, err);
	return gf_import_file(&in, NULL, NULL, out, notes, err);
}
