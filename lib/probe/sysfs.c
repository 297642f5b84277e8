/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

static int read_line(const char *path, char *out, size_t capacity)
{
	ssize_t n;
	int saved, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, out, capacity - 1);
	saved = errno;
	close(fd);
	if (n < 0)
		return -saved;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

/* NULL if the path is longer than any can be. */
static const char *format_path(char path[PATH_MAX], const char *fmt,
			       va_list args)
{
	int n = vsnprintf(path, PATH_MAX, fmt, args);

	return n >= 0 && n < PATH_MAX ? path : NULL;
}

static int line(char *out, size_t capacity, const char *fmt, va_list args)
{
	char buffer[PATH_MAX];
	const char *path = format_path(buffer, fmt, args);

	return path ? read_line(path, out, capacity) : -ENAMETOOLONG;
}

int gf_sysfs_line(char *out, size_t capacity, const char *fmt, ...)
{
	va_list args;
	int rc;

	va_start(args, fmt);
	rc = line(out, capacity, fmt, args);
	va_end(args);
	return rc;
}

int gf_sysfs_number(double *out, const char *fmt, ...)
{
	char text[64], *end;
	va_list args;
	double value;
	int rc;

	va_start(args, fmt);
	rc = line(text, sizeof(text), fmt, args);
	va_end(args);
	if (rc < 0)
		return rc;
	value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return -EINVAL;
	*out = value;
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int gf_sysfs_has(const char *fmt, ...)
{
	char buffer[PATH_MAX];
	const char *path;
	va_list args;

	va_start(args, fmt);
	path = format_path(buffer, fmt, args);
	va_end(args);
	return path && access(path, F_OK) == 0;
}

static size_t list(const char *folder, char ***names)
{
	DIR *dir = gf_heap_need(opendir(folder));
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		*names = gf_xreallocarray(*names, count + 1, sizeof(**names));
		(*names)[count++] = gf_xstrdup(entry->d_name);
	}
	closedir(dir);
	if (count)
		qsort(*names, count, sizeof(**names), by_bytes);
	return count;
}

size_t gf_sysfs_list(char ***names, const char *fmt, ...)
{
	char buffer[PATH_MAX];
	const char *folder;
	va_list args;

	va_start(args, fmt);
	folder = format_path(buffer, fmt, args);
	va_end(args);
	*names = NULL;
	return folder ? list(folder, names) : 0;
}

void gf_sysfs_free_names(char **names, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* "0000:65:00.0", or with a longer domain on machines that have one */
static int is_pci_address(const char *text, size_t length)
{
	unsigned int domain, bus, slot, function;
	char copy[GF_PCI_TEXT], rest;

	if (length >= sizeof(copy))
		return 0;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return sscanf(copy, "%8x:%2x:%2x.%1x%c", &domain, &bus, &slot,
		      &function, &rest) == 4;
}

static int find_pci(char *path, char pci[GF_PCI_TEXT], int *numa)
{
	char *at;
	double node;

	/* The innermost component that is an address; above it are bridges. */
	while ((at = strrchr(path, '/')) && at != path) {
		if (is_pci_address(at + 1, strlen(at + 1))) {
			snprintf(pci, GF_PCI_TEXT, "%s", at + 1);
			if (gf_sysfs_number(&node, "%s/numa_node", path) == 0)
				*numa = (int)node;
			return 0;
		}
		*at = '\0';
	}
	return -ENOENT;
}

int gf_sysfs_pci(char pci[GF_PCI_TEXT], int *numa, const char *fmt, ...)
{
	char buffer[PATH_MAX], *resolved;
	const char *path;
	va_list args;
	int rc;

	*numa = -1;
	va_start(args, fmt);
	path = format_path(buffer, fmt, args);
	va_end(args);
	resolved = path ? gf_heap_need(realpath(path, NULL)) : NULL;
	if (!resolved)
		return -ENOENT;
	rc = find_pci(resolved, pci, numa);
	free(resolved);
	return rc;
}
