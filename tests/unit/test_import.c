/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "imports/importers.h"
#include "base/log_lines.h"
#include "test.h"
#include "words.h"

static const double tolerance = 1e-9;
/* nccl-tests prints hundredths of microseconds */
static const double printed_tolerance = 1e-3;

static struct gf_import file(const char *path, char **text)
{
	struct gf_import in = {
		.file = path,
		.forward_s = NAN,
		.backward_s = NAN,
	};
	struct gf_error err = {""};

	EXPECT(!gf_file_read(path, text, &in.size, &err), "%s", err.text);
	in.text = *text;
	return in;
}

static void test_csv(void)
{
	static const struct {
		const char *text;
		size_t rows, columns;
		const char *last, *want; /* last field, or the reason */
	} cases[] = {
		{"a,b\n1,2\n", 1, 2, "2", NULL},
		{"a,b\r\n1,2\r\n3,4", 2, 2, "4", NULL},
		{"\n\na\n\n1\n\n2\n", 2, 1, "2", NULL},
		{"a,b\n1,", 1, 2, "", NULL},
		{"a,b\n1,\"x,\"\"y\"\"\nz\"\n", 1, 2, "x,\"y\"\nz", NULL},
		{"a\n\"\"\n", 1, 1, "", NULL},
		{"", 0, 0, NULL, "t:1: want a row of column names, got none"},
		{"a,b\n1,2\n3\n", 0, 0, NULL, "t:3: want 2 fields, got 1"},
		{"a\n1\n\"2\n", 0, 0, NULL, "t:3: a quote is not closed, or a NUL byte"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_csv csv;
		struct gf_error err = {""};
		int rc = gf_csv_read(cases[i].text, strlen(cases[i].text), "t", &csv, &err);

		EXPECT(rc == (cases[i].want ? -EINVAL : 0), "case %zu: %s", i, err.text);
		if (rc < 0) {
			EXPECT_TEXT(err.text, cases[i].want);
			continue;
		}
		EXPECT(csv.nrows == cases[i].rows && csv.ncolumns == cases[i].columns,
		       "case %zu: %zu x %zu", i, csv.nrows, csv.ncolumns);
		EXPECT_TEXT(gf_csv_field(&csv, csv.nrows - 1, (int)csv.ncolumns - 1),
			    cases[i].last);
		gf_csv_release(&csv);
	}
	{
		struct gf_csv csv;

		EXPECT(gf_csv_read("a\n\0\n", 4, "t", &csv, NULL) == -EINVAL, "NUL");
	}
}

struct tensor {
	const char *name;
	size_t elems;
	double ready_s;
};

static void expect_tensors(const struct gf_model_profile *m, const struct tensor *want,
			   size_t count)
{
	size_t i;

	EXPECT(m->ntensors == count, "%s: %zu tensors", m->name, m->ntensors);
	for (i = 0; i < count && i < m->ntensors; i++) {
		EXPECT_TEXT(m->tensors[i].name, want[i].name);
		EXPECT(m->tensors[i].count_elems == want[i].elems, "%s: %zu", want[i].name,
		       m->tensors[i].count_elems);
		EXPECT_NEAR(m->tensors[i].ready_s, want[i].ready_s, tolerance, "%s", want[i].name);
	}
}

static void test_table(void)
{
	static const struct tensor want[] = {
		{"l6", 6, 1},  {"l5", 12, 4}, {"l4", 8, 6},
		{"l3", 10, 9}, {"l2", 6, 12}, {"l1, the last", 3, 17},
	};
	char *text;
	struct gf_import in = file("tests/data/import/six.csv", &text);
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	in.forward_s = 3;
	EXPECT(!gf_import_profile(&in, NULL, &p, &remarks, &err), "%s", err.text);
	expect_tensors(p.model, want, GF_ARRAY_LENGTH(want));
	EXPECT_TEXT(p.model->name, "six");
	EXPECT(p.model->tensors[5].dtype == GF_F16, "dtype");
	EXPECT(p.model->forward_s == 3 && p.model->backward_s == 17, "%g %g", p.model->forward_s,
	       p.model->backward_s);
	EXPECT(remarks.length == 0, "%s", remarks.data);
	EXPECT(strstr(p.measured, "\"found\": \"6 tensors\""), "%s", p.measured);
	gf_profile_release(&p);
	gf_text_release(&remarks);
	free(text);
}

static void test_nccl_tests(void)
{
	static const struct {
		const char *path;
		int told, ranks;
	} cases[] = {
		{"tests/data/import/nccl-tests.txt", 0, 4},
		{"tests/data/import/nccl-tests.txt", 16, 16},
		{"tests/data/import/nccl-tests.json", 8, 8},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *text;
		struct gf_import in = file(cases[i].path, &text);
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};
		const struct gf_allreduce_cost *a;

		in.ranks = cases[i].told;
		EXPECT(!gf_import_profile(&in, "auto", &p, &remarks, &err), "%s", err.text);
		a = &p.network->allreduce[0];
		EXPECT(p.network->ranks == cases[i].ranks, "%d", p.network->ranks);
		EXPECT_TEXT(a->algorithm, "library");
		EXPECT_NEAR(a->startup_s / 20e-6, 1, printed_tolerance, "startup");
		EXPECT_NEAR(a->per_byte_s / 1e-11, 1, printed_tolerance, "per byte");
		EXPECT(a->fit.npoints == 8 && a->fit.r_squared > 0.9999, "%zu points, %g",
		       a->fit.npoints, a->fit.r_squared);
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
	}
}

