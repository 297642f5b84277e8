/* SPDX-License-Identifier: BSD-3-Clause */
// Layers that look at a row of values as a whole: layer norm, softmax, the
// loss.
#include "channels.h"
#include "nn_sets.h"
#include "rows.h"

namespace
{

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_kernel(const T *in, T *out, const float *weight,
			 const float *bias, float *saved, unsigned rows,
			 unsigned width, float epsilon)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	typedef known<LANES, HELD> parameters;
	__shared__ float room[2][parameters::ROOM];
	const parameters w(c, weight, room[0]), b(c, bias, room[1]);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 1, LANES, HELD> x(c, r, width, &in);
		float sum = 0, squares = 0;

		x.each([&](unsigned, unsigned, const float *v) {
			sum += v[0];
		});
		const float mean = us::sum(sum, words) / (float)width;
		x.each([&](unsigned, unsigned, const float *v) {
			squares += (v[0] - mean) * (v[0] - mean);
		});
		const float inverse =
			1 /
			sqrtf(us::sum(squares, words) / (float)width + epsilon);
		x.map(out + r * width,
		      [&](unsigned k, unsigned i, const float *v) {
			      return w.of(k, i) * (v[0] - mean) * inverse +
				     b.of(k, i);
		      });
		if (us::lane() == 0) {
			saved[2 * r] = mean;
			saved[2 * r + 1] = inverse;
		}
	}
}

template <class T, bool Add, unsigned LANES, int HELD>
__device__ void layernorm_rows(const T *const *in, T *din, const float *weight,
			       const float *saved, unsigned rows,
			       unsigned width)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	typedef known<LANES, HELD> parameters;
	__shared__ float room[parameters::ROOM];
	const parameters w(c, weight, room);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, Add ? 3 : 2, LANES, HELD> x(c, r, width, in);
		const float mean = saved[2 * r], inverse = saved[2 * r + 1];
		float sum = 0, dot = 0;

		x.each([&](unsigned k, unsigned i, const float *v) {
			const float d = v[1] * w.of(k, i);

			sum += d;
			dot += d * (v[0] - mean) * inverse;
		});
		sum = us::sum(sum, words) / (float)width;
		dot = us::sum(dot, words) / (float)width;
		x.map(din + r * width, [&](unsigned k, unsigned i,
					   const float *v) {
			const float xhat = (v[0] - mean) * inverse;
			const float d = (v[1] * w.of(k, i) - sum - xhat * dot) *
					inverse;

			return Add ? v[Add ? 2 : 0] + d : d;
		});
	}
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_din(const T *in, const T *dout, T *din, const float *weight,
		      const float *saved, unsigned rows, unsigned width)
{
	const T *from[2] = {in, dout};

	layernorm_rows<T, false, LANES, HELD>(from, din, weight, saved, rows,
					      width);
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_add(const T *in, const T *dout, T *din, const float *weight,
		      const float *saved, unsigned rows, unsigned width)
{
	const T *from[3] = {in, dout, din};

	layernorm_rows<T, true, LANES, HELD>(from, din, weight, saved, rows,
					     width);
}

// a: of dout, b: of dout * normalised x
template <class T> struct parameter_sums {
	typedef T type;
	enum { INPUTS = 2 };
	typedef nothing channel;
	struct place {
		float mean, inverse;
	};
	const T *in[2]; // x, dout
	const float *saved;
	float scale, *dweight, *dbias;

	__device__ channel at(unsigned) const
	{
		return channel{};
	}
	__device__ place row(unsigned r) const
	{
		return place{saved[2 * (size_t)r], saved[2 * (size_t)r + 1]};
	}
	__device__ pair of(const channel &, const place &p,
			   const float *x) const
	{
		return pair{x[1], x[1] * (x[0] - p.mean) * p.inverse};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		dbias[c] = (float)(scale * a);
		dweight[c] = (float)(scale * b);
	}
};

// The scores of a query end at its own position if they are causal.
__device__ unsigned scores_of(size_t r, unsigned width, bool causal)
{
	return causal ? (unsigned)(r % width) + 1 : width;
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	softmax_kernel(T *p, unsigned rows, unsigned width, bool causal)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const T *in = p;
		const row<T, 1, LANES, HELD> x(
			c, r, scores_of(r, width, causal), &in);
		float max = -INFINITY, sum = 0;

		x.each([&](unsigned, unsigned, const float *v) {
			max = fmaxf(max, v[0]);
		});
		max = us::max(max, words);
		x.each([&](unsigned, unsigned, const float *v) {
			sum += expf(v[0] - max);
		});
		sum = us::sum(sum, words);
		x.map(p + r * width, [&](unsigned, unsigned, const float *v) {
			return expf(v[0] - max) / sum;
		});
	}
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	softmax_slope(const T *p, T *dp, float scale, unsigned rows,
		      unsigned width, bool causal)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	const T *in[2] = {p, dp};

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 2, LANES, HELD> x(c, r,
					       scores_of(r, width, causal), in);
		float dot = 0;

		x.each([&](unsigned, unsigned, const float *v) {
			dot += v[0] * v[1];
		});
		dot = us::sum(dot, words);
		x.map(dp + r * width, [&](unsigned, unsigned, const float *v) {
			return scale * v[0] * (v[1] - dot);
		});
	}
}

