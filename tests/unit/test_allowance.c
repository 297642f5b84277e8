/* SPDX-License-Identifier: BSD-3-Clause */
/* What control groups leave of a machine, by folders as kernels show them. */
#include <sys/stat.h>

#include "base/allowance.h"
#include "base/array.h"
#include "base/heap.h"
#include "folder.h"
#include "test.h"

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
#define V1(name)                                                                                   \
	"32 31 0:29 / /sys/fs/cgroup/" name " rw,relatime shared:9 - cgroup cgroup rw," name "\n"
#define MEMINFO "MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n"
#define GIB     1073741824.0

struct file {
	const char *path, *text;
};

/* Files below a folder, which is made anew for each case. */
static char *make_root(size_t number, const struct file *files)
{
	char *root = gf_xasprintf("%s/%zu", folder, number), *path, *slash;

	for (; files->path; files++) {
		FILE *f;

		path = gf_xasprintf("%s/%s", root, files->path);
		for (slash = path + 1; (slash = strchr(slash, '/')); slash++) {
			*slash = '\0';
			(void)mkdir(path, 0700);
			*slash = '/';
		}
		f = fopen(path, "w");
		EXPECT(f && fputs(files->text, f) >= 0, "%s", path);
		if (f)
			fclose(f);
		free(path);
	}
	return root;
}

#define GROUP "sys/fs/cgroup/"

static const struct {
	const char *name;
	struct file files[16];
	double left, limit;   /* < 0: unknown, or none */
	double processors[3]; /* of groups, 0 at the end */
} cases[] = {
	{"no groups", {{"proc/meminfo", MEMINFO}}, 8.192e9, -1, {0}},
	{"no file at all", {{"proc/x", ""}}, -1, -1, {0}},
	/* a job's group, its step's, and the task's, which has no limits */
	{"Slurm, cgroup 2",
	 {{"proc/meminfo", MEMINFO},
	  {"proc/self/mountinfo", V2},
	  {"proc/self/cgroup", "0::/slurm/job_1/step_0/task_0\n"},
	  {GROUP "slurm/job_1/memory.max", "4294967296\n"},
	  {GROUP "slurm/job_1/memory.current", "1073741824\n"},
	  {GROUP "slurm/job_1/memory.stat",
	   "anon 1\nfile 7\nactive_file 268435456\ninactive_file 268435456\n"},
	  {GROUP "slurm/job_1/step_0/memory.max", "max\n"},
	  {GROUP "slurm/job_1/step_0/memory.high", "2147483648\n"},
	  {GROUP "slurm/job_1/step_0/memory.current", "536870912\n"},
	  {GROUP "slurm/job_1/step_0/task_0/memory.max", "max\n"},
	  {GROUP "slurm/job_1/cpu.max", "400000 100000\n"},
	  {GROUP "slurm/job_1/step_0/cpu.max", "150000 100000\n"},
	  {GROUP "slurm/job_1/step_0/task_0/cpu.max", "max 100000\n"}},
	 1.5 * GIB,
	 2 * GIB,
	 {1.5, 4}},
	/* the group is the top of what a container sees */
	{"a container, cgroup 2",
	 {{"proc/meminfo", MEMINFO},
	  {"proc/self/mountinfo", V2},
	  {"proc/self/cgroup", "0::/\n"},
	  {GROUP "memory.max", "1073741824\n"},
	  {GROUP "memory.current", "2147483648\n"},
	  {GROUP "cpu.max", "50000 100000\n"}},
	 0,
	 GIB,
	 {0.5}},
	/* docker, whose paths are the host's and whose mounts show less */
	{"a container, cgroup 1",
	 {{"proc/meminfo", MEMINFO},
	  {"proc/self/mountinfo",
	   "31 1 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup "
	   "rw,cpu,cpuacct\n"
	   "32 1 0:31 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n"},
	  {"proc/self/cgroup", "5:cpuset:/docker/abc\n4:memory:/docker/abc\n"
			       "3:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"},
	  {GROUP "memory/memory.limit_in_bytes", "3221225472\n"},
	  {GROUP "memory/memory.usage_in_bytes", "2147483648\n"},
	  {GROUP "memory/memory.stat", "active_file 9\ntotal_inactive_file 1073741824\n"},
	  {GROUP "cpu,cpuacct/cpu.cfs_quota_us", "250000\n"},
	  {GROUP "cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
	 2 * GIB,
	 3 * GIB,
	 {2.5}},
	/* nested; without limits; the second hierarchy has no controllers */
	{"both versions",
	 {{"proc/meminfo", MEMINFO},
	  {"proc/self/mountinfo",
	   V1("cpu") V1("memory") "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
	  {"proc/self/cgroup", "4:memory:/a/b\n1:cpu:/a\n0::/a\n"},
	  {GROUP "memory/memory.limit_in_bytes", "9223372036854771712\n"},
	  {GROUP "memory/memory.usage_in_bytes", "8192\n"},
	  {GROUP "memory/a/memory.limit_in_bytes", "314572800\n"},
	  {GROUP "memory/a/memory.usage_in_bytes", "0\n"},
	  {GROUP "memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"},
	  {GROUP "memory/a/b/memory.usage_in_bytes", "0\n"},
	  {GROUP "cpu/a/cpu.cfs_quota_us", "-1\n"},
	  {GROUP "cpu/a/cpu.cfs_period_us", "100000\n"},
	  {GROUP "unified/a/cgroup.procs", "1\n"}},
	 314572800,
	 314572800,
	 {0}},
};

int main(void)
{
	size_t i, k, n;

	make_folder("test_allowance");
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *root = make_root(i, cases[i].files);
		struct gf_allowance limits[GF_ALLOWANCES];
		double left = gf_allowance_memory(root);
		double limit = gf_allowance_memory_limit(root);

		EXPECT(left == cases[i].left, "%s: %.0f left", cases[i].name, left);
		EXPECT(cases[i].limit < 0 ? limit > 9e18 : limit == cases[i].limit,
		       "%s: %.0f at most", cases[i].name, limit);
		n = gf_allowance_processors(root, limits);
		for (k = 0; k < n && k < 3; k++)
			EXPECT(limits[k].processors == cases[i].processors[k], "%s: group %zu: %g",
			       cases[i].name, k, limits[k].processors);
		EXPECT(n < 3 && cases[i].processors[n] == 0, "%s: %zu groups", cases[i].name, n);
		EXPECT(n < 2 || limits[0].group != limits[1].group, "%s", cases[i].name);
		free(root);
	}
	return TEST_END();
}
