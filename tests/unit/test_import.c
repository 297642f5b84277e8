/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "import/csv.h"
#include "import/import.h"
#include "test.h"

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
		{"a\n1\n\"2\n", 0, 0, NULL,
		 "t:3: a quote is not closed, or a NUL byte"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_csv csv;
		struct gf_error err = {""};
		int rc = gf_csv_read(cases[i].text, strlen(cases[i].text), "t",
				     &csv, &err);

		EXPECT(rc == (cases[i].want ? -EINVAL : 0), "case %zu: %s", i,
		       err.text);
		if (rc < 0) {
			EXPECT_TEXT(err.text, cases[i].want);
			continue;
		}
		EXPECT(csv.nrows == cases[i].rows &&
			       csv.ncolumns == cases[i].columns,
		       "case %zu: %zu x %zu", i, csv.nrows, csv.ncolumns);
		EXPECT_TEXT(gf_csv_field(&csv, csv.nrows - 1,
					 (int)csv.ncolumns - 1),
			    cases[i].last);
		gf_csv_release(&csv);
	}
	{
		struct gf_csv csv;

		EXPECT(gf_csv_read("a\n\0\n", 4, "t", &csv, NULL) == -EINVAL,
		       "NUL");
	}
}

struct tensor {
	const char *name;
	size_t elems;
	double ready_s;
};

static void expect_tensors(const struct gf_model_profile *m,
			   const struct tensor *want, size_t count)
{
	size_t i;

	EXPECT(m->ntensors == count, "%s: %zu tensors", m->name, m->ntensors);
	for (i = 0; i < count && i < m->ntensors; i++) {
		EXPECT_TEXT(m->tensors[i].name, want[i].name);
		EXPECT(m->tensors[i].count_elems == want[i].elems, "%s: %zu",
		       want[i].name, m->tensors[i].count_elems);
		EXPECT_NEAR(m->tensors[i].ready_s, want[i].ready_s, tolerance,
			    "%s", want[i].name);
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
	EXPECT(!gf_import_profile(&in, NULL, &p, &remarks, &err), "%s",
	       err.text);
	expect_tensors(p.model, want, GF_ARRAY_LENGTH(want));
	EXPECT_TEXT(p.model->name, "six");
	EXPECT(p.model->tensors[5].dtype == GF_F16, "dtype");
	EXPECT(p.model->forward_s == 3 && p.model->backward_s == 17, "%g %g",
	       p.model->forward_s, p.model->backward_s);
	EXPECT(remarks.length == 0, "%s", remarks.data);
	gf_profile_release(&p);
	gf_text_release(&remarks);
	free(text);
}

static void test_kineto(void)
{
	/* medians of three whole passes whose gradients are 0, 10, 2 us late */
	static const struct tensor cpu[] = {
		{"fc2.bias", 2, 162e-6},
		{"fc2.weight", 16, 182e-6},
		{"fc1.bias", 8, 332e-6},
		{"fc1.weight", 32, 352e-6},
	};
	/* the kernels start 100, 120, 140, 160 us later and last 30 us */
	static const struct tensor gpu[] = {
		{"gradient0", 2, 292e-6},
		{"gradient1", 16, 332e-6},
		{"gradient2", 8, 502e-6},
		{"gradient3", 32, 542e-6},
	};
	static const struct {
		const char *path, *device;
		int named;
		const struct tensor *want;
		double backward_s;
	} cases[] = {
		{"tests/data/import/kineto-cpu.json", "cpu", 1, cpu, 352e-6},
		{"tests/data/import/kineto-gpu.json", "cuda", 0, gpu, 542e-6},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *text, *names;
		struct gf_import in = file(cases[i].path, &text);
		struct gf_import params =
			file("tests/data/import/params.csv", &names);
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};

		in.parameters = cases[i].named ? params.text : NULL;
		EXPECT(!gf_import_profile(&in, NULL, &p, &remarks, &err), "%s",
		       err.text);
		expect_tensors(p.model, cases[i].want, 4);
		EXPECT_TEXT(p.model->device, cases[i].device);
		EXPECT_NEAR(p.model->forward_s, 200e-6, tolerance, "forward");
		EXPECT_NEAR(p.model->backward_s, cases[i].backward_s, tolerance,
			    "backward");
		EXPECT_NEAR(p.model->update_s, 50e-6, tolerance, "update");
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
		free(names);
	}
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
		EXPECT(!gf_import_profile(&in, "auto", &p, &remarks, &err),
		       "%s", err.text);
		a = &p.network->allreduce[0];
		EXPECT(p.network->ranks == cases[i].ranks, "%d",
		       p.network->ranks);
		EXPECT_TEXT(a->algorithm, "library");
		EXPECT_NEAR(a->startup_s / 20e-6, 1, printed_tolerance,
			    "startup");
		EXPECT_NEAR(a->per_byte_s / 1e-11, 1, printed_tolerance,
			    "per byte");
		EXPECT(a->fit.npoints == 8 && a->fit.r_squared > 0.9999,
		       "%zu points, %g", a->fit.npoints, a->fit.r_squared);
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
	}
}

