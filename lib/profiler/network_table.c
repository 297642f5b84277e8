/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"
#include "profiler/whole_profile.h"

#include "cli/human.h"
#include "cli/table.h"

#include "base/array.h"

/* Rows of tensors: more of them are printed as runs of equal length. */
enum { TENSOR_ROWS = 24 };

static void time_cell(struct gf_table *t, double time_s)
{
	gf_table_cell(t, "%s", gf_human_time(time_s).text);
}

/* A cost per byte as a rate. */
static void rate_cell(struct gf_table *t, double s_per_byte)
{
	if (s_per_byte > 0)
		gf_table_cell(t, "%s", gf_human_rate(1 / s_per_byte).text);
	else
		gf_table_cell(t, "-");
}

static void fit_cell(struct gf_table *t, const struct gf_fit *fit)
{
	if (fit->npoints)
		gf_table_cell(t, "%.0f %%", 100 * fit->residual_max);
	else
		gf_table_cell(t, "-");
}

/* A blank line after what is there. */
static void gap(struct gf_text *out)
{
	if (out->length)
		gf_text_addf(out, "\n");
}

static void finish(struct gf_table *t, size_t window, struct gf_text *out)
{
	gf_table_print_in(t, window, out);
	gf_table_release(t);
}

static void model_line(const struct gf_model_profile *m, struct gf_text *out)
{
	gf_text_addf(out, "%s", m->name);
	if (m->device)
		gf_text_addf(out, " on %s", m->device);
	if (m->batch_per_rank)
		gf_text_addf(out, ", %zu sample%s per rank", m->batch_per_rank,
			     m->batch_per_rank == 1 ? "" : "s");
	if (m->accumulate)
		gf_text_addf(out, ", %zu micro-batches a step", m->accumulate);
	gf_text_addf(out, ": forward %s, backward %s", gf_human_time(m->forward_s).text,
		     gf_human_time(m->backward_s).text);
	if (!m->ntensors) {
		gf_text_addf(out, "; nothing is known of its layers\n");
		return;
	}
	gf_text_addf(out, ", update %s; %zu tensor%s of %s\n", gf_human_time(m->update_s).text,
		     m->ntensors, m->ntensors == 1 ? "" : "s",
		     gf_human_size((double)gf_model_profile_bytes(m)).text);
}

static void tensor_row(const struct gf_model_profile *m, size_t first, size_t last,
		       struct gf_table *t)
{
	const struct gf_tensor *from = &m->tensors[first];
	const struct gf_tensor *to = &m->tensors[last];
	size_t bytes = 0, i;

	for (i = first; i <= last; i++)
		bytes += gf_tensor_bytes(&m->tensors[i]);
	if (first == last)
		gf_table_cell(t, "%zu", first);
	else
		gf_table_cell(t, "%zu-%zu", first, last);
	gf_table_cell(t, "%s", gf_human_size((double)bytes).text);
	time_cell(t, to->ready_s);
	if (first == last)
		gf_table_cell(t, "%.60s", from->name);
	else
		gf_table_cell(t, "%.60s to %.60s", from->name, to->name);
}

static void model_table(const struct gf_model_profile *m, size_t window, struct gf_text *out)
{
	size_t run = (m->ntensors + TENSOR_ROWS - 1) / TENSOR_ROWS, i;
	struct gf_table t = {0};

	model_line(m, out);
	gf_table_cells(&t, "tensors\tsize\tready\tname");
	for (i = 0; i < m->ntensors; i += run)
		tensor_row(m, i, i + run < m->ntensors ? i + run - 1 : m->ntensors - 1, &t);
	finish(&t, window, out);
}

static void passes_line(const struct gf_passes *p, struct gf_text *out)
{
	const struct gf_model_profile whole = {
		.name = p->model,
		.device = p->device,
		.batch_per_rank = p->batch_per_rank,
		.accumulate = p->accumulate,
		.forward_s = p->forward_s,
		.backward_s = p->backward_s,
	};

	model_line(&whole, out);
}

