/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_ALLOWANCE_H
#define GF_BASE_ALLOWANCE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The part of the machine's memory and processors that a process in a container or a job may have:
 * by the limits of its control group and of those around it that it can see, cgroup 1 and 2.
 * Processors that a group does not have at all (cpuset) are not in the affinity mask, where callers
 * look.
 *
 * root: "", or in tests a folder that holds proc and sys.
 */

/* Bytes that may be taken without swapping, or waiting for it (memory.high);
 * < 0: this kernel does not say. */
double gf_allowance_memory(const char *root);
/* The least limit; INFINITY: there is none. */
double gf_allowance_memory_limit(const char *root);

/* A group whose processes have so many processors together (cpu.max). */
struct gf_allowance {
	uint64_t group; /* its identity in the running kernel */
	double processors;
};
enum { GF_ALLOWANCES = 8 };
/* Fills the first of them, innermost first; how many. */
size_t gf_allowance_processors(const char *root, struct gf_allowance limits[GF_ALLOWANCES]);

#endif
