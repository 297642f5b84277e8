/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "base/array.h"
#include "base/rng.h"
#include "documents/optimizer_bounds.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/sgd.h"

#include <errno.h>
#include <math.h>

/* Five steps in f32 against the formula in f64. */
#define TOLERANCE 2e-6
#define COUNT     37
#define STEPS     5

static const struct {
	struct gf_sgd o;
	float scale;
} cases[] = {
	{{.lr = 0.1}, 1.0f},
	{{.lr = 0.1, .momentum = 0.9}, 1.0f},
	{{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4}, 0.25f},
	{{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}, 0.25f},
	{{.lr = 0, .momentum = 0.5, .weight_decay = 1}, 1.0f},
};

static void formula(const struct gf_sgd *o, double scale, double grad, double *w, double *u)
{
	double g = scale * grad + o->weight_decay * *w;

	*u = o->momentum * *u + g;
	*w -= o->lr * (o->nesterov ? g + o->momentum * *u : *u);
}

static void test_sgd(size_t c)
{
	float w[COUNT], u[COUNT] = {0}, g[COUNT];
	double want_w[COUNT], want_u[COUNT] = {0};
	struct gf_rng rng;

	gf_rng_init(&rng, c, 0);
	for (size_t i = 0; i < COUNT; i++)
		want_w[i] = w[i] = (float)gf_rng_normal(&rng);
	for (int step = 0; step < STEPS; step++) {
		for (size_t i = 0; i < COUNT; i++) {
			g[i] = (float)gf_rng_normal(&rng);
			formula(&cases[c].o, cases[c].scale, g[i], &want_w[i], &want_u[i]);
		}
		gf_sgd_update(&cases[c].o, cases[c].scale, g, w, u, COUNT);
	}
	for (size_t i = 0; i < COUNT; i++) {
		EXPECT_NEAR(w[i], want_w[i], TOLERANCE, "case %zu w[%zu]", c, i);
		EXPECT_NEAR(u[i], want_u[i], TOLERANCE, "case %zu u[%zu]", c, i);
	}
}

/* |w| = 5 and |g| = 10 after scaling: trust = .1*5/(10 + .5*5) = .04. */
static void test_lars(void)
{
	const struct gf_lars o = {
		.sgd = {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.5},
		.eta = 0.1,
	};
	const float grad[2] = {24, -32}, none[2] = {0};
	float w[2] = {3, 4}, u[2] = {1, 2};
	double want_w[2], want_u[2];

	EXPECT_NEAR(gf_lars_trust(&o, 0.25f, grad, w, 2), 0.04, TOLERANCE, "trust");
	EXPECT(gf_lars_trust(&o, 0.25f, none, w, 2) == 1, "no gradient");
	EXPECT(gf_lars_trust(&o, 0.25f, grad, none, 2) == 1, "no weight");
	EXPECT(gf_lars_trust(&o, 0.25f, none, none, 0) == 1, "no element");
	for (size_t i = 0; i < 2; i++) {
		want_u[i] = 0.9 * u[i] + 0.04 * (0.25 * grad[i] + 0.5 * w[i]);
		want_w[i] = w[i] - 0.5 * want_u[i];
	}
	gf_lars_update(&o, 0.25f, grad, w, u, 2);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_NEAR(w[i], want_w[i], TOLERANCE, "LARS w[%zu]", i);
		EXPECT_NEAR(u[i], want_u[i], TOLERANCE, "LARS u[%zu]", i);
	}
}

/* --- whole nets ----------------------------------------------------------- */

/* A net of 3x4 weights and their bias, a norm of two vectors, 2x3 weights: what is excluded is
 * neither decayed nor given a rate of its own. Serial f64 arithmetic, element by element, is the
 * reference. */
static const struct gf_optim_tensor net[] = {
	{"fc1.weight", 2, 12}, {"fc1.bias", 1, 3},   {"bn.weight", 1, 3},
	{"bn.bias", 1, 3},     {"fc2.weight", 2, 6},
};
enum { NET = 27 };

