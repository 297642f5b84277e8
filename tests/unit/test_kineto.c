/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces of PyTorch's profiler: what they say, of real ones with the figures that were worked out
 * from their events, and in small of each kind.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "imports/import.h"
#include "imports/kineto.h"
#include "test.h"

static const double tolerance = 1e-9; /* s; the traces are in ns or us */

/* A line of a small trace is KIND THREAD TS DUR, in us; of gradients then the shape and the type,
 * of what a device does and of launches the correlation. */
static const struct {
	const char *kind, *category, *name, *args;
} kinds[] = {
	{"mark", "user_annotation", "ProfilerStep#1", ""},
	{"update", "user_annotation", "Optimizer.step#SGD.step", ""},
	{"forward", "cpu_op", "aten::linear", "\"Sequence number\": 1"},
	{"node", "cpu_op", "autograd::engine::evaluate_function: Mm", ""},
	{"gradient", "cpu_op", "torch::autograd::AccumulateGrad", NULL},
	{"launch", "cuda_runtime", "cudaLaunchKernel", NULL},
	{"kernel", "kernel", "gemm", NULL},
	{"nccl", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", NULL},
	{"copy", "gpu_memcpy", "Memcpy DtoD (Device -> Device)", NULL},
};

static void add_event(struct gf_text *json, const char *line)
{
	char kind[16], shape[16], type[32];
	int thread, ts, dur;
	size_t i;
	int words = sscanf(line, "%15s %d %d %d %15s %31s", kind, &thread, &ts, &dur, shape, type);

	for (i = 0; strcmp(kinds[i].kind, kind) != 0; i++)
		;
	gf_text_addf(json,
		     "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": %d, "
		     "\"ts\": %d, \"dur\": %d, \"args\": {",
		     kinds[i].category, kinds[i].name, thread, ts, dur);
	if (words == 6)
		gf_text_addf(json, "\"Input Dims\": [%s], \"Input type\": [\"%s\"]", shape,
			     strcmp(type, "-") ? type : "");
	else if (words == 5)
		gf_text_addf(json, "\"correlation\": %s", shape);
	else
		gf_text_addf(json, "%s", kinds[i].args);
	gf_text_addf(json, "}},\n");
}

/* The trace of such lines; any other text is one as it is. */
static char *trace_of(const char *text)
{
	char *copy = gf_xstrdup(text), *rest = copy, *line;
	struct gf_text json = {0};

	if (*text != '{' && *text != '[') {
		gf_text_addf(&json, "{\"traceEvents\": [\n");
		while ((line = strsep(&rest, "\n")))
			if (*line)
				add_event(&json, line);
		gf_text_addf(&json, "{}]}");
	} else {
		gf_text_addf(&json, "%s", text);
	}
	free(copy);
	return gf_text_take(&json);
}

static const struct {
	const char *text;
	size_t tensors;
	double forward_s, backward_s, update_s, ready_s[3];
	enum gf_dtype dtype;
	const char *remark; /* in what is said; NULL: "N tensors, 1 step" */
} cases[] = {
	{"forward 1 0 50\n" /* lies between passes; no marks */
	 "node 2 100 20\n"
	 "gradient 2 121 8 [10] float\n"
	 "gradient 2 151 8 [4,5] float\n"
	 "update 1 200 10\n"
	 "forward 1 1000 50\n"
	 "node 2 1100 20\n"
	 "gradient 2 1121 8 [10] float\n"
	 "gradient 2 1151 8 [4,5] float\n"
	 "update 1 1200 10",
	 .tensors = 2, .forward_s = 495e-6, .backward_s = 59e-6, .update_s = 10e-6,
	 .ready_s = {29e-6, 59e-6},
	 .remark = "marks of steps (profiler.step()): each ends with Optimizer.step"},
	{"forward 1 0 50\n"
	 "gradient 2 121 8 [10] float\n"
	 "gradient 2 151 8 [4,5] float\n"
	 "forward 1 1000 50\n"
	 "gradient 2 1121 8 [10] float\n"
	 "gradient 2 1151 8 [4,5] float\n",
	 .tensors = 2, .forward_s = 121e-6, .backward_s = 38e-6, .ready_s = {8e-6, 38e-6},
	 .remark = "marks of steps (profiler.step()): each has one pass of backward"},
	{"gradient 2 100 8 [10] float\n" /* without forward: a period */
	 "gradient 2 200 8 [4,5] float\n"
	 "gradient 2 5100 8 [10] float\n"
	 "gradient 2 5200 8 [4,5] float\n"
	 "gradient 2 9100 8 [10] float\n"
	 "gradient 2 9200 8 [4,5] float",
	 .tensors = 2, .backward_s = 108e-6, .ready_s = {8e-6, 108e-6},
	 .remark = "forward time is not known"},
	{"mark 1 0 9000\n"
	 "gradient 2 100 8 [10] float\n"
	 "gradient 2 120 8 [4,5] float\n"
	 "gradient 2 190 8 [10] float\n"
	 "gradient 2 220 8 [4,5] float\n"
	 "mark 1 9000 9000\n"
	 "gradient 2 9100 8 [10] float\n"
	 "gradient 2 9120 8 [4,5] float\n"
	 "gradient 2 9190 8 [10] float\n"
	 "gradient 2 9220 8 [4,5] float",
	 .tensors = 2, .forward_s = 190e-6, .backward_s = 38e-6, .ready_s = {8e-6, 38e-6},
	 .remark = "2 passes of backward"},
	{"mark 1 0 9000\n" /* equal layers are no period */
	 "gradient 2 100 8 [10] float\n"
	 "gradient 2 200 8 [4,5] float\n"
	 "gradient 2 300 8 [10] float\n"
	 "gradient 2 400 8 [4,5] float",
	 .tensors = 4, .forward_s = 100e-6, .backward_s = 308e-6,
	 .ready_s = {8e-6, 108e-6, 208e-6}},
	{"mark 1 0 9000\n" /* micro-batches */
	 "forward 1 10 50\n"
	 "gradient 2 100 8 [10] float\n"
	 "gradient 2 200 8 [10] float\n"
	 "forward 1 1000 50\n"
	 "gradient 2 1100 8 [10] float\n"
	 "gradient 2 1200 8 [10] float",
	 .tensors = 2, .forward_s = 1100e-6, .backward_s = 108e-6, .ready_s = {8e-6, 108e-6},
	 .remark = "2 passes of backward"},
	{"mark 1 0 9000\n" /* a hook's callback is no forward */
	 "forward 1 10 50\n"
	 "forward 1 70 20\n"
	 "gradient 2 100 8 [10] float\n"
	 "forward 3 150 50\n"
	 "gradient 2 200 8 [10] float",
	 .tensors = 2, .forward_s = 100e-6, .backward_s = 108e-6, .ready_s = {8e-6, 108e-6}},
	{"mark 1 0 900\n" /* a step that is cut off */
	 "gradient 2 100 8 [10] float\n"
	 "gradient 2 200 8 [4,5] float\n"
	 "mark 1 900 900\n"
	 "gradient 2 1100 8 [10] float",
	 .tensors = 2, .forward_s = 100e-6, .backward_s = 108e-6, .ready_s = {8e-6, 108e-6},
	 .remark = "1 step; left out: steps with other gradients (1)"},
	{"mark 1 0 900\n"
	 "gradient 2 100 8 [3] c10::Half",
	 .tensors = 1, .forward_s = 100e-6, .backward_s = 8e-6, .ready_s = {8e-6}, .dtype = GF_F16},
	{"mark 1 0 900\n" /* a scalar */
	 "gradient 2 100 8 [] double",
	 .tensors = 1, .forward_s = 100e-6, .backward_s = 8e-6, .ready_s = {8e-6}, .dtype = GF_F64},
	{"mark 1 0 900\n" /* nothing to add */
	 "gradient 2 50 8 [] -\n"
	 "gradient 2 100 8 [2] c10::BFloat16",
	 .tensors = 1, .forward_s = 100e-6, .backward_s = 8e-6, .ready_s = {8e-6}, .dtype = GF_BF16,
	 .remark = "left out: AccumulateGrad events without a gradient (1)"},
	{"mark 1 0 9000\n" /* the host runs ahead of the device */
	 "launch 1 100 2 1\n"
	 "kernel 7 10000 3000 1\n"
	 "node 2 1000 50\n"
	 "launch 2 1010 2 2\n"
	 "kernel 7 13000 2000 2\n"
	 "gradient 2 1060 8 [10] float",
	 .tensors = 1, .forward_s = 3e-3, .backward_s = 2e-3, .ready_s = {2e-3}},
	/* neither communication and its stream, nor what another thread launches on a stream of its
	 * own, holds up a gradient */
	{"mark 1 0 9000\n"
	 "node 2 1000 50\n"
	 "launch 2 1010 2 1\n"
	 "kernel 7 1020 100 1\n"
	 "launch 1 1020 2 2\n"
	 "kernel 8 1030 7000 2\n"
	 "gradient 2 1060 8 [10] float\n"
	 "launch 2 1070 2 3\n"
	 "nccl 20 1130 5000 3\n"
	 "launch 2 1075 2 4\n"
	 "copy 20 6130 50 4\n"
	 "gradient 2 1080 8 [4,5] float",
	 .tensors = 2, .forward_s = 1e-3, .backward_s = 120e-6, .ready_s = {120e-6, 120e-6},
	 .remark = "left out: collectives of no known kind or size (1)"},
	/* the legacy profiler's array; keys twice, numbers of any size */
	{"[{\"ph\": \"X\", \"name\": \"torch::autograd::AccumulateGrad\", \"ts\": 5, \"dur\": 8, "
	 "\"pid\": \"CPU functions\", \"args\": {\"Input Dims\": [[2]], \"Input type\": "
	 "[\"float\"], \"a\": 18446744073709551616, \"a\": 1}}]",
	 .tensors = 1, .backward_s = 8e-6, .ready_s = {8e-6}, .remark = "no marks of steps"},
	/* strings that are none */
	{"{\"traceEvents\": [{\"name\": \"C:\\torch\\csrc \xff\t\", "
	 "\"x\": -inf}, {\"ph\": \"X\", \"cat\": \"cpu_op\", "
	 "\"name\": \"torch::autograd::AccumulateGrad\", \"ts\": 5, "
	 "\"dur\": 8, \"args\": {\"Input Dims\": [[2]]}}]}",
	 .tensors = 1, .backward_s = 8e-6, .ready_s = {8e-6},
	 .remark = "f: PyTorch wrote 4 things that JSON does not allow, the first at 1:36: they "
		   "were mended"},
};

/* What is said of it, the summary too, comes into the remarks. */
static int import(const char *file, const char *text, size_t size, const char *parameters,
		  struct gf_profile *p, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_imported imported = {0};
	struct gf_import in = {
		.file = file,
		.text = text,
		.size = size,
		.forward_s = NAN,
		.backward_s = NAN,
		.parameters = parameters,
		.imported = &imported,
	};
	int rc = gf_import_profile(&in, NULL, p, remarks, err);
	char *line = gf_imported_line(&imported, file);

	gf_text_addf(remarks, "%s", line);
	free(line);
	gf_imported_release(&imported);
	return rc;
}

static void test_cases(void)
{
	size_t i, t;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};
		char *text = trace_of(cases[i].text), *want;
		int rc = import("f", text, strlen(text), NULL, &p, &remarks, &err);

		free(text);
		EXPECT(rc == 0, "case %zu: %s", i, err.text);
		if (rc < 0)
			continue;
		EXPECT(p.model->ntensors == cases[i].tensors, "case %zu: %zu tensors", i,
		       p.model->ntensors);
		EXPECT_NEAR(p.model->forward_s, cases[i].forward_s, tolerance,
			    "forward of case %zu", i);
		EXPECT_NEAR(p.model->backward_s, cases[i].backward_s, tolerance,
			    "backward of case %zu", i);
		EXPECT_NEAR(p.model->update_s, cases[i].update_s, tolerance, "update of case %zu",
			    i);
		for (t = 0; t < p.model->ntensors && t < 3; t++)
			EXPECT_NEAR(p.model->tensors[t].ready_s, cases[i].ready_s[t], tolerance,
				    "tensor %zu of case %zu", t, i);
		EXPECT(p.model->tensors[0].dtype == cases[i].dtype, "case %zu: type", i);
		want = cases[i].remark
			       ? gf_xstrdup(cases[i].remark)
			       : gf_xasprintf("f: kineto: %zu tensor%s, 1 step", cases[i].tensors,
					      cases[i].tensors > 1 ? "s" : "");
		if (cases[i].remark)
			EXPECT(strstr(remarks.data, want), "case %zu: %s", i, remarks.data);
		else
			EXPECT_TEXT(remarks.data, want);
		free(want);
		gf_profile_release(&p);
		gf_text_release(&remarks);
	}
}

