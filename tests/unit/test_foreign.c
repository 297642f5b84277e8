/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that nothing reads are named, with what to give instead, by both doors for other programs'
 * files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "discovery/format.h"
#include "folder.h"
#include "imports/import.h"
#include "imports/job.h"
#include "test.h"

/* Its bytes, or a path, if they begin with "tests/". */
#define BYTES(s) s, sizeof(s) - 1

/* What each command says of a file. */
static void expect_named(const char *path, const char *want)
{
	struct gf_import in = {.file = path, .forward_s = NAN, .backward_s = NAN};
	struct gf_imported imported = {0};
	struct gf_import_job job = {0};
	struct gf_topology t = {0};
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error errs[3] = {{""}};
	size_t i;

	EXPECT(gf_import_file(&in, NULL, NULL, &p, &remarks, &errs[0]) == -EINVAL,
	       "%s is a profile", want);
	EXPECT(gf_import_job_read(&job, &path, 1, NULL, &errs[1]) == -EINVAL, "%s is a job", want);
	EXPECT(gf_topology_import(path, 0, &t, &imported, &remarks, &errs[2]) == -EINVAL,
	       "%s is a topology", want);
	for (i = 0; i < GF_ARRAY_LENGTH(errs); i++)
		EXPECT(strstr(errs[i].text, want), "door %zu: want %s, got %s", i, want,
		       errs[i].text);
	gf_import_job_release(&job);
	gf_imported_release(&imported);
	gf_text_release(&remarks);
}

static void test_named(void)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *want; /* part of what is said */
	} samples[] = {
		{BYTES(""), "this is an empty file"},
		{BYTES("\r\n \n"), "this is an empty file"},
		{BYTES("PK\003\004"
		       "\0\0\0"),
		 "a zip archive: unpack it first"},
		{BYTES("PK\003\004 a/data.pkl"
		       "\0\0\0"),
		 "a checkpoint of PyTorch"},
		{BYTES("\x28\xb5\x2f\xfd"
		       "\0\0\0"),
		 "packed by zstd: unpack it first"},
		{BYTES("\xfd\x37zXZ"
		       "\0\0\0"),
		 "packed by xz: unpack it first"},
		{BYTES("BZh91AY"
		       "\0\0\0"),
		 "packed by bzip2: unpack it first"},
		{BYTES("\x80\x05x"
		       "\0\0\0"),
		 "a pickle of Python"},
		{BYTES("\n\xf0\x01\x08\x01\x12\x09/host:CPU"
		       "\0\0\0"),
		 "XLA's profile"},
		{BYTES("\x07\n\x05"
		       "0.0.4"
		       "\0\0\0"),
		 "an execution trace of Chakra"},
		{BYTES("\n<!doctype HTML><html>SwitchName="), "a web page"},
		{BYTES("version https://git-lfs.github.com/spec/v1\n"),
		 "fetch the file by git lfs pull"},
		{BYTES("tests/data/foreign/execution-trace.json"),
		 "an execution trace of PyTorch, without times: give a trace"},
		{BYTES("{\n  \"schema\": \"1.0.1\", \"pid\": 7,\n  \"nodes\": [\n"
		       "{\"name\": \"torch::autograd::AccumulateGrad\", \"rf_id\": 1, "
		       "\"fw_parent\": 0}]}"),
		 "an execution trace of PyTorch"},
		{BYTES("tests/data/foreign/flight-recorder.json"),
		 "PyTorch's flight recorder, without times: torchfrtrace"},
		{BYTES("tests/data/foreign/flight-recorder.pickle"),
		 "PyTorch's flight recorder, without times: torchfrtrace"},
		{BYTES("tests/data/foreign/iperf3.txt"), "a test of one link (iperf)"},
		{BYTES("tests/data/foreign/iperf3.json"), "a test of one link (iperf3)"},
		{BYTES("[{\"name\": \"Group API\", \"cat\": \"GROUP_API\", \"ph\": \"b\", \"ts\": "
		       "1, \"args\": {\"Stream\": 0x262ca50}}]"),
		 "a trace of NCCL's example profiler"},
		{BYTES("[\n{\"name\": \"NEGOTIATE_ALLREDUCE\", \"ph\": \"B\", \"ts\": 1}\n]"),
		 "a timeline of Horovod"},
		{BYTES("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{\"ph\":\"M\",\"name\":"
		       "\"process_name\",\"args\":{\"name\":\"/host:CPU\"}}]}"),
		 "a trace of XLA"},
		{BYTES("[{\"numCycle\": 1, \"busBw\": 95.0}]"), "the JSON of rccl-tests (-Z json)"},
		{BYTES("NCCL version 2.26.2 compiled with CUDA 12.6\n\nJob summary\n"
		       "===========\n\nCommunicators... (0.00s)\n"),
		 "NCCL's view of a job (ncclras)"},
		{BYTES(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   "
		       "MsgRate[Mpps]\n 65536 5000 10999 10998 0.17\n"),
		 "a test of one link (perftest)"},
		{BYTES(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
		       "t_avg[usec]\n"),
		 "a test of one link (perftest)"},
		{BYTES("{\"Instances\": [{\"InstanceId\": \"i-1\", \"NetworkNodes\": [\"nn-1\", "
		       "\"nn-2\", \"nn-3\"]}]}"),
		 "AWS's describe-instance-topology"},
		{BYTES("resourceStatus:\n  physicalHostTopology:\n    block: a\n"),
		 "GCP's description of an instance"},
		{BYTES("apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\n"), "Kueue's Topology"},
		{BYTES(":::MLLOG {\"namespace\": \"\", \"key\": \"run_start\"}\n"), "MLPerf's log"},
		{BYTES("[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] "
		       "step=10, skipped=0\n"),
		 "a log of DeepSpeed"},
		{BYTES("Comm. Op   Message Size   Count   Total Latency(ms)\n"),
		 "DeepSpeed's summary of communication"},
		{BYTES("HOPS TABLE:\n  0000:01:00.0 0000:02:00.0\n"), "amd-smi topology"},
		{BYTES("= Hops between two GPUs =\n"), "rocm-smi --showtopo"},
		{BYTES("n1:1:2 [0] NCCL INFO Bootstrap\n"), "a log of NCCL"},
		{BYTES("{\"format\": \"gf-model\"}"), "give it by --model"},
	};
	char *put;
	size_t i;

	make_folder("foreign");
	put = gf_xasprintf("%s/file", folder);
	for (i = 0; i < GF_ARRAY_LENGTH(samples); i++) {
		const char *bytes = samples[i].bytes;
		const bool path = strncmp(bytes, "tests/", 6) == 0;
		FILE *f = path ? NULL : fopen(put, "wb");

		EXPECT(path || (f && fwrite(bytes, 1, samples[i].size, f) == samples[i].size),
		       "sample %zu", i);
		if (f)
			fclose(f);
		expect_named(path ? bytes : put, samples[i].want);
	}
	free(put);
}

