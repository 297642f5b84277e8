/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "documents/models/layer.h"
#include "documents/models/model.h"
#include "doc_test.h"

static char *trip(const struct gf_json *root, const char *file, struct gf_error *err)
{
	struct gf_model m;
	char *written;

	if (gf_model_read(root, file, &m, err))
		return NULL;
	written = gf_model_write(&m);
	gf_model_release(&m);
	return written;
}

static const char base[] = "{\"format\": \"gf-model\", \"version\": 1, \"name\": \"small\",\n"
			   " \"input\": [3, 9, 8], \"classes\": 10, \"layers\": [\n"
			   "  {\"name\": \"c1\", \"type\": \"conv\", \"filters\": 4, \"kernel\": "
			   "[3, 1], \"stride\": 2, \"pad\": [1, 0]},\n"
			   "  {\"name\": \"b1\", \"type\": \"batchnorm\", \"epsilon\": 1e-3},\n"
			   "  {\"name\": \"r1\", \"type\": \"relu\"},\n"
			   "  {\"name\": \"c2\", \"type\": \"conv\", \"filters\": 4, \"kernel\": "
			   "3, \"pad\": 1, \"groups\": 2, \"bias\": false},\n"
			   "  {\"name\": \"sum\", \"type\": \"add\", \"from\": [\"c2\", \"r1\"], "
			   "\"x-why\": \"residual\"},\n"
			   "  {\"name\": \"p1\", \"type\": \"maxpool\", \"kernel\": 2},\n"
			   "  {\"name\": \"f1\", \"type\": \"fc\", \"outputs\": 10}]}\n";

