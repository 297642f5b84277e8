/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/foreign.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

/* In the first so many bytes. */
enum { LOOKED_AT = 1 << 16 };

struct foreign {
	const char *has;  /* bytes of the file, or others behind a bar */
	const char *also; /* (optional) further ones */
	const char *what; /* what it is, and what to give instead */
	unsigned at;      /* where the bytes stand, from 1; 0: anywhere */
};

#define UNPACK "unpack it first"
#define TABLE                                                                                      \
	"give all_reduce_perf's or osu_allreduce's output to gf-profile "                          \
	"--import, or measure with gf-profile"
#define TRACE    "give a trace of PyTorch's profiler (export_chrome_trace)"
#define DUMP     "give what NCCL_TOPO_DUMP_FILE writes on the node to gf-topo"
#define CLUSTER  "give the topology.conf or topology.yaml that topograph makes of it"
#define TOPOLOGY "give it to gf-topo --import"
#define FLIGHT                                                                                     \
	"a dump of PyTorch's flight recorder, without times: torchfrtrace "                        \
	"reads it; for times, " TRACE

/* Whole files. Bytes at 1 may follow blanks. */
/* clang-format off */
static const struct foreign files[] = {
	{"PK\x03\x04", "data.pkl", "a checkpoint of PyTorch (torch.save): " TRACE, 1},
	{"PK\x03\x04", NULL, "a zip archive: " UNPACK, 1},
	{"\x28\xb5\x2f\xfd", NULL, "packed by zstd: " UNPACK, 1},
	{"\xfd\x37zXZ", NULL, "packed by xz: " UNPACK, 1},
	{"BZh", NULL, "packed by bzip2: " UNPACK, 1},
	{"\x04\x22\x4d\x18", NULL, "packed by lz4: " UNPACK, 1},
	{"7z\xbc\xaf", NULL, "a 7z archive: " UNPACK, 1},
	{"ustar", NULL, "a tar archive: " UNPACK, 258},
	{"\xff\xfe|\xfe\xff", NULL, "a text in UTF-16: convert it by iconv -f UTF-16 -t UTF-8", 1},
	{"\x7f\x45LF", NULL, "a program: give what it prints", 1},
	{"SQLite format 3", NULL, "a database of Nsight Systems or rocprof: " TABLE, 1},
	{"%PDF", NULL, "a PDF: give the text of the table", 1},
	{"\x89PNG|\xff\xd8\xff", NULL, "a picture: give the text of the table", 1},
	{"version https://git-lfs", NULL, "a pointer of Git LFS: fetch the file by git lfs pull", 1},
	{"<!DOCTYPE html|<html", NULL, "a web page: save the raw file", 1},
	{"\x80", "pg_config", FLIGHT, 1},
	{"\x80", "device_traces", "a snapshot of PyTorch's memory: " TRACE, 1},
	{"\x80", NULL, "a pickle of Python: give a text; of PyTorch, " TRACE, 1},
	{"\"collective_seq_id\"", "\"profiling_name\"", FLIGHT, 0},
	{"\"pg_config\"", "\"pg_status\"", FLIGHT, 0},
	{"\"schema\"", "\"fw_parent\"", "an execution trace of PyTorch, without times: " TRACE, 0},
	{"is_cpu_op", NULL, "an execution trace of Chakra: " TRACE, 0},
	{"\x0a\x05" "0.0.4", NULL, "an execution trace of Chakra: " TRACE, 2},
	{"\x12\x09/host:CPU|\x12\x0e/host:metadata|\x12\x0d/device:", NULL, "XLA's profile (xplane.pb): give a table of gradients (--import csv:FILE)", 0},
	{"\"traceEvents\"", "\"/host:CPU\"|XlaModule", "a trace of XLA: give a table of gradients (--import csv:FILE)", 0},
	{"NEGOTIATE_ALLREDUCE", NULL, "a timeline of Horovod: " TRACE, 0},
	{"\"GROUP_API\"|\"COLL_API\"|\"KernelCh\"|\"cat\": \"COLL\"|\"cat\": \"PROXY\"", NULL, "a trace of NCCL's example profiler: " TABLE, 0},
	{"\"test_start\"", "\"cookie\"", "a test of one link (iperf3): " TABLE, 0},
	{"\"BW_average\"", NULL, "a test of one link (perftest): " TABLE, 0},
	{"\"numCycle\"", "\"busBw\"", "the JSON of rccl-tests (-Z json): give the table that it prints without -Z", 0},
	{"numCycle,", "busBw", "the CSV of rccl-tests (-Z csv): give the table that it prints without -Z", 0},
	{"nccl_bus_bandwidth_gbs", NULL, "NCCL Inspector's Prometheus text, which has ranges of sizes: leave out NCCL_INSPECTOR_PROM_DUMP, and give the JSON", 0},
	{"NetworkNodes|NETWORKNODES", NULL, "AWS's describe-instance-topology: " CLUSTER, 0},
	{"physicalHostTopology|physical_host_topology|physicalHost:|\"physicalHost\"", NULL, "GCP's description of an instance: " CLUSTER, 0},
	{"hpcIslandId", NULL, "OCI's description of hosts: " CLUSTER, 0},
	{"kueue.x-k8s.io", "Topology", "Kueue's Topology, which names labels and no hosts: give Slurm's topology.conf, or gf-topo --synthetic", 0},
	{"topology.volcano.sh", NULL, "Volcano's HyperNode: give Slurm's topology.conf, or gf-topo --synthetic", 0},
	{"\"num_hops\"", "\"link_type\"", "amd-smi topology: " DUMP " (RCCL, too)", 0},
};