/* The sizes at which times are printed, in their order; the model's whole gradient is one. */
struct sizes {
	double bytes[4], whole; /* whole 0: no model */
	size_t n;
};

GF_ORDER(ascending, double, GF_BY(*x, *y))

static struct sizes sizes_of(const struct gf_profile *p)
{
	struct sizes s = {.bytes = {1024, 65536, 4194304}, .n = 3};

	if (p->model)
		s.bytes[s.n++] = s.whole = (double)gf_model_profile_bytes(p->model);
	qsort(s.bytes, s.n, sizeof(*s.bytes), ascending);
	return s;
}

static void heading(struct gf_table *t, const char *first, const char *second, const char *rate,
		    const struct sizes *s)
{
	gf_table_begin(t, s->n + 6);
	/* of an all-reduce what nccl-tests calls so: size by time */
	gf_table_cells(t, "%s\t%s\tstartup\t%s", first, second, rate);
	for (size_t i = 0; i < s->n; i++)
		gf_table_cell(t, "%s", gf_human_size(s->bytes[i]).text);
	gf_table_cells(t, "2 at once\tfit off by");
}

/* The startup of the shortest messages, the rate of the longest. */
static void lines_cells(struct gf_table *t, const struct gf_cost_lines *lines,
			const struct gf_contention *contention, const struct gf_fit *fit,
			const struct sizes *s)
{
	const struct gf_cost_line *last =
		lines->nlarger ? &lines->larger[lines->nlarger - 1] : &lines->first;

	time_cell(t, lines->first.startup_s);
	rate_cell(t, last->per_byte_s);
	for (size_t i = 0; i < s->n; i++)
		time_cell(t, gf_cost_lines_s(lines, s->bytes[i]));
	if (contention->nentries)
		gf_table_cell(t, "%.2f x",
			      gf_contention_gamma(
				      contention,
				      (size_t)(s->whole > 0 ? s->whole : s->bytes[s->n - 1]), 2));
	else
		gf_table_cell(t, "-");
	fit_cell(t, fit);
}

static void collective_table(const struct gf_network *net, enum gf_coll_half collective,
			     const struct sizes *s, size_t window, struct gf_text *out)
{
	static const char *const titles[] = {"all-reduce", "reduce-scatter", "all-gather"};
	struct gf_table t = {0};
	size_t n = 0, i;

	for (i = 0; i < net->nallreduce; i++)
		n += net->allreduce[i].collective == collective;
	if (!n)
		return;
	gap(out);
	gf_text_addf(out, "%s", titles[collective]);
	if (net->ranks)
		gf_text_addf(out, " of %d rank%s", net->ranks, net->ranks == 1 ? "" : "s");
	gf_text_addf(out, "\n");
	heading(&t, "algorithm", "codec", "algbw", s);
	for (i = 0; i < net->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &net->allreduce[i];
		struct gf_cost_lines lines = gf_allreduce_lines(c);
		GF_RELEASED(gf_text_release) struct gf_text way = {0};

		if (c->collective != collective)
			continue;
		gf_stages_text_of(&way, c->algorithm, c->stages, c->nstages);
		gf_table_cells(&t, "%s\t%s", way.data, gf_allreduce_codec(c));
		lines_cells(&t, &lines, &c->contention, &c->fit, s);
	}
	finish(&t, window, out);
}

static void levels_table(const struct gf_network *net, const struct sizes *s, size_t window,
			 struct gf_text *out)
{
	struct gf_table t = {0};

	if (!net->nlevels)
		return;
	gap(out);
	gf_text_addf(out, "messages between two ranks\n");
	heading(&t, "level", "sum", "rate", s);
	for (size_t i = 0; i < net->nlevels; i++) {
		const struct gf_level_cost *c = &net->levels[i];
		struct gf_cost_lines lines = gf_level_lines(c);

		gf_table_cell(&t, "%s", c->name);
		rate_cell(&t, c->reduce_s_per_byte);
		lines_cells(&t, &lines, &c->contention, &c->fit, s);
	}
	finish(&t, window, out);
}

