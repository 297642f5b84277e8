/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_GPU_NN_KERNELS_H
#define GF_GPU_NN_KERNELS_H

#include <stdbool.h>

#include "gf_gpu_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The layers of a network on a GPU that are not products of matrices. Values (void *) are of the
 * type that is named, aligned to 16 bytes, at most GF_GPU_NN_MOST of them; arithmetic is in f32.
 * Parameters and their gradients are f32 and aligned to their elements. Otherwise as in
 * gf_gpu_kernels.h; sums are added up in an order that depends on sizes alone.
 *
 * `add`: what is there already is added to, else it is overwritten. The structs are the host's and
 * are read at once.
 */
#define GF_GPU_NN_MOST 0x7fffffffu

/* Values seen as {outer, channels, inner}. Planes are {N, C, H*W}. If the channels of a place lie
 * side by side, images are {N*H*W, C, 1}. Rows are {rows, features, 1}. */
struct gf_gpu_view {
	enum gf_dtype dtype;
	size_t outer, channels, inner;
};

enum gf_gpu_function { GF_GPU_RELU, GF_GPU_GELU, GF_GPU_TANH };

struct gf_gpu_slope {
	enum gf_dtype dtype;
	enum gf_gpu_function function;
	const void *kept; /* the function's output; of GELU its input */
	const void *dout;
	void *din;
	bool add;
};

/* to[o][b][a] = scale * from[o][a][b], each of its own type; `from` and `to` are aligned to their
 * elements only */
struct gf_gpu_permute {
	enum gf_dtype from_type, to_type;
	const void *from;
	void *to;
	size_t outer, a, b;
	float scale;
};

/* Rows of `width`, each so far from the one before. */
struct gf_gpu_rows {
	enum gf_dtype dtype;
	const void *from;
	void *to;
	size_t rows, width, from_step, to_step;
	bool add;
};

/* Batch norm over the channels of a view, layer norm over its rows (inner 1). saved, aligned to 16
 * bytes: four numbers per channel; layer norm: per row mean, 1 / deviation. */
struct gf_gpu_norm {
	struct gf_gpu_view view;
	double epsilon;
	float momentum;
	const float *weight, *bias;
	const void *in;
	void *out;
	float *saved;
	float *running; /* means, then variances; NULL: leave them */
	/* Batch norm: the addend is added to the result (optional), and a ReLU is applied to that.
	 * Backward of a ReLU wants no addend. */
	const void *addend;
	bool relu;
	/* backward; parameters' gradients are multiplied by scale */
	const void *dout;
	void *din; /* (optional) */
	bool add;
	float *dweight, *dbias;
	float scale;
	void *work; /* gf_gpu_sums_work_bytes(view) */
};

struct gf_gpu_pool {
	enum gf_dtype dtype;
	bool channels_last;
	size_t batch, channels, in[2], out[2], kernel[2], stride, pad[2];
};

/* The inputs of dropout, in device memory. */
struct gf_gpu_samples {
	uint64_t seed, first;
};

/* Dropout's mask of a batch (nn/ref_dropout.c): sample i draws from the stream base | first + i,
 * four values a number; keeps where 16 bits reach limit. The numbers are drawn in parts of
 * part_draws each, the last one short. */
#define GF_GPU_DRAW_PARTS 256

struct gf_gpu_draw {
	const struct gf_gpu_samples *samples;
	uint64_t base;
	uint32_t limit;
	uint8_t *keeps;
	size_t batch, elems;
	size_t parts, part_draws;
	/* The generator's state part_draws numbers on: bit i is the parity of it and the four words
	 * of row i. NULL with one part. */
	const uint64_t *jump;
};

/* The result of a pass, in device memory and on the host. */
struct gf_gpu_outcome {
	double loss;
	uint64_t correct;
	/* 0: none is wrong. Else, of the first wrong number, ~place in the high word, and its bits
	 * below. Numbers of any layer; before the first of them the caller sets it to 0. */
	uint64_t bad_number;
	/* 1 + the place of the first wrong label; 0: none is. With one, the counts mean nothing. */
	uint32_t bad_label;
	int32_t label;
};

struct gf_gpu_loss {
	enum gf_dtype dtype;
	const void *logits;
	const int32_t *labels;
	void *dlogits;
	size_t rows, classes;
	size_t counted;                 /* rows with a label: the loss is their mean */
	int32_t no_label;               /* the label of the others, no class */
	float scale;                    /* of dlogits, beside 1 / counted */
	void *work;                     /* rows doubles, then rows words */
	struct gf_gpu_outcome *outcome; /* bad_number stays */
};

/* Of attention. causal: rows are by query, `width` queries after each other; query t has scores for
 * the positions up to t, the rest of its row becomes 0.
 */
struct gf_gpu_scores {
	enum gf_dtype dtype;
	void *p;
	void *dp;    /* backward */
	float scale; /* backward */
	size_t rows, width;
	bool causal;
};

