/* SPDX-License-Identifier: BSD-3-Clause */
/* Training with shards is training without: the same losses and the same checkpoints, by one rank
 * or several, from one method to another. */
#include "documents/plan_parts.h"
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
	unsigned keep;    /* a bit for each message */
	double tolerance; /* 0: the same bits; else values are rounded, or added in another order */
	bool late;        /* messages wait for the end of backward */
	const char *like; /* the method that comes to the same; NULL: none */
	int copies;       /* 0: one */
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
	gf_list_free(&gf_message_record, plan->messages, plan->nmessages);
	plan->messages = made;
	plan->nmessages = count;
	gf_plan_set_types(plan);
}

static void shard(const struct train_run *run, struct gf_plan *plan)
{
	const struct shard_case *c = run->edit_ctx;
	const int method = method_named(c->method);
	struct gf_error err = {""};
	bool units;
	size_t i;

	cut_at_layers(plan);
	plan->shard.method = method;
	plan->shard.group_ranks = method ? plan->ranks / (c->copies ? c->copies : 1) : 0;
	units = gf_shard_has(&plan->shard, GF_SHARD_PARAMETERS);
	plan->shard.ahead = units ? c->ahead : 0;
	plan->lanes = c->lanes ? c->lanes : 1;
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];

		free(m->algorithm);
		m->algorithm = gf_xstrdup(c->algorithm ? c->algorithm : "ring");
		if (c->copies) {
			m->stages = gf_xcalloc(2, sizeof(*m->stages));
			m->nstages = 2;
			m->stages[0].factor = plan->ranks / c->copies;
			m->stages[1].factor = c->copies;
			m->stages[0].algorithm = gf_xstrdup("ring");
			m->stages[1].algorithm = gf_xstrdup("ring");
		}
		m->mode = plan->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->half = method ? GF_HALF_SPLIT : GF_HALF_ALL;
		m->keep = units && c->keep >> i & 1;
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
		{"zero3", 2, .accumulate = 2, .model = WIDE, .optimizer = "lars",
		 .tolerance = 2e-6},
		{"zero3", 4, .ahead = 1, .accumulate = 3, .model = WIDE},
		{"zero2", 3, .optimizer = "nesterov", .model = WIDE},
		{"zero1", 2, .optimizer = "adamw", .accumulate = 3},
		{"zero3", 2, .optimizer = "adamw", .accumulate = 3},
		{"zero3", 3, .ahead = 2, .accumulate = 2, .lanes = 2},
		{"zero3", 2, .optimizer = "lars", .tolerance = 2e-6, .ahead = 1},
		{"zero1", 3, .optimizer = "lars-paper", .tolerance = 2e-6},
		{"zero3", 4, .clip_norm = .05, .tolerance = 2e-6},
		{"zero2", 3, .optimizer = "lars", .clip_norm = .05, .tolerance = 2e-6},
		{"zero2", 4, .algorithm = "rhd"},
		{"zero3", 3, .algorithm = "rhd"},
		{"zero3", 4, .algorithm = "direct"},
		{"zero3", 2, .model = NORMED},
		/* copies: the same stages add in the same order */
		{"zero1", 4, .algorithm = "blueconnect", .copies = 2},
		{"zero2", 6, .algorithm = "blueconnect", .copies = 2, .model = WIDE},
		{"zero3", 4, .algorithm = "blueconnect", .copies = 2, .ahead = 1, .lanes = 2},
		{"zero3", 6, .algorithm = "blueconnect", .copies = 3, .model = WIDE,
		 .optimizer = "lars", .clip_norm = .05, .tolerance = 2e-6},
		/* a codec rounds what is gathered, too */
		{"zero1", 3, .codec = "bf16", .tolerance = .02},
		{"zero2", 3, .codec = "bf16", .like = "zero1"},
		{"zero3", 3, .codec = "bf16", .like = "zero1", .ahead = 1, .lanes = 2},
		{"zero3", 2, .codec = "q8", .like = "zero1", .optimizer = "adamw"},
		{"zero3", 4, .codec = "f16", .like = "zero1", .accumulate = 2, .keep = 2},
		{"zero2", 4, .codec = "f16", .tolerance = .02, .model = WIDE},
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

		none.method = cases[i].like ? cases[i].like : "none";
		want = run_of(&none, a);
		got = run_of(&cases[i], b);
		train(&want);
		train(&got);
		EXPECT(!want.rc && !got.rc, "%s: %s %s", label, want.err.text, got.err.text);
		if (!want.rc && !got.rc) {
			compare(b, a, want.last_step, cases[i].tolerance, label);
			EXPECT(cases[i].tolerance > 0 || got.test.loss == want.test.loss,
			       "%s: loss %.17g, want %.17g", label, got.test.loss, want.test.loss);
		}
		free(a);
		free(b);
		free(label);
	}
}

