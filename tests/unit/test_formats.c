/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies of other programs: what they mean here, and what is refused. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/rng.h"
#include "discovery/format.h"
#include "discovery/hostlist.h"
#include "test.h"

static int read_text(const char *format, const char *text, int per_host, struct gf_topology *t,
		     struct gf_error *err)
{
	struct gf_imported imported = {0};
	struct gf_topology_file in = {"f", text, strlen(text), per_host, &imported};
	struct gf_text remarks = {0};
	const struct gf_topology_format *f = gf_named_find(gf_topology_formats, 0, format);
	int rc = f->read(&in, t, &remarks, err);

	gf_imported_release(&imported);
	gf_text_release(&remarks);
	return rc;
}

/* "name:size@GB/s " per level */
static char *print_levels(const struct gf_topology *t)
{
	struct gf_text out = {0};
	size_t i;

	for (i = 0; i < t->nlevels; i++)
		gf_text_addf(&out, "%s:%zu@%g ", t->levels[i].name, t->levels[i].size,
			     t->levels[i].bandwidth_bytes_per_s / 1e9);
	return gf_text_take(&out);
}

#define GPU(bus, links)                                                                            \
	"<pci busid=\"" bus "\" link_speed=\"16.0 GT/s PCIe\" "                                    \
	"link_width=\"16\"><gpu sm=\"80\">" links "</gpu></pci>"
#define AMD(bus, to, target)                                                                       \
	"<pci busid=\"" bus "\" link_speed=\"16 GT/s\" link_width=\"16\">"                         \
	"<gpu sm=\"104\" gcn=\"" target "\"><xgmi target=\"" to                                    \
	"\" count=\"1\" tclass=\"0x038000\"/></gpu></pci>"
#define SWITCH(below)                                                                              \
	"<pci class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" "                                    \
	"link_width=\"8\">" below "</pci>"
#define SWITCHED(bus) "<nvlink target=\"" bus "\" count=\"18\" tclass=\"0x068000\"/>"
#define HOSTS(gpus)                                                                                \
	"<system><cpu host_hash=\"0x1\">" gpus "</cpu><cpu host_hash=\"0x2\">" gpus                \
	"</cpu></system>"
#define LINK(bus)  "<nvlink target=\"" bus "\" count=\"4\"/>"
#define NODE(gpus) "<system><cpu numaid=\"0\">" gpus "</cpu></system>"