/* Three algorithms in each form; rows of sets and of codecs do not count. */
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
		const char *path;
		size_t left_out;
	} files[] = {
		{"tests/data/import/allreduce.txt", 8},
		{"tests/data/import/allreduce.json", 40},
		{"tests/data/import/allreduce.csv", 40},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(files); i++) {
		char *text, *remark;
		struct gf_import in = file(files[i].path, &text);
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};

		EXPECT(!gf_import_profile(&in, "auto", &p, &remarks, &err),
		       "%s", err.text);
		EXPECT(p.network->ranks == 4, "%d", p.network->ranks);
		EXPECT(p.network->nallreduce == GF_ARRAY_LENGTH(want), "%zu",
		       p.network->nallreduce);
		for (k = 0; k < GF_ARRAY_LENGTH(want); k++) {
			const struct gf_allreduce_cost *a =
				&p.network->allreduce[k];

			EXPECT_TEXT(a->algorithm, want[k].algorithm);
			EXPECT_NEAR(a->startup_s / want[k].startup_s, 1,
				    printed_tolerance, "%s", a->algorithm);
			EXPECT_NEAR(a->per_byte_s / want[k].per_byte_s, 1,
				    printed_tolerance, "%s", a->algorithm);
			EXPECT(a->nlarger == 0 && a->fit.npoints == 8 &&
				       a->nstages == want[k].nstages,
			       "%s: %zu points, %zu stages", a->algorithm,
			       a->fit.npoints, a->nstages);
		}
		EXPECT(p.network->allreduce[2].stages[1].factor == 2, "factor");
		EXPECT_TEXT(p.network->allreduce[2].stages[0].algorithm,
			    "halving");
		EXPECT_TEXT(p.network->allreduce[2].stages[1].algorithm,
			    "ring");
		remark = gf_xasprintf("%s: %zu rows are left out: they are no "
				      "times of one dense message, or of other "
				      "factors\n",
				      files[i].path, files[i].left_out);
		EXPECT_TEXT(remarks.data, remark);
		free(remark);
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
	}
}