/* Three algorithms; rows of sets and of codecs do not count. */
static void test_allreduce(void)
{
	static const struct {
		const char *algorithm;
		double startup_s, per_byte_s;
		size_t nstages;
	} want[] = {
		{"ring", 20e-6, 1e-10, 0},
		{"rhd", 10e-6, 3e-10, 0},
		{"blueconnect", 30e-6, 5e-11, 2},
	};
	static const struct {
		const char *path, *left_out;
	} files[] = {
		{"tests/data/import/allreduce.json",
		 "rows of codecs, sparse sets, plans or several messages "
		 "(40, first in line 4)"},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(files); i++) {
		char *text, *line, *want_line;
		struct gf_import in = file(files[i].path, &text);
		struct gf_imported imported = {0};
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};

		in.imported = &imported;
		EXPECT(!gf_import_profile(&in, "auto", &p, &remarks, &err), "%s", err.text);
		EXPECT(p.network->ranks == 4, "%d", p.network->ranks);
		EXPECT(p.network->nallreduce == GF_ARRAY_LENGTH(want), "%zu",
		       p.network->nallreduce);
		for (k = 0; k < GF_ARRAY_LENGTH(want); k++) {
			const struct gf_allreduce_cost *a = &p.network->allreduce[k];

			EXPECT_TEXT(a->algorithm, want[k].algorithm);
			EXPECT_NEAR(a->startup_s / want[k].startup_s, 1, printed_tolerance, "%s",
				    a->algorithm);
			EXPECT_NEAR(a->per_byte_s / want[k].per_byte_s, 1, printed_tolerance, "%s",
				    a->algorithm);
			EXPECT(a->nlarger == 0 && a->fit.npoints == 8 &&
				       a->nstages == want[k].nstages,
			       "%s: %zu points, %zu stages", a->algorithm, a->fit.npoints,
			       a->nstages);
		}
		EXPECT(p.network->allreduce[2].stages[1].factor == 2, "factor");
		EXPECT_TEXT(p.network->allreduce[2].stages[0].algorithm, "halving");
		EXPECT_TEXT(p.network->allreduce[2].stages[1].algorithm, "ring");
		EXPECT(remarks.length == 0, "%s", remarks.data);
		line = gf_imported_line(&imported, files[i].path);
		want_line = gf_xasprintf("%s: gf-allreduce: 4 ranks, ring of 8 sizes, rhd of 8 "
					 "sizes, blueconnect of 8 sizes; left out: %s",
					 files[i].path, files[i].left_out);
		EXPECT_TEXT(line, want_line);
		EXPECT(strstr(p.measured, "\"left_out\""), "%s", p.measured);
		free(line);
		free(want_line);
		gf_imported_release(&imported);
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
	}
}

/* A row of gf-allreduce --table=json, as far as it counts. */
#define RECORD(ranks, size, chosen, wrong)                                                         \
	"{\"ranks\": " ranks ", \"size_bytes\": " size                                             \
	", \"dtype\": \"f32\", \"chosen\": \"" chosen                                              \
	"\", \"codec\": \"f32\", \"density\": 1, \"lanes\": 1, "                                   \
	"\"placement\": \"in_place\", \"time_s\": 7e-6, "                                          \
	"\"busbw_bytes_per_s\": 1, \"wrong\": " wrong "}\n"

/* --- logs ----------------------------------------------------------------- */