static void test_read(void)
{
	static const struct {
		const char *format, *text;
		int per_host, ranks;
		size_t hosts;
		const char *levels;
	} cases[] = {
		{"nccl", NODE(GPU("a", "")), 1, 0, 1, "host:1@31.5077 "},
		{"nccl", NODE(GPU("a", "") GPU("b", "")), 1, 0, 1, "host:2@31.5077 "},
		{"nccl", NODE(GPU("a", LINK("b")) GPU("b", LINK("a"))), 1, 0, 1, "host:2@80 "},
		{"nccl",
		 NODE(GPU("a", LINK("b")) GPU("b", LINK("a")) GPU("c", LINK("d"))
			      GPU("d", LINK("c"))),
		 1, 0, 1, "nvlink:2@80 host:2@31.5077 "},
		/* pairs that are no neighbours */
		{"nccl",
		 NODE(GPU("a", LINK("c")) GPU("b", LINK("d")) GPU("c", LINK("a"))
			      GPU("d", LINK("b"))),
		 1, 0, 1, "host:4@31.5077 "},
		/* links to one GPU, to a switch, to some directly */
		{"nvidia-smi",
		 "\033[4mGPU0 GPU1 CPU Affinity\033[0m\nGPU0 X NV12 0-3 0\n"
		 "GPU1 NV12 X 0-3 0\n",
		 1, 0, 1, "host:2@240 "},
		{"nvidia-smi",
		 "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV18 NV18\n"
		 "GPU1 NV18 X NV18\nGPU2 NV18 NV18 X\n",
		 1, 0, 1, "host:3@370.8 "},
		{"nvidia-smi",
		 "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV1 NV2\n"
		 "GPU1 NV1 X NV2\nGPU2 NV2 NV2 X\n",
		 1, 0, 1, "host:3@60 "},
		{"nvidia-smi", "GPU0 GPU1 CPU Affinity\nGPU0 X SYS 0 0\nGPU1 SYS X 0 0\n", 1, 0, 1,
		 "host:2@12 "},
		{"slurm", "SwitchName=s Nodes=n[0-3]", 1, 4, 4, "switch:4@1.25 "},
		{"slurm", "SwitchName=s Nodes=n[0-3]", 8, 32, 4, "host:8@8 switch:4@1.25 "},
		{"slurm",
		 "SwitchName=t Switches=s[0-1]\nSwitchName=s0 Nodes=a,b\n"
		 "SwitchName=s1 Nodes=c,d\n",
		 1, 4, 4, "switch:2@1.25 tier2:2@2.5 "},
		/* capitals; links to themselves, without a count, to what the file does not have */
		{"nccl", NODE(GPU("A", LINK("b")) GPU("b", LINK("a"))), 1, 0, 1, "host:2@80 "},
		{"nccl",
		 NODE(GPU("a", LINK("a") "<nvlink target=\"b\" count=\"0\"/>")
			      GPU("b", LINK("b") LINK("z"))),
		 1, 0, 1, "host:2@31.5077 "},
		/* by gfx targets */
		{"nccl", NODE(AMD("a", "b", "910") AMD("b", "a", "910")), 1, 0, 1, "host:2@36 "},
		{"nccl", NODE(AMD("a", "b", "gfx942") AMD("b", "a", "gfx942")), 1, 0, 1,
		 "host:2@48 "},
		{"nccl",
		 NODE(AMD("a", "b", "906") AMD("b", "a", "906") AMD("c", "d", "906")
			      AMD("d", "c", "906")),
		 1, 0, 1, "xgmi:2@24 host:2@31.5077 "},
		/* the switch's link is the narrowest */
		{"nccl", NODE(SWITCH(GPU("a", "") GPU("b", "")) SWITCH(GPU("c", "") GPU("d", ""))),
		 1, 0, 1, "host:4@7.87692 "},
		/* equal addresses; switches of their own, or one for all */
		{"nccl", HOSTS(GPU("a", LINK("b")) GPU("b", LINK("a"))), 1, 0, 2,
		 "host:2@80 net:2@1.25 "},
		{"nccl", HOSTS(GPU("a", SWITCHED("07:00.0")) GPU("b", SWITCHED("07:00.0"))), 1, 0,
		 2, "host:2@360 net:2@1.25 "},
		{"nccl",
		 HOSTS(GPU("a", SWITCHED("fffffff:ff:ff.0")) GPU("b", SWITCHED("fffffff:ff:ff.0"))),
		 1, 0, 2, "host:4@360 "},
		{"slurm",
		 "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-3]\n"
		 "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[4-7]\n"
		 "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=s[0-1]\n",
		 1, 8, 8, "switch:4@1.25 tier2:2@5 "},
		{"slurm",
		 "BlockName=a BlockIndex=0 Nodes=n[0-1] BlockSize=2\n"
		 "BlockName=b BlockIndex=1 Nodes=n[2-3] BlockSize=2\n"
		 "AggregatedBlock=a,b BlockIndex=2 Nodes=n[0-3] BlockSize=4\n",
		 1, 4, 4, "switch:2@1.25 tier2:2@2.5 "},
		{"slurm",
		 "- topology: a\n  block:\n    blocks:\n"
		 "    - {block: b, nodes: n1}\n"
		 "- topology: b\n  cluster_default: true\n  tree:\n"
		 "    switches:\n    - switch: s\n      children: s[1-2]\n"
		 "    - {switch: s1, nodes: \"n[1-3]\"}\n"
		 "    - {switch: s2, nodes: \"n[4-6]\"}\n",
		 1, 6, 6, "switch:3@1.25 tier2:2@3.75 "},
		{"slurm", "SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c\n", 1, 3, 3,
		 "net:3@1.25 "},
		{"slurm",
		 "BlockName=b0 Nodes=a,b\nBlockName=b1 Nodes=c,d\n"
		 "BlockSizes=2\n",
		 1, 4, 4, "switch:2@1.25 tier2:2@2.5 "},
		/* blocks without nodes, and sizes that divide them or not */
		{"slurm",
		 "BlockName=a Nodes=n[0-1]\nBlockName=b Nodes=n[2-3]\n"
		 "BlockName=c Nodes=n[4-5]\nBlockName=d\nBlockSizes=2,4\n",
		 1, 6, 6, "switch:2@1.25 tier2:3@2.5 "},
		{"slurm",
		 "BlockSizes=2,4\nBlockName=a Nodes=n[0-1]\n"
		 "BlockName=b Nodes=n[2-3]\nBlockName=c Nodes=n[4-5]\n"
		 "BlockName=d Nodes=n[6-7]\nBlockName=e\nBlockName=f\n",
		 2, 16, 8, "host:2@8 switch:2@1.25 tier2:2@2.5 tier3:2@5 "},
		{"slurm",
		 "BlockName=a Nodes=n[0-1]\nBlockName=b\n"
		 "BlockName=c Nodes=n[4-5]\nBlockSizes=2,4\n",
		 1, 4, 4, "switch:2@1.25 tier2:2@2.5 "},
		{"slurm",
		 "BlockName=a Nodes=n[0-1] BlockSize=2\n"
		 "BlockName=b Nodes=n[2-3] BlockSize=2\n"
		 "BlockName=c Nodes=n[4-5] BlockSize=2\n"
		 "BlockName=d Nodes=n[6-7] BlockSize=2\n"
		 "AggregatedBlock=a,b Nodes=n[0-3] BlockSize=4\n"
		 "AggregatedBlock=c,d Nodes=n[4-7] BlockSize=4\n",
		 1, 8, 8, "switch:2@1.25 tier2:2@2.5 tier3:2@5 "},
		{"slurm",
		 "- topology: t\n  block:\n    block_sizes: [1, 2]\n"
		 "    blocks:\n    - {block: a, nodes: n1}\n"
		 "    - {block: b, nodes: n2}\n    - {block: c, nodes: n3}\n"
		 "    - {block: d, nodes: n4}\n    - {block: e, nodes: null}\n"
		 "    - block: f\n",
		 1, 4, 4, "switch:1@1.25 tier2:2@1.25 tier3:2@2.5 "},
		{"slurm",
		 "- topology: t\n  ring:\n    rings:\n"
		 "    - {ring: r0, nodes: \"n[0-3]\"}\n"
		 "    - {ring: r1, nodes: \"n[4-7]\"}\n",
		 1, 8, 8, "ring:4@1.25 tier2:2@5 "},
		{"slurm",
		 "- topology: t\n  torus3d:\n    toruses:\n"
		 "    - name: pod\n      dims: {x: 4, y: 2, z: 1}\n"
		 "      nodes: n[0-7]\n"
		 "      placements: [{dims: {x: 2, y: 2, z: 1}}]\n"
		 "    - {name: b, dims: {x: 4, y: 2, z: 1}, nodes: \"m[0-7]\"}\n",
		 1, 16, 16, "x:4@1.25 y:2@5 tier3:2@10 "},
		/* places in another order, and one without a node */
		{"slurm",
		 "- topology: t\n  torus3d:\n    toruses:\n    - name: pod\n"
		 "      dims: {x: 2, y: 2, z: 1}\n      regions:\n"
		 "      - {anchor: {x: 0, y: 0, z: 0}, dims: {x: 2, y: 2, z: 1}, nodes: "
		 "\"n[0-3]\"}\n",
		 1, 4, 4, "net:4@1.25 "},
		{"slurm",
		 "- topology: t\n  torus3d:\n    toruses:\n"
		 "    - {name: a, dims: {x: 2, y: 2, z: 1}, nodes: \"n[0-2]\"}\n",
		 1, 3, 3, "net:3@1.25 "},
		/* c2c links in place of two lanes of PCI Express */
		{"nccl",
		 NODE("<pci busid=\"a\" link_speed=\"64.0 GT/s PCIe\" link_width=\"2\"><gpu "
		      "sm=\"103\"><c2c bw=\"44712\" count=\"5\"/></gpu></pci>"),
		 1, 0, 1, "host:1@223.56 "},
		/* behind labels; in a transcript on a page; quoted */
		{"nvidia-smi",
		 "[1,0]<stdout>:$ nvidia-smi topo -m\n"
		 "[1,0]<stdout>:\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\033[0m\n"
		 "[1,0]<stdout>:GPU0\t X \tNV12\tPIX\t0-3\t0\n"
		 "[1,0]<stdout>:GPU1\tNV12\t X \tPIX\t0-3\t0\n"
		 "[1,0]<stdout>:NIC0\tPIX\tPIX\t X \n\n"
		 "[1,0]<stdout>:Legend:\n[1,0]<stdout>:  X    = Self\n"
		 "[1,0]<stdout>:NIC Legend:\n[1,0]<stdout>:  NIC0: mlx5_0\n",
		 1, 0, 1, "host:2@240 "},
		{"nvidia-smi",
		 "Nov 26 06:00:07 n1 job[77]: \tGPU0\tGPU1\tCPU Affinity\n"
		 "Nov 26 06:00:07 n1 job[77]: GPU0\t X \tNV12\t0-3\t0\n"
		 "Nov 26 06:00:08 n1 job[77]: GPU1\tNV12\t X \t0-3\t0\n",
		 1, 0, 1, "host:2@240 "},
		{"slurm",
		 "```\nroot@n1:~# scontrol show topology | grep SwitchName=\n"
		 "SwitchName=s Level=0 LinkSpeed=1 Nodes=n[0-3]\n```\n",
		 1, 4, 4, "switch:4@1.25 "},
		{"slurm",
		 "> user@n1 $ grep SwitchName= f\n"
		 "> # SwitchName=t Nodes=m\n> SwitchName=s \\\n"
		 ">   Nodes=n[0-3] # leaf\n",
		 1, 4, 4, "switch:4@1.25 "},
		{"slurm",
		 "0: BlockName=a Nodes=n[0-1] # one\n0: BlockSizes=2\n"
		 "0: BlockName=b Nodes=n[2-3]\n",
		 1, 4, 4, "switch:2@1.25 tier2:2@2.5 "},
		{"slurm", "Nov 26 06:00:07 n1 job[7]: SwitchName=s Nodes=n[0-3]\n", 1, 4, 4,
		 "switch:4@1.25 "},
		{"astra-sim",
		 "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\n"
		 "latency: [500]\n",
		 1, 4, 0, "dim0:4@50 "},
		{"astra-sim",
		 "npus_count:\n- 4\n- 2 # two\ntopology: [ Ring, Switch ]\n"
		 "bandwidth: [50, 10]\nlatency: [5e2, 0]\n",
		 1, 8, 0, "dim0:4@50 dim1:2@40 "},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_error err = {""};
		char *levels;

		EXPECT(!read_text(cases[i].format, cases[i].text, cases[i].per_host, &t, &err),
		       "case %zu: %s", i, err.text);
		levels = print_levels(&t);
		EXPECT_TEXT(levels, cases[i].levels);
		EXPECT(t.ranks == cases[i].ranks && t.nhosts == cases[i].hosts,
		       "case %zu: %d ranks, %zu hosts", i, t.ranks, t.nhosts);
		free(levels);
		gf_topology_release(&t);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *format, *text, *want;
	} cases[] = {
		{"nccl", "<system>", "f:1: want whole XML, got the end of the file"},
		{"nccl", "<system/>", "f: want at least one gpu below a cpu, got none"},
		{"nccl", "<!DOCTYPE x [<!ENTITY a \"b\">]><system/>",
		 "f:1: want XML without definitions in its DOCTYPE, got some"},
		{"nccl", "<system>\n<cpu numaid=0/></system>",
		 "f:2: want whole XML, got not well-formed (invalid token)"},
		{"nccl", "<system>\n<cpu a='1' a='2'/></system>",
		 "f:2: want whole XML, got duplicate attribute"},
		{"nccl", "<system><cpu></system>", "f:1: want whole XML, got mismatched tag"},
		{"nccl", "<host/>", "f:1: want the element system, got host"},
		{"nccl", NODE("\n<gpu sm=\"x\"/>"), "f:2: sm: want a number, got \"x\""},
		{"nccl", NODE("<gpu/><nic><net speed=\"-5\"/></nic>"),
		 "f:1: speed: want 0 to 1e9 Mb/s, got -5"},
		{"nccl", NODE("<gpu/>") "<system/>",
		 "f:1: want whole XML, got junk after document element"},
		{"nccl", NODE("<pci class=\"0x030200\"/><pci class=\"0x020700\"/>"),
		 "f: want elements gpu, got a template, which NCCL completes at run time (by class "
		 "1 GPUs and 1 network interfaces): give what NCCL_TOPO_DUMP_FILE writes on the "
		 "node"},
		{"nccl", NODE(GPU("a", "") GPU("A", "")),
		 "f:1: want one GPU of an address on a host (host_hash), got a again"},
		{"nccl",
		 NODE("<nic><net name=\"mlx5_0\"/></nic>"
		      "<pci class=\"0x030200\"/>"),
		 "f: want elements gpu, got a template, which NCCL completes at run time (by class "
		 "1 GPUs and 1 network interfaces): give what NCCL_TOPO_DUMP_FILE writes on the "
		 "node"},
		{"nccl", NODE(GPU("a", "<c2c bw=\"x\"/>")), "f:1: bw: want a number, got \"x\""},
		{"nccl", NODE(GPU("a", "<nvlink count=\"2000\"/>")),
		 "f:1: count: want 0 to 1024 links, got 2000"},
		{"slurm", "Nodes=a", "f:1: want a SwitchName or BlockName, got none"},
		{"slurm", "SwitchName=s",
		 "f:1: s: want either Nodes or "
		 "Switches"},
		{"slurm", "# nothing\n", "f: want a SwitchName or BlockName with nodes, got none"},
		{"slurm", "BlockName=a\nBlockSizes=2\n",
		 "f: want a SwitchName or BlockName with nodes, got none"},
		{"slurm", "BlockName=a Nodes=a\nBlockSizes=2,x\n",
		 "f:2: BlockSizes: want numbers of nodes with commas between, got \"x\""},
		{"slurm",
		 "- topology: t\n  torus3d:\n    toruses:\n"
		 "    - {name: a, nodes: b, dims: {x: 2, y: 0, z: 1}}\n",
		 "f:4: dims: want numbers x, y and z, got \"0\""},
		{"slurm", "- topology: t\n  dragonfly:\n    groups: []\n",
		 "f:1: want a tree, block, ring or torus3d with nodes, got dragonfly: give gf-topo "
		 "--synthetic the levels"},
		{"slurm", "- topology: t\n  hypercube:\n    nodes: a\n",
		 "f:1: want a tree, block, ring or torus3d with nodes, got hypercube: give gf-topo "
		 "--synthetic the levels"},
		{"slurm", "SwitchName=s Nodes=a[3-1]",
		 "f:1: want a range of 1 to 65536 numbers, got 3-1"},
		{"slurm", "SwitchName=s Nodes=a[0-99999999]",
		 "f:1: want a range of 1 to 65536 numbers, got 0-99999999"},
		{"slurm", "SwitchName=s Nodes=a[0-9999][0-9999]", "f:1: want at most 65536 names"},
		{"slurm", "SwitchName=s Nodes=a[1", "f:1: want ] after [, got none"},
		{"slurm", "SwitchName=s Nodes=a\nSwitchName=s Nodes=b",
		 "f:2: want s once, it was on line 1"},
		{"slurm", "SwitchName=s Nodes=a\nSwitchName=t Nodes=a",
		 "f: want every node below one switch, got a below two"},
		{"slurm", "SwitchName=s Switches=t\nSwitchName=t Switches=s",
		 "f: want a tree of switches, got 2 in a circle"},
		{"slurm", "SwitchName=s Switches=t",
		 "f:1: want a switch that has a line of its own, got t"},
		{"slurm", "SwitchName=s \\\nNodes=a Speed=3",
		 "f:1: want SwitchName, Nodes, Switches, LinkSpeed, BlockName or BlockSizes, got "
		 "Speed"},
		{"slurm", "- topology: t\n  flat: true\n",
		 "f:1: want a tree, block, ring or torus3d with nodes, got flat, which names no "
		 "nodes: give gf-topo --synthetic the levels"},
		{"slurm",
		 "- topology: t\n  tree:\n    switches:\n"
		 "    - switch: s\n      nodes: a\n      nodes: b\n",
		 "f:6: want nodes once, got it again"},
		{"slurm", "SwitchName=s Nodes", "f:1: want KEY=VALUE, got \"Nodes\""},
		{"astra-sim", "topology: [ Ring ]\nnpus_count: [ 8 ]\n",
		 "f: want bandwidth, got none"},
		{"astra-sim",
		 "topology: [ Ring ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 1 ]\n"
		 "latency: [ 1 ]\n",
		 "f:2: want npus_count of as many dimensions as topology, 1, got 2"},
		{"astra-sim", "topology: [ Ring\n",
		 "f:2: want YAML: did not find expected ',' or ']'"},
		{"astra-sim", "dimensions: 3\n",
		 "f:1: want topology, npus_count, bandwidth or latency and a list, got "
		 "\"dimensions\""},
		{"astra-sim",
		 "topology: [ A ]\nnpus_count: [ 0 ]\nbandwidth: [ 1 ]\n"
		 "latency: [ 1 ]\n",
		 "f: npus_count, entry 0: want an integer from 1 to "
		 "16777216, got \"0\""},
		{"astra-sim",
		 "topology: [ A, B ]\nnpus_count: [ 65536, 65536 ]\n"
		 "bandwidth: [ 1, 1 ]\nlatency: [ 1, 1 ]\n",
		 "f:2: want at most 16777216 NPUs in all, got 4294967296"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_error err = {""};

		EXPECT(read_text(cases[i].format, cases[i].text, 1, &t, &err) == -EINVAL,
		       "case %zu is taken", i);
		EXPECT_TEXT(err.text, cases[i].want);
		gf_topology_release(&t);
	}
}

#define NET(bus, name, more)                                                                       \
	"<pci busid=\"" bus "\"><nic><net name=\"" name "\" speed=\"100000\" " more "/></nic></"   \
	"pci>"
#define BELOW(inside)     "<pci class=\"0x060400\">" inside "</pci>"
#define CPU(numa, inside) "<cpu numaid=\"" numa "\">" inside "</cpu>"

/* The interface near each device, and the links that interfaces are. */
static void test_near(void)
{
	static const struct {
		const char *format, *text, *near, *links;
	} cases[] = {
		/* one switch, several, a processor, the other one */
		{"nccl",
		 "<system>" CPU("0", BELOW(BELOW(GPU("a", "")) NET("e", "mlx5_0", "port=\"1\""))
					     GPU("b", ""))
			 CPU("1", BELOW(GPU("c", "") NET("f", "mlx5_1", "port=\"1\""))) "</system>",
		 "mlx5_0 pxb, mlx5_0 node, mlx5_1 pix", "mlx5_0 infiniband, mlx5_1 infiniband"},
		/* two for two */
		{"nccl",
		 NODE(BELOW(GPU("a", "") GPU("b", "") NET("c", "rdmap1s0", "gdr=\"1\"")
				    NET("d", "rdmap2s0", "gdr=\"1\""))),
		 "rdmap1s0 pix, rdmap2s0 pix", "rdmap1s0 roce, rdmap2s0 roce"},
		/* what the file says, and the name where it says nothing */
		{"nccl",
		 NODE(GPU("a", "") NET("b", "mlx5_0", "port=\"0\" gdr=\"0\"") NET(
			 "c", "foo", "port=\"1\" gdr=\"0\"") NET("d", "bnxt_re0", "gdr=\"0\"")
			      NET("e", "irdma0", "") NET("f", "eno1", "")
				      NET("g", "ibp1s0", "port=\"2\"")),
		 "ibp1s0 node",
		 "mlx5_0 ethernet, foo roce, bnxt_re0 roce, irdma0 roce, "
		 "eno1 ethernet, ibp1s0 infiniband"},
		{"nvidia-smi",
		 "GPU0 GPU1 NIC0 NIC1 NIC2 CPU Affinity NUMA Affinity\n"
		 "GPU0 X NV12 SYS PXB PXB 0-3 0\n"
		 "GPU1 NV12 X SYS PXB PXB 0-3 0\n"
		 "NIC0 SYS SYS X SYS SYS\nNIC1 PXB PXB SYS X PIX\n"
		 "NIC2 PXB PXB SYS PIX X\n"
		 "NIC0: bnxt_re0\nNIC1: bnxt_re1\nNIC2: bnxt_re2\n",
		 "bnxt_re1 pxb, bnxt_re2 pxb", "bnxt_re0 roce, bnxt_re1 roce, bnxt_re2 roce"},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_error err = {""};
		struct gf_text near = {0}, links = {0};

		EXPECT(!read_text(cases[i].format, cases[i].text, 1, &t, &err), "case %zu: %s", i,
		       err.text);
		for (k = 0; k < t.hosts[0].ndevices; k++) {
			const struct gf_device *d = &t.hosts[0].devices[k];

			gf_text_addf(&near, "%s%s %s", k ? ", " : "", d->nic ? d->nic : "-",
				     gf_path_names[d->nic_path]);
		}
		for (k = 0; k < t.hosts[0].nnics; k++)
			gf_text_addf(&links, "%s%s %s", k ? ", " : "", t.hosts[0].nics[k].name,
				     t.hosts[0].nics[k].link);
		EXPECT_TEXT(near.data, cases[i].near);
		EXPECT_TEXT(links.data, cases[i].links);
		gf_text_release(&near);
		gf_text_release(&links);
		gf_topology_release(&t);
	}
}

static void test_hostlist(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"a", "a "},
		{"a,b", "a b "},
		{"tux[0-2]", "tux0 tux1 tux2 "},
		{"n[08-11]x", "n08x n09x n10x n11x "},
		{"n[1,3-4],m", "n1 n3 n4 m "},
		{"r[0-1]n[5-6]", "r0n5 r0n6 r1n5 r1n6 "},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_hostlist l = {0};
		struct gf_text t = {0};
		char *got;

		EXPECT(!gf_hostlist_add(&l, cases[i].text, NULL), "%s", cases[i].text);
		for (k = 0; k < l.count; k++)
			gf_text_addf(&t, "%s ", l.names[k]);
		got = gf_text_take(&t);
		EXPECT_TEXT(got, cases[i].want);
		free(got);
		gf_hostlist_release(&l);
	}
}

