/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/row_report.h"
#include "base/heap.h"
#include "profiler/contest/size_sweep.h"

#include <math.h>
#include <stdio.h>

#include "cli/human.h"
#include "cli/table.h"
#include "documents/algorithm_traits.h"
#include "json/json.h"

static const char *const placement_names[] = {"out_of_place", "in_place"};
const char *const gf_contest_mpi_calls[][2] = {
	[GF_COLL_WHOLE] = {"MPI_Iallreduce", "MPI_Allreduce"},
	[GF_COLL_REDUCE_SCATTER] = {"MPI_Ireduce_scatter", "MPI_Reduce_scatter_block"},
	[GF_COLL_ALL_GATHER] = {"MPI_Iallgatherv", "MPI_Allgather"},
};

static double whole_bytes(const struct gf_contest_report *r, const struct gf_contest_row *row)
{
	return (double)row->size_bytes * (r->plan ? 1 : r->config->lanes);
}

static double busbw_of(const struct gf_contest_report *r, const struct gf_contest_row *row,
		       int placement)
{
	return gf_contest_busbw(r->config->collective, whole_bytes(r, row),
				row->reading[placement].median_s, r->config->comm->ranks);
}

double gf_contest_report_busbw(const struct gf_contest_report *r)
{
	double total = 0;

	for (size_t i = 0; i < r->nrows; i++)
		total += busbw_of(r, &r->rows[i], GF_OUT_OF_PLACE) +
			 busbw_of(r, &r->rows[i], GF_IN_PLACE);
	return r->nrows ? total / (2 * (double)r->nrows) : 0;
}

size_t gf_contest_report_wrong(const struct gf_contest_report *r)
{
	size_t i, wrong = 0;

	for (i = 0; i < r->nrows; i++)
		wrong += r->rows[i].reading[0].wrong + r->rows[i].reading[1].wrong;
	return wrong;
}

static const char *op_of(const struct gf_contest_report *r)
{
	return r->config->collective == GF_COLL_ALL_GATHER ? "none"
							   : gf_op_names[r->config->element.op];
}

static const char *codec_of(const struct gf_contest_report *r, const struct gf_contest_row *row)
{
	return row->codec ? row->codec->name : gf_dtype_names[r->config->element.dtype];
}

static bool is_whole_plan(const struct gf_contest_report *r, const struct gf_contest_row *row)
{
	return r->plan && row == &r->rows[r->nrows - 1];
}

static void add_factors(const struct gf_way *way, struct gf_text *out)
{
	for (size_t i = 0; i < way->nfactors; i++)
		gf_text_addf(out, "%s%d", i ? "x" : "", way->factors[i]);
}

static void add_stages(const struct gf_way *way, struct gf_text *out)
{
	const char *name;

	for (size_t i = 0; i < way->nfactors && (name = gf_way_stage_at(way, i)); i++)
		gf_text_addf(out, "%s%s", i ? "," : "", name);
}

/* "ring", "auto:ring", "blueconnect:2x4:halving,ring"; no blanks. */
static void add_label(const struct gf_contest_report *r, const struct gf_contest_row *row,
		      struct gf_text *out)
{
	char variant[GF_TUNING_TEXT];

	if (is_whole_plan(r, row)) {
		gf_text_addf(out, "plan");
		return;
	}
	gf_text_addf(out, "%s%s", row->chosen ? "auto:" : "", row->way.algorithm->name);
	if (row->way.tuning.dialect)
		gf_text_addf(out, ":%s", gf_tuning_text(&row->way.tuning, variant));
	if (!row->way.nfactors)
		return;
	gf_text_addf(out, ":");
	add_factors(&row->way, out);
	if (!gf_way_stage_at(&row->way, 0))
		return;
	gf_text_addf(out, ":");
	add_stages(&row->way, out);
}

/* --- rows for programs ----------------------------------------------------
 */

static void put_case(const struct gf_contest_report *r, const struct gf_contest_row *row,
		     struct gf_json_writer *w)
{
	const struct gf_contest_allreduce_config *c = r->config;
	GF_RELEASED(gf_text_release) struct gf_text factors = {0}, stages = {0};
	char variant[GF_TUNING_TEXT] = "", library[GF_CONTEST_LIBRARY_TEXT];

