/* SPDX-License-Identifier: BSD-3-Clause */
/* A checkpoint of P ranks becomes the state of P' ranks: nothing of what waits to be applied is
 * lost, and training goes on from it. */
#include <math.h>

#include "checkpoints/run/snapshot.h"
#include "folder.h"
#include "selections.h"
#include "train_run.h"

/* --- the rule, on integers --------------------------------------------------
 */

#define ELEMS    5
#define MAX_OLD  5
#define MULTIPLE 60 /* of every number of ranks here: products are exact */

struct arrays {
	float residual[ELEMS], running[ELEMS], weights[ELEMS], flight[ELEMS];
	uint64_t steps;
	struct gf_state state;
};

static void list(struct arrays *a)
{
	const struct gf_shape shape = {1, {ELEMS}};
	struct gf_state *s = &a->state;

	gf_state_add(s, GF_STATE_SHARED, gf_xstrdup("weights"), &shape, a->weights);
	gf_state_add(s, GF_STATE_SHARED, gf_xstrdup("flight"), &shape, a->flight)->rule =
		GF_STATE_SUM;
	gf_state_add(s, GF_STATE_OWN, gf_xstrdup("residual"), &shape, a->residual)->rule =
		GF_STATE_SUM;
	gf_state_add(s, GF_STATE_OWN, gf_xstrdup("running"), &shape, a->running)->rule =
		GF_STATE_MEAN;
	gf_state_add_words(s, GF_STATE_SHARED, "steps", "U64", &a->steps, 1)->rule =
		GF_STATE_RESTART;
}

static float value(int rank, size_t i)
{
	return (float)(MULTIPLE * ((int)i * 7 - 3 * rank * rank + 2));
}

/* The old ranks' files, one item each of what is their own. */
static void write_old(int rank, const char *path)
{
	struct arrays a = {0};
	struct gf_error err = {""};
	struct gf_tensor_source own[2];
	struct gf_file_seal seal;
	size_t i;

	list(&a);
	for (i = 0; i < ELEMS; i++)
		a.residual[i] = a.running[i] = value(rank, i);
	own[0] = a.state.items[2].tensor;
	own[1] = a.state.items[3].tensor;
	EXPECT(gf_safetensors_write(path, own, 2, NULL, 0, &seal, &err) == 0, "%s", err.text);
	gf_state_release(&a.state);
}

static void reshard_one(const struct gf_reshard *r, char paths[][80], struct arrays *a)
{
	struct gf_error err = {""};
	size_t i;
	int part;

	memset(a, 0, sizeof(*a));
	list(a);
	a->steps = 9;
	for (i = 0; i < ELEMS; i++) {
		a->weights[i] = (float)i;
		a->flight[i] = value(1, i);
		a->residual[i] = a->running[i] = 77; /* of this run's start */
	}
	gf_reshard_begin(&a->state);
	for (part = 0; part < r->from; part++) {
		struct gf_safetensors file = {0};

		EXPECT(gf_safetensors_open(paths[part], &file, &err) == 0 &&
			       gf_reshard_take(r, part, &file, &a->state, &err) == 0,
		       "%s", err.text);
		gf_safetensors_close(&file);
	}
	gf_reshard_end(r, &a->state);
}

static void check_one(const struct gf_reshard *r, const struct arrays *a)
{
	size_t i;
	int part;

	EXPECT(a->steps == 0, "%d to %d: counts start anew", r->from, r->to);
	for (i = 0; i < ELEMS; i++) {
		float own = 0, all = 0;

		for (part = 0; part < r->from; part++) {
			all += value(part, i);
			own += part % r->to == r->rank ? value(part, i) : 0;
		}
		EXPECT(a->residual[i] == own / (float)r->from * (float)r->to,
		       "%d to %d, rank %d: residual %g", r->from, r->to, r->rank,
		       (double)a->residual[i]);
		EXPECT(a->running[i] == all / (float)r->from, "%d to %d, rank %d: running %g",
		       r->from, r->to, r->rank, (double)a->running[i]);
		EXPECT(a->weights[i] == (float)i, "weights stay");
		EXPECT(a->flight[i] / (float)r->to == value(1, i) / (float)r->from,
		       "%d to %d: what is in flight stays the same mean", r->from, r->to);
	}
}

