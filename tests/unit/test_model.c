/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "doc/layer.h"
#include "doc/model.h"
#include "doc_test.h"

static char *trip(const struct gf_json *root, const char *file,
		  struct gf_error *err)
{
	struct gf_model m;
	char *written;

	if (gf_model_read(root, file, &m, err))
		return NULL;
	written = gf_model_write(&m);
	gf_model_release(&m);
	return written;
}

static const char base[] =
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"small\",\n"
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
	{"[3, 9, 8]", "[3, 0, 8]",
	 "m.json: /input/1: want an integer >= 1, got 0"},
	{"[3, 9, 8]", "[72]",
	 "m.json: /layers/0: want an input {C, H, W}, got {72}"},
	{"[3, 9, 8]", "[1000000000, 1000000000, 1000000000]",
	 "m.json: /input: want at most 2^44 elements, got more"},
	{"\"layers\": [", "\"layers\": [], \"x-rest\": [",
	 "m.json: /layers: want at least one layer, got none"},
	{"\"name\": \"b1\"", "\"name\": \"c1\"",
	 "m.json: /layers/1/name: want a name of its own, got \"c1\" again"},
	{"\"name\": \"b1\"", "\"name\": \"input\"",
	 "m.json: /layers/1/name: want another name than \"input\", which is "
	 "the sample's"},
	{"\"type\": \"relu\"", "\"type\": \"elu\"",
	 "m.json: /layers/2/type: want \"conv\", \"batchnorm\", \"relu\", "
	 "\"maxpool\", \"avgpool\", \"globalpool\", \"fc\" or \"add\", got "
	 "\"elu\""},
	{"\"type\": \"relu\"", "\"type\": \"relu\", \"kernel\": 1",
	 "m.json: /layers/2/kernel: unknown key (keys of your own begin with "
	 "x-)"},
	{"[\"c2\", \"r1\"]", "[\"c2\", \"input\"]",
	 "m.json: /layers/4/from: want two inputs of one shape, got {4, 5, 4} "
	 "and {3, 9, 8}"},
	{"[\"c2\", \"r1\"]", "[\"c2\"]",
	 "m.json: /layers/4/from: want 2 names for add, got 1"},
	{"[\"c2\", \"r1\"]", "[\"c2\", \"p1\"]",
	 "m.json: /layers/4/from/1: want \"input\" or an earlier layer, got "
	 "\"p1\""},
	{"[\"c2\", \"r1\"]", "[\"sum\", \"r1\"]",
	 "m.json: /layers/4/from/0: want \"input\" or an earlier layer, got "
	 "\"sum\""},
	{", \"from\": [\"c2\", \"r1\"]", "",
	 "m.json: /layers/4/from: want an array, got nothing"},
	{"\"groups\": 2", "\"groups\": 3",
	 "m.json: /layers/3/groups: want a divisor of 4 input channels and 4 "
	 "filters, got 3"},
	{"[3, 1]", "[3, 1, 1]",
	 "m.json: /layers/0/kernel: want a number or [height, width], got 3 "
	 "numbers"},
	{"[3, 1]", "[12, 1]",
	 "m.json: /layers/0/kernel: want a window inside the padded input "
	 "{3, 9, 8}, got 12 x 1"},
	{"\"kernel\": 2", "\"kernel\": 2, \"pad\": 2",
	 "m.json: /layers/5/pad: want less than the kernel, got 2"},
	{"\"stride\": 2", "\"stride\": 0",
	 "m.json: /layers/0/stride: want an integer >= 1, got 0"},
	{"\"outputs\": 10", "\"outputs\": 10, \"bias\": 1",
	 "m.json: /layers/6/bias: want true or false, got 1"},
	{"\"outputs\": 10", "\"outputs\": 10, \"bias\": false", NULL},
	{"\"kernel\": 2", "\"kernel\": 2, \"stride\": 1, \"pad\": 1", NULL},
};