/* Traces that PyTorch wrote (tests/data/kineto.py). */
static const struct {
	const char *path, *device;
	const char *parameters;
	size_t tensors, elems, accumulate;
	enum gf_dtype dtype;
	double forward_s, backward_s, update_s, first_s, last_s;
} real[] = {
	{"kineto-cpu.json", "cpu", NULL, 4, 58, 0, GF_F32, 179.989e-6, 82.653e-6, 35.092e-6,
	 44.326e-6, 82.582e-6},
	{"kineto-unmarked.json", "cpu", "params.csv", 4, 58, 0, GF_F32, 73.811e-6, 53.880e-6,
	 27.411e-6, 25.207e-6, 53.770e-6},
	{"kineto-ddp.json", "cpu", NULL, 4, 58, 2, GF_BF16, 325.786e-6, 88.051e-6, 47.150e-6,
	 27.952e-6, 80.069e-6},
	{"kineto-mi250.json", "cuda", NULL, 2, 16512, 0, GF_F32, 1407.968e-6, 7512.646e-6,
	 266.215e-6, 7370.086e-6, 7509.015e-6},
	{"kineto-mi300-ddp.json", "cuda", NULL, 62, 11689512, 0, GF_BF16, 2202.266e-6, 5276.488e-6,
	 30.119e-6, 34.599e-6, 5273.048e-6},
};

