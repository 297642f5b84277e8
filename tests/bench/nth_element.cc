// SPDX-License-Identifier: BSD-3-Clause
// What a C++ program would do for exact top-k: the indices in front of the
// k-th, by magnitude and then by index. kernels.c loads it as a library.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

extern "C" void gf_bench_nth_element(std::uint32_t *index, const float *values,
				     std::size_t n, std::size_t k)
{
	std::iota(index, index + n, 0);
	std::nth_element(index, index + k, index + n,
			 [values](std::uint32_t a, std::uint32_t b) {
				 float p = std::fabs(values[a]);
				 float q = std::fabs(values[b]);
				 return p > q || (p == q && a < b);
			 });
}
