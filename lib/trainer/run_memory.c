/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/run_memory.h"

#include <stdio.h>
#include <string.h>

#include "cli/human.h"
#include "data/loader.h"
#include "trainer/method_parts.h"

/* By /proc; 0: this kernel does not say. */
static size_t resident_bytes(const char *key)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			sscanf(line + strlen(key), ": %zu", &kib);
	if (f)
		fclose(f);
	return kib << 10;
}

static size_t optimizer_bytes(const struct gf_optimizer *o)
{
	size_t slots = 0;

	while (o->ops && o->ops->slots[slots])
		slots++;
	return slots * o->count_elems * sizeof(float);
}

size_t gf_train_resident(void)
{
	return resident_bytes("VmRSS");
}

struct gf_train_memory gf_train_memory(const struct gf_trainer *t)
{
	const struct gf_method *method = t->method;
	const struct gf_net_memory net = gf_compute_memory(&t->compute);
	const size_t tests = gf_compute_test_bytes(&t->compute);
	const struct gf_dataset *data = t->config->data;
	const size_t sample =
		gf_shape_elems(&data->shape) * sizeof(float) + data->positions * sizeof(int32_t);
	size_t state = 0; /* what checkpoints hold */
	const size_t gradients =
		gf_exchange_pool(method->exchange)->count_elems * sizeof(*t->params);
	struct gf_train_memory m = {
		.parameters_bytes = gf_model_param_count(t->config->model) * sizeof(*t->params),
		.gradients_bytes =
			gradients * ((size_t)t->config->plan->staleness + (t->stepper.sum ? 1 : 0)),
		.optimizer_bytes = optimizer_bytes(&method->updater.optimizer),
		.activations_bytes =
			net.weights_bytes + net.activations_bytes + net.gradients_bytes - tests,
		.tests_bytes = tests,
		.before_bytes = t->result->memory.before_bytes,
		.peak_bytes = resident_bytes("VmHWM"),
	};

	for (size_t i = 0; i < t->state.nitems; i++)
		state += t->state.items[i].count_elems *
			 gf_safetensors_elem_bytes(t->state.items[i].tensor.dtype);
	m.buffers_bytes =
		net.workspace_bytes + GF_LOADER_BATCHES * t->config->training.batch * sample;
	if (state > m.parameters_bytes + m.optimizer_bytes)
		m.buffers_bytes += state - m.parameters_bytes - m.optimizer_bytes;
	if (method->shards)
		gf_method_shards_memory(method, &m);
	return m;
}

/* A step's part of it, beside what the plan foretold. */
static void add_predicted(const struct gf_train_memory *m, double predicted_bytes,
			  struct gf_text *out)
{
	const double step_bytes = (double)(m->parameters_bytes + m->gradients_bytes +
					   m->optimizer_bytes + m->activations_bytes);

	if (predicted_bytes > 0)
		gf_text_addf(out,
			     "memory of a step predicted %s, measured %s, measured/predicted "
			     "%.3f\n",
			     gf_human_size(predicted_bytes).text, gf_human_size(step_bytes).text,
			     step_bytes / predicted_bytes);
}

void gf_train_memory_line(const struct gf_train_memory *m, double predicted_bytes,
			  struct gf_text *out)
{
	const struct {
		const char *name;
		size_t bytes;
	} parts[] = {
		{"parameters", m->parameters_bytes}, {"gradients", m->gradients_bytes},
		{"optimizer", m->optimizer_bytes},   {"activations", m->activations_bytes},
		{"tests", m->tests_bytes},           {"buffers", m->buffers_bytes},
	};
	size_t sum = 0, i;

	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		gf_text_addf(out, "%s %s %s", i ? "," : "memory:", parts[i].name,
			     gf_human_size((double)parts[i].bytes).text);
		sum += parts[i].bytes;
	}
	gf_text_addf(out, "; %s in all", gf_human_size((double)sum).text);
	if (m->peak_bytes > m->before_bytes)
		gf_text_addf(out, ", and the process had %s more at its peak than before",
			     gf_human_size((double)(m->peak_bytes - m->before_bytes)).text);
	gf_text_addf(out, "\n");
	add_predicted(m, predicted_bytes, out);
}