static const struct doc_case cases[] = {
	{"\"x-why\": \"residual\"", "\"from\": [\"c2\", \"r1\"]",
	 "m.json:7:61: duplicate object key near '\"from\"'"},
	{"\"classes\": 10", "\"classes\": 9",
	 "m.json: /classes: want the last layer's outputs, {10}, got 9"},
	{"[3, 9, 8]", "[]", "m.json: /input: want 1 to 3 dimensions, got 0"},
	{"[3, 9, 8]", "[3, 0, 8]", "m.json: /input/1: want an integer >= 1, got 0"},
	{"[3, 9, 8]", "[72]", "m.json: /layers/0: want an input {C, H, W}, got {72}"},
	{"[3, 9, 8]", "[1000000000, 1000000000, 1000000000]",
	 "m.json: /input: want at most 2^44 elements, got more"},
	{"\"layers\": [", "\"layers\": [], \"x-rest\": [",
	 "m.json: /layers: want at least one layer, got none"},
	{"\"name\": \"b1\"", "\"name\": \"c1\"",
	 "m.json: /layers/1/name: want a name of its own, got \"c1\" again"},
	{"\"name\": \"b1\"", "\"name\": \"input\"",
	 "m.json: /layers/1/name: want another name than \"input\", which is the sample's"},
	{"\"type\": \"relu\"", "\"type\": \"elu\"",
	 "m.json: /layers/2/type: want \"conv\", \"batchnorm\", \"relu\", \"maxpool\", "
	 "\"avgpool\", \"globalpool\", \"fc\", \"add\", \"concat\", \"dropout\", \"layernorm\", "
	 "\"gelu\", \"tanh\", \"embedding\", \"attention\", \"select\", \"lstm\", \"rmsnorm\", \"silu\", \"mul\" or \"patches\", got \"elu\""},
	{"\"type\": \"add\", \"from\": [\"c2\", \"r1\"]",
	 "\"type\": \"concat\", \"from\": [\"c2\", \"r1\", \"b1\"]", NULL},
	{"\"type\": \"add\", \"from\": [\"c2\", \"r1\"]",
	 "\"type\": \"concat\", \"from\": [\"c2\"]",
	 "m.json: /layers/4/from: want at least 2 names for concat, got 1"},
	{"\"type\": \"add\", \"from\": [\"c2\", \"r1\"]",
	 "\"type\": \"concat\", \"from\": [\"c2\", \"input\"]",
	 "m.json: /layers/4/from: want inputs that differ in the first dimension only, got {4, 5, "
	 "4} and {3, 9, 8}"},
	{"\"type\": \"relu\"", "\"type\": \"dropout\", \"rate\": 1",
	 "m.json: /layers/2/rate: want a number <= 0.999999, got 1"},
	{"\"type\": \"relu\"", "\"type\": \"layernorm\"",
	 "m.json: /layers/2: want an input {T, F} or {F}, got {4, 5, 4}"},
	{"\"type\": \"relu\"", "\"type\": \"lstm\", \"outputs\": 3",
	 "m.json: /layers/2: want an input {T, F}, got {4, 5, 4}"},
	{"\"type\": \"relu\"", "\"type\": \"relu\", \"kernel\": 1",
	 "m.json: /layers/2/kernel: unknown key (keys of your own begin with x-)"},
	{"[\"c2\", \"r1\"]", "[\"c2\", \"input\"]",
	 "m.json: /layers/4/from: want two inputs of one shape, got {4, 5, 4} and {3, 9, 8}"},
	{"[\"c2\", \"r1\"]", "[\"c2\"]", "m.json: /layers/4/from: want 2 names for add, got 1"},
	{"[\"c2\", \"r1\"]", "[\"c2\", \"p1\"]",
	 "m.json: /layers/4/from/1: want \"input\" or an earlier layer, got \"p1\""},
	{"[\"c2\", \"r1\"]", "[\"sum\", \"r1\"]",
	 "m.json: /layers/4/from/0: want \"input\" or an earlier layer, got \"sum\""},
	{", \"from\": [\"c2\", \"r1\"]", "", "m.json: /layers/4/from: want an array, got nothing"},
	{"\"groups\": 2", "\"groups\": 3",
	 "m.json: /layers/3/groups: want a divisor of 4 input channels and 4 filters, got 3"},
	{"[3, 1]", "[3, 1, 1]",
	 "m.json: /layers/0/kernel: want a number or [height, width], got 3 numbers"},
	{"[3, 1]", "[12, 1]",
	 "m.json: /layers/0/kernel: want a window inside the padded input "
	 "{3, 9, 8}, got 12 x 1"},
	{"\"kernel\": 2", "\"kernel\": 2, \"pad\": 2",
	 "m.json: /layers/5/pad: want less than the kernel, got 2"},
	{"\"stride\": 2", "\"stride\": 0", "m.json: /layers/0/stride: want an integer >= 1, got 0"},
	{"\"outputs\": 10", "\"outputs\": 10, \"bias\": 1",
	 "m.json: /layers/6/bias: want true or false, got 1"},
	{"\"outputs\": 10", "\"outputs\": 10, \"bias\": false", NULL},
	{"\"kernel\": 2", "\"kernel\": 2, \"stride\": 1, \"pad\": 1", NULL},
	{"\"outputs\": 10", "\"outputs\": 10, \"frozen\": true",
	 "m.json: /layers/6/frozen: want all layers before it frozen, too, got one that is "
	 "trained"},
	{"\"kernel\": 2", "\"kernel\": 2, \"frozen\": true",
	 "m.json: /layers/5/frozen: unknown key (keys of your own begin with x-)"},
};

/* A sequence of 5 words through every layer type that knows sequences. */
static const char sequence[] =
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"words\",\n"
	" \"input\": [5], \"classes\": 11, \"layers\": [\n"
	"  {\"name\": \"words\", \"type\": \"embedding\", \"entries\": 11, \"outputs\": 6},\n"
	"  {\"name\": \"places\", \"type\": \"embedding\", \"from\": [\"input\"], \"entries\": 8, "
	"\"outputs\": 6},\n"
	"  {\"name\": \"sum\", \"type\": \"add\", \"from\": [\"words\", \"places\"]},\n"
	"  {\"name\": \"norm\", \"type\": \"layernorm\", \"epsilon\": 1e-12},\n"
	"  {\"name\": \"att\", \"type\": \"attention\", \"from\": [\"norm\", \"sum\", \"norm\"], "
	"\"heads\": 3},\n"
	"  {\"name\": \"first\", \"type\": \"select\", \"position\": 4},\n"
	"  {\"name\": \"rnn\", \"type\": \"lstm\", \"from\": [\"att\"], \"outputs\": 6},\n"
	"  {\"name\": \"gelu\", \"type\": \"gelu\"},\n"
	"  {\"name\": \"tanh\", \"type\": \"tanh\"},\n"
	"  {\"name\": \"drop\", \"type\": \"dropout\", \"rate\": 0.25},\n"
	"  {\"name\": \"out\", \"type\": \"fc\", \"outputs\": 11, \"tied\": \"words\"}]}\n";