/* A run goes on from a set of any method, to the same bits, and with other ranks. */
static void test_resume(void)
{
	static const struct {
		const char *from, *to;
		const char *codec;
		int ranks; /* that go on; 0: the same */
	} cases[] = {
		{"none", "zero3"},           {"zero3", "none"},          {"zero3", "zero3"},
		{"zero1", "zero2"},          {"zero3", "zero3", "bf16"}, {"zero1", "zero3", "q8"},
		{"zero3", "zero3", NULL, 3}, {"zero2", "none", NULL, 1},
	};
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct shard_case c = {.method = cases[i].from,
				       .ranks = 2,
				       .optimizer = "adamw",
				       .codec = cases[i].codec,
				       .model = WIDE};
		struct shard_case d = c;
		char *a = gf_xasprintf("%s/through-%zu", folder, i);
		char *b = gf_xasprintf("%s/stopped-%zu", folder, i);
		char *label = gf_xasprintf("%s to %s (%zu)", cases[i].from, cases[i].to, i);
		struct train_run through = run_of(&c, a), stopped = run_of(&c, b), on;

		d.method = cases[i].to;
		d.ranks = cases[i].ranks ? cases[i].ranks : c.ranks;
		on = run_of(&d, b);
		stopped.config.steps = 3;
		on.config.resume = cases[i].ranks ? GF_RESUME_ANY : GF_RESUME_SAME;
		train(&through);
		train(&stopped);
		train(&on);
		EXPECT(!through.rc && !stopped.rc && !on.rc, "%s: %s%s%s", label, through.err.text,
		       stopped.err.text, on.err.text);
		for (r = 0; r < c.ranks && !cases[i].ranks && !on.rc; r++)
			same_file(a, b, through.last_step, r, label);
		free(a);
		free(b);
		free(label);
	}
}

/* What no plan's check sees. */
static void test_refused(void)
{
	static const struct {
		struct shard_case c;
		const char *why;
	} cases[] = {
		{{"zero3", 2, .model = MASKED}, "message 2: want \"keep\", as layer out shares a"},
		{{"zero3", 2, .late = true}, "want release \"ready\""},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(&cases[i].c, NULL);

		train(&run);
		EXPECT(run.rc < 0 && strstr(run.err.text, cases[i].why), "%d %s", run.rc,
		       run.err.text);
	}
}

/* A gradient that one rank alone knows to be infinite ends the run on all of them, and is skipped
 * by all. */
static void test_bad(void)
{
	const struct shard_case cases[] = {{"none", 3}, {"zero1", 3}, {"zero3", 3, .ahead = 1}};
	struct gf_error first = {""};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(&cases[i], NULL);

		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		run.config.check_every = 0;
		train(&run);
		EXPECT(run.rc == 1 && strstr(run.err.text, "infinite or not a number"), "%s: %d %s",
		       cases[i].method, run.rc, run.err.text);
		if (!i)
			first = run.err;
		EXPECT_TEXT(run.err.text, first.text);
	}
}

int main(void)
{
	watchdog(60);
	make_folder("gf-shards");
	test_equal();
	test_resume();
	test_refused();
	test_bad();
	return TEST_END();
}