/* Broken files: no crash, one line that names the file, or a valid document. */
static void test_broken(void)
{
	static const struct {
		const char *file, *format;
	} seeds[] = {
		{"tests/data/topologies/dgx.xml", "nccl"},
		{"tests/data/topologies/pairs.xml", "nccl"},
		{"tests/data/topologies/rccl-4p2h.xml", "nccl"},
		{"tests/data/hwloc/gpu-node.xml", "hwloc"},
		{"tests/data/hwloc/power8-nvlink.xml", "hwloc"},
		{"tests/data/topologies/slurm.yaml", "slurm"},
		{"tests/data/topologies/scontrol.txt", "slurm"},
		{"tests/data/topologies/nvidia-smi.txt", "nvidia-smi"},
		{"tests/data/topologies/fat-tree.conf", "slurm"},
		{"tests/data/topologies/ring-switch.yml", "astra-sim"},
	};
	static const char pieces[] = "<>/\"'=[],-:#\\\n 09[[";
	struct gf_rng rng;
	size_t i, k, size;
	int round;

	gf_rng_init(&rng, 5, 0);
	for (i = 0; i < GF_ARRAY_LENGTH(seeds); i++) {
		struct gf_error err = {""};
		char *text = NULL;

		EXPECT(!gf_file_read(seeds[i].file, &text, &size, &err), "%s", err.text);
		for (round = 0; round < 3000; round++) {
			char *broken = gf_xmemdup(text, size + 1);
			struct gf_topology t = {0};

			for (k = 0; k <= gf_rng_below(&rng, 4); k++)
				broken[gf_rng_below(&rng, size)] =
					pieces[gf_rng_below(&rng, sizeof(pieces) - 1)];
			if (gf_rng_below(&rng, 8) == 0)
				broken[gf_rng_below(&rng, size)] = '\0';
			if (read_text(seeds[i].format, broken, 1, &t, &err))
				EXPECT(err.text[0] == 'f' && !strchr(err.text, '\n'), "%s",
				       err.text);
			gf_topology_release(&t);
			free(broken);
		}
		free(text);
	}
}

int main(void)
{
	test_read();
	test_refused();
	test_near();
	test_hostlist();
	test_broken();
	return TEST_END();
}
