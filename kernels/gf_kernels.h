/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_H
#define GF_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "lists/gf_codec_number.h"

/*
 * Inner loops over plain arrays. kernels/ref holds them in portable C and is the specification;
 * kernels/x86 overrides what it can do better; the table is filled once for this machine and never
 * has a hole. Pointers need no alignment; ranges must not overlap unless they are equal.
 *
 * Every set gives the same bits as ref: ranks on unlike machines stay replicas of each other. Hence
 * no fused multiply-add, and sums are defined lane by lane where there are any.
 */
struct gf_sgd_step {
	float lr, momentum, weight_decay;
	float scale; /* of the gradient, before weight decay */
	int nesterov;
};

/* AdamW's settings (trainer/optim/adamw.c has the equations), and what kernels/adamw.h makes of
 * them for one step. */
struct gf_adamw_rule {
	double lr, beta1, beta2, weight_decay, epsilon;
};

struct gf_adamw_step {
	float rate;    /* lr / (1 - beta1^t), at step t from 1 */
	float root;    /* sqrt(1 - beta2^t) */
	float keep;    /* 1 - lr*weight_decay */
	float change1; /* 1 - beta1 */
	float beta2, change2;
	float epsilon;
	float scale; /* of the gradient, before all else */
};

/* One position of one sample in an LSTM of n units. */
struct gf_lstm_cell {
	/* {4, n}: input, forget, value, output: before their functions, which lstm_cell_f32
	 * replaces by what they come to */
	float *gate;
	const float *before; /* {n}: the state of the position before */
	float *cell;         /* {n}: the state */
	float *squashed;     /* {n}: its tanh */
	float *out;          /* {n}; not read in backward */
};

struct gf_lstm_gradient {
	const float *out, *next; /* {n}: of the output, by two ways */
	float *cell;             /* {n}: of the state; becomes that of the one before */
	float *gate;             /* {4, n}: of what the functions were applied to */
};

/* The arguments of topk_f32. */
struct gf_topk {
	float *values;
	const float *add;  /* (optional) values += add comes first */
	size_t count;      /* below 2^32 */
	size_t k;          /* 1 to count */
	uint32_t *index;   /* out, k of them, ascending */
	uint32_t *scratch; /* 2*count of them */
};

/* In a list of indices: none. */
#define GF_NO_INDEX 0xffffffffu

/* Values at ascending indices; everything else is zero. */
struct gf_sparse {
	uint32_t *index;
	float *value;
	size_t count;
};

/* y[i] = y[i] op x[i], elements of one type */
typedef void gf_reduce_fn(void *y, const void *x, size_t n);
/* y[i] /= by */
typedef void gf_divide_fn(void *y, size_t n, int by);

/* A codec's message of n elements: block after block, each with its header, as
 * collectives/codecs/encode.h has it. block_elems is the codec's, without meaning where there are
 * no blocks. */
typedef void gf_encode_fn(void *wire, const float *from, size_t n, size_t block_elems);
typedef void gf_decode_fn(float *to, const void *wire, size_t n, size_t block_elems);

struct gf_codec_fns {
	gf_encode_fn *encode;
	gf_decode_fn *decode;
	gf_decode_fn *decode_add; /* to += what the wire holds */
};

struct gf_kernels {
	const char *name; /* of the best set in use: ref, avx2, avx512 */

	/* y += x */
	void (*add_f32)(float *y, const float *x, size_t n);
	/* By type and operation. Half precision is computed in f32 and rounded to nearest even; i32
	 * wraps round. max and min of a NaN and a number are the NaN; 0 is above -0. avg is summed
	 * like sum, and divided in the end; i32 towards zero. */
	gf_reduce_fn *reduce[GF_DTYPES][GF_OPS];
	gf_divide_fn *divide[GF_DTYPES];
	/* y = a*x */
	void (*scale_f32)(float a, const float *x, float *y, size_t n);
	/* y = a*x + b*y */
	void (*axpby_f32)(float a, const float *x, float b, float *y, size_t n);
	/* g = scale*grad + weight_decay*w;  u = momentum*u + g;
	 * w -= lr*u, or with nesterov w -= lr*(g + momentum*u) */
	void (*sgd_f32)(const struct gf_sgd_step *o, const float *grad, float *weight,
			float *velocity, size_t n);

