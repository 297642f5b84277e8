/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_FAKE_MATH_H
#define GF_TESTS_GPU_FAKE_MATH_H

#include <set>
#include <string>

#include "half.h"
#include "host_gpu.h"

/*
 * cuDNN and cuBLAS for tests: each call is computed naively when its turn in the stream comes. Its
 * arguments are checked when the call is made. Handles and descriptors must be alive. Arrays must
 * be aligned and lie in the device's memory. A workspace must be as large as the library asked for.
 * An algorithm must be one that was offered as deterministic.
 */
namespace fake
{

extern std::string failing; // the call that fails
extern std::set<const void *> alive;

static inline void want(bool ok, const char *what)
{
	if (!ok)
		host_gpu_refuse(what);
}

static inline bool fails(const char *call)
{
	return failing == call;
}

template <class T> T *make()
{
	T *t = new T();

	alive.insert(t);
	return t;
}

template <class T, class P> T *of(P handle)
{
	want(alive.count((const void *)handle) == 1, "a handle or descriptor that does not live");
	return (T *)(void *)handle;
}

template <class T, class P> void destroy(P handle)
{
	T *t = of<T>(handle);

	alive.erase(t);
	delete t;
}

enum type { F32, F16, BF16 };

static inline size_t size_of(type t)
{
	return t == F32 ? 4 : 2;
}

static inline float at(const void *p, type t, size_t i)
{
	if (t == F32)
		return ((const float *)p)[i];
	const uint16_t h = ((const uint16_t *)p)[i];

	return t == F16 ? f16_to(h) : bf16_to(h);
}

static inline void put(void *p, type t, size_t i, float x)
{
	if (t == F32)
		((float *)p)[i] = x;
	else
		((uint16_t *)p)[i] = t == F16 ? f16_of(x) : bf16_of(x);
}

// beta 0 means that what is there is not read.
static inline void blend(void *p, type t, size_t i, float alpha, double sum, float beta)
{
	const float x = alpha * (float)sum;

	put(p, t, i, beta == 0 ? x : x + beta * at(p, t, i));
}

// Objects that were live when a call was enqueued must still be live when it
// runs, also each time that a graph runs it.
struct users {
	const void *handles[5];

	void check() const
	{
		for (const void *h : handles)
			want(alive.count(h) == 1,
			     "a handle or descriptor that died before its use");
	}
};

// The calls of a library, by name; the last one has none.
struct entry {
	const char *name;
	void *call;
};
extern const struct entry cudnn_entries[], cublas_entries[];

#define ENTRY(name, function)                                                                      \
	{                                                                                          \
#name, (void *)static_cast < decltype(&name)>(function)                            \
	}

// What both begin with: handles, and streams for them.
template <class T, class P> P make_as()
{
	return (P)(void *)make<T>();
}
template <class T, class P> void set_stream(P handle, void *stream)
{
	of<T>(handle)->stream = (gf_gpu_stream *)stream;
}

} // namespace fake

#endif
