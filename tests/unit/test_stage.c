/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "base/heap.h"
#include "trainer/net_device.h"
#include "test.h"

/*
 * Gradients to the host and parameters back, over a device that does in any order what streams and
 * events leave open (tests/gpu/fake.h): nothing is seen before it is made, and nothing overwritten
 * while it is read.
 */
#define TENSORS 6
#define STEPS   8

static const size_t offsets[TENSORS + 1] = {0, 1000, 1007, 1040, 1552, 1553, 3553};
#define ELEMS 3553

/* A pass: reads all parameters, makes one tensor's gradient. */
struct kernel {
	float *grads;
	const float *params;
	size_t first, count;
	float add;
};

static void make_gradient(void *ctx)
{
	struct kernel *k = ctx;
	float seen = k->params[0];
	size_t i;

	/* parameters are those of one step, all of them */
	for (i = 0; i < ELEMS; i++)
		if (k->params[i] != seen)
			seen = -1e9f;
	for (i = k->first; i < k->first + k->count; i++)
		k->grads[i] = seen + k->add + (float)i;
	free(k);
}

/* Work after the last gradient, which reads parameters. */
static void look_again(void *ctx)
{
	struct kernel *k = ctx;
	size_t i;

	for (i = 0; i < ELEMS; i++)
		EXPECT(k->params[i] == k->add, "parameter %zu of step %g: %g", i, (double)k->add,
		       (double)k->params[i]);
	free(k);
}

struct rig {
	struct fake_world *world;
	struct gf_gpu *gpu;
	struct gf_gpu_stream *compute;
	void *grads, *params;
	float host_params[ELEMS], pools[2][ELEMS];
	struct gf_grad_stage *stage;
	struct gf_error err;
};

static void open_rig(struct rig *r, unsigned seed, size_t piece_bytes, double timeout_s)
{
	static const struct fake_faults none;

	memset(r, 0, sizeof(*r));
	r->world = fake_world_new(1, 4, seed, &none);
	r->gpu = fake_gpu(r->world, 0);
	r->gpu->ops->stream_new(r->gpu, false, &r->compute, &r->err);
	r->gpu->ops->alloc(r->gpu, sizeof(r->host_params), &r->grads, &r->err);
	r->gpu->ops->alloc(r->gpu, sizeof(r->host_params), &r->params, &r->err);
	EXPECT(!gf_stage_new(
		       &(struct gf_stage_config){
			       .gpu = r->gpu,
			       .compute = r->compute,
			       .offsets = offsets,
			       .ntensors = TENSORS,
			       .grads = r->grads,
			       .params = r->params,
			       .host_params = r->host_params,
			       .piece_bytes = piece_bytes,
			       .timeout_s = timeout_s,
		       },
		       &r->stage, &r->err),
	       "%s", r->err.text);
}

static void close_rig(struct rig *r)
{
	gf_stage_free(r->stage);
	r->gpu->ops->stream_sync(r->gpu, r->compute, &r->err);
	EXPECT(fake_world_counts(r->world).waiting == 0, "something is left");
	fake_world_free(r->world);
}

static void enqueue_backward(struct rig *r, int step)
{
	size_t t;

	for (t = 0; t < TENSORS; t++) {
		struct kernel k = {
			.grads = r->grads,
			.params = r->params,
			.first = offsets[t],
			.count = offsets[t + 1] - offsets[t],
			.add = (float)step * 10000,
		};

		fake_enqueue(r->compute, make_gradient, gf_xmemdup(&k, sizeof(k)));
		EXPECT(!gf_stage_down(r->stage, t, &r->err), "%s", r->err.text);
	}
	for (t = 0; t < 20; t++) {
		struct kernel k = {.params = r->params, .add = (float)step};

		fake_enqueue(r->compute, look_again, gf_xmemdup(&k, sizeof(k)));
	}
	EXPECT(!gf_stage_flush(r->stage, &r->err), "%s", r->err.text);
}

static void check_gradient(const float *pool, size_t t, int step)
{
	size_t i;

	for (i = offsets[t]; i < offsets[t + 1]; i++)
		if (pool[i] != (float)step + (float)step * 10000 + (float)i)
			break;
	EXPECT(i == offsets[t + 1], "step %d, tensor %zu: element %zu is %g", step, t, i,
	       i < ELEMS ? (double)pool[i] : 0);
}

/* In pieces of uneven size, now and then with a gap, as updates of parts leave. */
static void update(struct rig *r, int step)
{
	size_t first, n, i;

	for (first = 0; first < ELEMS; first += n) {
		n = 1 + (first * 7 + (size_t)step * 13) % 700;
		if (n > ELEMS - first)
			n = ELEMS - first;
		for (i = first; i < first + n; i++)
			r->host_params[i] = (float)step;
		/* back to front within a piece: not neighbours */
		if (n > 2) {
			EXPECT(!gf_stage_up(r->stage, first + n / 2, n - n / 2, &r->err), "%s",
			       r->err.text);
			EXPECT(!gf_stage_up(r->stage, first, n / 2, &r->err), "%s", r->err.text);
		} else {
			EXPECT(!gf_stage_up(r->stage, first, n, &r->err), "%s", r->err.text);
		}
	}
	EXPECT(!gf_stage_join(r->stage, &r->err), "%s", r->err.text);
}

static void test_steps(unsigned seed, size_t piece_bytes)
{
	struct rig r;
	size_t tensor, want;
	int step;

	open_rig(&r, seed, piece_bytes, TEST_PATIENCE_S);
	for (step = 0; step < STEPS; step++) {
		float *pool = r.pools[step % 2];

		update(&r, step);
		gf_stage_to(r.stage, pool);
		enqueue_backward(&r, step);
		for (want = 0; gf_stage_arrived(r.stage, &tensor, &r.err) == 1; want++) {
			EXPECT(tensor == want, "want %zu, got %zu", want, tensor);
			check_gradient(pool, tensor, step);
		}
		EXPECT(want == TENSORS, "%zu came: %s", want, r.err.text);
	}
	close_rig(&r);
}

static void test_timeout(void)
{
	struct rig r;
	atomic_bool held = true;
	size_t tensor = 99;
	int rc;

	open_rig(&r, 1, 0, .05);
	gf_stage_to(r.stage, r.pools[0]);
	fake_hold(r.compute, &held);
	EXPECT(!gf_stage_down(r.stage, 2, &r.err), "%s", r.err.text);
	EXPECT(gf_stage_look(r.stage, &tensor, &r.err) == 0, "too soon");
	rc = gf_stage_arrived(r.stage, &tensor, &r.err);
	EXPECT(rc == -ETIMEDOUT && tensor == 99, "got %d", rc);
	EXPECT_TEXT(r.err.text, "GPU 0: the gradient of tensor 2 has not come for 0.05 s");
	held = false;
	close_rig(&r);
}

int main(void)
{
	static const size_t pieces[] = {0, 4, 100, 4096};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(pieces); i++) {
		test_steps((unsigned)i + 1, pieces[i]);
		test_steps((unsigned)i + 77, pieces[i]);
	}
	test_timeout();
	return TEST_END();
}