// Rows of the loss: their parts of the sum, and whether they are right.
template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	loss_rows(const T *logits, const int32_t *labels, T *dlogits,
		  unsigned rows, unsigned classes, float scale, double *losses,
		  uint32_t *hits)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	__shared__ unsigned places[WARPS];
	const columns<LANES> c(classes);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 1, LANES, HELD> x(c, r, classes, &logits);
		const int32_t label = labels[r];
		const bool known = label >= 0 && (unsigned)label < classes;
		float max = -INFINITY, sum = 0;
		unsigned first = GF_GPU_NO_INDEX;

		x.each([&](unsigned, unsigned, const float *v) {
			max = fmaxf(max, v[0]);
		});
		max = us::max(max, words);
		x.each([&](unsigned, unsigned i, const float *v) {
			sum += expf(v[0] - max);
			first = v[0] == max && i < first ? i : first;
		});
		sum = us::sum(sum, words);
		first = us::min(first, places);
		x.map(dlogits + r * classes, [&](unsigned, unsigned i,
						 const float *v) {
			const float p = expf(v[0] - max) / sum;

			return scale * (p - (known && i == (unsigned)label));
		});
		if (us::lane() == 0) {
			losses[r] =
				known ? log((double)sum) -
						(double)(get(x.in[0][label]) -
							 max)
				      : 0;
			hits[r] = known ? first == (unsigned)label : 2;
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
		t.add(__shfl_xor_sync(ALL, t.loss, lanes),
		      __shfl_xor_sync(ALL, t.right, lanes),
		      __shfl_xor_sync(ALL, t.wrong, lanes));
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = t;
	__syncthreads();
	for (unsigned w = 1; w < WARPS && threadIdx.x == 0; w++)
		t.add(of_warp[w].loss, of_warp[w].right, of_warp[w].wrong);
	return t;
}

__device__ void put(const total &t, const int32_t *labels, unsigned rows,
		    struct gf_gpu_outcome *to)
{
	const bool wrong = t.wrong != GF_GPU_NO_INDEX;

	to->loss = t.loss / (double)rows;
	to->correct = t.right;
	to->bad_label = wrong ? t.wrong + 1 : 0;
	to->label = wrong ? labels[t.wrong] : 0;
}

#define PART_LOADS 8 // rows of a thread, all at once
#define PART_ROWS  (PART_LOADS * THREADS)

// A block adds up a part of the rows. The sum takes the place of the part's
// first row: below, how many are right; above, one more than the place of the
// first that is wrong. The only part is the end.
__global__ void __launch_bounds__(THREADS)
	loss_parts(const int32_t *labels, double *losses, uint32_t *hits,
		   unsigned rows, struct gf_gpu_outcome *to)
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
		t.add(loss[u], hit[u] == 1,
		      hit[u] == 2 ? u * THREADS + threadIdx.x
				  : GF_GPU_NO_INDEX);
	t = all_of_block(t);
	if (threadIdx.x > 0)
		return;
	if (gridDim.x == 1) {
		put(t, labels, rows, to);
	} else {
		losses[from] = t.loss;
		hits[from] = t.right | (t.wrong + 1) << 16;
	}
}