static void test_real(void)
{
	static const double printed_tolerance = 1e-3; /* relative */
	size_t i, t;

	for (i = 0; i < GF_ARRAY_LENGTH(real); i++) {
		char *path = gf_xasprintf("tests/data/import/%s", real[i].path);
		char *text = NULL, *names = NULL;
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};
		const struct gf_model_profile *m;
		size_t size = 0, elems = 0, unused;

		EXPECT(!gf_file_read(path, &text, &size, &err), "%s", err.text);
		if (real[i].parameters)
			EXPECT(!gf_file_read("tests/data/import/params.csv", &names, &unused, &err),
			       "%s", err.text);
		EXPECT(!import(path, text, size, names, &p, &remarks, &err), "%s", err.text);
		m = p.model;
		for (t = 0; m && t < m->ntensors; t++) {
			elems += m->tensors[t].count_elems;
			EXPECT(m->tensors[t].dtype == real[i].dtype, "%s: %s", path,
			       m->tensors[t].name);
		}
		if (m) {
			EXPECT_TEXT(m->device, real[i].device);
			EXPECT(m->ntensors == real[i].tensors && elems == real[i].elems &&
				       m->accumulate == real[i].accumulate,
			       "%s: %zu tensors of %zu", path, m->ntensors, elems);
			EXPECT_NEAR(m->forward_s, real[i].forward_s,
				    printed_tolerance * real[i].forward_s, "forward of %s", path);
			EXPECT_NEAR(m->backward_s, real[i].backward_s,
				    printed_tolerance * real[i].backward_s, "backward of %s", path);
			EXPECT_NEAR(m->update_s, real[i].update_s,
				    printed_tolerance * real[i].update_s, "update of %s", path);
			EXPECT_NEAR(m->tensors[0].ready_s, real[i].first_s,
				    printed_tolerance * real[i].first_s, "the first of %s", path);
			EXPECT_NEAR(m->tensors[m->ntensors - 1].ready_s, real[i].last_s,
				    printed_tolerance * real[i].last_s, "the last of %s", path);
		}
		gf_profile_release(&p);
		gf_text_release(&remarks);
		free(text);
		free(names);
		free(path);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *text, *want;
	} refused[] = {
		{"gradient 1 1 1 [2] signed", "f: /traceEvents/0/args/Input type/0: want float, "
					      "double, c10::Half or c10::BFloat16, got signed"},
		{"gradient 1 1 1 [] -",
		 "f: want events named AccumulateGrad, got none that adds a gradient"},
		{"mark 1 0 1\n"
		 "gradient 1 7 1 [2] float",
		 "f: want events named AccumulateGrad within ProfilerStep, got none"},
		{"launch 1 1 1 1\n"
		 "gradient 1 7 1 [2] float",
		 "f: want the GPU's kernels and their launches (ProfilerActivity.CPU and CUDA), "
		 "got 0 that compute and 1 launches"},
		{"kernel 7 1 1 1\n"
		 "gradient 1 7 1 [2] float",
		 "f: want the GPU's kernels and their launches (ProfilerActivity.CPU and CUDA), "
		 "got 1 that compute and 0 launches"},
		{"{\"traceEvents\": [{\"name\": \"a \"quote\" \"}]}",
		 "f:1:35: '}' expected near 'quote': what exported the trace wrote no JSON there "
		 "(a quote inside a string?): mend the place, or export it by a newer PyTorch"},
		{"{\"traceEvents\": [{\"name\": ",
		 "f:1:26: unexpected token near end of file: the trace is cut off: export it anew"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(refused); i++) {
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};

		char *text = trace_of(refused[i].text);

		EXPECT(import("f", text, strlen(text), NULL, &p, &remarks, &err) == -EINVAL,
		       "case %zu", i);
		EXPECT_TEXT(err.text, refused[i].want);
		free(text);
		gf_text_release(&remarks);
	}
}

