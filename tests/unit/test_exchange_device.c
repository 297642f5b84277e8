/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange of gradients in GPUs' memory, on devices that do in any order what streams and events
 * leave open (tests/gpu/fake.h): means are exact, in every type and layout, and the host waits for
 * nothing. Selections give the bits that they give on the host. */
#include "caller.h"
#include "selections.h"
#include "test.h"

#include <errno.h>
#include <math.h>

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
	double timeout_s;
};

/* What the stream does: kernels of this test. */
struct kernel {
	struct caller *c;
	int rank;
	size_t step, tensor;
	bool drawn;
	float *to; /* STEPS * CALLER_ELEMS of them */
};

static float value(int rank, size_t i, size_t k, size_t step)
{
	return (float)((i * 7 + k * 3 + step * 5 + (size_t)rank * 11) % 17) - 8;
}

/* Random, of so few bits that sums are exact in f32: the host and a device cut messages at other
 * places. In one step one of them is infinite on rank 0. */
#define BAD 4

static float drawn(int rank, size_t i, size_t k, size_t step)
{
	uint32_t state = (uint32_t)(((step * 8 + (size_t)rank) * 8 + i) * 4096 + k);

	if (step == BAD && !rank && i == 1 && k == 700)
		return INFINITY;
	state = (state ^ state >> 15) * 0x2c1b3c6d;
	state = (state ^ state >> 12) * 0x297a2d39;
	state ^= state >> 15;
	return (float)((int32_t)state >> 21) * 0x1p-10f;
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
		values[i] = (k->drawn ? drawn : value)(k->rank, k->tensor, i, k->step);
	caller_put(k->c, k->tensor, values);
}

static void look(void *ctx)
{
	const struct kernel *k = ctx;

	caller_get(k->c, k->tensor, k->to + k->step * CALLER_ELEMS + place(k->tensor));
}

static void enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), const struct kernel *k)
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
				       "layout %d, rank %d of %d, step %zu, tensor %zu, element "
				       "%zu: want %g, got %g",
				       (int)d->layout, r->rank, r->ranks, s, i, k, want, is);
				if (is != want)
					return;
			}
}

static void run(struct caller_rank *r, struct caller *c, struct gf_gpu_stream *stream, float *got)
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
			EXPECT(caller_post(c, k.tensor) == 0, "%s", gradflow_error());
		}
		if (d->flush)
			EXPECT(gradflow_exchange_flush(c->x) == 0, "%s", gradflow_error());
		EXPECT(gradflow_exchange_wait(c->x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
		for (k.tensor = 0; k.tensor < CALLER_TENSORS; k.tensor++)
			enqueue(stream, look, &k);
	}
}

/* With a stream, that makes gradients there. */
static int open_on(struct caller_rank *r, struct gf_gpu_stream *stream, struct caller *c)
{
	const struct device_case *d = r->c;
	const struct gf_embed_device device = {fake_gpu(d->world, r->rank), fake_nccl()};
	enum gradflow_dtype dtypes[CALLER_TENSORS];
	struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.former = -1,
		.dtypes = dtypes,
		.plan_text = d->plan,
		.epoch_steps = 3,
		.momentum = 0.9,
		.timeout_s = d->timeout_s > 0 ? d->timeout_s : TEST_PATIENCE_S,
		.on_device = stream != NULL,
		.stream = stream,
	};
	struct gf_error err = {""};
	size_t i;
	int rc;

	*c = (struct caller){.x = NULL};
	for (i = 0; i < CALLER_TENSORS; i++) {
		c->dtypes[i] = d->dtypes[i];
		dtypes[i] = d->dtypes[i] == GF_F16    ? GRADFLOW_F16
			    : d->dtypes[i] == GF_BF16 ? GRADFLOW_BF16
						      : GRADFLOW_F32;
	}
	caller_lay_out(c, d->layout);
	rc = gf_embed_exchange_open(r->comm[0], caller_tensors, CALLER_TENSORS, &o,
				    stream ? &device : NULL, &c->x, &err);
	EXPECT(!rc, "%s", err.text);
	return rc;
}

