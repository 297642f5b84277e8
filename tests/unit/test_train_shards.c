/* SPDX-License-Identifier: BSD-3-Clause */
/* Training with shards is training without: the same losses and the same checkpoints, by one rank
 * or several, from one method to another. */
#include "folder.h"
#include "train_run.h"

#define LAYERS(first, second)                                                                      \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"deep\","                           \
	" \"input\": [1, 2, 3], \"classes\": 4, \"layers\": ["                                     \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": " first "},"                           \
	"{\"name\": \"relu1\", \"type\": \"relu\"},"                                               \
	"{\"name\": \"fc2\", \"type\": \"fc\", \"outputs\": " second "},"                          \
	"{\"name\": \"relu2\", \"type\": \"relu\"},"                                               \
	"{\"name\": \"fc3\", \"type\": \"fc\", \"outputs\": 5},"                                   \
	"{\"name\": \"relu3\", \"type\": \"relu\"},"                                               \
	"{\"name\": \"fc4\", \"type\": \"fc\", \"outputs\": 4}]}"
#define DEEP LAYERS("9", "7")
/* Whole pages of it are others' parts. */
#define WIDE LAYERS("311", "203")

struct shard_case {
	const char *method;
	int ranks;
	size_t ahead;
	const char *model, *optimizer, *algorithm, *codec; /* NULL: DEEP, sgd, ring, f32 */
	double clip_norm;
	size_t accumulate;
	int lanes;
	unsigned keep; /* a bit for each message */
	bool rounded;  /* sums are made in another order */
	bool late;     /* messages wait for the end of backward */
};

static int method_named(const char *name)
{
	int k = 0;

	while (gf_shard_plans[k] && strcmp(gf_shard_plans[k]->name, name) != 0)
		k++;
	return k;
}

static bool same_layer(const char *a, const char *b)
{
	const size_t n = strcspn(a, ".");

	return n == strcspn(b, ".") && strncmp(a, b, n) == 0;
}

/* A message for each layer. */
static void cut_at_layers(struct gf_plan *plan)
{
	const struct gf_tensor *tensors = plan->model->tensors;
	const size_t n = plan->model->ntensors;
	struct gf_message *made = gf_xcalloc(n, sizeof(*made));
	size_t count = 0, i;

	for (i = 0; i < n; i++) {
		if (!i || !same_layer(tensors[i - 1].name, tensors[i].name)) {
			made[count] = plan->messages[0];
			made[count].algorithm = gf_xstrdup(plan->messages[0].algorithm);
			made[count].codec = gf_xstrdup(plan->messages[0].codec);
			made[count].stages = NULL;
			made[count].nstages = 0;
			made[count++].first = i;
		}
		made[count - 1].last = i;
	}
	gf_messages_free(plan->messages, plan->nmessages);
	plan->messages = made;
	plan->nmessages = count;
	gf_plan_set_types(plan);
}

static void shard(const struct train_run *run, struct gf_plan *plan)
{
	const struct shard_case *c = run->edit_ctx;
	const int method = method_named(c->method);
	struct gf_error err = {""};
	size_t i;

	cut_at_layers(plan);
	plan->shard.method = method;
	plan->shard.group_ranks = method ? plan->ranks : 0;
	plan->shard.ahead = method ? c->ahead : 0;
	plan->lanes = c->lanes ? c->lanes : 1;
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];

		free(m->algorithm);
		m->algorithm = gf_xstrdup(c->algorithm ? c->algorithm : "ring");
		m->mode = plan->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->half = method ? GF_HALF_SPLIT : GF_HALF_ALL;
		m->keep = method && c->keep >> i & 1;
		m->release = c->late ? GF_RELEASE_BACKWARD_END : GF_RELEASE_READY;
	}
	gf_plan_set_types(plan);
	EXPECT(!gf_plan_check(plan, &err), "%s", err.text);
}

static struct train_run run_of(const struct shard_case *c, const char *dir)
{
	struct train_run run = train_defaults(c->model ? c->model : DEEP, c->ranks, 4);

	run.codec = c->codec;
	run.edit = shard;
	run.edit_ctx = c;
	run.config.training.optimizer = (char *)(c->optimizer ? c->optimizer : "sgd");
	run.config.training.clip_norm = c->clip_norm;
	run.config.training.accumulate = c->accumulate ? c->accumulate : 1;
	run.config.check_every = 3;
	run.config.steps = 7;
	run.config.checkpoint = dir;
	run.config.test_samples = 20;
	return run;
}

