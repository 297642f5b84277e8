/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop of somebody else's on libgradflow, which knows include/gradflow.h
 * alone.
 *	job exact PLAN		integer gradients, ready in another order on each
 *				rank: parameters are known exactly
 *	job gtopk PLAN		the vector of SYSTEMS.md section 4, four ranks
 *	job pipeline PLAN	w^2/2: the weights at which gradients are taken
 *	job save PLAN DIR	so many steps, with a set in the middle of them
 *	job load PLAN DIR	the rest of them; both print a sum of the bits
 *	job bad ...		what is refused, by name
 * PLAN may be "-": none.
 */
#include <gradflow.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 3

static const struct gradflow_tensor three[TENSORS] = {
	{"c", 1, {5}},
	{"b", 2, {3, 2}},
	{"a", 3, {2, 2, 2}},
};
static const size_t counts[TENSORS] = {5, 6, 8};

static struct gradflow_options options(const char *plan)
{
	struct gradflow_options o = {.size = sizeof(o), .timeout_s = 30};

	o.plan = strcmp(plan, "-") ? plan : NULL;
	return o;
}

static struct gradflow *need(int rc, struct gradflow *g)
{
	if (!rc)
		return g;
	fprintf(stderr, "job: %s\n", gradflow_error());
	exit(rc == -22 ? 2 : 1);
}

static void check(int holds, const char *what, double found)
{
	if (holds)
		return;
	fprintf(stderr, "job: %s: got %.9g\n", what, found);
	exit(1);
}

/* Element k of tensor i on rank r in step s. */
static float value(int r, size_t i, size_t k, size_t s)
{
	return (float)((r + 1) * 4) * (float)(i + k + s);
}

static void give(struct gradflow *g, size_t step)
{
	float *grads = gradflow_begin(g);
	size_t n, i, k;

	for (n = 0; n < TENSORS; n++) {
		i = (n + (size_t)gradflow_rank(g)) % TENSORS;
		for (k = 0; k < counts[i]; k++)
			grads[gradflow_place(g, i) + k] =
				value(gradflow_rank(g), i, k, step);
		gradflow_ready(g, i);
	}
}

static void exact(const char *plan)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	size_t i, k, s;
	float *w;
	int rc = gradflow_open(three, TENSORS, &o, &g);

	need(rc, g);
	check(gradflow_count(g) == 19, "elements, want 19",
	      (double)gradflow_count(g));
	w = gradflow_parameters(g);
	for (k = 0; k < 19; k++)
		w[k] = gradflow_rank(g) == 0 ? 1 : 7;
	need(gradflow_start(g), g);
	for (s = 1; s <= 4; s++) {
		give(g, s);
		need(gradflow_step(g, 0.25), g);
	}
	for (i = 0; i < TENSORS; i++)
		for (k = 0; k < counts[i]; k++) {
			/* the mean of 4(r + 1) over P ranks is 2(P + 1) */
			double want = 1;

			for (s = 1; s <= 4; s++)
				want -= 0.25 * 2 * (gradflow_ranks(g) + 1) *
					(double)(i + k + s);
			check(w[gradflow_place(g, i) + k] == want,
			      "a parameter", w[gradflow_place(g, i) + k]);
		}
	check(gradflow_steps(g) == 4, "steps, want 4",
	      (double)gradflow_steps(g));
	check(gradflow_ranks(g) == 1 || gradflow_sent_bytes(g) > 0,
	      "bytes sent", 0);
	gradflow_close(g);
}

static void gtopk(const char *plan)
{
	static const struct gradflow_tensor one = {"w", 1, {8}};
	static const float acc[4][8] = {{9, 0, 0, 0, 0, 0, 2, 0},
					{0, 8, 0, 0, 0, 0, 2.5, 0},
					{0, 0, 0, 0, 0, 0, 9.5, 1},
					{0, 0, 0, 0, 0, .5, 3, 0}};
	static const float sum[8] = {9, 0, 0, 0, 0, 0, 12.5, 0};
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	size_t k;
	int rc = gradflow_open(&one, 1, &o, &g);

	need(rc, g);
	memcpy(gradflow_begin(g), acc[gradflow_rank(g)], sizeof(acc[0]));
	gradflow_ready(g, 0);
	need(gradflow_step(g, 4), g);
	for (k = 0; k < 8; k++)
		check(gradflow_parameters(g)[k] == -sum[k], "a parameter",
		      gradflow_parameters(g)[k]);
	/* what stayed behind comes next: rank 1's 8, put back */
	memset(gradflow_begin(g), 0, sizeof(acc[0]));
	need(gradflow_step(g, 4), g);
	check(gradflow_parameters(g)[1] == -8, "w[1], want -8",
	      gradflow_parameters(g)[1]);
	gradflow_close(g);
}

