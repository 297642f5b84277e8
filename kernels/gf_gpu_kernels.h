/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_GPU_KERNELS_H
#define GF_GPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The inner loops of training on a GPU. Pointers are the device's unless said otherwise, aligned to
 * their elements and no further; ranges must not overlap unless they are equal.
 *
 * A function only enqueues on the stream: it allocates nothing, waits for nothing and reads no
 * device memory on the host, so a graph can capture it. The caller provides the work memory. The
 * device's next check (cuda/gpu.h) reports a launch that fails.
 *
 * Results have the bits of kernels/ref (gf_kernels.h), except that a NaN made by arithmetic may be
 * another NaN, and where a comment says otherwise.
 */
struct gf_gpu_stream; /* opaque: a cudaStream_t */

/* Ends a list of indices that is shorter than its room: no index. */
#define GF_GPU_NO_INDEX GF_NO_INDEX

/* As gf_topk; index lies ascending. */
struct gf_gpu_topk {
	float *values;
	const float *add; /* (optional) values += add comes first */
	size_t count;     /* below 2^32 */
	size_t k;         /* 1 to count */
	uint32_t *index;  /* out, k of them */
	void *work;       /* topk_work_bytes(count), 8-aligned */
};

/* Lists of fixed room, ascending, GF_GPU_NO_INDEX (with value 0) at the end. */
struct gf_gpu_sparse {
	uint32_t *index;
	float *value;
	size_t room;
};

/* The tensors of a pool, for updates that go tensor by tensor. */
struct gf_gpu_tensors {
	size_t count;
	const size_t *offsets; /* count + 1, in elements */
	/* count + 1: how many pieces of GF_GPU_PIECE elements, the last one short, the tensors
	 * before this one have */
	const size_t *pieces;
	size_t npieces;       /* pieces[count], on the host */
	const uint8_t *plain; /* per tensor, 1: trust 1 and no weight decay */
};

#define GF_GPU_PIECE 4096

struct gf_gpu_lars {
	struct gf_sgd_step step;
	double rate; /* times every tensor's own: 1, or lr where it is inside the velocity (then
		      * step.lr is 1) */
	double eta, epsilon, weight_decay; /* trainer/optim/sgd.h */
	void *work;                        /* gf_gpu_lars_work_bytes(tensors), 8-aligned */
};

/* Words of the device that an update reads there when its turn comes, so that the host need not
 * know them; each optional. */
struct gf_gpu_gate {
	const uint32_t *skip; /* where *skip is not 0 nothing changes */
	const float *scale;   /* in the place of the step's */
};

struct gf_gpu_clip {
	float scale; /* of the gradient */
	double norm; /* that |scale * grad| shall not exceed */
	void *work;  /* gf_gpu_clip_work_bytes(n), 8-aligned */
};

/* Norms of chunks as ranks add them up: `shared` gets those of chunks that wait as they are, and of
 * those that were sent the norms of their sums times `part`. */
struct gf_gpu_norms {
	float *shared;       /* count; and behind, or wherever it is, */
	float *bad;          /* infinity if a norm is not finite, else left alone */
	const double *left;  /* count */
	const uint8_t *sent; /* count, 1: it was */
	size_t count;
	const double *sums;     /* nchosen, in the order of */
	const uint32_t *chosen; /* these, the chunks that were sent */
	size_t nchosen;
	double part;
};

/* A codec's whole message: block after block, each with its header, as collectives/codecs/encode.h
 * has it; block_elems is the codec's, and without meaning where there are no blocks. The wire is
 * aligned to 4, and so is a block of q8; to 2 is enough for a codec of 16 bits. */
typedef void gf_gpu_code_fn(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
			    size_t block_elems);

struct gf_gpu_codec {
	gf_gpu_code_fn *encode;     /* from f32 to the wire */
	gf_gpu_code_fn *decode;     /* back */
	gf_gpu_code_fn *decode_add; /* f32 += what the wire holds */
};

struct gf_gpu_kernels {
	const char *name; /* cuda */

	void (*add_f32)(struct gf_gpu_stream *s, float *y, const float *x, size_t n);
	void (*scale_f32)(struct gf_gpu_stream *s, float a, const float *x, float *y, size_t n);

