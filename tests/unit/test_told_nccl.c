/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's variants, from their measurement to the tuner's table, on an NCCL whose times by
 * algorithm, protocol, channels and size are known (tests/gpu/fake.h): the search tries what this
 * NCCL has, leaves out what cannot win, and the table names the fastest at every size.
 */
#include "ranks.h"

#include <errno.h>
#include <math.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "imports/import.h"
#include "profiler/contest/row_report.h"
#include "profiler/contest/size_sweep.h"
#include "settings/emit.h"
#include "lists/gf_emitters.h"

enum { RANKS = 2, REPEATS = 2 };
static const double clock_error_s = 1e-12;

/* start_s, or why there is none; the rest is what a channel adds to it and takes for a byte. */
static const struct known {
	const char *algorithm, *protocol;
	double start_s, per_byte_s;
} known[] = {
	{"tree", "ll", 4e-6, 6e-9},
	{"tree", "ll128", 7e-6, 4e-9},
	{"tree", "simple", 13e-6, 2.4e-9},
	{"ring", "ll", 8e-6, 6e-9},
	{"ring", "ll128", FAKE_NO_CALL, 0},
	{"ring", "simple", 27e-6, 1.2e-9},
	{"nvls", "simple", FAKE_NO_CALL, 0},
	{"nvls_tree", "simple", FAKE_NO_CALL, 0},
	{"collnet_direct", "simple", FAKE_NO_COMM, 0},
	{"collnet_chain", "simple", FAKE_NO_COMM, 0},
};

static double time_s(const char *algorithm, const char *protocol, int channels, size_t bytes)
{
	const double n = channels ? channels : 3;
	size_t i;

	/* what NCCL takes by itself: a ring, with its own number */
	if (!algorithm)
		return time_s("ring", "simple", channels, bytes);
	for (i = 0; i < GF_ARRAY_LENGTH(known); i++)
		if (!strcmp(known[i].algorithm, algorithm) && !strcmp(known[i].protocol, protocol))
			return known[i].start_s < 0
				       ? known[i].start_s
				       : known[i].start_s + n * 0.5e-6 +
						 (double)bytes * known[i].per_byte_s / n;
	return FAKE_NO_CALL;
}

static double told_s(const struct gf_nccl_tuning *told, size_t bytes)
{
	return time_s(told->algorithm, told->protocol, told->channels, bytes);
}

static double tuning_s(const struct gf_tuning *t, size_t bytes)
{
	return time_s(t->algorithm ? t->algorithm->name : NULL,
		      t->protocol ? t->protocol->name : NULL, t->channels, bytes);
}

struct job {
	struct fake_world *world;
	const char *name;
	int lanes;
	bool by_host;
	/* what comes of it, on rank 0 */
	int rc;
	struct gf_error err;
	struct gf_text rows, table, remarks;
	size_t nrows, left_out;
};

static void check_row(const struct gf_contest_row *row)
{
	const double want_s = tuning_s(&row->way.tuning, row->size_bytes);
	const struct gf_contest_reading *r = &row->reading[GF_IN_PLACE];
	char text[GF_TUNING_TEXT];

	EXPECT(fabs(r->median_s - want_s) < clock_error_s, "%s, %zu bytes: %g, not %g s",
	       gf_tuning_text(&row->way.tuning, text), row->size_bytes, r->median_s, want_s);
	EXPECT(r->wrong == 0 && row->reading[GF_OUT_OF_PLACE].wrong == 0, "%s: wrong", text);
}

static void sweep_on(struct gf_comm *c, void *ctx)
{
	struct job *job = ctx;
	const char *const names[] = {job->name, NULL};
	struct gf_contest_allreduce_config config = {
		.comm = c,
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.lanes = job->lanes ? job->lanes : 1,
		.warmup = 1,
		.repeats = REPEATS,
		.checks = 1,
		.timeout_s = TEST_PATIENCE_S,
		.device = {.gpu = fake_gpu(job->world, c->rank),
			   .nccl = job->by_host ? NULL : fake_nccl(),
			   .why = "no NCCL here"},
	};
	const struct gf_contest_sweep sweep = {
		.min_bytes = 1 << 10, .max_bytes = 1 << 20, .step_factor = 4, .algorithms = names};
	struct gf_contest_report report = {.config = &config};
	struct gf_contest_rows rows = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	size_t i;
	int rc;

	fake_be(job->world, c->rank);
	rc = gf_contest_sweep_run(&sweep, &config, NULL, &rows, &remarks, &err);
	report.rows = rows.list;
	report.nrows = rows.count;
	report.left_out = rows.left_out;
	for (i = 0; i < rows.count && rc == 0; i++)
		check_row(&rows.list[i]);
	if (c->rank == 0) {
		job->rc = rc;
		job->err = err;
		job->nrows = rows.count;
		job->left_out = rows.left_out;
		job->remarks = remarks;
		if (rc == 0) {
			gf_contest_report_print(&report, GF_REPORT_JSON, 0, &job->rows);
			gf_contest_report_print(&report, GF_REPORT_TABLE, 0, &job->table);
		}
	} else {
		gf_text_release(&remarks);
	}
	free(rows.list);
}