static void body(struct caller_rank *r)
{
	const struct device_case *d = r->c;
	const struct gf_embed_device device = {fake_gpu(d->world, r->rank), fake_nccl()};
	float *got = gf_xcalloc(STEPS * CALLER_ELEMS, sizeof(*got));
	struct gf_gpu_stream *stream;
	struct gf_error err = {""};
	struct caller c;

	fake_be(d->world, r->rank);
	EXPECT(!device.gpu->ops->stream_new(device.gpu, false, &stream, &err), "%s", err.text);
	if (!open_on(r, stream, &c)) {
		run(r, &c, stream, got);
		EXPECT(gradflow_exchange_test(c.x, GRADFLOW_ALL) == -ENOTSUP &&
			       gradflow_exchange_wait(c.x, 0) == 0,
		       "%s", gradflow_error());
		EXPECT((gradflow_exchange_copied_bytes(c.x) == 0) ==
			       (r->ranks == 1 ||
				(d->dtypes[0] == GF_F32 && (d->layout == FLAT || d->single) &&
				 !(d->flush && r->rank == 0))),
		       "%zu bytes copied", (size_t)gradflow_exchange_copied_bytes(c.x));
		device.gpu->ops->stream_sync(device.gpu, stream, &err);
		check(r, got);
		gradflow_exchange_close(c.x);
	}
	device.gpu->ops->stream_free(device.gpu, stream);
	free(c.memory);
	free(got);
}

/* --- selections ----------------------------------------------------------- */

enum { SELECT_STEPS = 9, SAVED = 6 };

/* What became of a rank: means of all steps, and what was held back after SAVED of them. */
struct kept {
	float got[SELECT_STEPS * CALLER_ELEMS];
	struct gradflow_array arrays[4];
	size_t narrays;
};

struct select_case {
	struct device_case d;
	struct kept *kept; /* per rank */
	bool on_device, resumed;
};

/* Does the rank have a gradient of that tensor in that step? */
static bool has(int rank, size_t tensor, size_t step)
{
	return rank != 1 || (step != 2 && (step != 3 || tensor % 2));
}

static void select_step(struct caller *c, struct gf_gpu_stream *stream, struct kernel k)
{
	size_t i;

	for (i = 0; i < CALLER_TENSORS; i++) {
		k.tensor = (i * 2 + k.step + (size_t)k.rank) % CALLER_TENSORS;
		if (stream)
			enqueue(stream, make, &k);
		else
			make(&k);
		if (has(k.rank, k.tensor, k.step))
			EXPECT(caller_post(c, k.tensor) == 0, "%s", gradflow_error());
	}
	EXPECT(gradflow_exchange_flush(c->x) == 0 &&
		       gradflow_exchange_wait(c->x, GRADFLOW_ALL) == 0,
	       "%s", gradflow_error());
	for (k.tensor = 0; k.tensor < CALLER_TENSORS; k.tensor++)
		if (stream)
			enqueue(stream, look, &k);
		else
			look(&k);
}

static void keep_arrays(struct caller *c, struct kept *kept)
{
	struct gradflow_array *a = kept->arrays;

	while (!gradflow_exchange_state(c->x, kept->narrays, &a[kept->narrays])) {
		a[kept->narrays].data =
			gf_xmemdup(a[kept->narrays].data, a[kept->narrays].size_bytes);
		kept->narrays++;
	}
}

/* Also after a step whose decisions do not count. */
static void go_on(struct caller *c, struct gf_gpu_stream *stream, struct kernel k,
		  const struct kept *kept)
{
	struct gradflow_array a[4];
	size_t i;

	for (i = 0; i < kept->narrays; i++)
		EXPECT(!gradflow_exchange_state(c->x, i, &a[i]), "%s", gradflow_error());
	select_step(c, stream, k);
	for (i = 0; i < kept->narrays; i++)
		memcpy(a[i].data, kept->arrays[i].data, a[i].size_bytes);
	EXPECT(!gradflow_exchange_restored(c->x, SAVED), "%s", gradflow_error());
}