	if (!is_whole_plan(r, row)) {
		add_factors(&row->way, &factors);
		add_stages(&row->way, &stages);
	}
	if (row->way.tuning.dialect)
		gf_tuning_text(&row->way.tuning, variant);
	gf_json_put_size(w, "ranks", (size_t)c->comm->ranks);
	gf_json_put_size(w, "ranks_per_host", (size_t)c->comm->local_ranks);
	gf_json_put_size(w, "size_bytes", row->size_bytes);
	gf_json_put_size(w, "count_elems", row->count_elems);
	gf_json_put_string(w, "device", gf_contest_device_kind(&c->device));
	gf_json_put_string(w, "transport", gf_contest_device_transport(&c->device, c->comm));
	gf_json_put_string(w, "library", gf_contest_device_library(&c->device, c->comm, library));
	gf_json_put_string(w, "dtype", gf_dtype_names[c->element.dtype]);
	gf_json_put_string(w, "collective", gf_coll_half_names[c->collective]);
	gf_json_put_string(w, "op", op_of(r));
	gf_json_put_string(w, "algorithm",
			   is_whole_plan(r, row) ? "plan"
			   : row->chosen         ? "auto"
						 : row->way.algorithm->name);
	gf_json_put_string(w, "chosen", row->way.algorithm->name);
	gf_json_put_string(w, "variant", variant);
	gf_json_put_string(w, "factors", factors.data ? factors.data : "");
	gf_json_put_string(w, "stages", stages.data ? stages.data : "");
	gf_json_put_size(w, "segment_bytes", c->segment_bytes);
	gf_json_put_string(w, "codec", codec_of(r, row));
	gf_json_put_real(w, "density",
			 row->selection         ? NAN
			 : row->way.density > 0 ? row->way.density
						: 1);
	gf_json_put_string(w, "selection", row->selection ? row->selection : "dense");
	gf_json_put_size(w, "messages", row->messages);
	gf_json_put_size(w, "lanes", (size_t)(is_whole_plan(r, row) ? r->plan->lanes : c->lanes));
}

static void put_row(const struct gf_contest_report *r, const struct gf_contest_row *row,
		    int placement, struct gf_json_writer *w)
{
	const struct gf_contest_reading *m = &row->reading[placement];

	put_case(r, row, w);
	gf_json_put_string(w, "placement", placement_names[placement]);
	gf_json_put_size(w, "repeats", (size_t)r->config->repeats);
	gf_json_put_string(w, "across", gf_contest_across_names[r->config->across]);
	gf_json_put_real(w, "time_s", m->median_s);
	gf_json_put_real(w, "min_s", m->min_s);
	gf_json_put_real(w, "p25_s", m->p25_s);
	gf_json_put_real(w, "p50_s", m->median_s);
	gf_json_put_real(w, "p75_s", m->p75_s);
	gf_json_put_real(w, "p90_s", m->p90_s);
	gf_json_put_real(w, "p99_s", m->p99_s);
	gf_json_put_real(w, "max_s", m->max_s);
	gf_json_put_real(w, "algbw_bytes_per_s",
			 gf_contest_algbw(whole_bytes(r, row), m->median_s));
	gf_json_put_real(w, "busbw_bytes_per_s", busbw_of(r, row, placement));
	gf_json_put_size(w, "wire_bytes", row->wire_bytes);
	gf_json_put_size(w, "checks", (size_t)r->config->checks);
	gf_json_put_size(w, "wrong", m->wrong);
	if (r->config->errors) {
		gf_json_put_real(w, "error_rms", row->error.rms);
		gf_json_put_real(w, "error_max", row->error.max);
	}
}

static void print_rows(const struct gf_contest_report *r, struct gf_text *out)
{
	struct gf_json_writer w = {0};

	for (size_t i = 0; i < r->nrows; i++)
		for (int p = 0; p < 2; p++) {
			gf_json_open_line(&w, NULL);
			put_row(r, &r->rows[i], p, &w);
			gf_json_close_line(&w, out);
		}
}

/* --- the table ------------------------------------------------------------
 */

/* Is one of them MPI_Iallreduce? */
static bool has_nonblocking(const struct gf_contest_report *r)
{
	for (size_t i = 0; i < r->nrows && r->config->comm->ops && r->config->comm->ops->tell; i++)
		if (!r->config->device.nccl && !is_whole_plan(r, &r->rows[i]) &&
		    !r->rows[i].way.tuning.dialect &&
		    gf_algorithm_has(r->rows[i].way.algorithm->name, GF_ALGORITHM_TOLD))
			return true;
	return false;
}