/* numbers: of `count` places; NULL: a place's number is its position, which is below `steps`,
 * divided by `stretch`. */
struct gf_gpu_embedding {
	enum gf_dtype dtype;
	const float *numbers;
	size_t count, steps, width, entries, stretch;
	bool add; /* backward: to what is in dtable */
};

/* One position of an LSTM: rows of a batch, `step` values from one sample's to the next one's. A
 * sample's 4*hidden gates lie in the order i, f, g, o. */
struct gf_gpu_lstm {
	enum gf_dtype dtype;
	size_t batch, hidden, step;
	const float *bias_ih, *bias_hh;
	void *gates;  /* in: sums without biases; out: after their functions; step 4*step */
	float *cells; /* step `step` */
	const float *cells_before; /* NULL at the first position */
	void *out;
	/* backward */
	const void *dout;
	const float *dh; /* {batch, hidden}; NULL at the last position */
	float *dc;       /* {batch, hidden}, in and out */
	bool last;       /* nothing in dc yet */
	void *dgates;    /* step 4*step */
};

struct gf_gpu_nn_kernels {
	void (*apply)(struct gf_gpu_stream *s, enum gf_dtype dtype, enum gf_gpu_function function,
		      const void *in, void *out, size_t n);
	void (*apply_backward)(struct gf_gpu_stream *s, const struct gf_gpu_slope *o, size_t n);
	/* out = a + b */
	void (*sum)(struct gf_gpu_stream *s, enum gf_dtype dtype, const void *a, const void *b,
		    void *out, size_t n);
	void (*permute)(struct gf_gpu_stream *s, const struct gf_gpu_permute *p);
	void (*copy_rows)(struct gf_gpu_stream *s, const struct gf_gpu_rows *r);

	/* y[.][c][.] += bias[c] */
	void (*add_bias)(struct gf_gpu_stream *s, const struct gf_gpu_view *v, const float *bias,
			 void *y);
	/* sums[c] = scale * sum of x[.][c][.] */
	void (*channel_sums)(struct gf_gpu_stream *s, const struct gf_gpu_view *v, const void *x,
			     float scale, float *sums, void *work);

	/* saved and running, of `in` */
	void (*norm_statistics)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);
	/* saved, of `running` */
	void (*norm_running)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);
	/* out, by saved */
	void (*norm_apply)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);
	void (*norm_backward)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);
	void (*layernorm)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);
	void (*layernorm_backward)(struct gf_gpu_stream *s, const struct gf_gpu_norm *o);

	/* at: where in its plane each maximum is. Padding counts in means. */
	void (*maxpool)(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *in,
			void *out, uint32_t *at);
	void (*maxpool_backward)(struct gf_gpu_stream *s, const struct gf_gpu_pool *o,
				 const void *dout, const uint32_t *at, void *din, bool add);
	void (*avgpool)(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *in,
			void *out);
	void (*avgpool_backward)(struct gf_gpu_stream *s, const struct gf_gpu_pool *o,
				 const void *dout, void *din, bool add);

	void (*set_samples)(struct gf_gpu_stream *s, struct gf_gpu_samples *to, uint64_t seed,
			    uint64_t first);
	/* The mask; the struct is the host's. */
	void (*draw_keeps)(struct gf_gpu_stream *s, const struct gf_gpu_draw *d);
	/* to = keeps ? from * scale : 0, or added */
	void (*keep)(struct gf_gpu_stream *s, enum gf_dtype dtype, const uint8_t *keeps,
		     float scale, const void *from, void *to, bool add, size_t n);

	/* Looks the numbers up; a wrong one is noted and counts as 0. */
	void (*embed)(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o, const float *table,
		      void *out, struct gf_gpu_outcome *outcome);
	/* work: gf_gpu_embed_work_bytes(o) */
	void (*embed_backward)(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o,
			       const void *dout, float scale, float *dtable, void *work);

	/* Rows of p, in place. */
	void (*softmax)(struct gf_gpu_stream *s, const struct gf_gpu_scores *o);
	/* dp = scale * p * (dp - sum of p*dp) */
	void (*softmax_backward)(struct gf_gpu_stream *s, const struct gf_gpu_scores *o);
	/* Mean cross-entropy of softmax; rows, classes > 0 */
	void (*softmax_loss)(struct gf_gpu_stream *s, const struct gf_gpu_loss *o);

	void (*lstm)(struct gf_gpu_stream *s, const struct gf_gpu_lstm *o);
	void (*lstm_backward)(struct gf_gpu_stream *s, const struct gf_gpu_lstm *o);
};

size_t gf_gpu_sums_work_bytes(const struct gf_gpu_view *v);
size_t gf_gpu_embed_work_bytes(const struct gf_gpu_embedding *o);

extern const struct gf_gpu_nn_kernels gf_gpu_nn_kernels_cuda;

#ifdef __cplusplus
}
#endif
#endif