static const struct {
	const char *label;
	struct gf_optim_config config;
	const char *excluded; /* one letter per tensor: x excluded */
	size_t ranges;
} nets[] = {
	{"sgd", {.name = "sgd", .momentum = .9, .weight_decay = .01}, ".....", 1},
	{"nesterov", {.name = "nesterov", .momentum = .9, .weight_decay = .01}, ".....", 1},
	{"sgd without decay of vectors",
	 {.name = "sgd", .momentum = .9, .weight_decay = .01, .exclude = "vectors"},
	 ".xxx.",
	 3},
	{"names", {.name = "sgd", .weight_decay = .5, .exclude = "bn.*,*2.weight"}, "..xxx", 2},
	{"lars",
	 {.name = "lars", .momentum = .9, .weight_decay = .01, .eta = .02, .epsilon = 1e-9},
	 ".xxx.",
	 5},
	{"lars for all",
	 {.name = "lars", .momentum = .5, .weight_decay = .01, .eta = .02, .exclude = "none"},
	 ".....",
	 5},
	{"clipped",
	 {.name = "sgd", .momentum = .9, .weight_decay = .01, .clip_norm = .125},
	 ".....",
	 1},
	{"lars-paper",
	 {.name = "lars-paper", .momentum = .9, .weight_decay = .01, .eta = .02, .epsilon = 1e-9},
	 ".xxx.",
	 5},
	{"adamw",
	 {.name = "adamw", .weight_decay = .01, .beta1 = .9, .beta2 = .999, .epsilon = 1e-8},
	 ".....",
	 1},
	{"clipped adamw without decay of vectors",
	 {.name = "adamw",
	  .weight_decay = .1,
	  .beta1 = .8,
	  .beta2 = .95,
	  .epsilon = 1e-3,
	  .clip_norm = .125,
	  .exclude = "vectors"},
	 ".xxx.",
	 3},
	{"clipped lars",
	 {.name = "lars", .momentum = .9, .weight_decay = .01, .eta = .02, .clip_norm = .125},
	 ".xxx.",
	 5},
};

/* State k of element i is that of the optimiser's array k. */
struct f64_net {
	double w[NET], u[GF_OPTIM_SLOTS][NET];
	int steps;
};

static double norm_of(const double *x, size_t n)
{
	double sum = 0;

	while (n--)
		sum += x[n] * x[n];
	return sqrt(sum);
}

static void f64_velocity(const struct gf_optim_config *k, double lr, double g, struct f64_net *n,
			 size_t i)
{
	bool inside = strcmp(k->name, "lars-paper") == 0;
	double *u = &n->u[0][i];

	*u = k->momentum * *u + (inside ? lr : 1) * g;
	n->w[i] -=
		(inside ? 1 : lr) * (strcmp(k->name, "nesterov") == 0 ? g + k->momentum * *u : *u);
}

static void f64_adamw(const struct gf_optim_config *k, double lr, double decay, double g,
		      struct f64_net *n, size_t i)
{
	double *m = &n->u[0][i], *v = &n->u[1][i];

	*m = k->beta1 * *m + (1 - k->beta1) * g;
	*v = k->beta2 * *v + (1 - k->beta2) * g * g;
	n->w[i] -= lr * decay * n->w[i];
	n->w[i] -= lr * (*m / (1 - pow(k->beta1, n->steps))) /
		   (sqrt(*v / (1 - pow(k->beta2, n->steps))) + k->epsilon);
}

static void f64_step(size_t c, double lr, const double *mean, struct f64_net *n)
{
	const struct gf_optim_config *k = &nets[c].config;
	bool lars = strncmp(k->name, "lars", 4) == 0;
	double clip = 1, norm = norm_of(mean, NET), g[NET];
	size_t t, i, at = 0;

	n->steps++;
	if (k->clip_norm > 0 && norm > k->clip_norm)
		clip = k->clip_norm / norm;
	for (i = 0; i < NET; i++)
		g[i] = clip * mean[i];
	for (t = 0; t < GF_ARRAY_LENGTH(net); at += net[t++].count_elems) {
		bool excluded = nets[c].excluded[t] == 'x';
		double decay = excluded ? 0 : k->weight_decay, trust = 1;
		double w = norm_of(n->w + at, net[t].count_elems);

		if (lars && !excluded)
			trust = k->eta * w /
				(norm_of(g + at, net[t].count_elems) + decay * w + k->epsilon);
		for (i = at; i < at + net[t].count_elems; i++) {
			if (strcmp(k->name, "adamw") == 0)
				f64_adamw(k, lr, decay, g[i], n, i);
			else
				f64_velocity(k, lr, trust * (g[i] + decay * n->w[i]), n, i);
		}
	}
}

static void test_net(size_t c)
{
	const float scale = 0.25f;
	struct gf_optimizer o;
	struct gf_error err = {""};
	struct f64_net want = {.steps = 0};
	float w[NET], g[NET];
	double mean[NET];
	struct gf_rng rng;
	size_t i, k;
	int step;

	EXPECT(gf_optimizer_init(&o, &nets[c].config, net, GF_ARRAY_LENGTH(net), &err) == 0,
	       "%s: %s", nets[c].label, err.text);
	EXPECT(o.nranges == nets[c].ranges && o.count_elems == NET, "%s: %zu ranges", nets[c].label,
	       o.nranges);
	gf_rng_init(&rng, c, 1);
	for (i = 0; i < NET; i++)
		want.w[i] = w[i] = (float)gf_rng_normal(&rng);
	for (step = 0; step < STEPS; step++) {
		for (i = 0; i < NET; i++) {
			g[i] = (float)gf_rng_normal(&rng);
			mean[i] = (double)scale * (double)g[i];
		}
		EXPECT_NEAR(gf_optimizer_norm(&o, scale, g), norm_of(mean, NET), 1e-6, "%s: norm",
			    nets[c].label);
		f64_step(c, 0.1 / (step + 1), mean, &want);
		gf_optimizer_step(&o, 0.1 / (step + 1), scale, g, w);
	}
	for (i = 0; i < NET; i++) {
		EXPECT_NEAR(w[i], want.w[i], TOLERANCE, "%s w[%zu]", nets[c].label, i);
		for (k = 0; o.ops->slots[k]; k++)
			EXPECT_NEAR(o.slot[k][i], want.u[k][i], TOLERANCE, "%s: %s[%zu]",
				    nets[c].label, o.ops->slots[k], i);
	}
	gf_optimizer_release(&o);
}