	/* The structs are the host's and are read at once; gate is optional. */
	void (*sgd_f32)(struct gf_gpu_stream *s, const struct gf_sgd_step *o,
			const struct gf_gpu_gate *gate, const float *grad, float *weight,
			float *velocity, size_t n);
	/* trainer/optim/sgd.h over all tensors of a pool. The sums of squares are added up in
	 * another order than ref's: the same bits on every GPU, the trust within 1e-12 of ref's.
	 * `t` and `o` are the host's. */
	void (*lars_f32)(struct gf_gpu_stream *s, const struct gf_gpu_lars *o,
			 const struct gf_gpu_tensors *t, const struct gf_gpu_gate *gate,
			 const float *grad, float *weight, float *velocity);
	size_t (*lars_work_bytes)(const struct gf_gpu_tensors *t);
	/* One more step: ++*steps, and *now is what adamw_f32 needs of it. With
	 * a gate that skips neither changes. */
	void (*adamw_begin)(struct gf_gpu_stream *s, const struct gf_adamw_rule *o, float scale,
			    const struct gf_gpu_gate *gate, uint64_t *steps,
			    struct gf_adamw_step *now);
	/* *now is the device's; plain: without weight decay. The bits of ref.
	 */
	void (*adamw_f32)(struct gf_gpu_stream *s, const struct gf_adamw_step *now, bool plain,
			  const uint32_t *skip, const float *grad, float *weight, float *m,
			  float *v, size_t n);
	/* *factor = o->scale, or a smaller value that brings the norm of n
	 * elements down to o->norm, as in gf_optimizer_step; sums as
	 * lars_f32's: the factor within 1e-7 of ref's. `o` is the host's. */
	void (*clip_f32)(struct gf_gpu_stream *s, const struct gf_gpu_clip *o, const float *grad,
			 size_t n, float *factor);
	size_t (*clip_work_bytes)(size_t n);
	/* *flag |= 1 if something is infinite or NaN */
	void (*nonfinite_f32)(struct gf_gpu_stream *s, const float *x, uint32_t *flag, size_t n);

	/* Per chunk of chunk_elems (the last one may be short):
	 * y += x (optional), norms[c] = sum_abs_f32 of it. */
	void (*chunk_norms_f32)(struct gf_gpu_stream *s, float *y, const float *x, size_t n,
				size_t chunk_elems, double *norms);
	/* Packs chunks of `from` (n elements in all) into `to`, one after the other. chunks:
	 * ascending. */
	void (*gather_chunks_f32)(struct gf_gpu_stream *s, float *to, const float *from, size_t n,
				  size_t chunk_elems, const uint32_t *chunks, size_t nchunks);
	/* residual = decay*grad in chunks whose `sent` is 0, else 0; unless *skip (optional) is not
	 * 0 */
	void (*keep_chunks_f32)(struct gf_gpu_stream *s, const uint32_t *skip, float *residual,
				const float *grad, size_t n, size_t chunk_elems,
				const uint8_t *sent, float decay);
	/* The struct is the host's. */
	void (*share_norms)(struct gf_gpu_stream *s, const struct gf_gpu_norms *o);

	struct gf_gpu_codec codecs[GF_CODECS]; /* f32 wants none */

	/* `t` is the host's. */
	void (*topk_f32)(struct gf_gpu_stream *s, const struct gf_gpu_topk *t);
	size_t (*topk_work_bytes)(size_t count);
	/* These pass over GF_GPU_NO_INDEX; take writes 0 there. */
	void (*take_f32)(struct gf_gpu_stream *s, float *to, float *from, const uint32_t *index,
			 size_t n);
	void (*scatter_add_f32)(struct gf_gpu_stream *s, float *to, const float *from,
				const uint32_t *index, size_t n);
	/* out->room = a->room + b->room; the structs are the host's. work:
	 * merge_work_bytes(a->room), 4-aligned. */
	void (*merge_f32)(struct gf_gpu_stream *s, const struct gf_gpu_sparse *a,
			  const struct gf_gpu_sparse *b, const struct gf_gpu_sparse *out,
			  void *work);
	size_t (*merge_work_bytes)(size_t room);
	/* As ref's, in lists of fixed room; the structs are the host's. */
	void (*move_f32)(struct gf_gpu_stream *s, const struct gf_gpu_sparse *from,
			 const uint32_t *at, size_t k, const struct gf_gpu_sparse *to);
	void (*leave_out)(struct gf_gpu_stream *s, const struct gf_gpu_sparse *list,
			  const struct gf_gpu_sparse *in);
	/* to = from, unless *skip is not 0 */
	void (*copy_f32)(struct gf_gpu_stream *s, const uint32_t *skip, float *to,
			 const float *from, size_t n);
	/* y = NaN, if *flag is not 0 */
	void (*spoil_f32)(struct gf_gpu_stream *s, const uint32_t *flag, float *y, size_t n);
};

size_t gf_gpu_topk_work_bytes(size_t count);
size_t gf_gpu_lars_work_bytes(const struct gf_gpu_tensors *t);
size_t gf_gpu_clip_work_bytes(size_t n);
size_t gf_gpu_merge_work_bytes(size_t room);

extern const struct gf_gpu_kernels gf_gpu_kernels_cuda;

#ifdef __cplusplus
}
#endif
#endif
