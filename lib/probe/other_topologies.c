/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that people try to import as a topology and that no format reads. */
#include <string.h>

#include "base/array.h"
#include "probe/topology_formats.h"

#define DUMP "give what NCCL_TOPO_DUMP_FILE writes on the node"

const char *gf_topology_other(const char *text)
{
	static const struct {
		const char *has, *also, *what;
	} others[] = {
		{"<graphs", "<graph",
		 "NCCL's graphs (NCCL_GRAPH_DUMP_FILE): " DUMP},
		{"<algo ", "<step", "an algorithm of MSCCL: " DUMP},
		{"<nvidia_smi_log", "<gpu",
		 "nvidia-smi -q -x: give nvidia-smi topo -m, or " DUMP},
		{"NVIDIA-SMI", "Driver Version",
		 "nvidia-smi's list of GPUs: give nvidia-smi topo -m, "
		 "or " DUMP},
		{"Hops between two GPUs", NULL,
		 "rocm-smi --showtopo: " DUMP " (RCCL, too)"},
		{"Machine (", "Package L#",
		 "lstopo's text: give what lstopo --of xml writes"},
		{"\"traceEvents\"", NULL,
		 "a trace of PyTorch's profiler: give it to gf-profile "
		 "--import"},
		{"out-of-place", "busbw",
		 "a table of nccl-tests: give it to gf-profile --import"},
		{"PK\x03\x04", NULL, "a zip archive: unpack it first"},
		{"\x7f"
		 "ELF",
		 NULL, "a program: give what it prints"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(others); i++)
		if (strstr(text, others[i].has) &&
		    (!others[i].also || strstr(text, others[i].also)))
			return others[i].what;
	return NULL;
}