/* torch.optim.AdamW(lr=0.1) in f64, and the equations in Python's own arithmetic, both come to
 * these. */
static void test_adamw(void)
{
	static const struct gf_optim_config config = {
		.name = "adamw", .weight_decay = .01, .beta1 = .9, .beta2 = .999, .epsilon = 1e-8};
	static const struct gf_optim_tensor three = {"w", 1, 3};
	static const float grads[3][3] = {{.5f, -4, 0}, {.25f, 2, 0}, {-1, 1e-3f, 3}};
	static const double want[3][3] = {
		{0.899000002, -1.89800000025, 0.4995},
		{0.8048830404754623, -1.8694682963679456, 0.4990005},
		{0.824713859842936, -1.8470251954818917, 0.4346201399287833}};
	float w[3] = {1, -2, .5f};
	struct gf_optimizer o;
	struct gf_error err = {""};
	size_t step, i;

	EXPECT(!gf_optimizer_init(&o, &config, &three, 1, &err), "%s", err.text);
	for (step = 0; step < 3; step++) {
		gf_optimizer_step(&o, .1, 1, grads[step], w);
		for (i = 0; i < 3; i++)
			EXPECT_NEAR(w[i], want[step][i], 2e-7, "adamw, step %zu, w[%zu]", step + 1,
				    i);
	}
	EXPECT(o.steps == 3, "adamw: %zu steps", (size_t)o.steps);
	gf_optimizer_release(&o);
}

static void test_refusals(void)
{
	static const struct {
		struct gf_optim_config config;
		const char *text;
	} refused[] = {
		{{.name = "adam"},
		 "want an optimizer (sgd, nesterov, lars, lars-paper, adamw), got \"adam\""},
		{{.name = "sgd", .exclude = "vectors,fc3.*"},
		 "--optimizer: exclude: want names of tensors, none is like \"fc3.*\""},
		{{.name = "sgd", .exclude = ""},
		 "--optimizer: exclude: want names of tensors, none is like \"\""},
	};
	struct gf_optimizer o;
	struct gf_error err = {""};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(refused); i++) {
		EXPECT(gf_optimizer_init(&o, &refused[i].config, net, GF_ARRAY_LENGTH(net), &err) ==
			       -EINVAL,
		       "%s", refused[i].text);
		EXPECT_TEXT(err.text, refused[i].text);
	}
	gf_optimizer_release(NULL);
}

/* What plans are told of each optimiser's state is what it has. */
static void test_state(void)
{
	const struct gf_optim_tensor tensor = {"w", 1, COUNT};
	struct gf_error err = {""};
	double bytes;

	for (size_t i = 0; gf_optimizers[i]; i++) {
		const struct gf_optim_config config = {.name = gf_optimizers[i]->name};
		struct gf_optimizer o;
		size_t slots = 0;

		EXPECT(!gf_optimizer_init(&o, &config, &tensor, 1, &err), "%s", err.text);
		while (slots < GF_OPTIM_SLOTS && o.slot[slots])
			slots++;
		EXPECT(!gf_optimizer_state_bytes(config.name, &bytes, &err), "%s", err.text);
		EXPECT(bytes == (double)(slots * sizeof(float)), "%s: %g bytes for %zu arrays",
		       config.name, bytes, slots);
		gf_optimizer_release(&o);
	}
	EXPECT(gf_optimizer_state_bytes("adam", &bytes, &err) == -EINVAL, "adam");
	EXPECT_TEXT(err.text,
		    "want sgd, nesterov, lars, lars-paper or adamw, got \"adam\"; did you "
		    "mean \"adamw\"?");
}

int main(void)
{
	for (size_t c = 0; c < GF_ARRAY_LENGTH(cases); c++)
		test_sgd(c);
	test_lars();
	for (size_t c = 0; c < GF_ARRAY_LENGTH(nets); c++)
		test_net(c);
	test_adamw();
	test_refusals();
	test_state();
	return TEST_END();
}
