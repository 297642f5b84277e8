/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "documents/profile.h"
#include "json/record.h"
#include "doc_test.h"
#include "lists/gf_document_formats.h"

static char *trip(const struct gf_json *root, const char *file, struct gf_error *err)
{
	struct gf_profile p;
	struct gf_error none;
	char *written;

	if (gf_document_read(root, file, &gf_document_profile, &p, err))
		return NULL;
	EXPECT(gf_profile_check(&p, &none) == 0, "check: %s", none.text);
	written = gf_profile_write(&p);
	gf_profile_release(&p);
	return written;
}

/* Further keys of the document. */
#define CODEC(codec, device)                                                                       \
	"\"codecs\": [{\"codec\": \"f16\", \"device\": \"cpu\", "                                  \
	"\"encode_s_per_byte\": 1e-10, \"decode_s_per_byte\": 2e-10}, "                            \
	"{\"codec\": \"" codec "\", \"device\": \"" device                                         \
	"\", \"encode_s_per_byte\": 0, \"decode_s_per_byte\": 3e-10, "                             \
	"\"assumed\": true}]"
#define SELECTION(method, alpha)                                                                   \
	"\"selections\": [{\"method\": \"" method                                                  \
	"\", \"device\": \"cpu\", \"beta_s_per_byte\": 1e-9, "                                     \
	"\"alpha_s\": " alpha "}]"