static void selects(struct caller_rank *r)
{
	const struct select_case *s = r->c;
	struct gf_gpu *gpu = fake_gpu(s->d.world, r->rank);
	struct kept *kept = &s->kept[r->rank];
	struct kernel k = {.rank = r->rank, .drawn = true, .to = kept->got};
	struct gf_gpu_stream *stream = NULL;
	struct gf_error err = {""};
	struct caller c;

	fake_be(s->d.world, r->rank);
	if (s->on_device)
		gpu->ops->stream_new(gpu, false, &stream, &err);
	if (!open_on(r, stream, &c)) {
		k.c = &c;
		if (s->resumed)
			go_on(&c, stream, k, kept);
		for (k.step = s->resumed ? SAVED : 0; k.step < SELECT_STEPS; k.step++) {
			if (k.step == SAVED && !s->resumed)
				keep_arrays(&c, kept);
			if (k.step == SAVED && s->on_device && !s->resumed)
				break;
			if (k.step == SAVED + 1)
				EXPECT(!gradflow_exchange_rescale(c.x, 0.5), "%s",
				       gradflow_error());
			select_step(&c, stream, k);
		}
		if (stream)
			gpu->ops->stream_sync(gpu, stream, &err);
		gradflow_exchange_close(c.x);
	}
	if (stream)
		gpu->ops->stream_free(gpu, stream);
	free(c.memory);
}

/* The same numbers; a NaN is as good as another. */
static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void check_kept(const struct device_case *d, int rank, const struct kept *host,
		       const struct kept *device)
{
	size_t s, i, k, n = 0, at;

	for (s = 0; s < SELECT_STEPS; s++)
		for (i = 0; i < CALLER_TENSORS; i++)
			for (k = 0; k < caller_counts[i]; k++) {
				at = s * CALLER_ELEMS + place(i) + k;
				n += !same(host->got[at], device->got[at]) ||
				     (has(rank, i, s) && isnan(host->got[at]) != (s == BAD));
				EXPECT(n != 1,
				       "%s, layout %d, rank %d, step %zu, tensor %zu, element %zu: "
				       "want %g, got %g",
				       d->plan, (int)d->layout, rank, s, i, k, host->got[at],
				       device->got[at]);
				n += n == 1;
			}
	EXPECT(host->narrays && host->narrays == device->narrays, "%s: %zu arrays, %zu", d->plan,
	       host->narrays, device->narrays);
	for (i = 0; i < host->narrays; i++)
		EXPECT(memcmp(host->arrays[i].data, device->arrays[i].data,
			      host->arrays[i].size_bytes) == 0,
		       "%s, rank %d: %s", d->plan, rank, host->arrays[i].name);
}

static void free_kept(struct kept *kept, int ranks)
{
	int rank;
	size_t i;

	for (rank = 0; rank < ranks; rank++)
		for (i = 0; i < kept[rank].narrays; i++)
			free(kept[rank].arrays[i].data);
	free(kept);
}

/* A rank's messages end no more. The host waits for what a step has chosen, and that wait ends,
 * too. */
static void stops(struct caller_rank *r)
{
	const struct device_case *d = r->c;
	struct gf_gpu *gpu = fake_gpu(d->world, r->rank);
	struct gf_gpu_stream *stream;
	struct gf_error err = {""};
	struct caller c;
	size_t step, i;
	int rc = 0;

	fake_be(d->world, r->rank);
	gpu->ops->stream_new(gpu, false, &stream, &err);
	if (!open_on(r, stream, &c)) {
		for (step = 0; step < 20 && !rc; step++) {
			for (i = 0; i < CALLER_TENSORS && !rc; i++)
				rc = caller_post(&c, i);
			rc = rc ? rc : gradflow_exchange_wait(c.x, GRADFLOW_ALL);
		}
		EXPECT(rc < 0 && strstr(gradflow_error(), "message"), "rank %d: %d: %s", r->rank,
		       rc, gradflow_error());
		gradflow_exchange_close(c.x);
	}
	gpu->ops->stream_free(gpu, stream);
	free(c.memory);
}

/* Only those with a half for GPUs. */
static void refuses(struct caller_rank *r)
{
	const struct device_case *d = r->c;
	const struct gf_embed_device device = {fake_gpu(d->world, r->rank), fake_nccl()};
	struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.former = -1,
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
	EXPECT(!d->plan || (gradflow_exchange_check(d->plan, 1) == -ENOTSUP &&
			    gradflow_exchange_check(d->plan, 0) == 0),
	       "%s", gradflow_error());
	EXPECT(gf_embed_exchange_open(r->comm[0], caller_tensors, CALLER_TENSORS, &o, &device, &x,
				      &err) &&
		       strstr(err.text, d->plan ? "goes by the host" : "stream: want the one"),
	       "%s", err.text);
	if (d->plan)
		device.gpu->ops->stream_free(device.gpu, stream);
}

