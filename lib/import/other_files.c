/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that people try to import and that no importer reads. */
#include "import/importers.h"

#include <string.h>

#include "base/array.h"

/* In the first so many bytes. */
enum { LOOKED_AT = 1 << 16 };

struct other {
	const char *has;  /* bytes of the file, or */
	const char *also; /* (optional) further ones */
	const char *what; /* what it is, and what to give instead */
	bool first;       /* the bytes begin the file */
};

#define UNPACK   "unpack it first"
#define TOPOLOGY "a topology: give it to gf-topo --import"
#define TABLE                                                                  \
	"give all_reduce_perf's or osu_allreduce's output, or measure "        \
	"with gf-profile"

static const struct other others[] = {
	{"PK\x03\x04", NULL, "a zip archive: " UNPACK, true},
	{"\x28\xb5\x2f\xfd", NULL, "packed by zstd: " UNPACK, true},
	{"\xfd\x37zXZ", NULL, "packed by xz: " UNPACK, true},
	{"BZh", NULL, "packed by bzip2: " UNPACK, true},
	{"\xff\xfe", NULL,
	 "a text in UTF-16: convert it by iconv -f UTF-16 -t UTF-8", true},
	{"\xfe\xff", NULL,
	 "a text in UTF-16: convert it by iconv -f UTF-16 -t UTF-8", true},
	{"\x7f\x45LF", NULL, "a program: give what it prints", true},
	{"SQLite format 3", NULL,
	 "a database of Nsight Systems or rocprof: " TABLE, true},
	{"%PDF", NULL, "a PDF: give the text of the table", true},
	{"version https://git-lfs", NULL,
	 "a pointer of Git LFS: fetch the file by git lfs pull", true},
	{"<!DOCTYPE html", NULL, "a web page: save the raw file", true},
	{"<html", NULL, "a web page: save the raw file", true},
	{"\"format\": \"gf-profile\"", NULL,
	 "a profile of gradflow already: give it as a document"},
	{"\"format\": \"gf-topology\"", NULL,
	 "a topology of gradflow already: give it as a document"},
	{"\"format\": \"gf-model\"", NULL,
	 "a model of gradflow: give it by --model"},
	{"\"format\": \"gf-", NULL,
	 "a document of gradflow, with nothing measured by other tools"},
	{"\"numCycle\"", "\"busBw\"",
	 "the JSON of rccl-tests (-Z json): give the table that it prints "
	 "without -Z"},
	{"numCycle,", "busBw",
	 "the CSV of rccl-tests (-Z csv): give the table that it prints "
	 "without -Z"},
	{"collective", "algorithm,protocol",
	 "the table of an NCCL tuner: " TABLE},
	{"nccl_bus_bandwidth_gbs", NULL,
	 "NCCL Inspector's Prometheus text, which has ranges of sizes: leave "
	 "out NCCL_INSPECTOR_PROM_DUMP, and give the JSON"},
	{"# Benchmarking", "t_avg[usec]",
	 "a table of the Intel MPI Benchmarks: " TABLE},
	{"#bytes", "BW average", "a test of one link (perftest): " TABLE},
	{"nvbandwidth Version", NULL,
	 "a test of one host's links (nvbandwidth): " TABLE},
	{"GPU0", "CPU Affinity", "nvidia-smi topo -m, " TOPOLOGY},
	{"<graphs", NULL,
	 "a dump of NCCL's graphs: give NCCL_TOPO_DUMP_FILE to gf-topo "
	 "--import"},
	{"<system", "<cpu", "NCCL's topology, " TOPOLOGY},
	{"<topology", "<object", "hwloc's topology, " TOPOLOGY},
	{"SwitchName=", NULL, "Slurm's topology, " TOPOLOGY},
	{"cluster_default", "switch", "Slurm's topology, " TOPOLOGY},
	{"vendid=", "switchguids", "ibnetdiscover's output, " TOPOLOGY},
	{"npus_count", NULL, "a topology of ASTRA-sim, " TOPOLOGY},
	{"\"GROUP_API\"", NULL, "a trace of NCCL's example profiler: " TABLE},
	{"\"KernelCh\"", NULL, "a trace of NCCL's example profiler: " TABLE},
	{"NEGOTIATE_ALLREDUCE", NULL,
	 "a timeline of Horovod: give a trace of PyTorch's profiler"},
	{"XlaModule", NULL,
	 "a trace of XLA: give a table of gradients (--format csv)"},
	{"NCCL INFO", NULL,
	 "a log of NCCL without a benchmark's table: " TABLE},
};

static bool has(const struct other *o, const char *text, size_t size,
		const char *bytes)
{
	size_t n = strlen(bytes);

	if (o->first)
		return size >= n && memcmp(text, bytes, n) == 0;
	return memmem(text, size < LOOKED_AT ? size : LOOKED_AT, bytes, n);
}

const char *gf_import_other(const char *text, size_t size)
{
	size_t i;

	if (strspn(text, " \t\r\n") == size)
		return "an empty file: want a measurement";
	for (i = 0; i < GF_ARRAY_LENGTH(others); i++) {
		const struct other *o = &others[i];

		if (has(o, text, size, o->has) &&
		    (!o->also || has(o, text, size, o->also)))
			return o->what;
	}
	return NULL;
}