static const struct doc_case cases[] = {
	{"\"need_s\": 2.5", "\"x-a\": 2", NULL},
	{"\"device\": \"cpu\", \"batch_per_rank\": 1, ", "", NULL},
	{"\"update_s\": 0.0, \"overlap_slowdown\": 1.0,", "", NULL},
	{"\"ranks\": 4,", "", NULL},
	{"[1.0, 1.5]", "[]", NULL},
	{", \"spread_s\": [1e-6, 2e-6]", "", NULL},
	{"\"gamma\": [1, 1.1]", "\"gamma\": [1, 1.1], \"x-seen\": 3", NULL},
	{"\"forward_s\": 3.0, ", "", "p.json: /model/forward_s: want a number, got nothing"},
	{"\"count_elems\": 12", "\"count_elems\": 12, \"activation_bytes\": 4096", NULL},
	{"\"count_elems\": 12", "\"count_elems\": 12, \"activation_bytes\": -1",
	 "p.json: /model/tensors/1/activation_bytes: want an integer >= 0, got -1"},
	{"\"count_elems\": 12", "\"count_elems\": 12, \"activation_bytes\": 4611686018427387904",
	 "p.json: /model/tensors/1/activation_bytes: want less than 2^62 bytes in all tensors, got "
	 "more"},
	{"\"count_elems\": 12", "\"count_elems\": 0",
	 "p.json: /model/tensors/1/count_elems: want an integer >= 1, got 0"},
	{"\"count_elems\": 12", "\"count_elems\": -12",
	 "p.json: /model/tensors/1/count_elems: want an integer >= 1, got -12"},
	{"\"count_elems\": 12", "\"count_elems\": 9223372036854775807",
	 "p.json: /model/tensors/1/count_elems: want an integer <= 4611686018427387904, got "
	 "9223372036854775807"},
	{"\"count_elems\": 12", "\"count_elems\": 1152921504606846976",
	 "p.json: /model/tensors/1/count_elems: want less than 2^62 bytes in all tensors, got "
	 "more"},
	{"\"count_elems\": 12", "\"count_elems\": 1152921504606846969",
	 "p.json: /model/tensors/2/count_elems: want less than 2^62 bytes in all tensors, got "
	 "more"},
	{"\"dtype\": \"f16\"", "\"dtype\": \"f8\"",
	 "p.json: /model/tensors/2/dtype: want \"f32\", \"f64\", \"f16\", \"bf16\" or \"i32\", got "
	 "\"f8\""},
	{"\"ready_s\": 4.0", "\"ready_s\": 0.5",
	 "p.json: /model/tensors/1/ready_s: want a number >= 1, the tensor's before it, got 0.5"},
	{"\"ready_s\": 1.0", "\"ready_s\": -1",
	 "p.json: /model/tensors/0/ready_s: want a number >= 0, got -1"},
	{"\"ready_s\": 1.0", "\"ready_s\": 1e300",
	 "p.json: /model/tensors/0/ready_s: want a number <= 1e+12, got "
	 "1e300"},
	{"\"ready_s\": 1.0", "\"ready_s\": 1.0, \"need_s\": 1e6",
	 "p.json: /model/tensors/0/need_s: want a number <= 3, the time of a forward pass, got "
	 "1e+06"},
	{"\"backward_s\": 17.0", "\"backward_s\": 16.9",
	 "p.json: /model/backward_s: want a number >= 17, the last tensor's ready_s, got 16.9"},
	{"\"overlap_slowdown\": 1.0", "\"overlap_slowdown\": 0.9",
	 "p.json: /model/overlap_slowdown: want a number >= 1, got 0.9"},
	{"\"tensors\": [", "\"tensors\": [], \"x-rest\": [",
	 "p.json: /model/tensors: want at least one tensor, got none"},
	{"\"tensors\": [", "\"tensors\": 6, \"x-rest\": [",
	 "p.json: /model/tensors: want an array, got 6"},
	{"\"startup_s\": 3.0, \"per_byte_s\": 0.25", "\"startup_s\": 0, \"per_byte_s\": 0",
	 "p.json: /network/allreduce/0/per_byte_s: want a number > 0 where startup_s is 0, got 0"},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"ring\"",
	 "p.json: /network/allreduce/1/algorithm: want each algorithm once per codec and stages, "
	 "got \"ring\" with f32 again"},
	{"\"startup_s\": 3.0",
	 "\"stages\": [{\"factor\": 2, \"algorithm\": \"shm\"}, {\"factor\": 4, \"algorithm\": "
	 "\"ring\"}], \"startup_s\": 3.0",
	 "p.json: /network/allreduce/0/stages: want none with algorithm ring, which takes no "
	 "factors, got 2"},
	{"\"algorithm\": \"ring\"",
	 "\"stages\": [{\"factor\": 2, \"algorithm\": \"shm\"}, {\"factor\": 4, \"algorithm\": "
	 "\"ring\"}], \"algorithm\": \"blueconnect\"",
	 "p.json: /network/allreduce/0/stages: want factors whose product is the network's 4 "
	 "ranks, got 8"},
	{"[1.0, 1.5]", "[1.1, 1.5]", "p.json: /network/allreduce/0/contention/0: want 1, got 1.1"},
	{"[1.0, 1.5]", "[1, 1.5, 1.4]",
	 "p.json: /network/allreduce/0/contention/2: want a number >= 1.5, the one before it, got "
	 "1.4"},
	{"[1.0, 1.5]", "[1, null]",
	 "p.json: /network/allreduce/0/contention/1: want a number, got null"},
	{"[1.0, 1.5]", "2", "p.json: /network/allreduce/0/contention: want an array, got 2"},
	{"\"size_bytes\": 1048576", "\"size_bytes\": 65536",
	 "p.json: /network/allreduce/1/contention/1/size_bytes: want an integer >= 65537, got "
	 "65536"},
	{"\"gamma\": [1, 1.1]", "\"gamma\": []",
	 "p.json: /network/allreduce/1/contention/0/gamma: want at least one number, got none"},
	{"\"gamma\": [1, 1.1]", "\"gamma\": [1, 1.1], \"beta\": 1",
	 "p.json: /network/allreduce/1/contention/0/beta: unknown key (keys of your own begin with "
	 "x-)"},
	{"\"time_s\": [1.5e-5, 2.5e-5]", "\"time_s\": [1.5e-5]",
	 "p.json: /network/allreduce/0/fit/time_s: want 2 numbers, one per size_bytes, got 1"},
	{"\"r_squared\": 0.999", "\"r_squared\": 1.1",
	 "p.json: /network/allreduce/0/fit/r_squared: want a number <= 1, got 1.1"},
	/* an algorithm once per codec, and costs of codecs by device */
	{"\"algorithm\": \"library\"", "\"algorithm\": \"ring\", \"codec\": \"q8\"", NULL},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"library\", \"codec\": \"f16\"", NULL},
	{"\"algorithm\": \"library\"",
	 "\"algorithm\": \"ring\", \"collective\": \"reduce_scatter\"", NULL},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"ring\", \"collective\": \"scatter\"",
	 "p.json: /network/allreduce/1/collective: want \"all_reduce\", \"reduce_scatter\" or "
	 "\"all_gather\", got \"scatter\""},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"ring\", \"codec\": \"f32\"",
	 "p.json: /network/allreduce/1/algorithm: want each algorithm once per codec and stages, "
	 "got \"ring\" with f32 again"},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"ring\", \"codec\": \"q9\"",
	 "p.json: /network/allreduce/1/codec: want \"f32\", \"f16\", \"bf16\", \"trunc16\", "
	 "\"q8\", \"fp8\" or \"fp4\" with algorithm ring, got \"q9\""},
	{"\"algorithm\": \"library\"", "\"algorithm\": \"library\", \"codec\": \"q8\"",
	 "p.json: /network/allreduce/1/codec: want \"f32\", \"f16\" or \"bf16\" with algorithm "
	 "library, got \"q8\""},
	{"[1.0, 1.5]",
	 "[1.0, 1.5], \"beside_backward\": {\"compute_slowdown\": [1, 1.5], \"message_slowdown\": "
	 "2, \"startup_extra_s\": 1e-4, \"x-a\": 1}",
	 NULL},
	{"[1.0, 1.5]", "[1.0, 1.5], \"beside_backward\": {\"startup_extra_s\": -1}",
	 "p.json: /network/allreduce/0/beside_backward/startup_extra_s: want a number >= 0, got "
	 "-1"},
	{"[1.0, 1.5]", "[1.0, 1.5], \"beside_backward\": {\"compute_slowdown\": [0.5]}",
	 "p.json: /network/allreduce/0/beside_backward/compute_slowdown/0: want a number >= 1, got "
	 "0.5"},
	{"[1.0, 1.5]", "[1.0, 1.5], \"beside_backward\": {\"message_slowdown\": 1e9}",
	 "p.json: /network/allreduce/0/beside_backward/message_slowdown: want a number <= 1e+06, "
	 "got 1e9"},
	{"\"update_s\": 0.0,", "\"update_s\": 0.0, \"issue_s\": 1e-5,", NULL},
	{"\"update_s\": 0.0,", "\"update_s\": 0.0, \"issue_s\": -1e-5,",
	 "p.json: /model/issue_s: want a number >= 0, got -1e-5"},
	{"\"measured\": {", CODEC("q8", "cpu") ", \"measured\": {", NULL},
	{"\"measured\": {", CODEC("q9", "cpu") ", \"measured\": {",
	 "p.json: /codecs/1/codec: want \"f32\", \"f16\", \"bf16\", \"trunc16\", \"q8\", \"fp8\" "
	 "or \"fp4\", got \"q9\""},
	{"\"measured\": {", CODEC("f16", "cpu") ", \"measured\": {",
	 "p.json: /codecs/1: want each pair of codec and device once, got \"f16\" and \"cpu\" "
	 "again"},
	{"\"measured\": {", CODEC("f16", "cuda") ", \"measured\": {", NULL},
	{"\"measured\": {", SELECTION("topk", "2e-5") ", \"measured\": {", NULL},
	{"\"measured\": {", SELECTION("top", "2e-5") ", \"measured\": {",
	 "p.json: /selections/0/method: want the name of a selection, got \"top\""},
	{"\"measured\": {", SELECTION("topk", "-1") ", \"measured\": {",
	 "p.json: /selections/0/alpha_s: want a number >= 0, got -1"},
	{"\"measured\": {", SELECTION("topk", "1, \"assumed\": 1") ", \"measured\": {",
	 "p.json: /selections/0/assumed: want true or false, got 1"},
	{"\"measured\": {", "\"measured\": [], \"x-rest\": {",
	 "p.json: /measured: want an object, got an array"},
	{"\"model\"", "\"Model\"", "p.json: /Model: unknown key (keys of your own begin with x-)"},
};