/* Shapes, parameters, FLOPs of the document above, by hand. */
static void test_inference(void)
{
	static const struct {
		const char *name;
		size_t elems;
	} params[] = {
		{"c1.weight", 4 * 3 * 3}, {"c1.bias", 4},
		{"b1.weight", 4},         {"b1.bias", 4},
		{"c2.weight", 4 * 2 * 9}, {"f1.weight", 10 * 4 * 2 * 2},
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
	struct gf_error err = {""};
	struct gf_json *root;
	struct gf_model m;
	size_t *order, i, total = 0;

	if (gf_json_parse(base, strlen(base), "m.json", &root, &err) ||
	    gf_model_read(root, "m.json", &m, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	EXPECT(m.nparams == GF_ARRAY_LENGTH(params), "%zu", m.nparams);
	order = gf_model_generation_order(&m);
	for (i = 0; i < m.nparams; i++) {
		EXPECT_TEXT(m.params[i].name, params[i].name);
		EXPECT(gf_shape_elems(&m.params[i].shape) == params[i].elems,
		       "%s", params[i].name);
		EXPECT(order[i] == m.nparams - 1 - i, "order %zu", i);
		total += params[i].elems;
	}
	EXPECT(gf_model_param_count(&m) == total, "total");
	for (i = 0; i < m.nlayers; i++) {
		EXPECT(m.layers[i].forward_flops == flops[i].forward, "%s: %g",
		       m.layers[i].name, m.layers[i].forward_flops);
		EXPECT(m.layers[i].backward_flops == flops[i].backward,
		       "%s: %g", m.layers[i].name, m.layers[i].backward_flops);
	}
	EXPECT(m.layers[0].from[0] == -1 && m.layers[0].from[1] == -2, "c1");
	EXPECT(m.layers[4].from[0] == 3 && m.layers[4].from[1] == 2, "sum");
	EXPECT(m.layers[5].stride == 2, "a pool's stride is its kernel");
	EXPECT(m.layers[1].epsilon == 1e-3 && m.layers[1].momentum == 0.1,
	       "batchnorm");
	EXPECT(m.layers[3].first_param == 4 && m.layers[3].nparams == 1, "c2");
	free(order);
	gf_model_release(&m);
	gf_json_free(root);
}

/* The table, the enum and the list of names agree. */
static void test_table(void)
{
	size_t i;

	for (i = 0; gf_layer_type_names[i]; i++)
		EXPECT_TEXT(gf_layer_kinds[i]->name, gf_layer_type_names[i]);
}

static void test_shipped(void)
{
	static const struct {
		const char *path;
		size_t tensors, elems;
	} models[] = {
		{"share/models/digits-mlp.json", 6, 17226},
		{"share/models/digits-cnn.json", 13, 40506},
		{"share/models/digits-cnn-plain.json", 10, 40394},
		{"share/models/resnet20.json", 65, 272474},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(models); i++) {
		char *text = doc_load(models[i].path);
		struct gf_error err = {""};
		struct gf_json *root;
		struct gf_model m;

		doc_expect_stable(text, models[i].path, trip);
		if (gf_json_parse(text, strlen(text), models[i].path, &root,
				  &err) ||
		    gf_model_read(root, models[i].path, &m, &err)) {
			EXPECT(0, "%s", err.text);
			free(text);
			continue;
		}
		EXPECT(m.nparams == models[i].tensors, "%s: %zu tensors",
		       models[i].path, m.nparams);
		EXPECT(gf_model_param_count(&m) == models[i].elems,
		       "%s: %zu elements", models[i].path,
		       gf_model_param_count(&m));
		gf_model_release(&m);
		gf_json_free(root);
		free(text);
	}
}

int main(void)
{
	doc_expect_stable(base, "small", trip);
	doc_run_cases(base, "m.json", trip, cases, GF_ARRAY_LENGTH(cases));
	test_inference();
	test_table();
	test_shipped();
	return TEST_END();
}