static void test_refused(void)
{
	static const char head[] = "name,count_elems,dtype,ready_s\n";
	static const struct {
		const char *format, *before, *text, *want;
	} cases[] = {
		{NULL, "", "lorem ipsum",
		 "f: want one of csv (name,count_elems,dtype,ready_s per "
		 "tensor), gf-allreduce (the table, JSON or CSV of "
		 "gf-allreduce), nccl-tests (all_reduce_perf's table or its "
		 "JSON (-J)), kineto (a trace of PyTorch's profiler), found "
		 "none of them"},
		{"abacus", "", "",
		 "--format: want csv, gf-allreduce, nccl-tests or kineto, got "
		 "\"abacus\""},
		{"csv", "", "name,ready_s\na,1\n",
		 "f:1: want a column count_elems, got none"},
		{"csv", head, "", "f: want tensors, got none"},
		{"csv", head, "a,0,f32,1\n",
		 "f:2: count_elems: want an integer from 1 to "
		 "1152921504606846975, got \"0\""},
		{"csv", head, "a,1,f32,1\nb,1,f31,2\n",
		 "f:3: dtype: want f32, f64, f16, bf16 or i32, got \"f31\""},
		{"csv", head, "a,1,f32,2\nb,1,f32,1\n",
		 "f:3: ready_s: want no less than the row above, 2, got 1"},
		{"csv", head, "a,1,f32,nan\n", NULL},
		{"csv", head, "a,9223372036854775807,f32,1\n", NULL},
		{"nccl-tests", "", "1024 256 float sum 1\n",
		 "f:1: want 12 or 13 columns, got 5"},
		{"nccl-tests", "", "1024 256 float none -1 1 1 1 0 1 1 1 0\n",
		 "f:1: want the table of an all-reduce, got a collective that "
		 "reduces nothing"},
		{"nccl-tests", "", "1024 256 float sum -1 1 1 1 0 x 1 1 0\n",
		 "f:1: want a time in us, got \"x\""},
		{"nccl-tests", "", "1024 256 float sum -1 1 1 1 0 1 1 1 0\n",
		 "f: it does not say how many ranks there were: want --ranks"},
		{"nccl-tests", "#  Rank 0 on node\n",
		 "1024 256 float sum -1 1 1 1 0 1 1 1 0\n",
		 "f: fit: want at least 2 distinct sizes, got 1 points of one "
		 "size"},
		{"nccl-tests", "", "{\"results\": 7}", NULL},
		{NULL, "# 2 ranks, of\n# size algorithm time algbw\n",
		 "1024 ring 7\n", "f:3: want 4 columns, got 3"},
		{NULL, "# 2 ranks, of\n# size algorithm time algbw\n",
		 "1024 ring x 7\n",
		 "f:3: want a number from 0 to 1e+15, got "
		 "\"x\""},
		{NULL, "# 2 ranks, of\n# size algorithm time algbw\n",
		 "1024 ring 9 7\n",
		 "f: want two sizes of one dense message by an algorithm, got "
		 "none"},
		{NULL, "# size algorithm time algbw\n",
		 "1 ring 9 7\n2 ring 10 7\n",
		 "f: it does not say how many ranks there were: want --ranks"},
		{NULL, "# 2 ranks, of\n# size algorithm time algbw\n",
		 "1 ring 9 7\n# 3 ranks, of\n2 ring 10 7\n",
		 "f:5: want one number of ranks, got 2 and 3"},
		{NULL, "# 4 ranks, of\n# size algorithm time algbw\n",
		 "1 bc:2x:ring 9 7\n2 bc:2x:ring 10 7\n",
		 "f: bc: want factors as 2x4, got 2x:ring"},
		{"gf-allreduce", "{\"ranks\": 2, \"placement\": \"in_place\"}",
		 "\n{\"busbw_bytes_per_s\": 1}", NULL},
		{NULL, "ranks,busbw_bytes_per_s\n", "x,1\n", NULL},
		{"kineto", "", "{\"traceEvents\": []}",
		 "f: want events named AccumulateGrad, got none"},
		{"kineto", "", "{\"traceEvents\": [7]}", NULL},
		{"kineto", "", "{\"traceEvents\": [", NULL},
		{"kineto", "",
		 "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", "
		 "\"name\": \"autograd::engine::evaluate_function: "
		 "torch::autograd::AccumulateGrad\", \"ts\": 1, \"dur\": 1, "
		 "\"tid\": 1}]}",
		 "f: the trace holds no shapes: want record_shapes=True, or "
		 "--params"},
		{"kineto", "",
		 "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", "
		 "\"name\": \"n\", \"ts\": \"soon\", \"dur\": 1}]}",
		 NULL},
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
		EXPECT(gf_import_profile(&in, cases[i].format, &p, &remarks,
					 &err) == -EINVAL,
		       "case %zu", i);
		if (cases[i].want)
			EXPECT_TEXT(err.text, cases[i].want);
		else
			EXPECT(strncmp(err.text, "f", 1) == 0, "case %zu: %s",
			       i, err.text);
		EXPECT(!p.model && !p.network, "output touched");
		gf_text_release(&text);
		gf_text_release(&remarks);
	}
}

static void test_names_refused(void)
{
	char *text;
	struct gf_import in = file("tests/data/import/kineto-cpu.json", &text);
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	in.parameters = "name,count_elems\na,2\nb,16\nc,8\n";
	EXPECT(gf_import_profile(&in, NULL, &p, &remarks, &err) == -EINVAL,
	       "too few parameters");
	EXPECT_TEXT(err.text, "--params: no parameter is left for gradient 3, "
			      "of 32 elements");
	gf_text_release(&remarks);
	free(text);
}

int main(void)
{
	test_csv();
	test_table();
	test_kineto();
	test_nccl_tests();
	test_allreduce();
	test_refused();
	test_names_refused();
	return TEST_END();
}
