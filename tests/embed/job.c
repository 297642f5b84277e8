/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another program's loop on libgradflow, which includes nothing of gradflow but
 * gradflow.h.
 *
 *	job exact PLAN		integer gradients, ready in another order on
 *				each rank: parameters are known exactly
 *	job gtopk PLAN		gtopk in tests/data/vectors.md, four ranks
 *	job pipeline PLAN	w^2/2: the weights at which gradients are taken
 *	job save PLAN DIR	so many steps, with a set in the middle of them
 *	job load PLAN DIR	the rest of them; both print a sum of the bits
 *	job epoch PLAN DIR	the same, with epochs of another length
 *	job ways PLAN WAYS [DIR]	algorithms that the plan leaves open
 *	job loadways PLAN WAYS DIR	the same, read back with the set
 *	job sizes PLAN		structs of other versions
 *	job misuse PLAN DIR	calls out of order, which are refused
 *	job bad WHAT PLAN	arguments that are refused, by name
 *	job apart WHAT PLAN	refused because ranks differ
 *	job abandon PLAN	closes within a step, and opens again
 *	job beside LEVEL PLAN	in a program that has initialised MPI so
 *	job hangs PLAN		rank 1 stops in its second step
 *
 * PLAN may be "-": none.
 */
#define _GNU_SOURCE
#include <gradflow.h>

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
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
		need(gradflow_ready(g, i), g);
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
	/* the rest comes next: rank 1's 8, put back */
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

static void checkpoint(const char *plan, const char *folder, int load,
		       size_t epoch_steps)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	double sum = 0;
	size_t k, s;
	int rc;

	o.training = "{\"format\": \"gf-training\", \"version\": 1, "
		     "\"optimizer\": {\"name\": \"nesterov\", \"momentum\": "
		     "0.9, \"weight_decay\": 0.01}}";
	o.epoch_steps = epoch_steps;
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

/* Stores a set with those ways, or loads one that has them. */
static void ways(const char *plan, const char *given, const char *folder,
		 int load)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	float *w;

	o.ways = load ? NULL : given;
	need(gradflow_open(three, TENSORS, &o, &g), g);
	w = gradflow_parameters(g);
	w[1] = 5;
	if (load)
		need(gradflow_load(g, folder), g);
	check(!strcmp(gradflow_ways(g), given), gradflow_ways(g), load);
	check(gradflow_parameters(g) == w, "parameters that have moved", 0);
	give(g, 2);
	need(gradflow_step(g, 0.25), g);
	if (!load && folder)
		need(gradflow_save(g, folder), g);
	check(gradflow_steps(g) == 1 + (size_t)load, "steps",
	      (double)gradflow_steps(g));
	check(gradflow_sent_bytes(g) > 0, "bytes sent", 0);
	gradflow_close(g);
}

/* A call that is refused leaves everything as it was. */
static void refuse(int rc, const char *text)
{
	if (rc == -22 && strstr(gradflow_error(), text))
		return;
	fprintf(stderr, "job: want %s, got status %d: %s\n", text, rc,
		gradflow_error());
	exit(1);
}

static void misuse(const char *plan, const char *folder)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	char other[256];
	int rc = gradflow_open(three, TENSORS, &o, &g);

	need(rc, g);
	snprintf(other, sizeof(other), "%s%s", folder, "-other");
	refuse(gradflow_ready(g, 0),
	       "gradflow_ready, step 1: want gradflow_begin");
	refuse(gradflow_step(g, 1),
	       "gradflow_step, step 1: want gradflow_begin");
	refuse(gradflow_save(g, NULL), "want a folder's name");
	refuse(gradflow_save(g, ""), "want a folder's name");
	refuse(gradflow_save(g, gradflow_rank(g) ? folder : other), "folder: ");
	check(gradflow_place(g, TENSORS) == SIZE_MAX, "place of no tensor", 0);
	give(g, 1);
	check(gradflow_begin(g) == NULL, "a step within a step", 0);
	refuse(gradflow_ready(g, TENSORS), "want a tensor below 3, got 3");
	refuse(gradflow_start(g), "gradflow_start: want it between steps");
	refuse(gradflow_save(g, folder),
	       "gradflow_save: want it between steps");
	need(gradflow_step(g, 1), g);
	refuse(gradflow_load(g, folder),
	       "want a set read before the first step");
	/* two of them in turns */
	need(gradflow_save(g, folder), g);
	need(gradflow_save(g, other), g);
	give(g, 2);
	need(gradflow_step(g, 1), g);
	need(gradflow_save(g, folder), g);
	/* what is bad fails for good, and says why again */
	give(g, 3);
	*gradflow_parameters(g) = 0;
	gradflow_step(g, 1);
	gradflow_begin(g)[gradflow_place(g, 1)] = NAN;
	rc = gradflow_step(g, 1);
	check(rc == -33, "status of what is not a number", rc);
	refuse(gradflow_place(g, 9) == SIZE_MAX ? -22 : 0, "not a number");
	check(gradflow_begin(g) == NULL, "a step behind a failed one", 0);
	check(gradflow_save(g, folder) == -33 &&
		      strstr(gradflow_error(), "not a number") != NULL,
	      "a set behind a failed step", 0);
	gradflow_close(g);
}

