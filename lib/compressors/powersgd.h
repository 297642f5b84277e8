/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_POWERSGD_H
#define GF_COMPRESSORS_POWERSGD_H

#include "base/steps.h"
#include "documents/selections/selection.h"

/*
 * powersgd: a matrix of low rank for every gradient matrix, with error feedback (Vogels,
 * Karimireddy, Jaggi: PowerSGD: Practical Low-Rank Gradient Compression for Distributed
 * Optimization, NeurIPS 2019, algorithms 1 and 2).
 *
 * A tensor is a matrix of shape[0] rows and all other dimensions as columns. A plan that does not
 * say a tensor's shape makes it the matrix whose rows are the largest divisor of its elements that
 * is not above their square root. The matrix of m rows and n columns is compressed with r =
 * min(rank, m, n) if that pays: (m + n) r min_compression < m n. Other tensors go as they are.
 *
 * Step t (from 0) on each of P ranks; E begins at 0. Before step warmup_steps a message goes as a
 * dense one. After that, for every message:
 *	M = E + gradient, of every compressed tensor
 *	P = M Q						(m x r)
 *	first all-reduce: the tensors of the message in their order, each as its
 *		P, column by column, or as its gradient; sums over ranks
 *	P = orthonormal columns of the sum, by Gram-Schmidt, first column first
 *	Q = M' P (M' is M transposed)			(n x r)
 *	second all-reduce: the Q of all compressed tensors, column by column
 *	Q = the sum divided by the number of ranks
 *	E = M - P Q'
 *	the mean gradient is P Q', of an uncompressed tensor its sum / ranks
 * Q of the first step is gf_powersgd_start; later steps begin with the Q of the step before
 * (warm_start), or with gf_powersgd_start again.
 *
 * On the wire: both all-reduces go as dense gradients would, by the message's algorithm, stages and
 * codec. The second starts when the first has ended, and there is none if no tensor of the message
 * is compressed. For example, with rank 2 and min_compression 2, a 64 x 576 matrix and a vector of
 * 64 elements make 2 * 64 + 64 = 192 elements, then 2 * 576 = 1152. A dense message of both has
 * 36,928.
 */
struct gf_powersgd_params {
	size_t rank, warmup_steps;
	struct gf_steps_part warmup_part;
	bool warm_start;
	double min_compression; /* >= 1 */
	char *extra;            /* x- keys */
};

/* rows * cols are the tensor's elements; rank 0: it goes as it is. */
struct gf_powersgd_matrix {
	size_t rows, cols, rank;
};
/* The matrix that a plan's tensor is. For a tensor without a shape, at most 2^16 numbers of rows
 * are tried, which is enough up to 2^32 elements. */
struct gf_powersgd_matrix gf_powersgd_matrix_of(const struct gf_powersgd_params *p,
						const struct gf_tensor *tensor);

/* The first Q of a tensor (its number in the plan) in step `step`: count independent standard
 * normal deviates, the same on all ranks. */
void gf_powersgd_start(size_t step, size_t tensor, size_t count, float *q);

#endif