/* Collectives of a group without a number are counted, above all numbers. */
static void test_number(void)
{
	static const struct {
		uint64_t group;
		double start_s;
		size_t sequence, want;
	} numbered[] = {
		{1, 2, 0, SIZE_MAX / 2 + 2},
		{1, 1, 0, SIZE_MAX / 2 + 1},
		{2, 3, 0, SIZE_MAX / 2 + 1},
		{2, 5, 0, SIZE_MAX / 2 + 2},
		{2, 4, 1, 1},
	};
	struct gf_kineto_list list = {0};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(numbered); i++)
		gf_kineto_add(&list, &(struct gf_kineto_span){.group = numbered[i].group,
							      .start_s = numbered[i].start_s,
							      .sequence = numbered[i].sequence});
	gf_kineto_number(&list);
	for (i = 0; i < list.count; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(numbered); k++)
			EXPECT(list.spans[i].start_s != numbered[k].start_s ||
				       list.spans[i].sequence == numbered[k].want,
			       "case %zu: %zu", k, list.spans[i].sequence);
	free(list.spans);
}

static void test_kinds(void)
{
	static const struct {
		const char *name, *kind;
	} named[] = {
		{"AllReduce", "all-reduce"},
		{"allreduce", "all-reduce"},
		{"all_reduce", "all-reduce"},
		{"allreduce_coalesced", "other all-reduce"},
		{"_allgather_base", "all-gather"},
		{"_reduce_scatter_base", "reduce-scatter"},
		{"ReduceScatter", "reduce-scatter"},
		{"Reduce", "reduce"},
		{"all_to_all", "all-to-all"},
		{"AlltoAll", "all-to-all"},
		{"send", "other"},
		{"", "other"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(named); i++)
		EXPECT_TEXT(gf_collective_name(gf_collective_kind(named[i].name)), named[i].kind);
}

int main(void)
{
	test_cases();
	test_real();
	test_refused();
	test_number();
	test_kinds();
	return TEST_END();
}