static void test_sums(void)
{
	static const int cases[][2] = {{4, 2}, {2, 4}, {3, 1}, {1, 3},
				       {5, 3}, {2, 5}, {3, 4}, {2, 2}};
	char paths[MAX_OLD][80];
	size_t i, k;
	int part;

	for (part = 0; part < MAX_OLD; part++) {
		snprintf(paths[part], sizeof(paths[part]), "%s/old-%d", folder, part);
		write_old(part, paths[part]);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_reshard r = {cases[i][0], cases[i][1], 0};
		float before[ELEMS] = {0}, after[ELEMS] = {0};

		for (r.rank = 0; r.rank < r.to; r.rank++) {
			struct arrays a;

			reshard_one(&r, paths, &a);
			check_one(&r, &a);
			for (k = 0; k < ELEMS; k++)
				after[k] += a.residual[k];
			gf_state_release(&a.state);
		}
		for (part = 0; part < r.from; part++)
			for (k = 0; k < ELEMS; k++)
				before[k] += value(part, k);
		for (k = 0; k < ELEMS; k++)
			EXPECT(before[k] / (float)r.from == after[k] / (float)r.to,
			       "%d to %d: %g of %d ranks became %g", r.from, r.to,
			       (double)before[k], r.from, (double)after[k]);
	}
}

/* Of 120 samples an epoch, unless said. */
static void test_steps(void)
{
	static const struct {
		size_t steps, samples, from, to, want;
	} cases[] = {
		{0, 120, 12, 6, 0},      {7, 120, 12, 6, 14},
		{10, 120, 12, 6, 20},    {13, 120, 12, 6, 26},
		{7, 120, 6, 12, 4}, /* 42 seen: 6 passed over */
		{19, 120, 6, 12, 10},    {20, 120, 6, 12, 10},
		{21, 120, 6, 12, 11},    {5, 125, 9, 3, 15},
		{13, 125, 9, 3, 39 + 2}, /* 13 steps, and all 41 */
		{12, 125, 9, 50, 2},     /* no whole step is left */
		{13, 125, 9, 50, 2},     {7, 10, 64, 5, 14},
		{7, 0, 0, 10, 7}, /* steps that cannot have been */
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		size_t got = gf_reshard_steps(cases[i].steps, cases[i].samples, cases[i].from,
					      cases[i].to);

		EXPECT(got == cases[i].want, "case %zu: %zu", i, got);
	}
}

/* --- whole runs
 * --------------------------------------------------------------- */

static const struct method {
	const char *name, *selection;
	int staleness;
} methods[] = {
	{"pieces", "pieces: small", 1}, {"gathered", "gathered: small", 1},
	{"merged", "merged: small", 1}, {"merged-stale", "merged: small", 2},
	{"stale", "plain", 3},
};

/* The array that waits; NULL: nothing does. */
static const char *own_array(const struct gf_selection *s)
{
	struct entry_facts f = entry_facts("selection", gf_selection_name(s));
	char *own = entry_text(&f.at, "state");

	entry_facts_release(&f);
	return own ? entry_keep(own) : NULL;
}

/* The mean over ranks of an array of a checkpoint; the caller frees. */
static double *mean_of(const char *dir, size_t step, int ranks, const char *name, bool own,
		       size_t *count)
{
	double *mean = NULL;
	int files = own ? ranks : 1, r;
	size_t i;

	*count = 0;
	for (r = 0; r < files; r++) {
		char *path = gf_checkpoint_part(dir, step, r, false);
		const struct gf_stored_tensor *t = NULL;
		struct gf_safetensors s = {0};
		struct gf_error err = {""};
		float *values;

		EXPECT(gf_safetensors_open(path, &s, &err) == 0, "%s", err.text);
		for (i = 0; i < s.ntensors; i++)
			t = strcmp(s.tensors[i].name, name) == 0 ? &s.tensors[i] : t;
		EXPECT(t != NULL, "%s: no %s", path, name);
		free(path);
		if (!t)
			break;
		*count = t->count_elems;
		values = gf_xcalloc(*count, sizeof(*values));
		EXPECT(gf_safetensors_load(&s, name, "F32", *count, values, &err) == 0, "%s",
		       err.text);
		mean = mean ? mean : gf_xcalloc(*count, sizeof(*mean));
		for (i = 0; i < *count; i++)
			mean[i] += (double)values[i] / ranks;
		free(values);
		gf_safetensors_close(&s);
	}
	return mean;
}