static void abandon(const char *plan)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	int rc = gradflow_open(three, TENSORS, &o, &g);

	need(rc, g);
	gradflow_begin(g);
	need(gradflow_ready(g, 1), g);
	gradflow_close(g);
	rc = gradflow_open(three, TENSORS, &o, &g);
	check(rc == -16 && !g, "status of a second open", rc);
}

/* MPI comes with the library; this program does not know its header. */
static void begin_mpi(int level)
{
	int (*init)(int *, char ***, int, int *);
	int got = -1;

	*(void **)&init = dlsym(RTLD_DEFAULT, "MPI_Init_thread");
	check(init && !init(NULL, NULL, level, &got) && got == level,
	      "MPI_Init_thread", got);
}

static void end_mpi(void)
{
	int (*finalize)(void);

	*(void **)&finalize = dlsym(RTLD_DEFAULT, "MPI_Finalize");
	check(finalize && !finalize(), "MPI_Finalize", 0);
}

static void beside(int level, const char *plan)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g, *h;
	int rc;

	begin_mpi(level);
	rc = gradflow_open(three, TENSORS, &o, &g);
	if (level < 3) {
		refuse(rc == -16 ? -22 : rc, "want MPI_THREAD_MULTIPLE then");
	} else {
		need(rc, g);
		need(gradflow_open(three, TENSORS, &o, &h), h);
		give(g, 1);
		give(h, 1);
		need(gradflow_step(h, 1), h);
		need(gradflow_step(g, 1), g);
		check(gradflow_parameters(g)[3] == gradflow_parameters(h)[3],
		      "a parameter", gradflow_parameters(g)[3]);
		gradflow_close(g);
		gradflow_close(h);
		exact(plan);
	}
	end_mpi();
	rc = gradflow_open(three, TENSORS, &o, &g);
	refuse(rc == -16 ? -22 : rc, "MPI has ended");
}

