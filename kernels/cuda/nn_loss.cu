/* SPDX-License-Identifier: BSD-3-Clause */
// The loss: softmax's cross-entropy, row by row, and what is counted of it.
#include "nn_sets.h"
#include "rows.h"

namespace
{

// What a row is.
#define RIGHT 1u
#define WRONG 2u // its label is no class

// Rows of the loss: their parts of the sum, and what they are. Rows with the
// label `none` have no part in it. The first of equal classes is the likeliest.
template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS, 2)
	loss_rows(const T *logits, const int32_t *labels, T *dlogits, unsigned rows,
		  unsigned classes, int32_t none, float scale, double *losses, uint32_t *hits)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	__shared__ unsigned places[WARPS];
	const columns<LANES> c(classes);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 1, LANES, HELD> x(c, r, classes, &logits);
		const int32_t label = labels[r];
		const bool known = label >= 0 && (unsigned)label < classes;
		const bool counts = label != none;
		const unsigned at = known ? (unsigned)label : 0;
		const float own = get(x.in[0][at]);
		unsigned before = 0; // likelier than the label; NaN is
		exponentials<T, LANES, HELD> e;

		e.of(x, words);
		x.each([&](unsigned, unsigned i, const float *v) {
			before += (v[0] <= own ? 0 : 1) | ((v[0] == own) & (i < at));
		});
		before = us::sum(before, places);
		e.inverse *= scale;
		x.map(dlogits + r * classes, [&](unsigned k, unsigned i, const float *v) {
			return !counts ? 0
				       : fmaf(e.at(k, v[0]), e.inverse,
					      known && i == at ? -scale : 0);
		});
		if (us::lane() == 0) {
			losses[r] = known ? (double)(logf(e.sum) - (own - e.max)) : 0;
			hits[r] = !counts ? 0 : !known ? WRONG : before == 0 ? RIGHT : 0;
		}
	}
}

// Rows of the loss, added up. wrong: the first without a label, or none.
struct total {
	double loss;
	uint32_t right, wrong;

	__device__ void add(double loss_, uint32_t right_, uint32_t wrong_)
	{
		loss += loss_;
		right += right_;
		wrong = wrong_ < wrong ? wrong_ : wrong;
	}
};

// Of the block, in one order, for its thread 0.
__device__ total all_of_block(total t)
{
	__shared__ total of_warp[WARPS];

	for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
		t.add(__shfl_xor_sync(ALL, t.loss, lanes), __shfl_xor_sync(ALL, t.right, lanes),
		      __shfl_xor_sync(ALL, t.wrong, lanes));
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = t;
	__syncthreads();
	for (unsigned w = 1; w < WARPS && threadIdx.x == 0; w++)
		t.add(of_warp[w].loss, of_warp[w].right, of_warp[w].wrong);
	return t;
}

__device__ void put(const total &t, const int32_t *labels, unsigned counted,
		    struct gf_gpu_outcome *to)
{
	const bool wrong = t.wrong != GF_GPU_NO_INDEX;

	to->loss = t.loss / (double)counted;
	to->correct = t.right;
	to->bad_label = wrong ? t.wrong + 1 : 0;
	to->label = wrong ? labels[t.wrong] : 0;
}

#define PART_LOADS 8 // rows of a thread, all at once
#define PART_ROWS  (PART_LOADS * THREADS)

// A part's word: how many are right; or, if its highest bit is set, the place
// in it of the first that is wrong. The count of such a batch is nobody's
// business.
#define PART_WRONG 0x80000000u

// A block adds up a part of the rows. The sum takes the place of the part's
// first row. The only part is the end.
__global__ void __launch_bounds__(THREADS)
	loss_parts(const int32_t *labels, double *losses, uint32_t *hits, unsigned rows,
		   unsigned counted, struct gf_gpu_outcome *to)
{
	const unsigned from = blockIdx.x * PART_ROWS;
	double loss[PART_LOADS];
	uint32_t hit[PART_LOADS];
	total t = {0, 0, GF_GPU_NO_INDEX};

#pragma unroll
	for (unsigned u = 0; u < PART_LOADS; u++) {
		const unsigned i = from + u * THREADS + threadIdx.x;

		loss[u] = i < rows ? losses[i] : 0;
		hit[u] = i < rows ? hits[i] : 0;
	}
#pragma unroll
	for (unsigned u = 0; u < PART_LOADS; u++)
		t.add(loss[u], (hit[u] & RIGHT) != 0,
		      hit[u] & WRONG ? u * THREADS + threadIdx.x : GF_GPU_NO_INDEX);
	t = all_of_block(t);
	if (threadIdx.x > 0)
		return;
	if (gridDim.x == 1) {
		put(t, labels, counted, to);
	} else {
		losses[from] = t.loss;
		hits[from] = t.wrong == GF_GPU_NO_INDEX ? t.right : PART_WRONG | t.wrong;
	}
}

__global__ void __launch_bounds__(THREADS)
	loss_end(const int32_t *labels, const double *losses, const uint32_t *hits, unsigned rows,
		 unsigned counted, struct gf_gpu_outcome *to)
{
	total t = {0, 0, GF_GPU_NO_INDEX};

#pragma unroll 4
	for (size_t i = (size_t)threadIdx.x * PART_ROWS; i < rows;
	     i += (size_t)THREADS * PART_ROWS) {
		const uint32_t hit = hits[i];

		if (hit & PART_WRONG)
			t.add(losses[i], 0, (uint32_t)i + (hit & ~PART_WRONG));
		else
			t.add(losses[i], hit, GF_GPU_NO_INDEX);
	}
	t = all_of_block(t);
	if (threadIdx.x == 0)
		put(t, labels, counted, to);
}

template <class T> void softmax_loss(struct gf_gpu_stream *s, const struct gf_gpu_loss *o)
{
	double *losses = (double *)o->work;
	uint32_t *hits = (uint32_t *)(losses + o->rows);
	const size_t parts = blocks_for(o->rows, PART_ROWS);

	LAUNCH_ROWS(loss_rows, o->rows, o->classes, s, (const T *)o->logits, o->labels,
		    (T *)o->dlogits, (unsigned)o->rows, (unsigned)o->classes, o->no_label,
		    o->scale / (float)o->counted, losses, hits);
	LAUNCH(loss_parts, parts, s, o->labels, losses, hits, (unsigned)o->rows,
	       (unsigned)o->counted, o->outcome);
	if (parts > 1)
		LAUNCH(loss_end, 1, s, o->labels, (const double *)losses, (const uint32_t *)hits,
		       (unsigned)o->rows, (unsigned)o->counted, o->outcome);
}

} // namespace

void gf_cuda_nn_softmax_loss(struct gf_gpu_stream *s, const struct gf_gpu_loss *o)
{
	BY_TYPE(o->dtype, softmax_loss<T>(s, o));
}