__global__ void __launch_bounds__(THREADS)
	loss_end(const int32_t *labels, const double *losses,
		 const uint32_t *hits, unsigned rows, struct gf_gpu_outcome *to)
{
	total t = {0, 0, GF_GPU_NO_INDEX};

#pragma unroll 4
	for (size_t i = (size_t)threadIdx.x * PART_ROWS; i < rows;
	     i += (size_t)THREADS * PART_ROWS) {
		const uint32_t wrong = hits[i] >> 16;

		t.add(losses[i], hits[i] & 0xffff,
		      wrong ? (uint32_t)i + wrong - 1 : GF_GPU_NO_INDEX);
	}
	t = all_of_block(t);
	if (threadIdx.x == 0)
		put(t, labels, rows, to);
}

template <class T>
void softmax_loss(struct gf_gpu_stream *s, const struct gf_gpu_loss *o)
{
	double *losses = (double *)o->work;
	uint32_t *hits = (uint32_t *)(losses + o->rows);
	const size_t parts = blocks_for(o->rows, PART_ROWS);

	LAUNCH_ROWS(loss_rows, o->rows, o->classes, s, (const T *)o->logits,
		    o->labels, (T *)o->dlogits, (unsigned)o->rows,
		    (unsigned)o->classes, o->scale / (float)o->rows, losses,
		    hits);
	LAUNCH(loss_parts, parts, s, o->labels, losses, hits, (unsigned)o->rows,
	       o->outcome);
	if (parts > 1)
		LAUNCH(loss_end, 1, s, o->labels, (const double *)losses,
		       (const uint32_t *)hits, (unsigned)o->rows, o->outcome);
}

template <class T>
void layernorm(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const unsigned rows = (unsigned)o->view.outer;
	const unsigned width = (unsigned)o->view.channels;

	LAUNCH_ROWS(layernorm_kernel, rows, width, s, (const T *)o->in,
		    (T *)o->out, o->weight, o->bias, o->saved, rows, width,
		    (float)o->epsilon);
}

template <class T>
void layernorm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const T *in = (const T *)o->in, *dout = (const T *)o->dout;
	const unsigned rows = (unsigned)o->view.outer;
	const unsigned width = (unsigned)o->view.channels;
	T *din = (T *)o->din;

	sums(s,
	     parameter_sums<T>{
		     {in, dout}, o->saved, o->scale, o->dweight, o->dbias},
	     &o->view, o->work);
	if (din && o->add)
		LAUNCH_ROWS(layernorm_add, rows, width, s, in, dout, din,
			    o->weight, o->saved, rows, width);
	else if (din)
		LAUNCH_ROWS(layernorm_din, rows, width, s, in, dout, din,
			    o->weight, o->saved, rows, width);
}

} // namespace

void gf_cuda_nn_layernorm(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, layernorm<T>(s, o));
}

void gf_cuda_nn_layernorm_backward(struct gf_gpu_stream *s,
				   const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, layernorm_backward<T>(s, o));
}

void gf_cuda_nn_softmax(struct gf_gpu_stream *s, const struct gf_gpu_scores *o)
{
	const unsigned rows = (unsigned)o->rows, width = (unsigned)o->width;

	BY_TYPE(o->dtype, LAUNCH_ROWS(softmax_kernel, rows, width, s, (T *)o->p,
				      rows, width, o->causal));
}

void gf_cuda_nn_softmax_backward(struct gf_gpu_stream *s,
				 const struct gf_gpu_scores *o)
{
	const unsigned rows = (unsigned)o->rows, width = (unsigned)o->width;

	BY_TYPE(o->dtype,
		LAUNCH_ROWS(softmax_slope, rows, width, s, (const T *)o->p,
			    (T *)o->dp, o->scale, rows, width, o->causal));
}

void gf_cuda_nn_softmax_loss(struct gf_gpu_stream *s,
			     const struct gf_gpu_loss *o)
{
	BY_TYPE(o->dtype, softmax_loss<T>(s, o));
}