/* Each line is what stands behind the label. */
static void test_log(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"  8 1.5", "8 1.5"},
		{"[1,0]<stdout>:# a", "# a"},
		{"[prterun-n1-7@1,0]<stdout>: 8 1.5\r\n", "8 1.5"},
		{"[1,12]<stderr>:8 1.5", "8 1.5"},
		{"[1,0]<stdout>:  8[1,0]<stdout>: 1.5", "8  1.5"},
		{"[0] 8 1.5", "8 1.5"},
		{"[rank0]:8 1.5", "8 1.5"},
		{" 0: 8 1.5", "8 1.5"},
		{"n01-ib.cluster: 8 1.5", "8 1.5"},
		{"x1000c0s0b0n0 0: 8 1.5", "8 1.5"},
		{"[pod/job-0-x7/main] 8 1.5", "8 1.5"},
		{"pod/job-0-x7 8 1.5", "8 1.5"},
		{"(head, rank=0, pid=3808) [1,0]<stdout>:8 1.5", "8 1.5"},
		{"web-1  | 8 1.5", "8 1.5"},
		{"2026-11-26T06:00:00.123456789Z stdout F 8 1.5", "8 1.5"},
		{"[2026-11-26 06:00:00,123] 8 1.5", "8 1.5"},
		{"2026/11/26 06:00:00 [1,0]<stdout>: 8 1.5", "8 1.5"},
		{"\033[1;32m8\033[0m 1.5", "8 1.5"},
		{"\033]0;title\a8 1.5", "8 1.5"},
		{"> 8 1.5", "8 1.5"},
		{"10 %\r100 %\r8 1.5", "8 1.5"},
		{"a\tb\001c", "a b c"},
		{"n1:100:120 [0] NCCL INFO x", "n1:100:120 [0] NCCL INFO x"},
		{"-1.5 8", "-1.5 8"},
		{"[1,0", "[1,0"},
		{"\033[1;", ""},
		{"Nov  6 06:00:01 n1 job[77]: # a", "# a"},
		{"", NULL},
	};
	struct gf_log log = {
		.at = "Nov 26 06:00:07 n1 x\nNov 26 06 n1 # a\nNov 9 12 n23  8 1\nother 9 12 "
		      "n23\n\n# b\nNov 9 12 n23 8",
	};
	static const char *const learnt[] = {
		"Nov 26 06:00:07 n1 x", "# a", "8 1", "other 9 12 n23", "", "# b", "Nov 9 12 n23 8",
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_log one = {.at = cases[i].text};
		char *line = gf_log_next(&one);

		if (!cases[i].want)
			EXPECT(!line, "case %zu: %s", i, line);
		else
			EXPECT_TEXT(line, cases[i].want);
		gf_log_release(&one);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(learnt); i++) {
		EXPECT_TEXT(gf_log_next(&log), learnt[i]);
		EXPECT(log.line == i + 1, "line %zu", log.line);
	}
	EXPECT(!gf_log_next(&log), "the end");
	gf_log_release(&log);
}

/* Sixteen kinds, and one for the others. */
static void test_imported(void)
{
	struct gf_imported imported = {.kind = "k"};
	char *line;
	int i;

	for (i = 0; i < 20; i++) {
		char *what = gf_xasprintf("x%d", i);

		gf_imported_leave(&imported, what, (size_t)(99 - i));
		gf_imported_leave(&imported, "x3", 200);
		free(what);
	}
	line = gf_imported_line(&imported, "f");
	EXPECT_TEXT(
		line,
		"f: k: nothing; left out: x0 (1, first in line 99), x3 (21, first in line 96), x1 "
		"(1, first in line 98), x2 (1, first in line 97), x4 (1, first in line 95), x5 (1, "
		"first in line 94), x6 (1, first in line 93), x7 (1, first in line 92), x8 (1, "
		"first in line 91), x9 (1, first in line 90), x10 (1, first in line 89), x11 (1, "
		"first in line 88), x12 (1, first in line 87), x13 (1, first in line 86), x14 (1, "
		"first in line 85), x15 (1, first in line 84), further ones (4, first in line 80)");
	free(line);
	gf_imported_release(&imported);
}

/* What a file gives: how many ranks and points, the summary, the remarks. */
struct outcome {
	const char *text; /* or a path, if it begins with "tests/" */
	int told, ranks;
	size_t points;
	const char *line, *remark; /* parts; NULL: any, and none */
};

static void expect_outcome(const struct outcome *want)
{
	char *text = NULL, *line;
	struct gf_import in = {
		.file = "f",
		.text = want->text,
		.size = strlen(want->text),
		.forward_s = NAN,
		.backward_s = NAN,
	};
	struct gf_imported imported = {0};
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	if (strncmp(want->text, "tests/", 6) == 0)
		in = file(want->text, &text);
	in.ranks = want->told;
	in.imported = &imported;
	EXPECT(!gf_import_profile(&in, NULL, &p, &remarks, &err), "%.40s: %s", want->text,
	       err.text);
	if (!p.network)
		return;
	line = gf_imported_line(&imported, in.file);
	EXPECT(p.network->ranks == want->ranks, "%.40s: %d ranks", want->text, p.network->ranks);
	EXPECT(p.network->nallreduce == 1 && p.network->allreduce[0].fit.npoints == want->points,
	       "%.40s: %zu points", want->text, p.network->allreduce[0].fit.npoints);
	EXPECT(!want->line || strstr(line, want->line), "%s", line);
	EXPECT(want->remark ? remarks.data && strstr(remarks.data, want->remark)
			    : remarks.length == 0,
	       "%s: %s", line, remarks.data);
	free(line);
	free(text);
	gf_imported_release(&imported);
	gf_profile_release(&p);
	gf_text_release(&remarks);
}

