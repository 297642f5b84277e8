/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange of gradients in GPUs' memory, on devices that do in any order
 * what streams and events leave open (tests/gpu/fake.h): means are exact, in
 * every type and layout, and the host waits for nothing. */
#include "caller.h"
#include "test.h"

#include <errno.h>

#include "../gpu/fake.h"

#include "base/array.h"

#define STEPS 4

struct device_case {
	struct fake_world *world;
	const char *plan; /* NULL: none */
	const enum gf_dtype *dtypes;
	enum layout layout;
	bool single; /* a message per tensor */
	bool flush;  /* rank 0 posts only the first tensor */
};

/* What the stream does: kernels of this test. */
struct kernel {
	struct caller *c;
	int rank;
	size_t step, tensor;
	float *to; /* STEPS * CALLER_ELEMS of them */
};

static float value(int rank, size_t i, size_t k, size_t step)
{
	return (float)((i * 7 + k * 3 + step * 5 + (size_t)rank * 11) % 17) - 8;
}

static size_t place(size_t tensor)
{
	size_t at = 0, i;

	for (i = 0; i < tensor; i++)
		at += caller_counts[i];
	return at;
}

static void make(void *ctx)
{
	const struct kernel *k = ctx;
	float values[1200];
	size_t i;

	for (i = 0; i < caller_counts[k->tensor]; i++)
		values[i] = value(k->rank, k->tensor, i, k->step);
	caller_put(k->c, k->tensor, values);
}

static void look(void *ctx)
{
	const struct kernel *k = ctx;

	caller_get(k->c, k->tensor,
		   k->to + k->step * CALLER_ELEMS + place(k->tensor));
}

static void enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx),
		    const struct kernel *k)
{
	fake_enqueue_copy(s, run, k, sizeof(*k));
}

static void check(struct caller_rank *r, const float *got)
{
	const struct device_case *d = r->c;
	size_t s, i, k;
	int rank;

	for (s = 0; s < STEPS; s++)
		for (i = 0; i < CALLER_TENSORS; i++)
			for (k = 0; k < caller_counts[i]; k++) {
				const bool left = d->flush && i > 0;
				float want = 0, is;

				for (rank = left; rank < r->ranks; rank++)
					want += value(rank, i, k, s);
				want /= (float)r->ranks;
				if (left && r->rank == 0)
					want = value(0, i, k, s);
				is = got[s * CALLER_ELEMS + place(i) + k];
				EXPECT(is == want,
				       "layout %d, rank %d of %d, step %zu, "
				       "tensor %zu, element %zu: want %g, got "
				       "%g",
				       (int)d->layout, r->rank, r->ranks, s, i,
				       k, want, is);
				if (is != want)
					return;
			}
}

static void run(struct caller_rank *r, struct caller *c,
		struct gf_gpu_stream *stream, float *got)
{
	const struct device_case *d = r->c;
	struct kernel k = {.c = c, .rank = r->rank, .to = got};
	size_t i;

	for (k.step = 0; k.step < STEPS; k.step++) {
		for (i = 0; i < CALLER_TENSORS; i++) {
			k.tensor = (i * 2 + (size_t)r->rank) % CALLER_TENSORS;
			enqueue(stream, make, &k);
			if (d->flush && k.tensor > 0 && r->rank == 0)
				continue;
			EXPECT(caller_post(c, k.tensor) == 0, "%s",
			       gradflow_error());
		}
		if (d->flush)
			EXPECT(gradflow_flush(c->x) == 0, "%s",
			       gradflow_error());
		EXPECT(gradflow_wait(c->x, GRADFLOW_ALL) == 0, "%s",
		       gradflow_error());
		for (k.tensor = 0; k.tensor < CALLER_TENSORS; k.tensor++)
			enqueue(stream, look, &k);
	}
}