static const struct doc_case sequence_cases[] = {
	{"\"heads\": 3", "\"heads\": 4", "m.json: /layers/4/heads: want a divisor of 6, got 4"},
	{"[\"norm\", \"sum\", \"norm\"]", "[\"norm\", \"sum\", \"input\"]",
	 "m.json: /layers/4: want an input {T, F}, got {5}"},
	{"[\"norm\", \"sum\", \"norm\"]", "[\"norm\", \"sum\"]",
	 "m.json: /layers/4/from: want 3 names for attention, or 1 for all three, got 2"},
	{"[\"norm\", \"sum\", \"norm\"]", "[\"norm\", \"sum\", \"norm\", \"sum\"]",
	 "m.json: /layers/4/from: want at most 3 names for attention, got 4"},
	{"[\"norm\", \"sum\", \"norm\"], \"heads\": 3", "[\"norm\"], \"heads\": 3",
	 "m.json: /layers/4/heads: want a divisor of 2, got 3"},
	{"\"position\": 4", "\"position\": 5",
	 "m.json: /layers/5/position: want an integer < 5, got 5"},
	{"\"tied\": \"words\"", "\"tied\": \"places\"",
	 "m.json: /layers/10/tied: want an earlier fc or embedding with a weight of 11 x 6, got "
	 "\"places\""},
	{"\"tied\": \"words\"", "\"tied\": \"out\"",
	 "m.json: /layers/10/tied: want an earlier fc or embedding with a weight of 11 x 6, got "
	 "\"out\""},
	{"\"tied\": \"words\"", "\"tied\": \"words\", \"frozen\": true",
	 "m.json: /layers/10/frozen: want false, as layer words has it whose weight this one "
	 "shares"},
	{"\"entries\": 8", "\"entries\": 3, \"positional\": true, \"stretch\": 2", NULL},
	{"\"entries\": 8", "\"entries\": 2, \"positional\": true, \"stretch\": 2",
	 "m.json: /layers/1/entries: want at least 3, one per stretch of positions, got 2"},
	{"\"entries\": 8", "\"entries\": 8, \"stretch\": 2",
	 "m.json: /layers/1/stretch: want it with positional, got it without"},
	{", \"tied\": \"words\"", "", NULL},
	{"\"entries\": 8", "\"entries\": 5, \"positional\": true", NULL},
	{"\"entries\": 8", "\"entries\": 4, \"positional\": true",
	 "m.json: /layers/1/entries: want at least 5, one per position, got 4"},
	{"\"heads\": 3", "\"heads\": 3, \"causal\": true", NULL},
	{"\"heads\": 3", "\"heads\": 3, \"rotary\": true", NULL},
	{"\"heads\": 3", "\"heads\": 3, \"kv_heads\": 3", NULL},
	{"\"heads\": 3", "\"heads\": 3, \"kv_heads\": 1",
	 "m.json: /layers/4/from: want three inputs of one shape, got others"},
	{"\"heads\": 3", "\"heads\": 3, \"kv_heads\": 2",
	 "m.json: /layers/4/kv_heads: want three inputs, and a divisor of 3, got 3 and 2"},
	{"[\"norm\", \"sum\", \"norm\"], \"heads\": 3",
	 "[\"norm\"], \"heads\": 2, \"rotary\": true",
	 "m.json: /layers/4/rotary: want three inputs, got 1"},
	{"\"type\": \"layernorm\"", "\"type\": \"rmsnorm\"", NULL},
	{"\"type\": \"gelu\"", "\"type\": \"silu\"", NULL},
	{"\"type\": \"add\"", "\"type\": \"mul\"", NULL},
	{"\"type\": \"gelu\"", "\"type\": \"patches\"",
	 "m.json: /layers/7: want an input {C, H, W}, got {5, 6}"},
	{"\"heads\": 3", "\"heads\": 3, \"causal\": 1",
	 "m.json: /layers/4/causal: want true or false, got 1"},
	{"\"input\": [5]", "\"input\": [5, 2]", "m.json: /layers/0: want an input {T}, got {5, 2}"},
	{"\"entries\": 11", "\"entries\": 0",
	 "m.json: /layers/0/entries: want an integer >= 1, got 0"},
	{"\"type\": \"gelu\"", "\"type\": \"batchnorm\"",
	 "m.json: /layers/7: want an input {C, H, W} or {F}, got {5, 6}"},
	{"\"name\": \"gelu\", \"type\": \"gelu\"",
	 "\"name\": \"gelu\", \"type\": \"select\", \"from\": [\"first\"], \"position\": 0",
	 "m.json: /layers/7: want an input {T, F}, got {6}"},
};