static void hangs(const char *plan)
{
	struct gradflow_options o = options(plan);
	struct gradflow *g;
	size_t s;
	int rc;

	o.timeout_s = 2;
	rc = gradflow_open(three, TENSORS, &o, &g);
	need(rc, g);
	for (s = 1; s <= 2; s++) {
		if (s == 2 && gradflow_rank(g) == 1)
			raise(SIGSTOP);
		give(g, s);
		rc = gradflow_step(g, 1);
	}
	check(rc == -110, "status of a step without rank 1", rc);
	need(rc, g);
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

/* Structs of a later version, whose new fields are at the end. */
struct later_options {
	struct gradflow_options now;
	size_t more[3];
};
struct later_tensor {
	struct gradflow_tensor now;
	size_t more;
};

static int sizes(const char *plan)
{
	/* of the first version, up to epoch_steps */
	const size_t first = offsetof(struct gradflow_options, timeout_s);
	struct later_options o = {.now = options(plan)};
	struct later_tensor t[TENSORS] = {{.now = {NULL}}};
	struct gradflow *g;
	int bad = 0;
	size_t i;

	begin_mpi(3);
	for (i = 0; i < TENSORS; i++)
		t[i].now = three[i];
	/* the bytes after an earlier, smaller struct are not looked at */
	o.now.timeout_s = NAN;
	o.now.tensor_size = 7;
	o.now.size = first;
	need(gradflow_open(three, TENSORS, &o.now, &g), g);
	gradflow_close(g);
	o.now = options(plan);
	o.now.size = sizeof(o);
	o.now.tensor_size = sizeof(t[0]);
	need(gradflow_open(&t[0].now, TENSORS, &o.now, &g), g);
	check(gradflow_count(g) == 19, "elements", (double)gradflow_count(g));
	gradflow_close(g);
	t[1].more = 1;
	bad += refused(&t[0].now, TENSORS, &o.now,
		       "tensor 1: want zeros after the 80 bytes that this "
		       "version knows, got 1 in byte 80 of 88");
	t[1].more = 0;
	o.more[2] = 3;
	bad += refused(&t[0].now, TENSORS, &o.now,
		       "options: want zeros after");
	o.more[2] = 0;
	o.now.tensor_size = sizeof(t[0]) - 1;
	bad += refused(&t[0].now, TENSORS, &o.now, "tensor_size: want");
	o.now.tensor_size = 72;
	bad += refused(&t[0].now, TENSORS, &o.now, "tensor_size: want");
	o.now.tensor_size = 0;
	for (i = 0; i < 4; i++) {
		static const size_t no_size[] = {0, sizeof(size_t), 1 << 20,
						 SIZE_MAX};

		o.now.size = no_size[i];
		bad += refused(three, TENSORS, &o.now,
			       "options: want their size");
	}
	end_mpi();
	return bad != 0;
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
		return refused(
			t, n, &o,
			"tensor 1: want a name of its own, got tensor 0's, c");
	}
	if (!strcmp(which, "shape")) {
		t[2].shape[1] = 0;
		return refused(t, n, &o,
			       "tensor 2 (a): dimension 1: want 1 or more");
	}
	if (!strcmp(which, "sum")) {
		/* each of them would fit */
		t[0].shape[0] = t[2].shape[0] = SIZE_MAX / 32;
		t[2].shape[1] = t[2].shape[2] = 1;
		return refused(t, n, &o,
			       "tensor 2 (a): dimension 0: want 1 or more, and "
			       "memory");
	}
	if (!strcmp(which, "taken")) {
		t[1].name = "train.skipped";
		return refused(t, n, &o, "\"train.skipped\": want a name for");
	}
	if (!strcmp(which, "reserved")) {
		t[1].name = "__metadata__";
		return refused(t, n, &o, "\"__metadata__\": want a name");
	}
	if (!strcmp(which, "bytes")) {
		t[1].name = "b\xff";
		return refused(t, n, &o, "want a name in UTF-8");
	}
	if (!strcmp(which, "count")) {
		struct gradflow *g;

		check(gradflow_open(t, SIZE_MAX, &o, &g) == -12 && !g &&
			      strstr(gradflow_error(), "no memory for "),
		      gradflow_error(), 0);
		return 0;
	}
	if (!strcmp(which, "ways")) {
		o.ways = "ring;ring";
		return refused(t, n, &o, "ways: ");
	}
	if (!strcmp(which, "algorithm")) {
		struct gradflow *g;

		o.ways = "ring;nothing;ring";
		check(gradflow_open(t, n, &o, &g) == -95 && !g &&
			      strstr(gradflow_error(), "ways: message 1: "),
		      gradflow_error(), 0);
		return 0;
	}
	if (!strcmp(which, "timeout")) {
		o.timeout_s = -1;
		return refused(t, n, &o, "timeout_s: want 0 or more, got -1");
	}
	if (!strcmp(which, "training")) {
		o.training = "{\"format\": \"gf-training\", \"version\": 1, "
			     "\"optimizer\": {\"momentum\": 7}}";
		return refused(t, n, &o, "momentum");
	}
	t[1].shape[0] = 4;
	return refused(t, n, &o, "b");
}

/* Ranks that differ. */
static int apart(const char *which, const char *plan)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	struct gradflow_tensor t[TENSORS];
	struct gradflow_options o = options(plan);

	memcpy(t, three, sizeof(t));
	if (!strcmp(which, "epoch")) {
		o.epoch_steps = rank && *rank == '1' ? 7 : 0;
		return refused(t, TENSORS, &o, "rank 1 has epoch_steps 7");
	}
	if (!strcmp(which, "ways")) {
		o.ways = rank && *rank == '1' ? "ring;ring;rhd" : NULL;
		return refused(t, TENSORS, &o, "ways: ");
	}
	if (rank && *rank == '1')
		t[1].shape[1] = 0;
	return refused(t, TENSORS, &o, "rank 1: tensor 1 (b)");
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
		checkpoint(argv[2], argv[3], mode[0] == 'l', 0);
	else if (!strcmp(mode, "epoch") && argc == 4)
		checkpoint(argv[2], argv[3], 1, 7);
	else if (!strcmp(mode, "ways") && (argc == 4 || argc == 5))
		ways(argv[2], argv[3], argc == 5 ? argv[4] : NULL, 0);
	else if (!strcmp(mode, "loadways") && argc == 5)
		ways(argv[2], argv[3], argv[4], 1);
	else if (!strcmp(mode, "sizes") && argc == 3)
		return sizes(argv[2]);
	else if (!strcmp(mode, "misuse") && argc == 4)
		misuse(argv[2], argv[3]);
	else if (!strcmp(mode, "abandon") && argc == 3)
		abandon(argv[2]);
	else if (!strcmp(mode, "beside") && argc == 4)
		beside(atoi(argv[2]), argv[3]);
	else if (!strcmp(mode, "hangs") && argc == 3)
		hangs(argv[2]);
	else if (!strcmp(mode, "apart") && argc == 4)
		return apart(argv[2], argv[3]);
	else if (!strcmp(mode, "bad") && argc == 4)
		return bad(argv[2], argv[3]);
	else
		return 64;
	return 0;
}