/* Passages of logs, which may hold what is read, too; documents; and topologies,
 * whose readers are in no command for measurements. */
static const struct foreign passages[] = {
	{"\"format\": \"gf-profile\"", NULL, "a profile of gradflow already: give it as a document", 0},
	{"\"format\": \"gf-topology\"", NULL, "a topology of gradflow already: give it as a document", 0},
	{"\"format\": \"gf-model\"", NULL, "a model of gradflow: give it by --model", 0},
	{"\"format\": \"gf-", NULL, "a document of gradflow, with nothing measured by other tools", 0},
	{"<system", "<cpu", "a topology, NCCL's XML: " TOPOLOGY, 0},
	{"<topology", "<object", "a topology, hwloc's XML: " TOPOLOGY, 0},
	{"SwitchName=|BlockName=", NULL, "a topology, Slurm's: " TOPOLOGY, 0},
	{"- topology:", "cluster_default|tree:|block:|flat:|ring:|torus3d:", "a topology, Slurm's: " TOPOLOGY, 0},
	{"npus_count:", NULL, "a topology, ASTRA-sim's: " TOPOLOGY, 0},
	{"GPU0", "CPU Affinity", "a topology, the matrix of nvidia-smi topo -m: " TOPOLOGY, 0},
	{"<graphs", "<graph", "NCCL's graphs (NCCL_GRAPH_DUMP_FILE): " DUMP, 0},
	{"<algo ", "<step", "an algorithm of MSCCL: " DUMP, 0},
	{"<nvidia_smi_log", "<gpu", "nvidia-smi -q -x: give nvidia-smi topo -m, or " DUMP, 0},
	{"NVIDIA-SMI", "Driver Version", "nvidia-smi's list of GPUs: give nvidia-smi topo -m, or " DUMP, 0},
	{" between two GPUs", NULL, "rocm-smi --showtopo: " DUMP " (RCCL, too)", 0},
	{"LINK TYPE TABLE|HOPS TABLE|WEIGHT TABLE", NULL, "amd-smi topology: " DUMP " (RCCL, too)", 0},
	{"vendid=", "\"S-", "ibnetdiscover's output: " CLUSTER, 0},
	{"Machine (", "Package L#", "lstopo's text: give what lstopo --of xml writes to gf-topo", 0},
	{"collective", "algorithm,protocol", "the table of an NCCL tuner: " TABLE, 0},
	{"#bytes", "BW average|t_typical[usec]|tps average", "a test of one link (perftest): " TABLE, 0},
	{"[ ID] Interval", "Transfer", "a test of one link (iperf): " TABLE, 0},
	{"nvbandwidth Version", NULL, "a test of one host's links (nvbandwidth): " TABLE, 0},
	{"Job summary", "Communicators", "NCCL's view of a job (ncclras), without times: for times, " TRACE, 0},
	{"\"nccl_version\"", "\"communicators", "NCCL's view of a job (ncclras), without times: for times, " TRACE, 0},
	{":::MLLOG|:::MLP", NULL, "MLPerf's log of a training, without its gradients: " TRACE, 0},
	{"Comm. Op", "Message Size", "DeepSpeed's summary of communication: " TRACE, 0},
	{"fwd_microstep|DeepSpeed info:", NULL, "a log of DeepSpeed: " TRACE, 0},
	{"log_dist]", "[Rank ", "a log of DeepSpeed: " TRACE, 0},
	{"elapsed time per iteration (ms)", NULL, "a log of Megatron-LM: " TRACE, 0},
	{"Self CPU %", "CPU total", "a summary of PyTorch's profiler: " TRACE, 0},
	{"NCCL INFO", NULL, "a log of NCCL without a benchmark's table: " TABLE, 0},
};
/* clang-format on */

/* One of the words between bars; at: as in struct foreign. */
static bool has(const char *text, size_t size, const char *words, unsigned at)
{
	const size_t from = at > 1 ? at - 1 : 0;
	size_t n, blanks = 0;
	bool found = false;

	while (at == 1 && blanks < size && strchr(" \t\r\n", text[blanks]))
		blanks++;
	for (; *words && !found; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		if (!at)
			found = memmem(text, size < LOOKED_AT ? size : LOOKED_AT, words, n);
		else
			found = (size >= from + n && !strncasecmp(text + from, words, n)) ||
				(size >= blanks + n && !strncasecmp(text + blanks, words, n));
	}
	return found;
}

static int refuse(const struct foreign *rows, size_t nrows, const char *file, const char *text,
		  size_t size, struct gf_error *err)
{
	const struct foreign *f;

	for (f = rows; f < rows + nrows; f++)
		if (has(text, size, f->has, f->at) && (!f->also || has(text, size, f->also, 0)))
			return gf_error_set(err, -EINVAL, "%s: this is %s", file, f->what);
	return 0;
}

int gf_foreign_refuse(const char *file, const char *text, size_t size, struct gf_error *err)
{
	if (strspn(text, " \t\r\n") == size)
		return gf_error_set(err, -EINVAL,
				    "%s: this is an empty file: want what a program wrote", file);
	return refuse(files, GF_ARRAY_LENGTH(files), file, text, size, err);
}

int gf_foreign_refuse_rest(const char *file, const char *text, size_t size, struct gf_error *err)
{
	const char *zero = memchr(text, '\0', size);
	int rc = refuse(passages, GF_ARRAY_LENGTH(passages), file, text, size, err);

	if (rc == 0 && zero)
		rc = gf_error_set(err, -EINVAL, "%s: want text, got a zero byte at offset %td",
				  file, zero - text);
	return rc;
}