#define HEADING                                                                                    \
	"#       size         count      type   redop    root     time   "                         \
	"algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
/* 2(n-1)/n is 1, 1.5, 1.97 */
#define OF_2                                                                                       \
	"1048576 262144 float sum -1 80.00 13.11 13.11 0 80.00 13.11 13.11 "                       \
	"0\n"                                                                                      \
	"4194304 1048576 float sum -1 140.0 29.96 29.96 0 140.0 29.96 29.96 "                      \
	"0\n"
#define OF_4                                                                                       \
	"1048576 262144 float sum -1 80.00 13.11 19.66 0 80.00 13.11 19.66 "                       \
	"0\n"                                                                                      \
	"4194304 1048576 float sum -1 140.0 29.96 44.94 0 140.0 29.96 44.94 "                      \
	"0\n"
#define OF_72                                                                                      \
	"1048576 262144 float sum -1 80.00 13.11 25.85 0 80.00 13.11 25.85 "                       \
	"0\n"                                                                                      \
	"16777216 4194304 float sum -1 380.0 44.15 87.07 0 380.0 44.15 87.07 "                     \
	"0\n"

static void test_nccl_logs(void)
{
	static const struct outcome cases[] = {
		/* a log of eunomia-bpf/nccl-eBPF, mpirun --tag-output */
		{"tests/data/import/nccl-tests-tagged.log", 0, 2, 8,
		 "nccl-tests 2.18.0: 2 ranks, library of 8 sizes; left out: lines that are no rows "
		 "(3, first in line 1)",
		 NULL},
		/* ranks: the rows', and what agrees with them */
		{"# Rank 0 Group 0 Pid 1\n# Rank 1 Group 0 Pid 2\n" OF_2, 0, 2, 2, NULL, NULL},
		{OF_4, 0, 4, 2, NULL, NULL},
		{"# Rank 71 Group 0 Pid 1\n" OF_72, 0, 72, 2, NULL,
		 "72 ranks are taken, as busbw/algbw says, though the "
		 "list of ranks has 1"},
		{"# Rank 0 Group 0 Pid 1\n# Rank 1 Group 1 Pid 1\n"
		 "# Rank 2 Group 0 Pid 1\n# Rank 3 Group 1 Pid 1\n" OF_2,
		 0, 2, 2, NULL, NULL},
		{OF_4, 16, 16, 2, NULL,
		 "--ranks 16 is taken, though busbw/algbw is that of 4 ranks"},
		/* two runs, and other collectives beside one */
		{HEADING OF_2 HEADING OF_4, 0, 2, 2,
		 "further tables of an all-reduce (1, first in line 4)", NULL},
		{"# Collective test starting: alltoall_perf\n"
		 "1 1 float none -1 1 1 1 0 1 1 1 0\n"
		 "# Collective test starting: all_reduce_perf\n" OF_2,
		 0, 2, 2, "tables of a run of alltoall_perf (1, first in line 1)", NULL},
		/* results that are wrong */
		{HEADING OF_4 "16777216 4 float sum -1 380 44.15 66.23 7 380 44.15 66.23 N/A\n", 0,
		 4, 3, NULL, "wrong in 1 of its rows, first in line 4"},
		{OF_4 "# Out of bounds values : 7 FAILED\n", 0, 4, 2, NULL,
		 "7 values are out of bounds"},
		/* rows within a log */
		{"NCCL version 2.29.7\n" HEADING "n1:1:2 [0] NCCL INFO Connected\n" OF_2
		 "8388608 2097152 float sum -1 n1:1:3 [0] NCCL INFO Channel\n"
		 " 140.00 29.96 29.96 0 140.00 29.96 29.96 0\n"
		 "16777216 4194304 float sum -1 380.0 44.15 44.15 0 380.0 44.15 44.15 0n1:1:2 [0] "
		 "NCCL INFO x\n"
		 "33554432 8388608 float sum -1 760.0 44.15 44.15 0 760.0 44.15 44.15 0 n1:1:2 [0] "
		 "NCCL INFO x\n",
		 0, 2, 3,
		 "lines that are no rows (3, first in line 1), broken rows (2, first in line 6)",
		 NULL},
		/* 5 digits of the size are in the line above */
		{HEADING OF_2 "16384 4 float sum -1 80.00 13.11 13.11 0 80.00 13.11 13.11 0\n", 0,
		 2, 2, "broken rows (1, first in line 4)", NULL},
		/* no column for the root; -I; in place alone; time stamps; web pages take "#"
		 * away */
		{"# size count type redop time algbw busbw error time algbw busbw error\n"
		 "1048576 262144 float sum 80.00 13.11 13.11 0e+00 80.00 13.11 13.11 0e+00\n"
		 "4194304 1 float sum 140 29.96 29.96 N/A 140 29.96 29.96 N/A\n",
		 0, 2, 2, NULL, NULL},
		{"# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% "
		 "time algbw busbw #wrong i_min i_max i_p99 i_cv%\n"
		 "1048576 1 float sum -1 80 13.11 13.11 0 1 2 3 4 80 13.11 13.11 0 1 2 3 4\n"
		 "4194304 1 float sum -1 140 29.96 29.96 0 1 2 3 4 140 29.96 29.96 0 1 2 3 4\n",
		 0, 2, 2, NULL, NULL},
		{"# size count type redop root time algbw busbw #wrong\n"
		 "1048576 1 float sum -1 80 13.11 13.11 0\n"
		 "4194304 1 float sum -1 140 29.96 29.96 0\n",
		 0, 2, 2, NULL, NULL},
		{"size count type redop root time algbw busbw #wrong time algbw busbw #wrong "
		 "timestamp\n"
		 "Rank 0 Group 0 Pid 1 on n1\nRank 1 Group 0 Pid 1 on n1\n"
		 "1048576 1 float sum -1 80 13.11 13.11 0 80 13.11 13.11 0 2026-11-26 06:00:00\n"
		 "4194304 1 float sum -1 140 29.96 29.96 0 140 29.96 29.96 0 2026-11-26 06:00:01\n",
		 0, 2, 2, NULL, NULL},
		{OF_2 "4194304 1 half sum -1 99 42.37 42.37 0 99 42.37 42.37 0\n", 0, 2, 2,
		 "rows of another type or redop (1, first in line 3)", NULL},
		/* -J: a process has its threads' ranks */
		{"{\"version\": 3, \"args\": [\"b/all_reduce_perf\"], \"config\": {\"nthreads\": "
		 "1, \"ngpus\": 2, \"devices\": [{\"rank\": 0, \"group\": 0}, {\"rank\": 2, "
		 "\"group\": 0}]}, \"results\": [{\"size\": 8, \"redop\": \"sum\", \"root\": \"    "
		 "-1\", \"out_of_place\": null, \"in_place\": {\"time\": 2, \"alg_bw\": \"nan\", "
		 "\"bus_bw\": 0, \"nwrong\": 1}}, {\"size\": 16, \"redop\": \"sum\", \"in_place\": "
		 "{\"time\": 3, \"nwrong\": null}}, {\"size\": 16, \"redop\": \"max\", "
		 "\"in_place\": {\"time\": 3}}]}",
		 0, 4, 2,
		 "left out: rows of another type or redop (1, first in "
		 "result 3)",
		 "wrong in 1 of its rows, first in result 1"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		expect_outcome(&cases[i]);
}

static void test_other_tools(void)
{
	static const struct outcome cases[] = {
		/* a log of converged-computing/metrics-operator */
		{"tests/data/import/osu.log", 0, 2, 19,
		 "osu 5.8: 2 ranks, library of 19 sizes; left out: lines that are no rows (4, "
		 "first in line 1), tables of a run of MPI_Fetch_and_op latency Test v5.8 (1, "
		 "first in line 2), tables of a run of MPI Latency Test v5.8 (1, first in line 33)",
		 NULL},
		{"[1,0]<stdout>:# OSU MPI-CUDA Allreduce Latency Test v7.5\n"
		 "[1,0]<stdout>:# Datatype: MPI_FLOAT.\n"
		 "[1,0]<stdout>:# Size Avg Latency(us) Validation\n"
		 "[1,0]<stdout>:4 1.5 Pass\n[1,0]<stdout>:8 1.6 Fail\n"
		 "[1,0]<stdout>:16\n",
		 4, 4, 2,
		 "osu 7.5: 4 ranks, library of 2 sizes; left out: "
		 "broken rows (1, first in line 6)",
		 "wrong in 1 of its rows, first in line 5"},
		/* another test that ends as an all-reduce does */
		{"# OSU MPI Non-blocking Allreduce Latency Test v7.5\n"
		 "# Size Overall(us) Compute(us)\n4 9.5 5.5\n8 9.5 5.5\n"
		 "$ mpirun -np 2 ./osu_allreduce -f\n"
		 "# OSU MPI Allreduce Latency Test v7.5\n"
		 "# Size   Avg Latency(us)   Min Latency(us)\n"
		 "4 1.5 1.25\n8 1.6 1.25\n",
		 0, 2, 2,
		 "tables of a run of MPI Non-blocking Allreduce Latency Test v7.5 (1, first in "
		 "line 1)",
		 NULL},
		/* IMB-MPI1 2021.11 under Open MPI 4.1, of 2 and of 4 ranks */
		{"tests/data/import/imb.txt", 0, 4, 19,
		 "imb: 4 ranks, library of 19 sizes; left out: further tables of an all-reduce (1, "
		 "first in line 31)",
		 NULL},
		{"tests/data/import/imb.txt", 2, 2, 19,
		 "further tables of an all-reduce (1, first in line 58)", NULL},
		/* as examples/benchmark of oneCCL 2021.14 prints it */
		{"#----\n# Benchmarking: allreduce \n# #processes: 2\n#----\n\n"
		 "#bytes #elem_count #repetitions t_min[usec] t_max[usec] t_avg[usec] stddev[%]\n"
		 "4 1 16 10.1 10.4 10.2 0.5\n4096 1024 16 20.1 20.4 20.2 0.5\n"
		 "# All done\n",
		 0, 2, 2, "imb: 2 ranks, library of 2 sizes", NULL},
		{"0: # Benchmarking Bcast\n0: # #processes = 2\n"
		 "0: #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
		 "0: 4 9 1 2 1\n"
		 "0: # Benchmarking Allreduce\n0: # #processes = 2\n"
		 "0: #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
		 "0: 4 9 1 2 1\n0: 8 9 1 3 1\n0: 16 9\n",
		 0, 2, 2,
		 "left out: broken rows (1, first in line 10), tables of a run of Bcast (1, first "
		 "in line 1)",
		 NULL},
		/* ml-engineering's network/README.md, of 8 H200 */
		{"tests/data/import/all-reduce-bench.md", 0, 8, 20,
		 "all_reduce_bench: 8 ranks, library of 20 sizes; left out: lines that are no rows "
		 "(3, first in line 1)",
		 NULL},
		{"The average bandwidth of all_reduce over 32 ranks (5 warmups / 20 trials):\n\n| "
		 "payload |    busbw   |    algbw   |\n"
		 "| ------: | ---------: | ---------: |\n"
		 "|    32KB |   0.02GBps |   0.01GBps |\n"
		 "|     1MB |   9.68GBps |   5.00GBps |\n"
		 "|     4MB |  19.37GBps |  10.00GBps |\n",
		 0, 32, 2, "left out: rows whose bandwidth has too few digits (1, first in line 5)",
		 NULL},
		/* test/deploy/perf_ndmv4.jsonl of microsoft/mscclpp */
		{"tests/data/import/mscclpp.jsonl", 0, 8, 8,
		 "mscclpp: 8 ranks, library of 8 sizes; left out: records of other collectives (5, "
		 "first in line 1), all-reduces of other numbers of ranks (5, first in line 6)",
		 NULL},
		/* as inspector_json.cc of NCCL's format 4.4 writes it, of two ranks, one of which
		 * waits for the other */
		{"tests/data/import/inspector.jsonl", 0, 2, 7,
		 "inspector v4.4: 21 all-reduces, 6 by RING LL, 15 by RING SIMPLE, 2 ranks, "
		 "library of 7 sizes; left out: dumps before which the Inspector had lost "
		 "collectives (2, first in line 1), other collectives (2, first in line 23)",
		 NULL},
		/* format 4.2, cut off; a smaller communicator */
		{"{\"header\": {\"id\": \"0x1\", \"n_ranks\": 8}, \"coll_perf\": {\"coll\": "
		 "\"AllReduce\", \"coll_sn\": 1, \"coll_msg_size_bytes\": 8, "
		 "\"coll_exec_time_us\": 5}}\n"
		 "{\"header\": {\"id\": \"0x1\", \"n_ranks\": 8}, \"coll_perf\": {\"coll\": "
		 "\"AllReduce\", \"coll_sn\": 2, \"coll_msg_size_bytes\": 16, "
		 "\"coll_exec_time_us\": 6}}\n"
		 "{\"header\": {\"id\": \"0x2\", \"n_ranks\": 2}, \"coll_perf\": {\"coll\": "
		 "\"AllReduce\", \"coll_sn\": 1, \"coll_msg_size_bytes\": 32, "
		 "\"coll_exec_time_us\": 6}}\n"
		 "{\"header\": {\"id\": \"0x1\", \"n_ra",
		 0, 8, 2,
		 "left out: broken records (1, first in line 4), all-reduces of fewer or more "
		 "ranks (1, first in line 3)",
		 "it has the records of 1 of 8 ranks"},
		/* our own, labelled and with other lines between */
		{"[1,0]<stdout>:" RECORD("2", "1024", "ring",
					 "0") "n1:1:2 [0] NCCL INFO\n"
					      "[1,0]<stdout>:" RECORD(
						      "2", "2048", "ring",
						      "3") "[1,0]<stdout>:{\"ranks\": 2, \"si",
		 0, 2, 2,
		 "left out: lines that are no records (1, first in line 2), broken records (1, "
		 "first in line 4)",
		 "wrong in 1 of its rows, first in line 3"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		expect_outcome(&cases[i]);
}

static void test_refused(void)
{
	static const char head[] = "name,count_elems,dtype,ready_s\n";
	static const struct {
		const char *format, *before, *text, *want;
	} cases[] = {
		{NULL, "", "lorem ipsum",
		 "f: want the format of one of IMPORTERS (man gf-profile), found none of them"},
		{"abacus", "", "", "want FORMATS, got \"abacus\""},
		{"csv", "", "name,ready_s\na,1\n", "f:1: want a column count_elems, got none"},
		{"csv", head, "", "f: want tensors, got none"},
		{"csv", head, "a,0,f32,1\n",
		 "f:2: count_elems: want an integer from 1 to 1152921504606846975, got \"0\""},
		{"csv", head, "a,1,f32,1\nb,1,f31,2\n",
		 "f:3: dtype: want f32, f64, f16, bf16 or i32, got \"f31\""},
		{"csv", head, "a,1,f32,2\nb,1,f32,1\n",
		 "f:3: ready_s: want no less than the row above, 2, got 1"},
		{"csv", head, "a,1,f32,nan\n", NULL},
		{"csv", head, "a,9223372036854775807,f32,1\n", NULL},
		{"nccl-tests", "", "1024 256 float sum 1\n",
		 "f: nccl-tests: nothing; left out: broken rows (1, first in line 1): want the "
		 "table of an all-reduce, got no whole row"},
		{"nccl-tests", "", "1024 256 float none -1 1 1 1 0 1 1 1 0\n",
		 "f: want the table of an all-reduce, got a collective that reduces nothing"},
		{"nccl-tests", "", "1024 256 float sum 0 1 1 1 0 1 1 1 0\n",
		 "f: want the table of an all-reduce, got a collective with a root, as reduce or "
		 "broadcast"},
		{"nccl-tests", "", "1048576 9 float sum -1 80 13.11 9.83 0 80 13.11 9.83 0\n",
		 "f: nccl-tests: 4 ranks; left out: algorithms of one size, or of sizes within a "
		 "factor of two, as library (1): want dense messages by one algorithm of two sizes "
		 "or more, the largest at least twice the smallest"},
		{"nccl-tests", "# Collective test starting: all_gather_perf_mpi\n",
		 "1048576 9 float none -1 80 13.11 9.83 0 80 13.11 9.83 0\n",
		 "f: nccl-tests: 4 ranks; left out: algorithms of one size, or of sizes within a "
		 "factor of two, as library (1): want dense messages by one algorithm of two sizes "
		 "or more, the largest at least twice the smallest"},
		{"nccl-tests", "# Collective test starting: alltoall_perf\n",
		 "1048576 9 float none -1 80 13.11 9.83 0 80 13.11 9.83 0\n",
		 "f: want the table of an all-reduce, got a run of alltoall_perf"},
		{"osu", "# OSU MPI Allgatherv Latency Test v7.5\n", "1024 1.5\n2048 2.5\n",
		 "f: want the table of an all-reduce, got a run of MPI Allgatherv Latency Test "
		 "v7.5"},
		{"nccl-tests", "# Collective test starting: reduce_perf\n",
		 "1024 256 float sum -1 1 1 1 0 1 1 1 0\n",
		 "f: want the table of an all-reduce, got a run of "
		 "reduce_perf"},
		{"nccl-tests", OF_2, OF_4,
		 "f: want the table of an all-reduce, got rows of several runs: busbw/algbw "
		 "changes at line 3"},
		{"nccl-tests", "", "1048576 9 float sum -1 80 13.11 0.00 0 80 13.11 0.00 0\n",
		 "f: want the table of an all-reduce, got a run of one rank"},
		{"nccl-tests", "", "1048576 9 float sum -1 80 13.11 25.85 0 80 13.11 25.85 0\n",
		 "f: busbw/algbw allows 69 to 73 ranks, and nothing else says how many: want "
		 "--ranks"},
		{"nccl-tests", "", "1024 256 float sum -1 1 1 1 0 1 1 1 0\n",
		 "f: nccl-tests: it does not say how many ranks there were: want --ranks"},
		{"nccl-tests", "#  Rank 0 on node\n#  Rank 1 on node\n",
		 "1024 256 float sum -1 1 1 1 0 1 1 1 0\n",
		 "f: nccl-tests: 2 ranks; left out: algorithms of one size, or of sizes within a "
		 "factor of two, as library (1): want dense messages by one algorithm of two sizes "
		 "or more, the largest at least twice the smallest"},
		{"nccl-tests", "#  Rank 0 on node\n#  Rank 1 on node\n",
		 "1073741824 268435456 float sum -1 4539.85 236.51 236.51 0 4539.85 236.51 236.51 "
		 "0\n"
		 "1074790400 268697600 float sum -1 4542.38 236.61 236.61 0 4542.38 236.61 236.61 "
		 "0\n",
		 "f: nccl-tests: 2 ranks; left out: algorithms of one size, or of sizes within a "
		 "factor of two, as library (1): want dense messages by one algorithm of two sizes "
		 "or more, the largest at least twice the smallest"},
		{"nccl-tests", "", "{\"results\": 7}", NULL},
		{NULL, "# 2 ranks, of\n# size algorithm time algbw\n", "1024 ring x 7\n",
		 "f: this is a table or CSV of gf-allreduce: give what gf-allreduce --table=json "
		 "prints"},
		{NULL, RECORD("2", "1", "ring", "0"), RECORD("3", "2", "ring", "0"),
		 "f:2: want one number of ranks, got 2 and 3"},
		{NULL, RECORD("4", "1", "bc\", \"factors\": \"2x", "0"),
		 RECORD("4", "2", "bc\", \"factors\": \"2x", "0"),
		 "f: bc: want factors as 2x4, got 2x"},
		{NULL, "# OSU MPI Bcast Latency Test v7.5\n", "4 1\n",
		 "f: want the table of an all-reduce, got a run of MPI Bcast Latency Test v7.5"},
		{NULL, "",
		 "{\"coll_perf\": {\"coll\": \"AllReduce\", \"coll_msg_size_bytes\": 8, "
		 "\"coll_exec_time_us\": 5}}",
		 "f:1: /coll_perf: want a header with n_ranks before it"},
		{"gf-allreduce", "{\"ranks\": 2, \"placement\": \"in_place\"}",
		 "\n{\"busbw_bytes_per_s\": 1}", NULL},
		{"kineto", "", "{\"traceEvents\": []}",
		 "f: want events named AccumulateGrad, got none"},
		{"kineto", "", "{\"traceEvents\": [7]}", NULL},
		{"kineto", "", "{\"traceEvents\": [", NULL},
		{"kineto", "",
		 "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
		 "\"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad\", "
		 "\"ts\": 1, \"dur\": 1, \"tid\": 1}]}",
		 "f: the trace holds no shapes: want record_shapes=True, or --imported "
		 "params=FILE"},
		{"kineto", "",
		 "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"n\", \"ts\": "
		 "\"soon\", \"dur\": 1}]}",
		 NULL},
	};
	const struct test_word words[] = {
		{"IMPORTERS", test_names(&(struct gf_registry){gf_importers, 0, NULL}, ", ")},
		{"FORMATS",
		 test_names(&(struct gf_registry){gf_importers, 0, gf_import_profiles}, " or ")},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text text = {0}, remarks = {0};
		struct gf_import in = {
			.file = "f",
			.forward_s = NAN,
			.backward_s = NAN,
		};
		struct gf_profile p = {0};
		struct gf_error err = {""};

		gf_text_addf(&text, "%s%s", cases[i].before, cases[i].text);
		in.text = text.data;
		in.size = text.length;
		EXPECT(gf_import_profile(&in, cases[i].format, &p, &remarks, &err) == -EINVAL,
		       "case %zu", i);
		if (cases[i].want) {
			char *want = test_filled(cases[i].want, words, GF_ARRAY_LENGTH(words));

			EXPECT_TEXT(err.text, want);
			free(want);
		} else {
			EXPECT(strncmp(err.text, "f", 1) == 0, "case %zu: %s", i, err.text);
		}
		EXPECT(!p.model && !p.network, "output touched");
		gf_text_release(&text);
		gf_text_release(&remarks);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(words); i++)
		free(words[i].value);
}

static void test_names_refused(void)
{
	char *text;
	struct gf_import in = file("tests/data/import/kineto-cpu.json", &text);
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	in.parameters = "name,count_elems\na,2\nb,16\nc,8\n";
	EXPECT(gf_import_profile(&in, NULL, &p, &remarks, &err) == -EINVAL, "too few parameters");
	EXPECT_TEXT(err.text,
		    "--imported: params: no parameter is left for gradient 3, of 32 elements");
	gf_text_release(&remarks);
	free(text);
}

int main(void)
{
	test_csv();
	test_table();
	test_nccl_tests();
	test_allreduce();
	test_log();
	test_imported();
	test_nccl_logs();
	test_other_tools();
	test_refused();
	test_names_refused();
	return TEST_END();
}
