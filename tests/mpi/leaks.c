/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For AddressSanitizer, in programs that begin MPI. Open MPI keeps memory until the process ends.
 * Its libraries are told by their names in the stack of each allocation, which has no frame
 * pointers there.
 */
#define SEEN __attribute__((visibility("default")))
SEEN const char *__lsan_default_suppressions(void);
SEEN const char *__asan_default_options(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libmpi.so\nleak:libopen-\nleak:/openmpi/\nleak:pmix\n";
}

const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0:print_suppressions=0";
}