static void run(struct job *job)
{
	static const struct fake_faults none = {0};
	static const struct fake_costs costs = {.told_s = told_s};

	job->world = fake_world_new(RANKS, 4, 11, &none);
	fake_world_costs(job->world, &costs);
	on_ranks(RANKS, sweep_on, job);
	EXPECT(!fake_world_complaint(job->world), "%s", fake_world_complaint(job->world));
	EXPECT(fake_world_counts(job->world).comms == 0, "%zu are left",
	       fake_world_counts(job->world).comms);
	fake_world_free(job->world);
}

static void release(struct job *job)
{
	gf_text_release(&job->rows);
	gf_text_release(&job->table);
	gf_text_release(&job->remarks);
}

static const struct gf_dialect *nccl(void)
{
	return gf_dialect_of("NCCL");
}

/* The variants with a number of channels, as the tuner wants them. */
static struct gf_tuning fastest(size_t bytes)
{
	struct gf_tuning t, best = {0};
	size_t i;

	for (i = 0; gf_tuning_at(nccl(), i, &t); i++)
		if (t.channels && tuning_s(&t, bytes) > 0 &&
		    (!best.channels || tuning_s(&t, bytes) < tuning_s(&best, bytes)))
			best = t;
	return best;
}

/* What the table says of a size: its first row that holds it. */
static void named(const char *table, size_t bytes, char text[GF_TUNING_TEXT])
{
	char algorithm[20], protocol[20];
	size_t from, last;
	int channels, hosts, ranks;
	const char *row;

	strcpy(text, "nothing");
	for (row = strstr(table, "\nallreduce,"); row; row = strstr(row + 1, "\nallreduce,"))
		if (sscanf(row + 1, "allreduce,%zu,%zu,%19[^,],%19[^,],%d,%d,%d", &from, &last,
			   algorithm, protocol, &channels, &hosts, &ranks) == 7 &&
		    bytes >= from && bytes <= last) {
			EXPECT(hosts == 1 && ranks == RANKS, "%s", row);
			snprintf(text, GF_TUNING_TEXT, "%s.%s.%d", algorithm, protocol, channels);
			return;
		}
}