static void pipeline(const char *plan)
{
	static const struct gradflow_tensor one = {"w", 1, {1}};
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	float *w;
	int rc = gradflow_open(&one, 1, &o, &g), s;

	need(rc, g);
	w = gradflow_parameters(g);
	*w = 1;
	for (s = 0; s < 8; s++) {
		if (gradflow_rank(g) == 0)
			printf("%s%.4g", s ? " " : "", *w);
		*gradflow_begin(g) = *w;
		gradflow_ready(g, 0);
		need(gradflow_step(g, .1), g);
	}
	if (gradflow_rank(g) == 0)
		putchar('\n');
	gradflow_close(g);
}

static void checkpoint(const char *plan, const char *folder, int load)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	double sum = 0;
	size_t k, s;
	int rc;

	o.training = "{\"format\": \"gf-training\", \"version\": 1, "
		     "\"optimizer\": {\"name\": \"nesterov\", \"momentum\": "
		     "0.9, \"weight_decay\": 0.01}}";
	rc = gradflow_open(three, TENSORS, &o, &g);
	need(rc, g);
	if (load)
		need(gradflow_load(g, folder), g);
	for (s = gradflow_steps(g) + 1; s <= 7; s++) {
		give(g, s);
		need(gradflow_step(g, 0.001), g);
		if (s == 3 && !load)
			need(gradflow_save(g, folder), g);
	}
	for (k = 0; k < gradflow_count(g); k++)
		sum += gradflow_parameters(g)[k] * (double)(k + 1);
	if (gradflow_rank(g) == 0)
		printf("%a\n", sum);
	gradflow_close(g);
}

static int refused(const struct gradflow_tensor *t, size_t n,
		   struct gradflow_options *o, const char *text)
{
	struct gradflow *g;
	int rc = gradflow_open(t, n, o, &g);

	if (rc == -22 && !g && strstr(gradflow_error(), text))
		return 0;
	fprintf(stderr, "job: want %s, got status %d: %s\n", text, rc,
		gradflow_error());
	return 1;
}

/* MPI begins once in a process, so one of them each time. */
static int bad(const char *which, const char *plan)
{
	struct gradflow_tensor t[TENSORS];
	struct gradflow_options o = options(plan);
	size_t n = TENSORS;

	memcpy(t, three, sizeof(t));
	if (!strcmp(which, "none"))
		return refused(t, 0, &o, "want one tensor or more, got none");
	if (!strcmp(which, "size")) {
		o.size = 4;
		return refused(t, n, &o, "options: want their size");
	}
	if (!strcmp(which, "name")) {
		t[1].name = "c";
		return refused(t, n, &o, "tensor 1: want a name of its own, got tensor 0's, c");
	}
	if (!strcmp(which, "shape")) {
		t[2].shape[1] = 0;
		return refused(t, n, &o, "tensor 2 (a): dimension 1: want 1 or more");
	}
	if (!strcmp(which, "training")) {
		o.training = "{\"format\": \"gf-training\", \"version\": 1, \"optimizer\": {\"momentum\": 7}}";
		return refused(t, n, &o, "momentum");
	}
	t[1].shape[0] = 4;
	return refused(t, n, &o, "b");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "exact") && argc == 3)
		exact(argv[2]);
	else if (!strcmp(mode, "gtopk") && argc == 3)
		gtopk(argv[2]);
	else if (!strcmp(mode, "pipeline") && argc == 3)
		pipeline(argv[2]);
	else if ((!strcmp(mode, "save") || !strcmp(mode, "load")) && argc == 4)
		checkpoint(argv[2], argv[3], mode[0] == 'l');
	else if (!strcmp(mode, "bad") && argc == 4)
		return bad(argv[2], argv[3]);
	else
		return 64;
	return 0;
}