static void test_contention(void)
{
	double plain[] = {1, 1.5, 3}, small[] = {1, 1.1}, large[] = {1, 1.9, 4};
	struct gf_contention_entry one = {.gamma = plain, .ngamma = 3};
	struct gf_contention_entry two[] = {
		{.size_bytes = 1 << 16, .gamma = small, .ngamma = 2},
		{.size_bytes = 1 << 20, .gamma = large, .ngamma = 3},
	};
	struct gf_contention none = {0}, all = {&one, 1}, sized = {two, 2};
	static const struct {
		int table;
		size_t size_bytes;
		int n;
		double want;
	} gammas[] = {
		/* nothing given: nothing is gained by going together */
		{0, 77, 1, 1},        {0, 77, 3, 3},
		{1, 0, 1, 1},         {1, 77, 2, 1.5},
		{1, 77, 3, 3},        {1, 77, 6, 6}, /* n*gamma_j/j */
		{2, 0, 2, 1.1},       {2, 1 << 16, 2, 1.1},
		{2, 1 << 18, 2, 1.5}, /* half-way in log2(size) */
		{2, 1 << 20, 2, 1.9}, {2, 1 << 30, 3, 4},
		{2, 1 << 16, 4, 2.2}, {2, 1 << 18, 4, (2.2 + 16 / 3.0) / 2},
	};
	const struct gf_contention *tables[] = {&none, &all, &sized};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(gammas); i++)
		EXPECT_NEAR(gf_contention_gamma(tables[gammas[i].table], gammas[i].size_bytes,
						gammas[i].n),
			    gammas[i].want, 1e-12, "case %zu", i);
}

