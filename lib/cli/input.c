/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/input.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The launcher is our parent where it runs on this host; elsewhere, or without
 * /proc, nothing is known. */
static bool launcher_reads_device(void)
{
	char link[64], target[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/0", (int)getppid());
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strncmp(target, "/dev/", 5) == 0;
}

bool gf_cli_has_input(const struct gf_cli *cli)
{
	struct stat in;

	if (fstat(STDIN_FILENO, &in) < 0 || S_ISCHR(in.st_mode))
		return false;
	return !cli->launched || !launcher_reads_device();
}