static const struct fake_faults none;

static struct kept *run_selects(int ranks, struct device_case d, bool on_device)
{
	struct select_case s = {.d = d, .on_device = on_device};

	s.kept = gf_xcalloc((size_t)ranks, sizeof(*s.kept));
	do {
		s.d.world = fake_world_new(ranks, 4, 7, &none);
		on_callers(ranks, selects, &s);
		EXPECT(!fake_world_complaint(s.d.world), "%s", fake_world_complaint(s.d.world));
		fake_world_free(s.d.world);
		s.resumed = !s.resumed;
	} while (on_device && s.resumed);
	return s.kept;
}

static void test_selects(int ranks, struct device_case d)
{
	struct kept *host = run_selects(ranks, d, false);
	struct kept *device = run_selects(ranks, d, true);
	int rank;

	EXPECT(gradflow_exchange_check(d.plan, 1) == 0, "%s", gradflow_error());
	for (rank = 0; rank < ranks; rank++)
		check_kept(&d, rank, &host[rank], &device[rank]);
	free_kept(host, ranks);
	free_kept(device, ranks);
}

static void on_world(void (*what)(struct caller_rank *r), int ranks, struct device_case d)
{
	static const struct fake_faults hangs = {.hangs = 2, .after = 40};

	d.world = fake_world_new(ranks, 4, 7, d.timeout_s > 0 ? &hangs : &none);
	on_callers(ranks, what, &d);
	EXPECT(!fake_world_complaint(d.world), "%s", fake_world_complaint(d.world));
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
	static const struct {
		const char *codec, *words;
	} selected[] = {
		{"f32", "pieces: caller"},          {"f16", "pieces: caller f16"},
		{"f32", "gathered: caller"},        {"f32", "merged: caller"},
		{"f32", "merged: conserve, small"},
	};
	char *selections[GF_ARRAY_LENGTH(selected)], *by_host;
	size_t p, t;
	int layout, ranks;

	watchdog(120);
	for (p = 0; p < GF_ARRAY_LENGTH(selections); p++)
		selections[p] = gf_xasprintf(
			RULE("2000", "2", "ring", "%s", "\"selection\": %s, " SYNCHRONOUS),
			selected[p].codec, test_object(selected[p].words));
	by_host = gf_xasprintf(RULE("1", "1", "ring", "f32", "\"selection\": %s, " SYNCHRONOUS),
			       test_object("seldom: caller"));
	for (p = 0; p < GF_ARRAY_LENGTH(selections); p++)
		for (t = 0; t < GF_ARRAY_LENGTH(types); t++)
			/* sums in f16 depend on their order */
			for (ranks = 1; ranks <= (p == 1 || t == 1 ? 2 : 4); ranks++)
				test_selects(ranks,
					     (struct device_case){
						     .plan = selections[p],
						     .dtypes = types[t],
						     .layout = (ranks + t) % 2 ? FLAT : APART,
					     });
	for (p = 0; p < GF_ARRAY_LENGTH(plans); p++)
		for (t = 0; t < GF_ARRAY_LENGTH(types); t++)
			for (layout = 0; layout < LAYOUTS; layout += 2)
				for (ranks = 1; ranks <= 4; ranks *= 2)
					on_world(body, ranks,
						 (struct device_case){NULL, plans[p], types[t],
								      (enum layout)layout, p == 1,
								      false});
	on_world(body, 2, (struct device_case){NULL, plans[2], types[0], FLAT, false, true});
	on_world(stops, 2,
		 (struct device_case){.plan = selections[0], .dtypes = types[0], .timeout_s = 1});
	on_world(refuses, 2, (struct device_case){.plan = NULL});
	on_world(refuses, 2, (struct device_case){.plan = by_host});
	for (p = 0; p < GF_ARRAY_LENGTH(selections); p++)
		free(selections[p]);
	free(by_host);
	return TEST_END();
}
