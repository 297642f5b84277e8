/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/allowance.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/heap.h"

/* Of a group's file the number after a key, or with NULL the first two divided by each other, or
 * the only one. INFINITY: "max", or there is none. */
static double number(const char *folder, const char *file, const char *key)
{
	char *path = gf_xasprintf("%s/%s", folder, file), line[256], word[64];
	FILE *f = fopen(path, "r");
	double found = INFINITY, a, b;

	while (f && isinf(found) && fgets(line, sizeof(line), f)) {
		if (!key && sscanf(line, "%lf %lf", &a, &b) == 2 && b > 0)
			found = a / b;
		else if (!key && sscanf(line, "%lf", &a) == 1)
			found = a;
		else if (key && sscanf(line, "%63s %lf", word, &a) == 2 && strcmp(word, key) == 0)
			found = a;
	}
	if (f)
		fclose(f);
	free(path);
	return found;
}

/* Is the word one of a list with commas? */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (strncmp(list, word, length) == 0 && strchr(",", list[length]))
			return true;
	}
	return false;
}

/* The group of a controller: "4:memory:/a/b" in cgroup 1, "0::/a/b" in 2. The caller frees. */
static char *group_of(const char *root, const char *controller, bool v2)
{
	char *name = gf_xasprintf("%s/proc/self/cgroup", root), *group = NULL;
	char line[4096], list[512], path[3584];
	FILE *f = fopen(name, "r");

	while (f && !group && fgets(line, sizeof(line), f))
		if (v2 ? sscanf(line, "0::%3583[^\n]", path) == 1
		       : sscanf(line, "%*d:%511[^:]:%3583[^\n]", list, path) == 2 &&
				    lists(list, controller))
			group = gf_xstrdup(path);
	if (f)
		fclose(f);
	free(name);
	return group;
}

/* The folder of that group, and how many bytes of it are the mount, which may show only what is
 * below a container's own group. NULL: there is none. */
static char *folder_of(const char *root, const char *controller, bool v2, size_t *mount_bytes)
{
	char *name = gf_xasprintf("%s/proc/self/mountinfo", root), *type;
	char *group = group_of(root, controller, v2), *folder = NULL;
	char line[4096], top[1024], mount[1024], kind[32], options[1024];
	FILE *f = group ? fopen(name, "r") : NULL;

	while (f && !folder && fgets(line, sizeof(line), f)) {
		const char *below = "";
		size_t n;

		type = strstr(line, " - ");
		if (!type || sscanf(line, "%*s %*s %*s %1023s %1023s", top, mount) != 2 ||
		    sscanf(type, " - %31s %*s %1023s", kind, options) != 2 ||
		    strcmp(kind, v2 ? "cgroup2" : "cgroup") != 0 ||
		    (!v2 && !lists(options, controller)))
			continue;
		n = strcmp(top, "/") == 0 ? 0 : strlen(top);
		if (strncmp(group, top, n) == 0 && group[n] == '/' && group[n + 1])
			below = group + n;
		*mount_bytes = strlen(root) + strlen(mount);
		folder = gf_xasprintf("%s%s%s", root, mount, below);
	}
	if (f)
		fclose(f);
	free(name);
	free(group);
	return folder;
}

/* Calls look for the groups of a process, from its own to the outermost. */
static void walk(const char *root, const char *controller,
		 void (*look)(const char *folder, bool v2, void *to), void *to)
{
	size_t top;

	for (int v2 = 0; v2 < 2; v2++) {
		GF_FREED char *folder = folder_of(root, controller, v2, &top);

		while (folder && strlen(folder) >= top) {
			look(folder, v2, to);
			*strrchr(folder, '/') = '\0';
		}
	}
}

static double limit_of(const char *folder, bool v2)
{
	return v2 ? fmin(number(folder, "memory.max", NULL), number(folder, "memory.high", NULL))
		  : number(folder, "memory.limit_in_bytes", NULL);
}

static void look_limit(const char *folder, bool v2, void *least)
{
	*(double *)least = fmin(*(double *)least, limit_of(folder, v2));
}

/* Pages of files are given back. */
static void look_left(const char *folder, bool v2, void *least)
{
	static const char *const files[2][2] = {{"total_active_file", "total_inactive_file"},
						{"active_file", "inactive_file"}};
	double limit = limit_of(folder, v2), used, pages;

	used = number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
	for (size_t i = 0; i < 2; i++) {
		pages = number(folder, "memory.stat", files[v2][i]);
		used -= isinf(pages) ? 0 : pages;
	}
	if (!isinf(used))
		limit = fmax(limit - fmax(used, 0), 0);
	*(double *)least = fmin(*(double *)least, limit);
}

double gf_allowance_memory_limit(const char *root)
{
	double least = INFINITY;

	walk(root, "memory", look_limit, &least);
	return least;
}

double gf_allowance_memory(const char *root)
{
	GF_FREED char *proc = gf_xasprintf("%s/proc", root);
	double least = 1024 * number(proc, "meminfo", "MemAvailable:");

	walk(root, "memory", look_left, &least);
	return isinf(least) ? -1 : least;
}

struct limits {
	struct gf_allowance *to;
	size_t n;
};

static void look_processors(const char *folder, bool v2, void *limits)
{
	struct limits *l = limits;
	double processors;
	struct stat st;

	/* cpu.max: "200000 100000", microseconds in each period */
	processors = v2 ? number(folder, "cpu.max", NULL)
			: number(folder, "cpu.cfs_quota_us", NULL) /
				     number(folder, "cpu.cfs_period_us", NULL);
	if (processors > 0 && !isinf(processors) && l->n < GF_ALLOWANCES && stat(folder, &st) == 0)
		l->to[l->n++] = (struct gf_allowance){
			(uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40, processors};
}

size_t gf_allowance_processors(const char *root, struct gf_allowance limits[GF_ALLOWANCES])
{
	struct limits l = {limits, 0};

	walk(root, "cpu", look_processors, &l);
	return l.n;
}
