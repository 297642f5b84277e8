/* SPDX-License-Identifier: BSD-3-Clause */
#include "emulate.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define THREADS_MAX 1024
#define STACK_BYTES ((size_t)64 << 10)

struct emulated_index threadIdx, blockIdx, gridDim;
void (*emulate_later)(struct gf_gpu_stream *s, std::function<void()> launch);

namespace
{

enum waiting { RUNS, AT_BARRIER, AT_EXCHANGE, ENDED };

// Switched by _setjmp and _longjmp, which need no system call; ucontext only
// makes the stack.
struct coroutine {
	jmp_buf context;
	char *stack;
	waiting state;
	unsigned mask; // AT_EXCHANGE
	uint32_t word, words[32];
};

coroutine threads[THREADS_MAX];
jmp_buf scheduler;
ucontext_t made_from;
unsigned nthreads, current;
const char *name;
const std::function<void()> *body;
uint64_t seed = 1;

unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

[[noreturn]] void fail(const char *what)
{
	fprintf(stderr, "emulate: %s: block %u, thread %u: %s\n", name,
		blockIdx.x, current, what);
	abort();
}

void wait_as(waiting state)
{
	threads[current].state = state;
	if (!_setjmp(threads[current].context))
		_longjmp(scheduler, 1);
}

void go_on(unsigned t)
{
	if (!_setjmp(scheduler))
		_longjmp(threads[t].context, 1);
}

// A coroutine serves one kernel after the other.
void enter(void)
{
	wait_as(ENDED);
	for (;;) {
		(*body)();
		wait_as(ENDED);
	}
}

void make(unsigned t)
{
	coroutine *c = &threads[t];
	ucontext_t context;

	c->stack = static_cast<char *>(malloc(STACK_BYTES));
	if (!c->stack || getcontext(&context))
		fail("no stack");
	context.uc_stack.ss_sp = c->stack;
	context.uc_stack.ss_size = STACK_BYTES;
	context.uc_link = NULL;
	makecontext(&context, enter, 0);
	current = t;
	if (!_setjmp(scheduler))
		swapcontext(&made_from, &context);
}

// Lets everybody go on if all of the block have come.
bool open_barrier(void)
{
	for (unsigned t = 0; t < nthreads; t++)
		if (threads[t].state != AT_BARRIER)
			return false;
	for (unsigned t = 0; t < nthreads; t++)
		threads[t].state = RUNS;
	return true;
}

bool has_come(unsigned t, unsigned mask)
{
	return t < nthreads && threads[t].state == AT_EXCHANGE &&
	       threads[t].mask == mask;
}

// The same for the lanes that lane `t` waits for; hands out their words.
bool open_exchange(unsigned t)
{
	const unsigned first = t - t % 32, mask = threads[t].mask;
	uint32_t words[32];

	if (threads[t].state != AT_EXCHANGE)
		return false;
	for (unsigned l = 0; l < 32; l++)
		if ((mask >> l & 1) && !has_come(first + l, mask))
			return false;
	for (unsigned l = 0; l < 32; l++)
		words[l] = mask >> l & 1 ? threads[first + l].word : 0;
	for (unsigned l = 0; l < 32; l++) {
		if (!(mask >> l & 1))
			continue;
		memcpy(threads[first + l].words, words, sizeof(words));
		threads[first + l].state = RUNS;
	}
	return true;
}

// Runs a warp until all of it wait for others or have ended: it may be far
// ahead of the other warps, or behind them.
bool run_warp(unsigned first)
{
	const unsigned from = draw(32);
	bool moved = false, again;

	do {
		again = false;
		for (unsigned i = 0; i < 32; i++) {
			current = first + (from + i) % 32;
			if (current >= nthreads ||
			    threads[current].state != RUNS)
				continue;
			threadIdx.x = current;
			go_on(current);
			again = true;
		}
		for (unsigned t = first; t < first + 32 && t < nthreads; t++)
			again |= open_exchange(t);
		moved |= again;
	} while (again);
	return moved;
}

void run_block(void)
{
	const unsigned nwarps = (nthreads + 31) / 32;
	bool ended, moved;

	for (unsigned t = 0; t < nthreads; t++) {
		if (!threads[t].stack)
			make(t);
		threads[t].state = RUNS;
	}
	do {
		const unsigned from = draw(nwarps);

		moved = false;
		for (unsigned w = 0; w < nwarps; w++)
			moved |= run_warp((from + w) % nwarps * 32);
		moved |= open_barrier();
		ended = true;
		for (unsigned t = 0; t < nthreads; t++)
			ended &= threads[t].state == ENDED;
		for (current = 0; !moved && !ended && current < nthreads;
		     current++)
			if (threads[current].state != ENDED)
				fail("waits for threads that do not come");
	} while (!ended);
}

} // namespace

void emulate_block_barrier(void)
{
	wait_as(AT_BARRIER);
}

const uint32_t *emulate_exchange(unsigned mask, uint32_t word)
{
	coroutine *c = &threads[current];

	if (!(mask >> current % 32 & 1))
		fail("is not among the lanes that it names");
	c->mask = mask;
	c->word = word;
	wait_as(AT_EXCHANGE);
	return c->words;
}

// Which blocks go first is drawn, too: from somewhere, up or down.
void emulate_launch(const char *kernel, size_t blocks, unsigned count,
		    const std::function<void()> &kernel_body)
{
	const size_t from = draw((unsigned)blocks);
	const bool down = draw(2);

	name = kernel;
	body = &kernel_body;
	nthreads = count;
	gridDim.x = (unsigned)blocks;
	if (blocks == 0 || blocks > 0x7fffffff || count > THREADS_MAX)
		fail("a grid that a GPU refuses");
	for (size_t b = 0; b < blocks; b++) {
		blockIdx.x =
			(unsigned)((from + (down ? blocks - b : b)) % blocks);
		run_block();
	}
}
