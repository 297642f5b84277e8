/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refuses memory, for tests of what a program does then. Preloaded
 * (LD_PRELOAD), it counts the requests of all threads; as a part of a test
 * (OWN_ALONE), those that the program's own code makes while `refuse_at` is not
 *-1:
 *
 *	GF_NO_MEMORY=N     the Nth of them fails
 *	GF_NO_MEMORY=N+    so do those after it
 *	GF_NO_MEMORY=0     none does; their number is the last line of stderr
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long requests;
static long refuse_at; /* -1: none fails */
static bool onward;

#ifdef OWN_ALONE
extern char __executable_start[], etext[];

static bool counts(const char *caller)
{
	return refuse_at > 0 && caller >= __executable_start && caller < etext;
}
#else
static bool started;

/* Other libraries have begun by then; some of them end the program, or crash. */
__attribute__((constructor)) static void start(void)
{
	started = true;
}

static bool counts(const char *caller)
{
	(void)caller;
	return started;
}
#endif

static bool fails(const char *caller)
{
	const char *text;
	char *end = "";
	long n;

	if (!counts(caller))
		return false;
	n = atomic_fetch_add(&requests, 1) + 1;
	if (!refuse_at) {
		text = getenv("GF_NO_MEMORY");
		refuse_at = text ? strtol(text, &end, 10) : 0;
		onward = *end == '+';
		refuse_at = refuse_at ? refuse_at : -1;
	}
	if (refuse_at < 0 || (n != refuse_at && !(onward && n > refuse_at)))
		return false;
	errno = ENOMEM;
	return true;
}

__attribute__((destructor)) static void tell(void)
{
	const char *text = getenv("GF_NO_MEMORY");

	if (text && *text == '0')
		dprintf(STDERR_FILENO, "%ld\n", atomic_load(&requests));
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return size && fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t all;

	if (!__builtin_mul_overflow(count, size, &all) &&
	    !(all && fails(__builtin_return_address(0))))
		return __libc_realloc(old, all);
	errno = ENOMEM;
	return NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **to, size_t alignment, size_t size)
{
	void *p = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);

	if (p)
		*to = p;
	return p ? 0 : ENOMEM;
}