static void same_mean(const char *label, const double *a, const double *b, size_t count)
{
	double largest = 0;
	size_t i;

	for (i = 0; i < count; i++)
		largest = fmax(largest, fabs(a[i]));
	EXPECT(largest > 0, "%s: nothing waits", label);
	for (i = 0; i < count; i++)
		if (fabs(a[i] - b[i]) > 1e-6 * largest) {
			EXPECT(false, "%s: element %zu: %g became %g", label, i, a[i], b[i]);
			return;
		}
}

static void compare_means(const char *label, const char *old, size_t old_step, int from,
			  const char *new, size_t step, int to, const char *name, bool own)
{
	size_t n, m;
	double *a = mean_of(old, old_step, from, name, own, &n);
	double *b = mean_of(new, step, to, name, own, &m);

	EXPECT(n == m && n, "%s: %s of %zu and %zu", label, name, n, m);
	if (a && b && n == m)
		same_mean(label, a, b, n);
	free(a);
	free(b);
}

/* 7 steps of `from` ranks, then on with `to`; an epoch is 120 samples, a rank's batch 3. The old
 * set is kept beside by a run of the same steps. */
static void go_on(size_t which, int from, int to)
{
	struct train_run run = train_defaults(MLP, from, 3);
	size_t step = gf_reshard_steps(7, 120, 3 * (size_t)from, 3 * (size_t)to);
	char *label = gf_xasprintf("%s-%d-%d", methods[which].name, from, to);
	char *dir = gf_xasprintf("%s/%s", folder, label);
	char *old = gf_xasprintf("%s-old", dir);

	const char *own;

	run.selection = test_selection(methods[which].selection);
	own = own_array(&run.selection);
	run.staleness = methods[which].staleness;
	run.config.steps = 7;
	run.config.checkpoint = old;
	train(&run);
	run.config.checkpoint = dir;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 7, "%s: %s", label, run.err.text);
	run.ranks = to;
	run.config.resume = true;
	run.config.check_every = 1;
	run.config.steps = step + 1;
	train(&run);
	EXPECT(run.rc == -EINVAL && strstr(run.err.text, "was written with ranks"),
	       "%s without --resume=any: %d, %s", label, run.rc, run.err.text);
	run.config.resume = GF_RESUME_ANY;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == step + 1, "%s: %d, step %zu, %s", label, run.rc,
	       run.last_step, run.err.text);
	if (own)
		compare_means(label, old, 7, from, dir, step, to, own, true);
	if (methods[which].staleness > 1)
		compare_means(label, old, 7, from, dir, step, to, "pipeline.0.fc1.weight", false);
	/* from here on it is a run of `to` ranks as any other */
	run.config.resume = GF_RESUME_SAME;
	run.config.steps = 0;
	train(&run);
	EXPECT(run.rc == 0 && run.test.epoch == 2, "%s: %d, epoch %zu, %s", label, run.rc,
	       run.test.epoch, run.err.text);
	free(old);
	free(dir);
	free(label);
}

static void test_runs(void)
{
	static const int cases[][2] = {{4, 2}, {2, 4}, {3, 1}};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(methods); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(cases); k++)
			go_on(i, cases[k][0], cases[k][1]);
}

/* Batch norm's own sums: all ranks go on from the same. */
static void test_running(void)
{
	struct train_run run = train_defaults(NORMED, 4, 3);
	char *dir = gf_xasprintf("%s/normed", folder);

	run.config.steps = 5;
	run.config.checkpoint = dir;
	train(&run);
	run.ranks = 2;
	run.config.resume = GF_RESUME_ANY;
	run.config.steps = 10; /* where 5 steps of 4 ranks end */
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 10, "%d, step %zu, %s", run.rc, run.last_step,
	       run.err.text);
	compare_means("normed", dir, 5, 4, dir, 10, 2, "train.running", true);
	/* rank 0's alone is the mean of both */
	compare_means("normed", dir, 10, 2, dir, 10, 1, "train.running", true);
	free(dir);
}

int main(void)
{
	watchdog(280);
	make_folder("test_train_reshard");
	test_sums();
	test_steps();
	test_runs();
	test_running();
	return TEST_END();
}