/* What one command reads, the others name. */
static void test_other_door(void)
{
	static const struct {
		const char *path, *want;
		bool topology;
	} cases[] = {
		{"tests/data/topologies/dgx.xml",
		 "this is a topology, NCCL's XML: give it to gf-topo --import", true},
		{"tests/data/topologies/nvidia-smi.txt",
		 "this is a topology, the matrix of nvidia-smi topo -m: give it to gf-topo "
		 "--import",
		 true},
		{"tests/data/topologies/blocks.conf",
		 "this is a topology, Slurm's: give it to gf-topo --import", true},
		{"tests/data/topologies/slurm.yaml",
		 "this is a topology, Slurm's: give it to gf-topo --import", true},
		{"tests/data/topologies/ring-switch.yml",
		 "this is a topology, ASTRA-sim's: give it to gf-topo --import", true},
		{"tests/data/import/nccl-tests.txt",
		 "this is a measurement, all_reduce_perf's table or its JSON (-J): give it to "
		 "gf-profile --import",
		 false},
		{"tests/data/import/osu.log",
		 "this is a measurement, the table of osu_allreduce: give it to gf-profile "
		 "--import",
		 false},
		{"tests/data/import/kineto-cpu.json",
		 "this is a measurement, a trace of PyTorch's profiler: give it to gf-profile "
		 "--import",
		 false},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_import in = {.file = cases[i].path, .forward_s = NAN, .backward_s = NAN};
		struct gf_imported imported = {0};
		struct gf_topology t = {0};
		struct gf_profile p = {0};
		struct gf_text remarks = {0};
		struct gf_error err = {""};
		char *want = gf_xasprintf("%s: %s", cases[i].path, cases[i].want);
		int rc = cases[i].topology ? gf_import_file(&in, NULL, NULL, &p, &remarks, &err)
					   : gf_topology_import(cases[i].path, 0, &t, &imported,
								&remarks, &err);

		EXPECT(rc == -EINVAL, "%s is taken", cases[i].path);
		EXPECT_TEXT(err.text, want);
		free(want);
		gf_imported_release(&imported);
		gf_text_release(&remarks);
	}
}

int main(void)
{
	test_named();
	test_other_door();
	return TEST_END();
}