static bool shows_wire(const struct gf_contest_report *r)
{
	for (size_t i = 0; i < r->nrows; i++)
		if (r->rows[i].codec || r->rows[i].selection || r->rows[i].way.density > 0)
			return true;
	return false;
}

/* Eight columns, no exponent. */
static void add_us(double seconds, struct gf_text *out)
{
	double us = seconds * 1e6;

	gf_text_addf(out, " %8.*f", us < 10 ? 3 : us < 10000 ? 2 : 0, us);
}

static void print_reading(const struct gf_contest_report *r, const struct gf_contest_row *row,
			  int placement, struct gf_text *out)
{
	const struct gf_contest_reading *m = &row->reading[placement];
	char wrong[32] = "N/A";

	if (r->config->checks)
		snprintf(wrong, sizeof(wrong), "%zu", m->wrong);
	gf_text_addf(out, " ");
	add_us(m->median_s, out);
	gf_text_addf(out, " %7.2f %7.2f %6s",
		     gf_contest_algbw(whole_bytes(r, row), m->median_s) / 1e9,
		     busbw_of(r, row, placement) / 1e9, wrong);
}

static void print_row(const struct gf_contest_report *r, const struct gf_contest_row *row,
		      struct gf_text *out)
{
	const struct gf_contest_allreduce_config *c = r->config;
	GF_RELEASED(gf_text_release) struct gf_text label = {0};

	add_label(r, row, &label);
	gf_text_addf(out, "%12zu %13zu %8s %7s %16s", row->size_bytes, row->count_elems,
		     gf_dtype_names[c->element.dtype], op_of(r), label.data);
	if (shows_wire(r))
		gf_text_addf(out, " %12zu", row->wire_bytes);
	if (r->config->errors)
		gf_text_addf(out, " %9.2e %9.2e", row->error.rms, row->error.max);
	print_reading(r, row, GF_OUT_OF_PLACE, out);
	print_reading(r, row, GF_IN_PLACE, out);
	gf_text_addf(out, "\n");
}