static float *read_all(const char *dir, size_t step, size_t *count)
{
	char *path = gf_checkpoint_part(dir, step, 0, false);
	struct gf_safetensors s = {0};
	struct gf_error err = {""};
	float *all = NULL;
	size_t i;

	*count = 0;
	EXPECT(!gf_safetensors_open(path, &s, &err), "%s", err.text);
	for (i = 0; i < s.ntensors; i++) {
		const struct gf_stored_tensor *t = &s.tensors[i];

		if (strcmp(t->dtype, "F32") != 0)
			continue;
		all = gf_xreallocarray(all, *count + t->count_elems, sizeof(*all));
		EXPECT(!gf_safetensors_load(&s, t->name, "F32", t->count_elems, all + *count, &err),
		       "%s", err.text);
		*count += t->count_elems;
	}
	gf_safetensors_close(&s);
	free(path);
	return all;
}

static void compare(const char *dir, const char *want_dir, size_t step, double tolerance,
		    const char *label)
{
	size_t n, m, i;
	float *got = read_all(dir, step, &n), *want = read_all(want_dir, step, &m);

	EXPECT(n == m && n, "%s: %zu elements, want %zu", label, n, m);
	for (i = 0; i < n && i < m; i++)
		if (tolerance > 0 ? !(fabs((double)got[i] - (double)want[i]) <= tolerance)
				  : memcmp(&got[i], &want[i], sizeof(*got)) != 0) {
			EXPECT(0, "%s: element %zu is %.9g, want %.9g", label, i, (double)got[i],
			       (double)want[i]);
			break;
		}
	free(got);
	free(want);
}

static char *label_of(const struct shard_case *c, size_t i)
{
	return gf_xasprintf("case %zu (%s, %d ranks, ahead %zu)", i, c->method, c->ranks, c->ahead);
}

static void test_equal(void)
{
	static const struct shard_case cases[] = {
		{"zero1", 1},
		{"zero1", 2},
		{"zero1", 3, .lanes = 2},
		{"zero1", 4, .late = true},
		{"zero2", 2},
		{"zero2", 3, .lanes = 2, .optimizer = "adamw"},
		{"zero3", 1},
		{"zero3", 2},
		{"zero3", 3, .ahead = 1},
		{"zero3", 4, .ahead = 2, .lanes = 2},
		{"zero3", 3, .ahead = 9},
		{"zero3", 3, .keep = 5, .lanes = 2, .ahead = 1},
		{"zero3", 2, .ahead = 1, .optimizer = "adamw", .model = WIDE},
		{"zero3", 3, .ahead = 2, .keep = 4, .model = WIDE, .lanes = 2},
		{"zero3", 2, .accumulate = 2, .model = WIDE, .optimizer = "lars", .rounded = true},
		{"zero3", 4, .ahead = 1, .accumulate = 3, .model = WIDE},
		{"zero2", 3, .optimizer = "nesterov", .model = WIDE},
		{"zero1", 2, .optimizer = "adamw", .accumulate = 3},
		{"zero3", 2, .optimizer = "adamw", .accumulate = 3},
		{"zero3", 3, .ahead = 2, .accumulate = 2, .lanes = 2},
		{"zero3", 2, .optimizer = "lars", .rounded = true, .ahead = 1},
		{"zero1", 3, .optimizer = "lars-paper", .rounded = true},
		{"zero3", 4, .clip_norm = .05, .rounded = true},
		{"zero2", 3, .optimizer = "lars", .clip_norm = .05, .rounded = true},
		{"zero2", 4, .algorithm = "rhd"},
		{"zero3", 3, .algorithm = "rhd", .rounded = true},
		{"zero3", 4, .algorithm = "direct", .rounded = true},
		{"zero3", 2, .model = NORMED},
		{"zero3", 2, .model = MASKED, .keep = 4},
		{"zero3", 3, .model = MASKED, .keep = 4, .ahead = 1, .accumulate = 2},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct shard_case none = cases[i];
		char *a = gf_xasprintf("%s/none-%zu", folder, i);
		char *b = gf_xasprintf("%s/some-%zu", folder, i);
		char *label = label_of(&cases[i], i);
		struct train_run want, got;

		none.method = "none";
		want = run_of(&none, a);
		got = run_of(&cases[i], b);
		train(&want);
		train(&got);
		EXPECT(!want.rc && !got.rc, "%s: %s %s", label, want.err.text, got.err.text);
		if (!want.rc && !got.rc) {
			compare(b, a, want.last_step, cases[i].rounded ? 2e-6 : 0, label);
			EXPECT(cases[i].rounded || got.test.loss == want.test.loss,
			       "%s: loss %.17g, want %.17g", label, got.test.loss, want.test.loss);
		}
		free(a);
		free(b);
		free(label);
	}
}

int main(void)
{
	watchdog(60);
	make_folder("gf-shards");
	test_equal();
	return TEST_END();
}