	/* g = scale*grad;  m += change1*(g - m);  v = beta2*v + change2*g*g;
	 * w = keep*w - rate*m / (sqrt(v)/root + epsilon) */
	void (*adamw_f32)(const struct gf_adamw_step *o, const float *grad, float *weight, float *m,
			  float *v, size_t n);

	/* i, f, o are sigmoids, g is a tanh: cell = i*g + f*before,
	 * squashed = tanh(cell), out = o*squashed. */
	void (*lstm_cell_f32)(const struct gf_lstm_cell *c, size_t n);
	void (*lstm_cell_backward_f32)(const struct gf_lstm_cell *c,
				       const struct gf_lstm_gradient *d, size_t n);

	/* x = exp(scale*x) / sum of exp(scale*x), scale > 0; and back, with its result y: d =
	 * scale*y*(d - sum of y*d). Sums as below, over all of a row. */
	void (*softmax_f32)(float *x, float scale, size_t n);
	void (*softmax_backward_f32)(const float *y, float *d, float scale, size_t n);

	/* Sums of |x| and of x*x: per 4096 elements 32 lanes in f32, element i
	 * in lane i % 32; the lanes are added up in f64, in order. */
	double (*sum_abs_f32)(const float *x, size_t n);
	double (*sum_squares_f32)(const float *x, size_t n);
	/* y += x, and sum_abs_f32 of the result: a residual taken up and its chunk's norm in one
	 * pass. */
	double (*add_sum_abs_f32)(float *y, const float *x, size_t n);

	/* Gradients on the wire. f16 and bf16 round to nearest even, too large for f16 is infinity;
	 * trunc16 is the top half of the f32, towards zero, and decodes as bf16. NaN stays NaN.
	 * A block of q8: max |x| as f32, then n signed bytes, x*(127/max)
	 * rounded half away from zero; back by byte*(max/127). A block below 1e-36 is zero; one
	 * with NaN or infinity decodes to nothing finite. fp8 and fp4: kernels/minifloat.h. */
	struct gf_codec_fns codecs[GF_CODECS];

	/* Exactly the k largest magnitudes, ties to the lower index; NaN is larger than anything.
	 * Linear time. */
	void (*topk_f32)(const struct gf_topk *t);
	/* to[i] = from[index[i]], which becomes zero */
	void (*take_f32)(float *to, float *from, const uint32_t *index, size_t n);
	/* to[index[i]] += from[i], indices distinct */
	void (*scatter_add_f32)(float *to, const float *from, const uint32_t *index, size_t n);
	/* out = a + b; out has room for both */
	void (*merge_f32)(const struct gf_sparse *a, const struct gf_sparse *b,
			  struct gf_sparse *out);
	/* The entries at the k places `at`, ascending, move from `from` to `to`. Those that stay
	 * keep their place if their value is not 0; every other place gets GF_NO_INDEX. */
	void (*move_f32)(const struct gf_sparse *from, const uint32_t *at, size_t k,
			 struct gf_sparse *to);
	/* Entries of `list` whose index is in `in`, too, get GF_NO_INDEX. Both are ascending,
	 * without such places before. */
	void (*leave_out)(const struct gf_sparse *list, const struct gf_sparse *in);
	/* k ascending indices to and from the wire, whose two parts are whole bytes: ref/indices.c
	 * has the form, collectives/codecs/codec.h the numbers of bits. Unpacking reads nothing
	 * else and returns how many indices it found, k + 1 for more than k; they need not ascend
	 * if the wire is damaged.
	 */
	void (*pack_indices)(void *wire, const uint32_t *index, size_t k, unsigned low_bits,
			     size_t upper_bits);
	size_t (*unpack_indices)(uint32_t *index, const void *wire, size_t k, unsigned low_bits,
				 size_t upper_bits);
};

const struct gf_kernels *gf_kernels(void);
/* One set by name, for tests; NULL if this machine cannot run it. */
const struct gf_kernels *gf_kernels_named(const char *name);

#endif
