/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_TEST_H
#define GF_TESTS_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The few words every unit test uses. A failed expectation prints the place and the case and the
 * test goes on; TEST_END() makes the exit status.
 */
static int test_failures;

/* For limits that a test does not test, in seconds: what hangs is ended by tests/run.sh, what is
 * only slow on a busy machine goes on. */
#define TEST_PATIENCE_S 600

/* Under sanitizers, tests take three to ten times as long. */
#if defined(__SANITIZE_THREAD__)
#define TEST_SPARSER 5
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_SPARSER 3
#else
#define TEST_SPARSER 2
#endif

/* Of a sweep of many cases `make check` tries those whose number divides by `every` times the factor
 * above, `make check-long` all (tests/run.sh --long). A sum of indices as the number leaves no value
 * of any of them out. */
static inline int test_tries(size_t number, size_t every)
{
	return number % (every * TEST_SPARSER) == 0 || getenv("GF_TEST_LONG") != NULL;
}

/* The text is flushed, since the program may crash next. */
#define EXPECT(cond, ...)                                                                          \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			test_failures++;                                                           \
			printf("%s:%d: not so: %s: ", __FILE__, __LINE__, #cond);                  \
			printf(__VA_ARGS__);                                                       \
			putchar('\n');                                                             \
			fflush(stdout);                                                            \
		}                                                                                  \
	} while (0)

/* |a - b| <= tolerance * max(1, |b|) */
#define EXPECT_NEAR(a, b, tolerance, ...)                                                          \
	do {                                                                                       \
		double a_ = (a), b_ = (b);                                                         \
		if (!(fabs(a_ - b_) <= (tolerance)*fmax(1.0, fabs(b_)))) {                         \
			test_failures++;                                                           \
			printf("%s:%d: %s: want %.17g, got %.17g: ", __FILE__, __LINE__, #a, b_,   \
			       a_);                                                                \
			printf(__VA_ARGS__);                                                       \
			putchar('\n');                                                             \
			fflush(stdout);                                                            \
		}                                                                                  \
	} while (0)

#define EXPECT_TEXT(a, b)                                                                          \
	do {                                                                                       \
		const char *a_ = (a), *b_ = (b);                                                   \
		if (strcmp(a_, b_) != 0) {                                                         \
			test_failures++;                                                           \
			printf("%s:%d: %s:\n  want %s\n  got  %s\n", __FILE__, __LINE__, #a, b_,   \
			       a_);                                                                \
			fflush(stdout);                                                            \
		}                                                                                  \
	} while (0)

#define TEST_END() (test_failures ? 1 : 0)

#endif
