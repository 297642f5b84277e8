/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/message_memory.h"

#include <errno.h>
#include <stdio.h>

/* The bytes that may be taken without swapping; < 0: this kernel does not say.
 */
static double available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	double kib, bytes = -1;

	if (!f)
		return -1;
	while (bytes < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lf kB", &kib) == 1)
			bytes = kib * 1024;
	fclose(f);
	return bytes;
}

int gf_contest_memory_check(double wanted_bytes, struct gf_error *err)
{
	double there = available_bytes();

	if (there < 0 || wanted_bytes <= there)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "want %.4g bytes of memory on this host for the "
			    "largest message, inputs and results of all its "
			    "ranks; %.4g are left",
			    wanted_bytes, there);
}