/* gf-profile --import, and gf-plan --emit nccl-tuner. */
static void check_tuner(const char *rows)
{
	const struct gf_import in = {.file = "rows", .text = rows, .size = strlen(rows)};
	const struct gf_emitter *e = &gf_emitter_nccl_tuner;
	struct gf_profile profile;
	struct gf_picks picks = {0};
	struct gf_text remarks = {0}, table = {0};
	struct gf_error err = {""};
	char want[GF_TUNING_TEXT], got[GF_TUNING_TEXT];
	size_t bytes;

	EXPECT(gf_import_profile(&in, NULL, &profile, &remarks, &err) == 0, "%s", err.text);
	EXPECT_TEXT(profile.network->library, "NCCL 2.28.9");
	EXPECT(gf_picks_make(profile.network, &e->wish, &picks, &err) == 0, "%s", err.text);
	EXPECT(e->emit_picks(&picks, &table, &err) == 0, "%s", err.text);
	for (bytes = 1 << 10; bytes <= 1 << 20; bytes *= 4) {
		const struct gf_tuning best = fastest(bytes);

		named(table.data, bytes, got);
		EXPECT(!strcmp(got, gf_tuning_text(&best, want)), "%zu bytes: %s, not %s", bytes,
		       got, want);
	}
	gf_picks_release(&picks);
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	gf_text_release(&table);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_search(void)
{
	struct job job = {.name = "library:all"};
	struct gf_tuning t;
	size_t i, can = 0, cannot = 0;

	for (i = 0; gf_tuning_at(nccl(), i, &t); i++)
		*(tuning_s(&t, 4) > 0 ? &can : &cannot) += 1;
	run(&job);
	EXPECT(job.rc == 0, "%s", job.err.text);
	if (job.rc)
		return;
	EXPECT(count(job.remarks.data, "left out: library:") == cannot, "%zu: %s", cannot,
	       job.remarks.data);
	EXPECT(strstr(job.remarks.data, "left out: library:nvls.simple.8: "), "%s",
	       job.remarks.data);
	EXPECT(strstr(job.remarks.data, "left out: library:collnet_chain.simple: "), "%s",
	       job.remarks.data);
	/* all at the two ends of the sizes, and fewer between them */
	EXPECT(job.nrows + job.left_out == 6 * can, "%zu and %zu of 6 x %zu", job.nrows,
	       job.left_out, can);
	EXPECT(job.left_out > can, "%zu left out", job.left_out);
	EXPECT(strstr(job.table.data, "# Left out             : "), "%s", job.table.data);
	EXPECT(strstr(job.table.data, "# library NCCL 2.28.9\n"), "%s", job.table.data);
	check_tuner(job.rows.data);
	release(&job);
}

static void test_refused(void)
{
	static const struct {
		struct job job;
		int rc;
		const char *want; /* NULL: it runs */
	} cases[] = {
		{{.name = "library:ring.simple.8"}, 0, NULL},
		{{.name = "library:default"}, 0, NULL},
		{{.name = "library:nvls.simple"}, -EIO, "library:nvls.simple: "},
		{{.name = "library:collnet_direct.simple.4"}, -EIO, "no such communicator"},
		{{.name = "library:ring"},
		 -EINVAL,
		 "NCCL's ncclAllReduce: want ll, ll128 or simple"},
		{{.name = "library:all", .lanes = 2}, -ENOTSUP, "want one message at once"},
		{{.name = "library:all", .by_host = true},
		 -ENOTSUP,
		 "want messages by NCCL, which can be told, got them by the host: no NCCL here"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct job job = cases[i].job;

		run(&job);
		EXPECT(job.rc == cases[i].rc, "%s: %d: %s", job.name, job.rc, job.err.text);
		EXPECT(!cases[i].want || strstr(job.err.text, cases[i].want), "%s: %s", job.name,
		       job.err.text);
		release(&job);
	}
}

/* Before anything is opened: the names of the library that was meant. */
static void test_names(void)
{
	static const struct {
		const char *name;
		bool gpus;
		const char *want; /* NULL: taken */
	} cases[] = {
		{"library:all", true, NULL},
		{"library:Ring.LL", true, NULL},
		{"library:Ring.LL", false, NULL},
		{"library:segmented_ring.64K", false, NULL},
		{"library:segmented_ring.64K", true, "NCCL's"},
		{"library:carrier", true, "want default, tree, ring, collnet_direct"},
		{"library:carrier", false, "want default, basic_linear"},
		{"library:nvls.fast", false, "want ll, ll128 or simple"},
		{"library:ring.simple.99", true, "want"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};
		int rc = gf_contest_told_check(cases[i].name, cases[i].gpus, &err);

		EXPECT(rc == (cases[i].want ? -EINVAL : 0), "%s: %d", cases[i].name, rc);
		EXPECT(!cases[i].want || strstr(err.text, cases[i].want), "%s: %s", cases[i].name,
		       err.text);
	}
}

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "unset";
}

/* The real table's: NCCL looks at the environment. */
static void test_environment(void)
{
	struct gf_nccl_tuning tree = {.algorithm = "nvls_tree", .protocol = "simple"};
	struct gf_nccl_tuning nothing = {0};
	struct gf_nccl_tuning eight = {.algorithm = "ring", .protocol = "ll", .channels = 8};
	struct gf_error err = {""};
	struct gf_text remark = {0};

	unsetenv("NCCL_PROTO");
	setenv("NCCL_ALGO", "Tree", 1);
	EXPECT(gf_nccl_tell(&tree, &err) == 0, "%s", err.text);
	EXPECT_TEXT(value_of("NCCL_ALGO"), "nvlstree");
	EXPECT_TEXT(value_of("NCCL_PROTO"), "simple");
	gf_nccl_untell(&tree);
	EXPECT_TEXT(value_of("NCCL_ALGO"), "Tree");
	EXPECT_TEXT(value_of("NCCL_PROTO"), "unset");
	EXPECT(gf_nccl_tell(&nothing, &err) == 0, "%s", err.text);
	EXPECT_TEXT(value_of("NCCL_ALGO"), "Tree");
	gf_nccl_untell(&nothing);
	EXPECT_TEXT(value_of("NCCL_ALGO"), "Tree");
	gf_nccl_remark(&remark);
	EXPECT(count(remark.data, "\n") == 1 && strstr(remark.data, "NCCL_ALGO=Tree "), "%s",
	       remark.data);
	/* a number that NCCL would heed instead */
	setenv("NCCL_MAX_CTAS", "4", 1);
	EXPECT(gf_nccl_tell(&eight, &err) == -EINVAL, "told");
	EXPECT(strstr(err.text, "want NCCL_MAX_CTAS unset") && strstr(err.text, "got 4"), "%s",
	       err.text);
	gf_nccl_untell(&eight);
	EXPECT_TEXT(value_of("NCCL_ALGO"), "Tree");
	unsetenv("NCCL_MAX_CTAS");
	unsetenv("NCCL_ALGO");
	gf_text_release(&remark);
}

int main(void)
{
	watchdog(240);
	test_names();
	test_environment();
	test_search();
	test_refused();
	return TEST_END();
}
