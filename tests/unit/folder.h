/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_FOLDER_H
#define GF_TESTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A folder of the test's own. It is removed, with its contents, when the process that made it
 * exits. */
static char folder[64];
static pid_t folder_owner;

static inline void remove_folder(void)
{
	char command[sizeof(folder) + 8];

	if (getpid() != folder_owner)
		return;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		fprintf(stderr, "not removed: %s\n", folder);
}

static inline void make_folder(const char *name)
{
	snprintf(folder, sizeof(folder), "/tmp/%s.XXXXXX", name);
	if (!mkdtemp(folder)) {
		perror(folder);
		exit(1);
	}
	folder_owner = getpid();
	atexit(remove_folder);
}

#endif