static void copies_table(const struct gf_profile *p, size_t window, struct gf_text *out)
{
	struct gf_table t = {0};

	if (!p->ncopies)
		return;
	gap(out);
	gf_table_cells(&t, "copy\tstartup\trate\tfit off by");
	for (size_t i = 0; i < p->ncopies; i++) {
		gf_table_cell(&t, "%s", p->copies[i].name);
		time_cell(&t, p->copies[i].alpha_s);
		rate_cell(&t, p->copies[i].beta_s_per_byte);
		fit_cell(&t, &p->copies[i].fit);
	}
	finish(&t, window, out);
}

static void entry_cells(struct gf_table *t, const struct gf_processing_entry *of)
{
	gf_table_cells(t, "%s\t%s\t%s", of->name, of->device, of->assumed ? "assumed" : "measured");
}

static void processing_tables(const struct gf_processing *p, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table codecs = {0}, selections = {0};

	gf_table_cells(&codecs, "codec\tdevice\torigin\tencode\tdecode\tencode sets\tdecode sets");
	for (size_t i = 0; i < p->ncodecs; i++) {
		entry_cells(&codecs, &p->codecs[i].of);
		rate_cell(&codecs, p->codecs[i].encode_s_per_byte);
		rate_cell(&codecs, p->codecs[i].decode_s_per_byte);
		rate_cell(&codecs, p->codecs[i].set_encode_s_per_byte);
		rate_cell(&codecs, p->codecs[i].set_decode_s_per_byte);
	}
	gf_table_cells(&selections, "selection\tdevice\torigin\tstartup\trate\tsent");
	for (size_t i = 0; i < p->nselections; i++) {
		entry_cells(&selections, &p->selections[i].of);
		time_cell(&selections, p->selections[i].alpha_s);
		rate_cell(&selections, p->selections[i].beta_s_per_byte);
		rate_cell(&selections, p->selections[i].sent_s_per_byte);
	}
	if (p->ncodecs) {
		gap(out);
		gf_table_print_in(&codecs, window, out);
	}
	if (p->nselections) {
		gap(out);
		gf_table_print_in(&selections, window, out);
	}
}

void gf_profile_table(const struct gf_profile *p, size_t window, struct gf_text *out)
{
	struct sizes s = sizes_of(p);
	enum gf_coll_half i;

	if (p->model)
		model_table(p->model, window, out);
	if (p->passes)
		passes_line(p->passes, out);
	if (p->network) {
		for (i = GF_COLL_WHOLE; i <= GF_COLL_ALL_GATHER; i++)
			collective_table(p->network, i, &s, window, out);
		levels_table(p->network, &s, window, out);
	}
	copies_table(p, window, out);
	processing_tables(&p->processing, window, out);
}

void gf_profile_answer(const struct gf_profile *p, struct gf_text *out)
{
	const struct gf_allreduce_cost *c;
	struct gf_cost_lines lines;
	double bytes, exchange_s, compute_s;

	if (!p->model || !p->network)
		return;
	bytes = (double)gf_model_profile_bytes(p->model);
	c = gf_network_cheapest(p->network, bytes);
	if (!c)
		return;
	lines = gf_allreduce_lines(c);
	exchange_s = gf_cost_lines_s(&lines, bytes);
	compute_s = p->model->forward_s + p->model->backward_s + p->model->update_s;
	gf_text_addf(out,
		     "%s bounds a step of %s: it computes for %s, and %s takes %s for its %s on %d "
		     "ranks\n",
		     exchange_s > p->model->backward_s ? "the network" : "the processor",
		     p->model->name, gf_human_time(compute_s).text, c->algorithm,
		     gf_human_time(exchange_s).text, gf_human_size(bytes).text, p->network->ranks);
}
