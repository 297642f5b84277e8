/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/human.h"
#include "cli/table.h"
#include "json/json.h"
#include "report/stragglers.h"

void gf_stragglers_json(const struct gf_stragglers *s, struct gf_text *out)
{
	struct gf_json_writer w = {0};
	size_t i;

	gf_json_open_line(&w, NULL);
	gf_json_put_string(&w, "part", "job");
	gf_json_put_size(&w, "ranks", s->nranks);
	gf_json_put_size(&w, "steps", s->nsteps);
	gf_json_put_real(&w, "measured_s", s->measured_s);
	gf_json_put_real(&w, "iteration_s", s->iteration_s);
	gf_json_put_real(&w, "steady_s", s->steady_s);
	gf_json_put_real(&w, "without_stragglers_s", s->without_s);
	gf_json_put_real(&w, "slowdown", s->iteration_s / s->without_s);
	gf_json_put_int(&w, "slowest_rank", s->ranks[s->slowest].rank);
	gf_json_close_line(&w, out);
	for (i = 0; i < s->nranks; i++) {
		const struct gf_straggler *r = &s->ranks[i];

		gf_json_open_line(&w, NULL);
		gf_json_put_string(&w, "part", "rank");
		gf_json_put_int(&w, "rank", r->rank);
		gf_json_put_real(&w, "factor", r->factor);
		gf_json_put_real(&w, "noise", r->noise);
		gf_json_put_real(&w, "cost_s", r->cost_s);
		gf_json_close_line(&w, out);
	}
}

void gf_stragglers_table(const struct gf_stragglers *s, struct gf_text *out)
{
	struct gf_table t = {0};
	struct gf_human a, b, c, d;
	size_t i;

	gf_text_addf(out,
		     "a step took %s; simulated again %s, with every rank as "
		     "in its median step %s, without stragglers %s\n"
		     "rank %d costs most\n\n",
		     gf_human_time(s->measured_s, &a),
		     gf_human_time(s->iteration_s, &b),
		     gf_human_time(s->steady_s, &c),
		     gf_human_time(s->without_s, &d),
		     s->ranks[s->slowest].rank);
	gf_table_row(
		&t, 4,
		(const char *[]){"rank", "compute factor", "noise", "cost"});
	for (i = 0; i < s->nranks; i++) {
		const struct gf_straggler *r = &s->ranks[i];

		gf_table_begin(&t, 4);
		gf_table_cell(&t, "%d", r->rank);
		gf_table_cell(&t, "%.3f", r->factor);
		gf_table_cell(&t, "%.1f %%", 100 * r->noise);
		gf_table_cell(&t, "%s", gf_human_time(r->cost_s, &a));
	}
	gf_table_print(&t, out);
	gf_table_release(&t);
}