static int read_text(const char *text, struct gf_profile *p)
{
	struct gf_error err = {""};
	struct gf_json *root;
	int rc;

	rc = gf_json_parse(text, strlen(text), "p.json", &root, &err);
	if (!rc)
		rc = gf_document_read(root, "p.json", &gf_document_profile, p, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_json_free(root);
	return rc;
}

static const char model_half[] =
	"{\"format\": \"gf-profile\", \"version\": 1, \"x-a\": 1, \"model\": {\"name\": \"m\", "
	"\"forward_s\": 1, \"backward_s\": 2, \"tensors\": [{\"name\": \"t\", \"count_elems\": 3, "
	"\"dtype\": \"f32\", \"ready_s\": 2}]}, \"measured\": {\"host\": \"a\"}}";
static const char network_half[] =
	"{\"format\": \"gf-profile\", \"version\": 1, \"x-a\": 2, \"x-b\": 3, \"network\": "
	"{\"ranks\": 2}, \"measured\": {\"date\": \"b\"}}";

static void test_combine(void)
{
	struct gf_profile a, b, c;
	struct gf_error err;

	if (read_text(model_half, &a) || read_text(network_half, &b) || read_text(model_half, &c))
		return;
	EXPECT(gf_profile_combine(&a, &b, &err) == 0, "%s", err.text);
	EXPECT(a.model && a.network && !b.network, "both halves are in one");
	EXPECT_TEXT(a.measured, "{\"host\":\"a\",\"date\":\"b\"}");
	EXPECT_TEXT(a.extra, "{\"x-a\":1,\"x-b\":3}");
	EXPECT(gf_profile_combine(&a, &c, &err) == -EINVAL, "two models");
	EXPECT_TEXT(err.text, "want one model half, got two that differ");
	EXPECT(c.model != NULL, "a refused half stays where it was");
	gf_profile_release(&a);
	gf_profile_release(&b);
	gf_profile_release(&c);
}

static const char costs_alone[] =
	"{\"format\": \"gf-profile\", \"version\": 1, " CODEC("q8", "cpu") "}";

/* The first document's costs hold, but measured ones replace assumed ones. */
static void test_combine_costs(void)
{
	static const char other[] =
		"{\"format\": \"gf-profile\", \"version\": 1, \"codecs\": [{\"codec\": \"f16\", "
		"\"device\": \"cpu\", \"encode_s_per_byte\": 5, \"decode_s_per_byte\": 5}, "
		"{\"codec\": \"q8\", \"device\": \"cpu\", \"encode_s_per_byte\": 6, "
		"\"decode_s_per_byte\": 6}, {\"codec\": \"q8\", \"device\": \"cuda\", \"assumed\": "
		"true, \"encode_s_per_byte\": 7, \"decode_s_per_byte\": 7}], " SELECTION("topk",
											 "3") "}";
	const struct gf_processing *costs;
	struct gf_profile a, b, again;
	struct gf_error err;

	if (read_text(costs_alone, &a) || read_text(other, &b) || read_text(costs_alone, &again))
		return;
	EXPECT(gf_profile_combine(&a, &b, &err) == 0, "%s", err.text);
	/* what is there and assumed changes nothing */
	EXPECT(gf_profile_combine(&a, &again, &err) == 0, "%s", err.text);
	costs = &a.processing;
	EXPECT(costs->ncodecs == 3 && costs->nselections == 1, "entries");
	EXPECT(gf_processing_codec(costs, "f16", "cpu")->encode_s_per_byte == 1e-10,
	       "the first measured one holds");
	EXPECT(gf_processing_codec(costs, "q8", "cpu")->encode_s_per_byte == 6,
	       "a measured one replaces an assumed one");
	EXPECT(gf_processing_codec(costs, "q8", "cuda")->of.assumed, "added");
	EXPECT(!gf_processing_codec(costs, "fp8", "cpu"), "not there");
	EXPECT(gf_processing_selection(costs, "topk", "cpu")->alpha_s == 3, "added");
	EXPECT(!gf_processing_selection(costs, "topk", "cuda"), "not there");
	EXPECT(gf_profile_check(&a, &err) == 0, "%s", err.text);
	gf_profile_release(&a);
	gf_profile_release(&b);
	gf_profile_release(&again);
}

static void test_sizes(void)
{
	static const size_t widths[] = {4, 8, 2, 2, 4};
	struct gf_profile p;
	size_t i;

	for (i = 0; gf_dtype_names[i]; i++)
		EXPECT(gf_dtype_bytes((enum gf_dtype)i) == widths[i], "%s", gf_dtype_names[i]);
	if (read_text(model_half, &p))
		return;
	EXPECT(gf_model_profile_bytes(p.model) == 12, "bytes");
	EXPECT(isnan(p.model->tensors[0].need_s), "unknown");
	EXPECT(p.model->overlap_slowdown == 1, "default");
	gf_profile_release(&p);
}

/* What code may get wrong; a check names the place as in a file. */
static void test_made_by_code(void)
{
	struct gf_tensor tensors[] = {{.name = (char *)"t", .count_elems = 1, .need_s = NAN}};
	struct gf_model_profile model = {.name = (char *)"m",
					 .forward_s = INFINITY,
					 .overlap_slowdown = 1,
					 .tensors = tensors,
					 .ntensors = 1};
	struct gf_profile p = {.model = &model};
	struct gf_error err;

	EXPECT(gf_profile_check(&p, &err) == -EINVAL, "infinity");
	EXPECT_TEXT(err.text, "the profile: /model/forward_s: want a number, got null");
	model.forward_s = 1;
	EXPECT(gf_profile_check(&p, &err) == 0, "%s", err.text);
	p.model = NULL;
	EXPECT(gf_profile_check(&p, &err) == -EINVAL, "empty");
	EXPECT_TEXT(err.text, "the profile: want a model, passes, a network or costs of codecs or "
			      "selections, got none of them");
}

/* Many tensors: a reader with quadratic look-ups would not end in time. */
static void test_many(void)
{
	struct gf_text t = {0};
	struct gf_profile p;
	size_t i;

	gf_text_addf(&t, "{\"format\": \"gf-profile\", \"version\": 1, \"model\": {\"name\": "
			 "\"m\", \"forward_s\": 1, \"backward_s\": 100000, \"tensors\": [");
	for (i = 0; i < 100000; i++)
		gf_text_addf(&t,
			     "%s{\"name\": \"t%zu\", \"count_elems\": 3, \"dtype\": \"f32\", "
			     "\"ready_s\": %zu}",
			     i ? "," : "", i, i);
	gf_text_addf(&t, "]}}");
	if (read_text(t.data, &p) == 0) {
		EXPECT(p.model->ntensors == 100000, "%zu", p.model->ntensors);
		gf_profile_release(&p);
	}
	gf_text_release(&t);
}

/* By the lines that hold for a size: rings ask before they send 1000 bytes. */
static void test_cheapest(void)
{
	struct gf_cost_line asks[] = {{1000, 3000, 1, NULL}};
	struct gf_allreduce_cost costs[] = {
		{.algorithm = (char *)"ring",
		 .startup_s = 200,
		 .per_byte_s = 1,
		 .larger = asks,
		 .nlarger = 1},
		{.algorithm = (char *)"butterfly", .startup_s = 100, .per_byte_s = 2},
	};
	static const struct {
		double bytes, cost_s;
		const char *want;
	} table[] = {
		{0, 100, "butterfly"},     {99, 298, "butterfly"},
		{100, 300, "ring"}, /* a tie: the first */
		{999, 1199, "ring"},       {1000, 2100, "butterfly"},
		{2899, 5898, "butterfly"}, {2900, 5900, "ring"},
	};
	struct gf_network net = {.ranks = 4, .allreduce = costs, .nallreduce = 2};
	struct gf_network none = {.ranks = 4};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(table); i++) {
		const struct gf_allreduce_cost *c = gf_network_cheapest(&net, table[i].bytes);
		struct gf_cost_lines lines = gf_allreduce_lines(c);

		EXPECT_TEXT(c->algorithm, table[i].want);
		EXPECT_NEAR(gf_cost_lines_s(&lines, table[i].bytes), table[i].cost_s, 1e-9,
			    "case %zu", i);
	}
	EXPECT(!gf_network_cheapest(&none, 1), "no entry");
}

