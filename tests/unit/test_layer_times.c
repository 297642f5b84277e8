/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "cost/preset.h"
#include "doc_test.h"

#define ROUNDING 1e-12

static void read_model(const char *path, struct gf_model *m)
{
	char *text = doc_load(path);
	struct gf_error err = {""};
	struct gf_json *root;

	if (gf_json_parse(text, strlen(text), path, &root, &err) ||
	    gf_model_read(root, path, m, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	gf_json_free(root);
	free(text);
}

static struct gf_model_profile *estimate(const struct gf_model *m, struct gf_estimate in)
{
	struct gf_model_profile *p = NULL;
	struct gf_profile document = {0};
	struct gf_error err = {""};

	EXPECT(gf_model_estimate(m, &in, &p, &err) == 0, "%s", err.text);
	document.model = p;
	EXPECT(gf_profile_check(&document, &err) == 0, "%s: %s", m->name, err.text);
	return p;
}

/* Every shipped model: a valid profile with the totals that were asked for, the parameters of the
 * model, and gradients in generation order. */
static void test_models(void)
{
	static const struct {
		const char *path;
		double forward_s, backward_s;
	} cases[] = {
		{"share/models/digits-cnn.json", 1e-3, 2e-3},
		{"share/models/resnet152.json", 0.091, 0.182},
		{"share/models/densenet201.json", 0.073, 0.146},
		{"share/models/inception-v4.json", 0.063, 0.127},
		{"share/models/bert-base.json", 0.102, 0.204},
		{"share/models/lstm-ptb.json", 0, 1},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_model_profile *p;
		struct gf_model m;
		size_t elems = 0;

		read_model(cases[i].path, &m);
		p = estimate(&m, (struct gf_estimate){.batch = 32,
						      .forward_s = cases[i].forward_s,
						      .backward_s = cases[i].backward_s});
		EXPECT_NEAR(p->forward_s, cases[i].forward_s, ROUNDING, "%s", cases[i].path);
		EXPECT_NEAR(p->backward_s, cases[i].backward_s, ROUNDING, "%s", cases[i].path);
		EXPECT(p->ntensors == m.nparams, "%s", cases[i].path);
		for (k = 0; k < p->ntensors; k++)
			elems += p->tensors[k].count_elems;
		EXPECT(elems == gf_model_param_count(&m), "%s", cases[i].path);
		EXPECT_TEXT(p->tensors[0].name, m.params[m.nparams - 1].name);
		EXPECT_TEXT(p->tensors[p->ntensors - 1].name, m.params[0].name);
		gf_model_profile_free(p);
		gf_model_release(&m);
	}
}

/* A net whose cheap layers wait for memory: what is ready after its first gradients, in shares of
 * backward. Totals do not change. */
static void test_shares(void)
{
	static const struct {
		enum gf_shares shares;
		double forward_s, flops_per_s;
	} cases[] = {
		{GF_SHARES_ROOFLINE, 1, 0}, {GF_SHARES_FLOPS, 1, 0},
		{GF_SHARES_EVEN, 1, 0},     {GF_SHARES_ROOFLINE, 0, 1e12},
		{GF_SHARES_FLOPS, 0, 1e12}, {GF_SHARES_EVEN, 0, 1e12},
	};
	double total_s[2] = {0}, first[3];
	struct gf_model_profile *p;
	struct gf_model m;
	size_t i;

	read_model("share/models/resnet152.json", &m);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double *total = &total_s[cases[i].flops_per_s > 0];

		p = estimate(&m, (struct gf_estimate){.batch = 32,
						      .forward_s = cases[i].forward_s,
						      .backward_s = 2 * cases[i].forward_s,
						      .flops_per_s = cases[i].flops_per_s,
						      .shares = cases[i].shares});
		*total = *total > 0 ? *total : p->backward_s;
		EXPECT_NEAR(p->backward_s / *total, 1, ROUNDING, "case %zu", i);
		first[cases[i].shares] = p->tensors[0].ready_s / p->backward_s;
		gf_model_profile_free(p);
	}
	/* fc's bias, one of 467 tensors; 2048 x 1000 of the multiplications */
	EXPECT_NEAR(first[GF_SHARES_EVEN], 1. / 467, ROUNDING, "even");
	EXPECT(first[GF_SHARES_FLOPS] > 1e-4 && first[GF_SHARES_FLOPS] < 3e-4, "flops: %g",
	       first[GF_SHARES_FLOPS]);
	EXPECT(first[GF_SHARES_ROOFLINE] != first[GF_SHARES_FLOPS], "roofline");
	gf_model_release(&m);
}

/* Two layers by hand, batch 2, one FLOP per second: fc1 has 8 inputs and 4 outputs, relu none of
 * its own, fc2 4 and 3. All are below the memory floor of 16 FLOPs per byte. */
static void test_by_hand(void)
{
	static const char text[] =
		"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"m\", \"input\": [8], "
		"\"classes\": 3, \"layers\": [{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": "
		"4}, {\"name\": \"r\", \"type\": \"relu\"}, {\"name\": \"fc2\", \"type\": \"fc\", "
		"\"outputs\": 3}]}";
	const double fc1 = 64 * (2 * (8 + 4) + 36), relu = 64 * 2 * 8,
		     fc2 = 64 * (2 * (4 + 3) + 15);
	const struct {
		const char *name;
		double ready_s, need_s;
	} want[] = {
		{"fc2.bias", 2 * fc2, fc1 + relu},
		{"fc2.weight", 2 * fc2, fc1 + relu},
		{"fc1.bias", 2 * (fc2 + relu + fc1), 0},
		{"fc1.weight", 2 * (fc2 + relu + fc1), 0},
	};
	struct gf_model_profile *p;
	struct gf_error err = {""};
	struct gf_json *root;
	struct gf_model m;
	size_t i;

	EXPECT(!gf_json_parse(text, strlen(text), "m", &root, &err) &&
		       !gf_model_read(root, "m", &m, &err),
	       "%s", err.text);
	p = estimate(&m, (struct gf_estimate){.batch = 2, .flops_per_s = 1});
	EXPECT(p->forward_s == fc1 + relu + fc2, "%g", p->forward_s);
	for (i = 0; i < GF_ARRAY_LENGTH(want); i++) {
		EXPECT_TEXT(p->tensors[i].name, want[i].name);
		EXPECT(p->tensors[i].ready_s == want[i].ready_s, "%s: %g", want[i].name,
		       p->tensors[i].ready_s);
		EXPECT(p->tensors[i].need_s == want[i].need_s, "%s: %g", want[i].name,
		       p->tensors[i].need_s);
	}
	gf_model_profile_free(p);
	gf_model_release(&m);
	gf_json_free(root);
}

/* What forward keeps, by hand. A ReLU's output is the next layer's input and counts once; layers
 * without tensors count with those before them; statistics, maxima and the loss have types of their
 * own. */
static void test_activations(void)
{
#define MODEL(input, classes, layers)                                                              \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"m\", \"input\": [" input              \
	"], \"classes\": " classes ", \"layers\": [" layers "]}"
	static const char convolutions[] =
		MODEL("1, 4, 4", "3",
		      "{\"name\": \"c\", \"type\": \"conv\", \"filters\": 2, \"kernel\": 3, "
		      "\"pad\": 1}, {\"name\": \"b\", \"type\": \"batchnorm\"}, {\"name\": \"r\", "
		      "\"type\": \"relu\"}, {\"name\": \"p\", \"type\": \"maxpool\", \"kernel\": "
		      "2}, {\"name\": \"f\", \"type\": \"fc\", \"outputs\": 3}");
	static const char attention[] =
		MODEL("4", "5",
		      "{\"name\": \"e\", \"type\": \"embedding\", \"entries\": 5, \"outputs\": 6}, "
		      "{\"name\": \"qkv\", \"type\": \"fc\", \"outputs\": 18}, {\"name\": \"a\", "
		      "\"type\": \"attention\", \"heads\": 2, \"causal\": true}, {\"name\": "
		      "\"n\", \"type\": \"layernorm\"}, {\"name\": \"h\", \"type\": \"fc\", "
		      "\"outputs\": 5}");
	static const struct {
		const char *text;
		size_t batch, element_bytes;
		const char *tensors[7];
		size_t bytes[7];
	} cases[] = {
		/* f: 8 inputs, 3 logits and a label; b: 8 maxima, 32 of the ReLU, 32 inputs and 4
		 * statistics; c: a sample of 16 */
		{convolutions, 2, 4,
		 {"f.bias", "f.weight", "b.bias", "b.weight", "c.bias", "c.weight"},
		 {0, 2 * (32 + 12 + 8), 0, 2 * (64 + 128 + 128) + 16, 0, 2 * 64}},
		{convolutions, 2, 2,
		 {"f.bias", "f.weight", "b.bias", "b.weight", "c.bias", "c.weight"},
		 {0, 2 * (16 + 12 + 8), 0, 2 * (64 + 64 + 64) + 16, 0, 2 * 32}},
		/* h: 24 inputs, 20 logits and 4 labels; n: statistics of 4 rows; qkv: 72 queries,
		 * keys and values, 24 outputs, 8 sums, and 24 inputs; e: 4 numbers */
		{attention, 3, 4,
		 {"h.bias", "h.weight", "n.bias", "n.weight", "qkv.bias", "qkv.weight", "e.weight"},
		 {0, 3 * (96 + 80 + 32), 0, 3 * 32, 0, 3 * (288 + 96 + 32 + 96), 3 * 32}},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_model_profile *p;
		struct gf_error err = {""};
		struct gf_json *root;
		struct gf_model m;
		size_t sum = 0;

		EXPECT(!gf_json_parse(cases[i].text, strlen(cases[i].text), "m", &root, &err) &&
			       !gf_model_read(root, "m", &m, &err),
		       "%s", err.text);
		p = estimate(&m, (struct gf_estimate){.batch = cases[i].batch,
						      .element_bytes = cases[i].element_bytes,
						      .flops_per_s = 1});
		for (k = 0; k < p->ntensors; k++) {
			EXPECT_TEXT(p->tensors[k].name, cases[i].tensors[k]);
			EXPECT(p->tensors[k].activation_bytes == cases[i].bytes[k],
			       "case %zu: %s keeps %zu", i, p->tensors[k].name,
			       p->tensors[k].activation_bytes);
			sum += cases[i].bytes[k];
		}
		EXPECT(gf_model_profile_activations(p) == sum, "case %zu: %zu in all", i, sum);
		gf_model_profile_free(p);
		gf_model_release(&m);
		gf_json_free(root);
	}
}

/* Frozen layers, and what follows them before anything is trained, take no time in backward: that
 * of fc2, in its 2 * floor, is all there is. Nothing is kept of them but fc2's 4 inputs, beside the
 * loss's 3 logits and a label. */
static void test_frozen(void)
{
	static const char text[] =
		"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"m\", \"input\": [8], "
		"\"classes\": 3, \"layers\": [{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": "
		"4, \"frozen\": true}, {\"name\": \"r\", \"type\": \"relu\"}, {\"name\": \"fc2\", "
		"\"type\": \"fc\", \"outputs\": 3}]}";
	const double fc1 = 64 * (2 * (8 + 4) + 36), relu = 64 * 2 * 8,
		     fc2 = 64 * (2 * (4 + 3) + 15);
	struct gf_model_profile *p;
	struct gf_error err = {""};
	struct gf_json *root;
	struct gf_model m;

	EXPECT(!gf_json_parse(text, strlen(text), "m", &root, &err) &&
		       !gf_model_read(root, "m", &m, &err),
	       "%s", err.text);
	p = estimate(&m, (struct gf_estimate){.batch = 2, .flops_per_s = 1});
	EXPECT(p->forward_s == fc1 + relu + fc2, "%g", p->forward_s);
	EXPECT(p->backward_s == 2 * fc2, "%g", p->backward_s);
	EXPECT(p->ntensors == 2 && p->tensors[1].ready_s == 2 * fc2, "%zu", p->ntensors);
	EXPECT(p->tensors[1].activation_bytes == 2 * (16 + 12 + 8), "kept: %zu",
	       p->tensors[1].activation_bytes);
	gf_model_profile_free(p);
	gf_model_release(&m);
	gf_json_free(root);
}

/* VGG-16 at 10 TFLOPs/s, batch 32: dense layers come at the rate, so that the whole is a little
 * above its FLOPs' time; the fully connected layers, first in backward, hold nine tenths of the
 * bytes and little of the time. */
static void test_rate(void)
{
	struct gf_model_profile *p, *twice;
	struct gf_model m;
	double flops = 0;
	size_t i;

	read_model("share/models/vgg16.json", &m);
	for (i = 0; i < m.nlayers; i++)
		flops += 32 * m.layers[i].forward_flops;
	p = estimate(&m, (struct gf_estimate){.batch = 32, .flops_per_s = 1e13});
	twice = estimate(&m, (struct gf_estimate){.batch = 32, .flops_per_s = 2e13});
	EXPECT(p->forward_s > flops / 1e13 && p->forward_s < 1.5 * flops / 1e13, "%g against %g",
	       p->forward_s, flops / 1e13);
	EXPECT_NEAR(p->backward_s, 2 * twice->backward_s, ROUNDING, "rate");
	EXPECT(p->tensors[5].ready_s < 0.1 * p->backward_s, "fc6 by %g of %g",
	       p->tensors[5].ready_s, p->backward_s);
	gf_model_profile_free(p);
	gf_model_profile_free(twice);
	gf_model_release(&m);
}

/* One layer of 2 * 1000 * 1000 FLOPs and 1002000 elements per batch of 1 on a preset: the FLOPs'
 * time, or that of the bytes. */
static void test_presets(void)
{
	static const char text[] =
		"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"m\", \"input\": [1000], "
		"\"classes\": 1000, \"layers\": [{\"name\": \"fc\", \"type\": \"fc\", \"outputs\": "
		"1000, \"bias\": false}]}";
	static const struct {
		struct gf_rates rates;
		size_t batch;
		double forward_s;
	} cases[] = {
		{{"v100", -1, 0}, 1, 4 * 1.002e6 / (0.7 * 900e9)},
		{{"v100", GF_PRECISION_F16, 0}, 1, 2 * 1.002e6 / (0.7 * 900e9)},
		{{"v100", -1, 0}, 10000, 2e10 / (0.5 * 15.7e12)},
		{{"a100", -1, 0}, 10000, 2e10 / (0.5 * 156e12)},
		{{"a100", GF_PRECISION_F32, 0}, 10000, 2e10 / (0.5 * 19.5e12)},
		{{NULL, -1, 0}, 100000, 2e11 / 1e12},
		{{NULL, -1, 1e13}, 100000, 2e11 / 1e13},
	};
	static const struct {
		const char *device, *preset;
	} devices[] = {
		{"NVIDIA A100-SXM4-80GB", "a100"},
		{"NVIDIA A100-SXM4-40GB", "a100-40gb"},
		{"NVIDIA A10", "a10"},
		{"NVIDIA L40S", "l40s"},
		{"NVIDIA L4", "l4"},
		{"NVIDIA H100 PCIe", "h100-pcie"},
		{"NVIDIA H100 80GB HBM3", "h100"},
		{"Tesla V100-SXM2-16GB", "v100"},
		{"NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"},
		{"NVIDIA A1000", NULL},
	};
	struct gf_error err = {""};
	struct gf_json *root;
	struct gf_model m;
	size_t i;

	EXPECT(!gf_json_parse(text, strlen(text), "m", &root, &err) &&
		       !gf_model_read(root, "m", &m, &err),
	       "%s", err.text);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_estimate in = {.batch = cases[i].batch};
		struct gf_text taken = {0}, open = {0};
		struct gf_model_profile *p;

		EXPECT(!gf_rates_take(&cases[i].rates, NULL, &in, &taken, &open, &err), "%s",
		       err.text);
		EXPECT((open.length > 0) ==
			       (!cases[i].rates.gpu && !(cases[i].rates.flops_per_s > 0)),
		       "case %zu", i);
		p = estimate(&m, in);
		EXPECT_NEAR(p->forward_s / cases[i].forward_s, 1, ROUNDING, "case %zu", i);
		gf_model_profile_free(p);
		gf_text_release(&taken);
		gf_text_release(&open);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(devices); i++) {
		struct gf_device device = {.name = (char *)devices[i].device};
		struct gf_host host = {.devices = &device, .ndevices = 1};
		struct gf_topology t = {.hosts = &host, .nhosts = 1};
		const struct gf_preset *p = gf_preset_of(&t);

		EXPECT_TEXT(p ? p->name : "none", devices[i].preset ? devices[i].preset : "none");
	}
	gf_model_release(&m);
	gf_json_free(root);
}

static void test_refused(void)
{
	static const struct {
		struct gf_estimate in;
		const char *message;
	} cases[] = {
		{{.flops_per_s = 1e9}, "want a batch of at least 1, got 0"},
		{{.batch = 1, .flops_per_s = -1}, "want a rate > 0 FLOPs/s, got -1"},
		{{.batch = 1},
		 "want a rate, or a forward time >= 0 and a backward time > 0, got 0 and 0"},
		{{.batch = 1, .forward_s = -1, .backward_s = 1},
		 "want a rate, or a forward time >= 0 and a backward time > 0, got -1 and 1"},
	};
	struct gf_model_profile *p = NULL;
	struct gf_model m;
	size_t i;

	read_model("share/models/digits-mlp.json", &m);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};

		EXPECT(gf_model_estimate(&m, &cases[i].in, &p, &err) == -EINVAL, "case %zu", i);
		EXPECT_TEXT(err.text, cases[i].message);
		EXPECT(!p, "no profile");
	}
	gf_model_release(&m);
}

int main(void)
{
	test_models();
	test_by_hand();
	test_shares();
	test_activations();
	test_frozen();
	test_rate();
	test_presets();
	test_refused();
	return TEST_END();
}
