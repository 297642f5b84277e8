/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "planner/make.h"
#include "simulator/period_time.h"
#include "test.h"

/* Two hosts of two ranks. */
static struct gf_level levels[] = {{.name = (char *)"host",
				    .link = (char *)"shm",
				    .size = 2,
				    .bandwidth_bytes_per_s = 1e4,
				    .latency_s = 1e-4},
				   {.name = (char *)"site",
				    .link = (char *)"net",
				    .size = 2,
				    .bandwidth_bytes_per_s = 100,
				    .latency_s = 0.1}};
enum { TENSORS_MOST = 12 };
static struct gf_tensor tensors[TENSORS_MOST];
static struct gf_model_profile model = {.name = (char *)"m",
					.forward_s = 0.1,
					.backward_s = 0.2,
					.update_s = 0.01,
					.overlap_slowdown = 1.2,
					.tensors = tensors};

static void draw(struct gf_rng *rng)
{
	size_t i;

	model.ntensors = 1 + gf_rng_below(rng, TENSORS_MOST);
	for (i = 0; i < model.ntensors; i++)
		tensors[i] = (struct gf_tensor){.name = (char *)"t",
						.count_elems = 1 + gf_rng_below(rng, 50),
						.dtype = GF_F32,
						.ready_s = 0.2 * (double)(i + 1) /
							   (double)model.ntensors,
						.need_s = NAN};
}

static double sum(size_t first, size_t last)
{
	double bytes = 0;

	for (; first <= last; first++)
		bytes += (double)gf_tensor_bytes(&tensors[first]);
	return bytes;
}

/* The least largest piece, by trying all cuts. */
static double least(size_t first, size_t pieces)
{
	double best = INFINITY;
	size_t last;

	if (pieces == 1)
		return sum(first, model.ntensors - 1);
	for (last = first; last + pieces <= model.ntensors; last++)
		best = fmin(best, fmax(sum(first, last), least(last + 1, pieces - 1)));
	return best;
}

static void plan(struct gf_request *r, const char *keys, struct gf_plan *p, int *rc)
{
	struct gf_axes axes;
	struct gf_text notes = {0};

	gf_axes_init(&axes);
	axes.period = 4; /* streaming */
	axes.period_keys = keys;
	axes.hide = 0.05;
	r->axes = &axes;
	*rc = gf_request_plan(r, p, &notes, NULL);
	gf_text_release(&notes);
	gf_axes_release(&axes);
}

/* What a period of these would have exposed. */
static double share(struct gf_plan *p, const struct gf_fabric *f, size_t steps, size_t delay)
{
	struct gf_sim_result r = {0};
	struct gf_period_time t;
	const struct gf_period was = p->period;

	p->period.steps = steps;
	p->period.delay = delay;
	EXPECT(gf_predict_period(p, f, &r, &t, NULL) == 0, "predict");
	p->period = was;
	return t.exposed_s / t.period_s;
}

/* Fragments as equal as can be; of steps and delay, one less hides too little.
 */
static void test_drawn(void)
{
	static const char *const keys[] = {NULL, "fragments=2", "delay=1", "fragments=3,delay=2"};
	struct gf_rng rng;
	size_t k, i, fragments;
	int rc;

	gf_rng_init(&rng, 1, 0);
	for (k = 0; k < 40; k++) {
		const size_t which = k % GF_ARRAY_LENGTH(keys);
		struct gf_fabric f = {.levels = levels, .nlevels = 2, .ranks = 4};
		struct gf_request r = {.model = &model, .fabric = f};
		double most = 0;
		struct gf_plan p;

		draw(&rng);
		plan(&r, keys[which], &p, &rc);
		EXPECT(!rc == (model.ntensors > 2 || which == 0 || which == 2 ||
			       (which == 1 && model.ntensors == 2)),
		       "case %zu: %d of %zu tensors", k, rc, model.ntensors);
		if (rc)
			continue;
		fragments = p.period.fragments;
		for (i = 0; i < fragments; i++)
			most = fmax(most,
				    sum(p.period.messages[i].first, p.period.messages[i].last));
		EXPECT(most == least(0, fragments), "case %zu: %g of %g", k, most,
		       least(0, fragments));
		EXPECT(share(&p, &f, p.period.steps, p.period.delay) <= 0.05, "case %zu", k);
		if (p.period.delay && which < 2)
			EXPECT(share(&p, &f, p.period.steps, p.period.delay - 1) > 0.05,
			       "case %zu: a shorter delay", k);
		if (which < 2 && p.period.steps > fragments)
			EXPECT(share(&p, &f, p.period.steps - fragments,
				     p.period.steps / fragments - 2) > 0.05,
			       "case %zu: fewer steps", k);
		gf_plan_release(&p);
	}
}

int main(void)
{
	test_drawn();
	return TEST_END();
}