static void print_heading(const struct gf_contest_report *r, struct gf_text *out)
{
	const struct gf_contest_allreduce_config *c = r->config;
	char library[GF_CONTEST_LIBRARY_TEXT];
	const int width = 33;
	int before = 60 + (shows_wire(r) ? 13 : 0) + (c->errors ? 20 : 0);
	bool tells = false;

	for (size_t i = 0; i < r->nrows; i++)
		tells |= r->rows[i].way.tuning.dialect != NULL;
	gf_text_addf(out,
		     "# %d rank%s, %d on this host, version " GF_VERSION
		     ", times: median of %d (%s over the ranks) after %d\n",
		     c->comm->ranks, c->comm->ranks == 1 ? "" : "s", c->comm->local_ranks,
		     c->repeats, gf_contest_across_names[c->across], c->warmup);
	if (c->comm->ranks == 1)
		gf_text_addf(out, "# one rank has nothing to reduce: these are times of copies; "
				  "start more with mpirun -np N\n");
	if (c->collective)
		gf_text_addf(out,
			     "# %s: size is that of all ranks' parts, count one rank's elements\n",
			     gf_coll_half_names[c->collective]);
	gf_contest_device_library(&c->device, c->comm, library);
	if (c->device.nccl)
		gf_text_addf(out, "# on %s, messages by %s, times by events\n", c->device.gpu->name,
			     library);
	else if (c->device.gpu)
		gf_text_addf(out, "# on %s, messages by the host: %s\n", c->device.gpu->name,
			     c->device.why);
	if (tells)
		gf_text_addf(out, "# library %s\n", library);
	if (has_nonblocking(r))
		gf_text_addf(out,
			     "# %s is library; %s, which most programs call, is "
			     "library:blocking%s\n",
			     gf_contest_mpi_calls[c->collective][0],
			     gf_contest_mpi_calls[c->collective][1],
			     c->collective ? "" : " and the variants");
	if (c->element.codec)
		gf_text_addf(out, "# codec %s: wrong beyond 2 x ranks encodings of %g each\n",
			     c->element.codec->name, c->element.codec->error);
	if (r->nrows && r->rows[0].selection)
		gf_text_addf(out,
			     "# selection %s: steps of the exchange, wrong where not rank 0's\n",
			     r->rows[0].selection);
	if (c->lanes > 1)
		gf_text_addf(out, "# %d messages of that size at once\n", c->lanes);
	gf_text_addf(out, "#%*s%*s%*s\n", before, "", width, "out-of-place", width, "in-place");
	gf_text_addf(out, "#%11s %13s %8s %7s %16s", "size", "count", "type", "redop", "algorithm");
	if (shows_wire(r))
		gf_text_addf(out, " %12s", "wire");
	if (c->errors)
		gf_text_addf(out, " %9s %9s", "rms error", "max error");
	for (int p = 0; p < 2; p++) {
		gf_text_addf(out, "  %8s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
	}
	gf_text_addf(out, "\n#%11s %13s %8s %7s %16s", "(B)", "(elements)", "", "", "");
	if (shows_wire(r))
		gf_text_addf(out, " %12s", "(B)");
	if (c->errors)
		gf_text_addf(out, " %19s", "");
	for (int p = 0; p < 2; p++) {
		gf_text_addf(out, "  %8s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
	}
	gf_text_addf(out, "\n");
}

static void print_best(const struct gf_contest_report *r, struct gf_text *out)
{
	GF_RELEASED(gf_plan_release) struct gf_plan rule = {0};

	/* of one rank's copies none is the best */
	if (r->config->comm->ranks == 1 || gf_contest_report_rule(r, &rule, NULL) < 0)
		return;
	gf_text_addf(out, "# best     :");
	for (size_t i = 0; i < rule.rule->nalgorithms; i++) {
		const struct gf_rule_algorithm *a = &rule.rule->algorithms[i];

		gf_text_addf(out, "%s ", i ? "," : "");
		gf_stages_text_of(out, a->algorithm, a->stages, a->nstages);
		gf_text_addf(out, " from %zu B", a->min_bytes);
	}
	gf_text_addf(out, "\n");
}

static size_t count_lines(const struct gf_text *t)
{
	size_t i, lines = 0;

	for (i = 0; i < t->length; i++)
		lines += t->data[i] == '\n';
	return lines;
}

static void print_table(const struct gf_contest_report *r, struct gf_text *out)
{
	size_t i, wrong = gf_contest_report_wrong(r);

	print_heading(r, out);
	for (i = 0; i < r->nrows; i++)
		print_row(r, &r->rows[i], out);
	if (r->left_out)
		gf_text_addf(out,
			     "# Left out             : %zu of %zu, which by their neighbours take "
			     "%g times the best or more\n",
			     r->left_out, r->left_out + r->nrows, GF_SEARCH_FAR);
	if (r->config->proofs)
		gf_text_addf(out, "# Proved schedules     : %zu OK\n",
			     count_lines(r->config->proofs));
	if (r->config->checks)
		gf_text_addf(out, "# Out of bounds values : %zu %s\n", wrong,
			     wrong ? "FAILED" : "OK");
	gf_text_addf(out, "# Avg bus bandwidth    : %g\n", gf_contest_report_busbw(r) / 1e9);
	print_best(r, out);
	gf_contest_report_blocking(r, out);
}

static void print_cells(const struct gf_contest_report *r, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t, "size\talgorithm\tcodec\ttime\talgbw\tbusbw\twrong");
	for (size_t i = 0; i < r->nrows; i++) {
		const struct gf_contest_row *row = &r->rows[i];
		const struct gf_contest_reading *m = &row->reading[GF_IN_PLACE];
		GF_RELEASED(gf_text_release) struct gf_text name = {0};

		add_label(r, row, &name);
		gf_table_cells(
			&t, "%s\t%s\t%s\t%s\t%s\t%s\t%zu", gf_human_size(whole_bytes(r, row)).text,
			name.data, codec_of(r, row), gf_human_time(m->median_s).text,
			gf_human_rate(gf_contest_algbw(whole_bytes(r, row), m->median_s)).text,
			gf_human_rate(busbw_of(r, row, GF_IN_PLACE)).text, m->wrong);
	}
	gf_table_print_in(&t, window, out);
}

void gf_contest_report_print(const struct gf_contest_report *r, enum gf_contest_format format,
			     size_t window, struct gf_text *out)
{
	if (format == GF_REPORT_TABLE)
		print_table(r, out);
	else if (format == GF_REPORT_CELLS)
		print_cells(r, window, out);
	else
		print_rows(r, out);
}

double gf_contest_algbw(double size_bytes, double time_s)
{
	return time_s > 0 ? size_bytes / time_s : 0;
}

double gf_contest_busbw(enum gf_coll_half collective, double size_bytes, double time_s, int ranks)
{
	return gf_contest_algbw(size_bytes, time_s) * (collective ? 1 : 2) * (ranks - 1) / ranks;
}