static void body(struct caller_rank *r)
{
	const struct device_case *d = r->c;
	const struct gf_embed_device device = {fake_gpu(d->world, r->rank),
					       fake_nccl()};
	enum gradflow_dtype dtypes[CALLER_TENSORS];
	struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.tensor_size = sizeof(struct gradflow_tensor),
		.dtypes = dtypes,
		.plan_text = d->plan,
		.timeout_s = TEST_PATIENCE_S,
		.on_device = 1,
	};
	float *got = gf_xcalloc(STEPS * CALLER_ELEMS, sizeof(*got));
	struct gf_gpu_stream *stream;
	struct gf_error err = {""};
	struct caller c = {.x = NULL};
	size_t i;
	int rc;

	fake_be(d->world, r->rank);
	rc = device.gpu->ops->stream_new(device.gpu, false, &stream, &err);
	o.stream = stream;
	for (i = 0; i < CALLER_TENSORS; i++) {
		c.dtypes[i] = d->dtypes[i];
		dtypes[i] = d->dtypes[i] == GF_F16    ? GRADFLOW_F16
			    : d->dtypes[i] == GF_BF16 ? GRADFLOW_BF16
						      : GRADFLOW_F32;
	}
	caller_lay_out(&c, d->layout);
	rc = rc ? rc
		: gf_embed_exchange_open(r->comm[0], caller_tensors,
					 CALLER_TENSORS, &o, &device, &c.x,
					 &err);
	EXPECT(!rc, "%s", err.text);
	if (!rc) {
		run(r, &c, stream, got);
		EXPECT(gradflow_test(c.x, GRADFLOW_ALL) == -ENOTSUP &&
			       gradflow_wait(c.x, 0) == 0,
		       "%s", gradflow_error());
		EXPECT((gradflow_copied_bytes(c.x) == 0) ==
			       (r->ranks == 1 ||
				(d->dtypes[0] == GF_F32 &&
				 (d->layout == FLAT || d->single) &&
				 !(d->flush && r->rank == 0))),
		       "%zu bytes copied", (size_t)gradflow_copied_bytes(c.x));
		device.gpu->ops->stream_sync(device.gpu, stream, &err);
		check(r, got);
		gradflow_exchange_close(c.x);
	}
	device.gpu->ops->stream_free(device.gpu, stream);
	free(c.memory);
	free(got);
}

/* Only where gradients come back message by message. */
static void refuses(struct caller_rank *r)
{
	const struct device_case *d = r->c;
	const struct gf_embed_device device = {fake_gpu(d->world, r->rank),
					       fake_nccl()};
	struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.tensor_size = sizeof(struct gradflow_tensor),
		.plan_text = d->plan,
		.on_device = 1,
		.stream = NULL,
	};
	struct gradflow_exchange *x;
	struct gf_error err = {""};
	struct gf_gpu_stream *stream;

	fake_be(d->world, r->rank);
	if (d->plan) {
		device.gpu->ops->stream_new(device.gpu, false, &stream, &err);
		o.stream = stream;
	}
	EXPECT(gf_embed_exchange_open(r->comm[0], caller_tensors,
				      CALLER_TENSORS, &o, &device, &x, &err) &&
		       strstr(err.text, d->plan ? "wants \"dense\""
						: "stream: want the one"),
	       "%s", err.text);
	if (d->plan)
		device.gpu->ops->stream_free(device.gpu, stream);
}

static const struct fake_faults none;

static void on_world(void (*what)(struct caller_rank *r), int ranks,
		     struct device_case d)
{
	d.world = fake_world_new(ranks, 4, 7, &none);
	on_callers(ranks, what, &d);
	EXPECT(!fake_world_complaint(d.world), "%s",
	       fake_world_complaint(d.world));
	fake_world_free(d.world);
}

int main(void)
{
	static const enum gf_dtype types[][CALLER_TENSORS] = {
		{GF_F32, GF_F32, GF_F32, GF_F32, GF_F32},
		{GF_F16, GF_F16, GF_F16, GF_F16, GF_F16},
		{GF_BF16, GF_F32, GF_F16, GF_BF16, GF_F32},
	};
	static const char *const plans[] = {
		NULL,
		RULE("1", "2", "ring", "f32", DENSE),
		RULE("4096", "2", "library", "f32", DENSE),
		RULE("4096", "1", "ring", "bf16", DENSE),
	};
	size_t p, t;
	int layout, ranks;

	watchdog(120);
	for (p = 0; p < GF_ARRAY_LENGTH(plans); p++)
		for (t = 0; t < GF_ARRAY_LENGTH(types); t++)
			for (layout = 0; layout < LAYOUTS; layout += 2)
				for (ranks = 1; ranks <= 4; ranks *= 2)
					on_world(body, ranks,
						 (struct device_case){
							 NULL, plans[p],
							 types[t],
							 (enum layout)layout,
							 p == 1, false});
	on_world(body, 2,
		 (struct device_case){NULL, plans[2], types[0], FLAT, false,
				      true});
	on_world(refuses, 2, (struct device_case){.plan = NULL});
	on_world(refuses, 2,
		 (struct device_case){
			 .plan = RULE(
				 "1", "1", "ring", "f32",
				 "\"selection\": {\"method\": \"topk\", "
				 "\"density\": 0.1, "
				 "\"warmup_densities\": []}, " SYNCHRONOUS)});
	return TEST_END();
}
