/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include "base/heap.h"
#include "base/rng.h"

/*
 * Dropout (ref_dropout.c). A sample's random numbers follow from each other; so that many threads
 * can draw them, each starts some way down the sequence. A step of the generator is linear in the
 * bits of its state, hence many steps are a matrix over them, made here once. saved: a byte per
 * value; weight: the matrix.
 */
#define FIRST_STREAM  16 /* as in ref_dropout.c */
#define SAMPLE_BITS   40
#define DRAWS_AT_ONCE 64 /* at least, by one thread */
#define BITS          256

/* By columns: what becomes of each bit. */
struct matrix {
	struct gf_rng column[BITS];
};

static bool bit(const struct gf_rng *v, size_t i)
{
	return v->state[i / 64] >> (i % 64) & 1;
}

static struct gf_rng apply(const struct matrix *m, const struct gf_rng *v)
{
	struct gf_rng sum = {{0}};

	for (size_t i = 0; i < BITS; i++)
		for (size_t k = 0; bit(v, i) && k < 4; k++)
			sum.state[k] ^= m->column[i].state[k];
	return sum;
}

/* a = a b */
static void multiply(struct matrix *a, const struct matrix *b)
{
	GF_FREED struct matrix *product = gf_xcalloc(1, sizeof(*product));

	for (size_t i = 0; i < BITS; i++)
		product->column[i] = apply(a, &b->column[i]);
	*a = *product;
}

/* The state after `draws` draws, by rows: four words per bit. */
static void jump_rows(size_t draws, uint64_t *rows)
{
	GF_FREED struct matrix *power = gf_xcalloc(1, sizeof(*power));
	GF_FREED struct matrix *jump = gf_xcalloc(1, sizeof(*jump));

	for (size_t i = 0; i < BITS; i++) {
		jump->column[i].state[i / 64] = (uint64_t)1 << (i % 64);
		power->column[i] = jump->column[i];
		(void)gf_rng_u64(&power->column[i]);
	}
	for (; draws > 0; draws /= 2) {
		if (draws % 2)
			multiply(jump, power);
		multiply(power, power);
	}
	for (size_t row = 0; row < BITS; row++)
		for (size_t i = 0; i < BITS; i++)
			rows[row * 4 + i / 64] |= (uint64_t)bit(&jump->column[i], row) << (i % 64);
}

/* --- the layer --------------------------------------------------------------
 */

static size_t count(const struct gf_gpu_io *io)
{
	return io->batch * gf_shape_elems(&io->layer->out);
}

static struct gf_gpu_draw draw_of(const struct gf_gpu_io *io)
{
	const size_t elems = gf_shape_elems(&io->layer->out);
	const size_t draws = (elems + 3) / 4;
	size_t parts = draws / DRAWS_AT_ONCE;

	parts = parts < 1 ? 1 : parts;
	parts = parts > GF_GPU_DRAW_PARTS ? GF_GPU_DRAW_PARTS : parts;
	return (struct gf_gpu_draw){
		.samples = io->g->samples,
		.base = (uint64_t)(FIRST_STREAM + io->index) << SAMPLE_BITS,
		.limit = (uint32_t)(io->layer->rate * 65536),
		.keeps = io->saved,
		.batch = io->batch,
		.elems = elems,
		.parts = parts,
		.part_draws = (draws + parts - 1) / parts,
		.jump = io->weight,
	};
}

static size_t weight_bytes(const struct gf_gpu_io *io)
{
	return draw_of(io).parts > 1 ? BITS * 4 * sizeof(uint64_t) : 0;
}

static int start(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct gf_gpu_draw draw = draw_of(io);
	GF_FREED uint64_t *rows = NULL;
	int rc;

	if (draw.parts == 1)
		return 0;
	rows = gf_xcalloc(BITS * 4, sizeof(*rows));
	jump_rows(draw.part_draws, rows);
	rc = g->gpu->ops->copy(g->gpu, g->stream, io->weight, rows, BITS * 4 * sizeof(*rows),
			       GF_GPU_TO_DEVICE, err);
	return rc ?: g->gpu->ops->stream_sync(g->gpu, g->stream, err);
}

static void mask(struct gf_gpu_io *io, const void *from, void *to, bool add)
{
	const struct gf_gpu_net *g = io->g;

	g->kernels->keep(g->stream, g->dtype, io->saved, 1 / (1 - (float)io->layer->rate), from, to,
			 add, count(io));
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct gf_gpu_draw draw = draw_of(io);
	const struct gf_gpu_rows all = {
		.dtype = g->dtype,
		.from = io->in[0],
		.to = io->out,
		.rows = 1,
		.width = count(io),
	};

	(void)err;
	if (io->training) {
		g->kernels->draw_keeps(g->stream, &draw);
		mask(io, io->in[0], io->out, false);
	} else if (io->out != io->in[0]) {
		g->kernels->copy_rows(g->stream, &all);
	}
	return 0;
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	(void)err;
	if (io->din[0])
		mask(io, io->dout, io->din[0], io->add[0]);
	return 0;
}

static size_t saved_bytes(const struct gf_gpu_io *io, size_t batch)
{
	return batch * gf_shape_elems(&io->layer->out);
}

const struct gf_gpu_layer gf_gpu_dropout = {
	.forward = forward,
	.backward = backward,
	.start = start,
	.weight_bytes = weight_bytes,
	.saved_bytes = saved_bytes,
	.in_place = true,
	.passes = GF_GPU_IN_PLACE,
};