/* One line of all, with what the machine did and what to do about it. */
static void test_quality(void)
{
	static const char idle[] =
		"{\"load\": {\"ranks\": 2, \"processors\": 4, \"own\": 2, \"others\": 0.1}}";
	static const char apart[] =
		"{\"load\": {\"ranks\": 2, \"processors\": 8, \"own\": 2, \"others\": 3}}";
	static const char busy[] =
		"{\"load\": {\"ranks\": 2, \"processors\": 2, \"own\": 0.9, \"others\": 1.1}}";
	static const char crowded[] =
		"{\"load\": {\"ranks\": 4, \"processors\": 2, \"own\": 1.9, \"others\": 0.1}}";
	static const struct {
		size_t sizes, misses;
		double spread_s;
		const char *measured, *want;
	} table[] = {
		{5, 0, 0, NULL, NULL},
		{5, 1, 0, NULL, NULL},
		{5, 0, 0.4, idle, NULL},
		{5, 0, 0, apart, NULL},
		{5, 0, 0, crowded, NULL},
		{5, 0, 0, busy,
		 "other programs kept 1.1 of 2 processors busy; measure again on an idle "
		 "machine\n"},
		{5, 2, 0, NULL,
		 "1 of 2 fits is rough (worst: ring, 2 of 5 sizes off by more than a quarter; most "
		 "at 1 B: 1.26 s measured, 1.00 s by the fit); measure again for longer (--points "
		 "time, --repeats)\n"},
		{4, 1, 0, busy,
		 "1 of 2 fits is rough (worst: ring, 1 of 4 sizes off by more than a quarter; most "
		 "at 1 B: 1.26 s measured, 1.00 s by the fit): other programs kept 1.1 of 2 "
		 "processors busy; measure again on an idle machine\n"},
		{5, 5, 0.6, crowded,
		 "1 of 2 fits is rough (worst: ring, 5 of 5 sizes off by more than a quarter; most "
		 "at 1 B: 1.26 s measured, 1.00 s by the fit), repeats of compute scatter by 15 %: "
		 "4 "
		 "ranks shared 2 processors; measure again with no more ranks than processors\n"},
		{5, 0, 0.6, "{\"load\": 7}",
		 "repeats of compute scatter by 15 %; measure again for longer (--points "
		 "time, --repeats)\n"},
	};
	size_t sizes[5] = {1, 2, 3, 4, 5}, i, k;
	double times[5], fitted[5] = {1.25, 2.5, 3.75, 5, 6.25};

	for (i = 0; i < GF_ARRAY_LENGTH(table); i++) {
		struct gf_allreduce_cost cost = {
			.algorithm = (char *)"ring",
			.per_byte_s = 1,
			.fit = {.npoints = table[i].sizes, .size_bytes = sizes, .time_s = times}};
		struct gf_level_cost level = {
			.name = (char *)"net", .beta_s_per_byte = 1.25, .fit = cost.fit};
		struct gf_network net = {
			.allreduce = &cost, .nallreduce = 1, .levels = &level, .nlevels = 1};
		struct gf_model_profile model = {
			.forward_s = 0.5, .backward_s = 1.5, .spread_s = table[i].spread_s};
		struct gf_profile p = {
			.model = &model, .network = &net, .measured = (char *)table[i].measured};
		struct gf_text line = {0};

		/* the others are off by a quarter, which is no miss */
		for (k = 0; k < table[i].sizes; k++)
			times[k] = (k < table[i].misses ? 1.26 : 1.25) * (double)sizes[k];
		level.fit.time_s = fitted;
		gf_profile_quality(&p, &line);
		EXPECT_TEXT(line.data ? line.data : "nothing",
			    table[i].want ? table[i].want : "nothing");
		gf_text_release(&line);
	}
}

int main(void)
{
	char *six = doc_load("tests/data/valid/profile-six.json");

	doc_expect_stable(six, "profile-six", trip);
	doc_expect_stable(network_half, "network_half", trip);
	doc_expect_stable(costs_alone, "costs_alone", trip);
	doc_run_cases(six, "p.json", trip, cases, GF_ARRAY_LENGTH(cases));
	test_contention();
	test_combine();
	test_combine_costs();
	test_sizes();
	test_made_by_code();
	test_many();
	test_cheapest();
	test_quality();
	free(six);
	return TEST_END();
}
