/* SPDX-License-Identifier: BSD-3-Clause */
// One position of an LSTM (nn/ref_lstm.c), between its products of matrices.
#include "nn_sets.h"
#include "typed.h"

namespace
{

__device__ float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(struct gf_gpu_lstm o)
{
	const unsigned hidden = (unsigned)o.hidden;
	const unsigned at = blockIdx.x * THREADS + threadIdx.x;
	const unsigned n = at / hidden, k = at % hidden;

	if (n >= o.batch)
		return;
	T *gates = (T *)o.gates + n * 4 * o.step;
	const size_t i = n * o.step + k;
	float sums[4];

	for (unsigned g = 0; g < 4; g++)
		sums[g] = get(gates[g * hidden + k]) +
			  (o.bias_ih[g * hidden + k] + o.bias_hh[g * hidden + k]);
	const float in = sigmoid(sums[0]), forget = sigmoid(sums[1]);
	const float cell = tanhf(sums[2]), out = sigmoid(sums[3]);
	const float c = in * cell + (o.cells_before ? forget * o.cells_before[i] : 0);

	o.cells[i] = c;
	set((T *)o.out + i, out * tanhf(c));
	set(gates + k, in);
	set(gates + hidden + k, forget);
	set(gates + 2 * hidden + k, cell);
	set(gates + 3 * hidden + k, out);
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(struct gf_gpu_lstm o)
{
	const unsigned hidden = (unsigned)o.hidden;
	const unsigned at = blockIdx.x * THREADS + threadIdx.x;
	const unsigned n = at / hidden, k = at % hidden;

	if (n >= o.batch)
		return;
	const T *gates = (const T *)o.gates + n * 4 * o.step + k;
	T *dgates = (T *)o.dgates + n * 4 * o.step + k;
	const size_t i = n * o.step + k;
	const float in = get(gates[0]), forget = get(gates[hidden]);
	const float cell = get(gates[2 * hidden]), out = get(gates[3 * hidden]);
	const float squashed = tanhf(o.cells[i]);
	const float dh = get(((const T *)o.dout)[i]) + (o.dh ? o.dh[at] : 0);
	const float dc = (o.last ? 0 : o.dc[at]) + dh * out * (1 - squashed * squashed);
	const float before = o.cells_before ? o.cells_before[i] : 0;

	set(dgates, dc * cell * in * (1 - in));
	set(dgates + hidden, dc * before * forget * (1 - forget));
	set(dgates + 2 * hidden, dc * in * (1 - cell * cell));
	set(dgates + 3 * hidden, dh * squashed * out * (1 - out));
	o.dc[at] = dc * forget;
}

} // namespace

void gf_cuda_nn_lstm(struct gf_gpu_stream *s, const struct gf_gpu_lstm *o)
{
	BY_TYPE(o->dtype, LAUNCH(forward<T>, blocks_for(o->batch * o->hidden, THREADS), s, *o));
}

void gf_cuda_nn_lstm_backward(struct gf_gpu_stream *s, const struct gf_gpu_lstm *o)
{
	BY_TYPE(o->dtype, LAUNCH(backward<T>, blocks_for(o->batch * o->hidden, THREADS), s, *o));
}