static void read_model(const char *text, struct gf_model *m)
{
	struct gf_error err = {""};
	struct gf_json *root;

	if (gf_json_parse(text, strlen(text), "m.json", &root, &err) ||
	    gf_model_read(root, "m.json", m, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	gf_json_free(root);
}

static void test_sequence(void)
{
	static const struct {
		const char *name;
		size_t elems;
	} params[] = {
		{"words.weight", 66},      {"places.weight", 48},
		{"norm.weight", 6},        {"norm.bias", 6},
		{"rnn.weight_ih", 24 * 6}, {"rnn.weight_hh", 24 * 6},
		{"rnn.bias_ih", 24},       {"rnn.bias_hh", 24},
		{"out.bias", 11}, /* the weight is the words' */
	};
	static const double forward[] = {
		0,   0,   30, 150,        4 * 25 * 6 + 5 * 3 * 25, 0, 2 * 24 * 12 * 5,
		240, 240, 30, 2 * 6 * 55,
	};
	struct gf_model m;
	size_t i;

	read_model(sequence, &m);
	EXPECT(m.nparams == GF_ARRAY_LENGTH(params), "%zu", m.nparams);
	for (i = 0; i < m.nparams; i++) {
		EXPECT_TEXT(m.params[i].name, params[i].name);
		EXPECT(gf_shape_elems(&m.params[i].shape) == params[i].elems, "%s", params[i].name);
	}
	for (i = 0; i < m.nlayers; i++)
		EXPECT(m.layers[i].forward_flops == forward[i], "%s: %g", m.layers[i].name,
		       m.layers[i].forward_flops);
	EXPECT(m.layers[6].out.dims[0] == 5 && m.layers[6].out.dims[1] == 6, "rnn");
	EXPECT(m.layers[5].out.rank == 1 && m.layers[5].out.dims[0] == 6, "first");
	gf_model_release(&m);
}

/* Shapes, parameters, FLOPs of the first document, by hand. */
static void test_inference(void)
{
	static const struct {
		const char *name;
		size_t elems;
	} params[] = {
		{"c1.weight", 4 * 3 * 3}, {"c1.bias", 4},           {"b1.weight", 4},
		{"b1.bias", 4},           {"c2.weight", 4 * 2 * 9}, {"f1.weight", 10 * 4 * 2 * 2},
		{"f1.bias", 10},
	};
	static const struct {
		double forward, backward;
	} flops[] = {
		/* 4x5x4 outputs, 3x3x1 each; the sample needs no gradient */
		{2 * 9 * 80, 2 * 9 * 80},   {5 * 80, 8 * 80}, {80, 80},
		{2 * 18 * 80, 4 * 18 * 80}, {80, 80},         {4 * 16, 4 * 16},
		{2 * 16 * 10, 4 * 16 * 10},
	};
	struct gf_model m;
	size_t *order, i, total = 0;

	read_model(base, &m);
	EXPECT(m.nparams == GF_ARRAY_LENGTH(params), "%zu", m.nparams);
	order = gf_model_generation_order(&m);
	for (i = 0; i < m.nparams; i++) {
		EXPECT_TEXT(m.params[i].name, params[i].name);
		EXPECT(gf_shape_elems(&m.params[i].shape) == params[i].elems, "%s", params[i].name);
		EXPECT(order[i] == m.nparams - 1 - i, "order %zu", i);
		total += params[i].elems;
	}
	EXPECT(gf_model_param_count(&m) == total, "total");
	for (i = 0; i < m.nlayers; i++) {
		EXPECT(m.layers[i].forward_flops == flops[i].forward, "%s: %g", m.layers[i].name,
		       m.layers[i].forward_flops);
		EXPECT(m.layers[i].backward_flops == flops[i].backward, "%s: %g", m.layers[i].name,
		       m.layers[i].backward_flops);
	}
	EXPECT(m.layers[0].from[0] == -1 && m.layers[0].from[1] == -2, "c1");
	EXPECT(m.layers[4].from[0] == 3 && m.layers[4].from[1] == 2, "sum");
	EXPECT(m.layers[5].stride == 2, "a pool's stride is its kernel");
	EXPECT(m.layers[1].epsilon == 1e-3 && m.layers[1].momentum == 0.1, "batchnorm");
	EXPECT(m.layers[3].first_param == 4 && m.layers[3].nparams == 1, "c2");
	free(order);
	gf_model_release(&m);
}

/* The papers' models: tensors and parameters as published (for DenseNet-201, Inception-v4 and so on
 * to the last element), GFLOPs per sample forward as commonly quoted, a multiply and an add being
 * two. */
static void test_shipped(void)
{
	static const struct {
		const char *name;
		size_t tensors, elems;
		double gflops, within;
	} models[] = {
		{"digits-mlp", 6, 17226, 0, 1},
		{"digits-cnn", 14, 38122, 0, 1},
		{"digits-cnn-plain", 10, 40394, 0, 1},
		{"resnet20", 65, 272474, 0.082, 0.003},
		{"alexnet-bn", 26, 60967976, 1.45, 0.05},
		{"vgg16", 32, 138357544, 31.0, 0.2},
		{"vgg16-cifar10", 54, 14728266, 0.627, 0.005},
		{"resnet18", 62, 11689512, 3.64, 0.05},
		{"resnet50", 161, 25557032, 8.22, 0.1},
		{"resnet152", 467, 60192808, 23.1, 0.2},
		{"densenet201", 604, 20013928, 8.68, 0.15},
		{"inception-v4", 449, 42679816, 12.3, 0.5},
		{"bert-base", 206, 110106428, 14.3, 0.3},
		/* 2 * 124 M per position, and attention over 1024 of them */
		{"gpt2-small", 148, 124439808, 292.0, 1.0},
		/* 2 * 809,600 per position, and 4 * 64 * 128 of attention in each of 4 layers */
		{"gpt-text", 53, 834304, 0.114, 0.003},
		{"lstm-ptb", 11, 66034000, 3.57, 0.05},
		{"lstm-text", 11, 235648, 0.0294, 0.0005},
		{"mnist-mlp", 6, 648010, 0.0013, 0.0001},
		{"cifar100-cnn", 10, 367428, 0.0257, 0.001},
		{"cifar100-convex", 10, 367428, 0.0257, 0.001},
		/* 2 * 1.236 G and 8.03 G less the table per position, and 4 * 8192 * width of
		 * attention in each layer */
		{"llama-3.2-1b", 146, 1235814400, 29200, 100},
		{"llama-3.1-8b", 291, 8030261248, 158500, 800},
		{"vit-b-16", 200, 86567656, 35.2, 0.3},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(models); i++) {
		char *path = gf_xasprintf("share/models/%s.json", models[i].name);
		char *text = doc_load(path);
		struct gf_model m;
		double flops = 0;

		doc_expect_stable(text, path, trip);
		read_model(text, &m);
		EXPECT_TEXT(m.name, models[i].name);
		EXPECT(m.nparams == models[i].tensors, "%s: %zu tensors", path, m.nparams);
		EXPECT(gf_model_param_count(&m) == models[i].elems, "%s: %zu elements", path,
		       gf_model_param_count(&m));
		for (k = 0; k < m.nlayers; k++)
			flops += m.layers[k].forward_flops;
		EXPECT(fabs(flops / 1e9 - models[i].gflops) <= models[i].within, "%s: %g GFLOPs",
		       path, flops / 1e9);
		gf_model_release(&m);
		free(text);
		free(path);
	}
}

int main(void)
{
	doc_expect_stable(base, "small", trip);
	doc_run_cases(base, "m.json", trip, cases, GF_ARRAY_LENGTH(cases));
	doc_expect_stable(sequence, "words", trip);
	doc_run_cases(sequence, "m.json", trip, sequence_cases, GF_ARRAY_LENGTH(sequence_cases));
	test_inference();
	test_sequence();
	test_shipped();
	return TEST_END();
}
