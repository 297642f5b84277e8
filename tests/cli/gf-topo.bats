#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
unset HWLOC_COMPONENTS # the devices of this machine are asked for
load common

@test "this machine: one host, no ranks, every figure with its origin" {
	wants 0 gf-topo
	jq -e '.format == "gf-topology" and (has("ranks") | not)' out.txt
	jq -e '(.hosts | length) == 1 and .hosts[0].cores >= 1' out.txt
	jq -e '.levels | length == 1 and .[0].name == "host"' out.txt
	jq -e '[.levels[].bandwidth_origin, .levels[].latency_origin] -
		["assumed", "reported", "measured"] == []' out.txt
	[ -z "$errors" ]
}

@test "the same machine gives the same bytes" {
	wants 0 gf-topo
	cp out.txt first.txt
	wants 0 gf-topo
	cmp first.txt out.txt
}

@test "ports that libibverbs alone shows: rates, links, and what cannot be opened" {
	local verbs=$GF_SOURCE/$BUILD/fake/verbs.so
	case $BUILD in /*) verbs=$BUILD/fake/verbs.so ;; esac
	[ -e "$verbs" ] || skip "this build has no libibverbs, or is one that nothing may be preloaded into"
	# four lanes of EDR and of NDR, one of HDR that is down, RoCE of 25 Gb/s, unknown codes
	export GF_FAKE_VERBS="mlx5_0:32,2,active,infiniband mlx5_0:128,2,active,infiniband mlx5_1:64,1,down,infiniband rocep1:32,1,active,ethernet mlx5_9:3,7,active,infiniband broken:32,2,active,infiniband"
	LD_PRELOAD=$verbs wants 0 gf-topo
	jq -e '[.hosts[0].nics[] | select(.link == "infiniband" or .link == "roce") |
		[.name, .link, .state, .bandwidth_bytes_per_s, .bandwidth_origin]] ==
		[["mlx5_0:1", "infiniband", "up", 12.5e9, "reported"], ["mlx5_0:2", "infiniband", "up", 50e9, "reported"],
		 ["mlx5_1:1", "infiniband", "down", 6.25e9, "reported"], ["rocep1:1", "roce", "up", 3.125e9, "reported"],
		 ["mlx5_9:1", "infiniband", "up", null, null]]' out.txt
	# a saved machine is not this one
	LD_PRELOAD=$verbs wants 0 gf-topo --machine hwloc="$data/hwloc/gpu-node.xml",sysfs="$data/sysfs/gpu-node"
	jq -e 'all(.hosts[0].nics[]; .name != "rocep1:1")' out.txt
}

@test "a saved GPU node: GPUs, ports and their rates" {
	wants 0 gf-topo --machine hwloc="$data/hwloc/gpu-node.xml",sysfs="$data/sysfs/gpu-node"
	jq -e '.hosts[0].name == "gpu-node"' out.txt
	jq -e '[.hosts[0].devices[].pci] == ["0000:17:00.0", "0000:b3:00.0"]' out.txt
	jq -e '.levels[0] | .size == 2 and .link == "pcie" and .bandwidth_origin == "reported"' out.txt
	jq -e '[.hosts[0].nics[] | select(.link == "infiniband") | .bandwidth_bytes_per_s] == [25e9, 25e9]' out.txt
	wants 0 gf-topo --device cpu --machine hwloc="$data/hwloc/gpu-node.xml",sysfs="$data/sysfs/gpu-node"
	jq -e '.levels[0] | .size == 8 and .link == "shm" and .bandwidth_origin == "assumed"' out.txt
}

@test "--table draws a saved node" {
	LC_ALL=C.UTF-8 wants 0 gf-topo --table --machine hwloc="$data/hwloc/gpu-node.xml",sysfs="$data/sysfs/gpu-node"
	cat > want.txt <<-'END'
	topology host (discovered)
	host x2: pcie, 31.5 GB/s (reported), 5.00 us (assumed)
	└─ gpu-node: 2 sockets, 2 NUMA nodes, 8 cores, 16 threads, 128 GiB
	   ├─ gpu NVIDIA Corporation GA100 [A100 PCIe 80GB], pci 0000:17:00.0, numa 0, near mlx5_0:1 (pix), 31.5 GB/s (reported)
	   ├─ gpu NVIDIA Corporation GA100 [A100 PCIe 80GB], pci 0000:b3:00.0, numa 1, near mlx5_1:1 (pix), 31.5 GB/s (reported)
	   ├─ eno1: ethernet, up, pci 0000:04:00.0, numa 0, 1 Gb/s (reported)
	   ├─ eno2: ethernet, down, pci 0000:04:00.1, numa 0, rate unknown
	   ├─ ib0: ipoib, up, pci 0000:18:00.0, numa 0, 200 Gb/s (reported)
	   ├─ mlx5_0:1: infiniband, up, pci 0000:18:00.0, numa 0, 200 Gb/s (reported)
	   ├─ mlx5_1:1: infiniband, up, pci 0000:b4:00.0, numa 1, 200 Gb/s (reported)
	   └─ mlx5_2:1: roce, down, pci 0000:06:00.0, numa 0, 40 Gb/s (reported)
	END
	diff want.txt out.txt
}

@test "--table: hosts under their switch, neighbours that are alike on one line" {
	{
		for i in $(seq 0 31); do echo "SwitchName=leaf$i Nodes=n[$((32 * i))-$((32 * i + 31))]"; done
		echo 'SwitchName=spine Switches=leaf[0-31]'
	} > t.conf
	LC_ALL=C.UTF-8 wants 0 gf-topo --import t.conf --ranks-per-host 8 --table
	head -n 1 out.txt | grep -qx 'topology .* (slurm): 8192 ranks'
	[ "$(grep -c '^├─ .*: 32 hosts, each 8 ranks$' out.txt)" -eq 31 ]
	grep -qx '└─ .* 31: n\[992-1023\]: 32 hosts, each 8 ranks' out.txt
	[ "$(wc -l < out.txt)" -lt 40 ]
	# names that do not go on: each range, and each other name
	printf 'SwitchName=a Nodes=b[08-11,3],login,x1\nSwitchName=b Nodes=y[1-7]\nSwitchName=c Switches=a,b\n' > u.conf
	wants 0 gf-topo --import u.conf --table
	prints ' 0: b[08-11,3],login,x1: 7 hosts, each 1 rank'
	# hosts that differ stand apart
	gf-topo --import u.conf | jq '.hosts[2].cores = 4' > v.json
	LC_ALL=C wants 0 gf-topo --import v.json --table
	tail -n 5 out.txt > hosts.txt
	cat > want.txt <<-'END'
	|- switch 0
	|  |- b[08-09]: 2 hosts, each 1 rank
	|  |- b10: 1 rank, 4 cores
	|  `- b[11,3],login,x1: 4 hosts, each 1 rank
	`- switch 1: y[1-7]: 7 hosts, each 1 rank
	END
	diff want.txt hosts.txt
}

@test "--table in a locale without UTF-8 is ASCII, and -o has the same" {
	for locale in C POSIX de_DE.ISO-8859-1; do
		LC_ALL=$locale wants 0 gf-topo --table
		fails grep -qP '[^\x00-\x7f]' out.txt
		grep -q '^`- ' out.txt
	done
	LC_ALL= LC_CTYPE= LANG=en_US.utf8 wants 0 gf-topo --table
	grep -q '^└─ ' out.txt
}

@test "--plot: boxes of each level, hosts that are alike on one line" {
	echo 'SwitchName=a Nodes=n[0-3]' > t.conf
	echo 'SwitchName=b Nodes=n[4-7]' >> t.conf
	wants 0 gf-topo --import t.conf --ranks-per-host 2 --plot t.csv -o t.json
	cut -d, -f1-3 t.csv > boxes.txt
	printf '%s\n' kind,size,ranks level,1,16 level,2,8 level,4,2 level,2,1 host,, | diff - boxes.txt
	jq -r '.levels | reverse | .[] | "\(.name) x\(.size): \(.link)"' t.json | diff - <(awk -F, '$1 == "level" && $4 { print $4 }' t.csv)
	grep -qx 'host,,,,n\[0-7\]: 8 hosts; each 2 ranks' t.csv
	wants 2 gf-topo --plot t.jpg
	command -v gnuplot > /dev/null || skip "gnuplot is not installed"
	wants 0 gf-topo --import t.json --plot t.svg --table
	for text in 'ranks 0-7' 'rank 1' '16 ranks' 'n\[0-7\]: 8 hosts, each 2 ranks'; do grep -q ">$text<" t.svg; done
	wants 0 python3 "$GF_SOURCE/tests/cli/picture_text.py" t.svg
}

@test "a name cannot change what a terminal shows" {
	for option in "" --table; do
		wants 2 gf-topo --name $'a\e[31mb' $option
		says "without control characters"
		one_line
	done
}

@test "--measure marks the copy rate as measured" {
	wants 0 gf-topo --device cpu --measure
	jq -e '.levels[0] | .bandwidth_origin == "measured" and .bandwidth_bytes_per_s > 1e6' out.txt
}

@test "--synthetic: BlueConnect's cluster" {
	wants 0 gf-topo --name blue --synthetic "gpu:4@32GB/s,3us node:16@12.5GB/s,5us rack:3@200GB/s,5us"
	jq -e '.name == "blue" and .source == "synthetic" and .ranks == 192' out.txt
	jq -e '[.levels[].size] == [4, 16, 3]' out.txt
	jq -e '[.levels[].bandwidth_bytes_per_s] == [32e9, 12.5e9, 200e9]' out.txt
	jq -e '[.levels[].latency_s] == [3e-6, 5e-6, 5e-6]' out.txt
}

@test "--synthetic refuses what it cannot read, naming the level" {
	wants 2 gf-topo --synthetic "gpu:4@32GB/s,3us node:x@12.5GB/s,5us"
	says 'gf-topo: --synthetic: level "node:x@12.5GB/s,5us"'
	wants 2 gf-topo --synthetic ""
	says 'want NAME:SIZE@RATE,LATENCY[,LINK], got nothing'
	wants 2 gf-topo --synthetic "a:2@1Gb/s,1us" --measure
	says '--synthetic goes without'
	[ -z "$output" ]
}

@test "a GPU that is demanded and absent is the answer no" {
	sed 's/"0302 \[10de/"0200 [10de/' "$data/hwloc/gpu-node.xml" > no-gpu.xml
	wants 1 gf-topo --device gpu --machine hwloc=no-gpu.xml
	says 'no GPU or accelerator is visible'
	one_line
}

@test "files that are no machines: exit 2 or 3, one line, no output" {
	wants 3 gf-topo --machine hwloc=no-such-file.xml
	says 'no-such-file.xml'
	one_line
	echo '{"format": "gf-topology"}' > wrong.xml
	wants 2 gf-topo --machine hwloc=wrong.xml
	says 'wrong.xml'
	[ -z "$output" ]
	# what lstopo of a later hwloc writes unless it is told to write the old format
	sed 's/<topology version="2.0">/<topology version="9.0">/' "$data/hwloc/gpu-node.xml" > later.xml
	for option in '--machine hwloc=' '--import '; do
		# shellcheck disable=SC2086
		wants 2 gf-topo ${option}later.xml
		says 'later.xml: want XML of hwloc 1 to 3, got format 9.0 (lstopo --export-xml-flags v2 writes an earlier one)'
		one_line
	done
}

@test "a sysfs that is not there is refused" {
	wants 3 gf-topo --machine sysfs=/no/such/folder
	says 'gf-topo: /no/such/folder: No such file or directory'
	one_line
	[ -z "$output" ]
	touch file
	wants 2 gf-topo --machine sysfs=file
	says 'file: want a folder like /sys, got a file'
}

@test "a full disk and -o" {
	wants 3 gf-topo -o no/such/folder/t.json
	one_line
	status=0
	gf-topo > /dev/full 2> err.txt || status=$?
	[ "$status" -eq 3 ]
	wants 0 gf-topo -o t.json
	[ -z "$output" ]
	jq -e '.format == "gf-topology"' t.json
}

@test "usage errors, help and version" {
	wants 2 gf-topo --device tpu
	says 'want auto, cpu or gpu, got "tpu"'
	wants 2 gf-topo stray
	says 'want no argument, got "stray"'
	wants 2 gf-topo --nonsense
	wants 0 gf-topo --help
	prints '--synthetic'
	wants 0 gf-topo --version
	prints 'gf-topo (gradflow)'
}

@test "--import takes what a file looks like, or is said to be" {
	for f in dgx.xml pairs.xml fat-tree.conf blocks.conf ring-switch.yml; do
		wants 0 gf-topo --import "$data/topologies/$f"
		cp out.txt topo.json
		gf-topo --import topo.json | cmp - topo.json
	done
	wants 0 gf-topo --import "nccl:$data/topologies/dgx.xml"
	jq -e '.source == "nccl-xml" and .name == "dgx" and (has("ranks") | not)' out.txt
	jq -e '.levels == [.levels[0]] and .levels[0].link == "nvlink" and .levels[0].size == 4' out.txt
	jq -e '[.hosts[0].devices[].numa] == [0, 0, 1, 1]' out.txt
	jq -e '[.hosts[0].nics[] | [.name, .link, .bandwidth_bytes_per_s]] == [["mlx5_0", "infiniband", 50e9], ["eth0", "ethernet", 12.5e9]]' out.txt
	wants 0 gf-topo -q --import dgx-h100-4x8 -o named.json
	gf-topo -q --import "$share/topologies/dgx-h100-4x8.json" | cmp - named.json
	gf-topo -q --import - < named.json | cmp - named.json
	wants 2 gf-topo --import dgx-h1000
	says 'dgx-h100-4x8'
	wants 0 gf-topo --import "$data/hwloc/gpu-node.xml"
	jq -e '.source == "hwloc" and .hosts[0].name == "gpu-node"' out.txt
	wants 0 gf-topo --import "$data/topologies/fat-tree.conf" --ranks-per-host 4 --name fat
	jq -e '.ranks == 24 and .name == "fat" and [.levels[].size] == [4, 3, 2] and .hosts[5].name == "login"' out.txt
	gf-plan -q --model resnet50 out.txt > plan.json
}

@test "--import: NCCL's and RCCL's XML, and what is wrong with a machine" {
	wants 0 gf-topo --import "$data/topologies/rccl-4p2h.xml" --table
	says 'rccl-4p2h.xml: nccl XML 2: 1 host, 8 devices, 2 network interfaces, levels of 4 x 2'
	says 'rccl-4p2h.xml:10: 8 of 8 GPUs are behind a PCI link narrower than their own: first 0000:1d:00.0, 15.8 GB/s of 31.5 GB/s'
	prints 'host x2: pcie, 4 ranks share 15.8 GB/s (reported)'
	prints 'xgmi x4: xgmi, 48.0 GB/s (assumed)'
	prints 'gpu gfx906, pci 0000:1d:00.0'
	wants 0 gf-topo --import "$data/topologies/azure-ncv4.xml"
	says 'azure-ncv4.xml:6: 4 links (nvlink) lead from a GPU to itself and to no other: left out'
	sed 's|<nvlink target="0000:07:00.0" count="18" tclass="0x068000"/>|<vlink/>|' "$data/topologies/dgx.xml" > less.xml
	wants 0 gf-topo --import less.xml
	says 'left out: unknown elements (3, first in line 19)'
	says 'less.xml:18: 3 of 4 GPUs have fewer links (nvlink) than their siblings: first 0000:29:00.0, 0 B/s of 371 GB/s'
	wants 0 gf-topo -q --import less.xml; [ -z "$stderr" ]
	sed 's/target="0001:00:00.0"/target="0009:00:00.0"/' "$data/topologies/azure-ncv4.xml" > far.xml
	wants 0 gf-topo --import far.xml
	says 'left out: links to no GPU of the file (1, first in line 6)'
	local gpu='<gpu sm="80"><nvlink count="4" tclass="0x030200" target'
	printf '<system><cpu><pci busid="a">%s="c"/></gpu></pci><pci busid="b">%s="d"/></gpu></pci><pci busid="c">%s="a"/></gpu></pci><pci busid="d">%s="b"/></gpu></pci></cpu></system>' "$gpu" "$gpu" "$gpu" "$gpu" > mixed.xml
	wants 0 gf-topo --import mixed.xml
	says 'NVLink does not connect the GPUs in equal groups of neighbours: described as if over PCI Express; CUDA_VISIBLE_DEVICES=0,2,1,3 makes neighbours of them'
	printf '<system><cpu numaid="0"><pci busid="a"><gpu sm="90"><c2c bw="45000" count="10"/></gpu></pci><pci busid="b" class="0x020700"/></cpu></system>' > grace.xml
	wants 0 gf-topo --import grace.xml --table
	says 'grace.xml: nccl: c2c links of 1 GPU, 1 host, 1 device, levels of 1; left out: network interfaces without an element net (1, first in line 1)'
	prints 'host x1: c2c, 450 GB/s (reported)'
	gzip -c "$data/topologies/dgx.xml" > dgx.gz
	wants 0 gf-topo --import dgx.gz
	says 'dgx.gz: nccl XML 1: 1 host'
}

@test "--import: what a file is that is not read" {
	wants 2 gf-topo --import "$data/topologies/azure-ncv4-graph.xml"
	says "this is NCCL's graphs (NCCL_GRAPH_DUMP_FILE): give what NCCL_TOPO_DUMP_FILE writes"; one_line
	wants 2 gf-topo --import "$data/topologies/azure-ndv5-template.xml"
	says 'got a template, which NCCL completes at run time (by class 2 GPUs and 2 network interfaces): give what NCCL_TOPO_DUMP_FILE writes'; one_line
	wants 2 gf-topo --import "$data/import/nccl-tests.txt"
	says "this is a measurement, all_reduce_perf's table or its JSON (-J): give it to gf-profile --import"; one_line
}

@test "hwloc: links between GPUs, IP over InfiniBand, displays, no name" {
	wants 0 gf-topo --import "$data/hwloc/dgx2-nvswitch.xml" --table
	prints 'host x16: nvlink, 150 GB/s (reported)'
	prints 'dgx2-nvswitch: 2 sockets'
	wants 0 gf-topo --machine hwloc="$data/hwloc/power8-nvlink.xml" --table
	prints 'host x2: pcie, 2 ranks share 15.8 GB/s (reported)'
	prints 'nvlink x2: nvlink, 40.0 GB/s (reported)'
	sed 's/NVLinkBandwidth/XeLinkBandwidth/' "$data/hwloc/power8-nvlink.xml" > xe.xml
	wants 0 gf-topo --import xe.xml
	says 'left out: matrices of links between other devices (1)'
	sed 's/NVLinkBandwidth/XGMIBandwidth/' "$data/hwloc/power8-nvlink.xml" > xgmi.xml
	wants 0 gf-topo --import xgmi.xml --table
	prints 'xgmi x2: xgmi, 40.0 GB/s (reported)'
	prints 'xgmi to 1'
	sed 's/pci_type="0302 .10de:15f9./pci_type="0300 [1002:515e]/' "$data/hwloc/power8-nvlink.xml" > board.xml
	wants 0 gf-topo --import board.xml
	jq -e '(.hosts[0].devices // []) | length == 0' out.txt
	sed 's/pci_type="0302 .10de:15f9./pci_type="0300 [1002:744c]/' "$data/hwloc/power8-nvlink.xml" > radeon.xml
	wants 0 gf-topo --import radeon.xml
	jq -e '.hosts[0].devices | length == 4' out.txt
}

@test "--import: Slurm's topology.yaml, scontrol, and two fabrics" {
	printf 'SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\n' > t.conf
	wants 0 gf-topo --import t.conf
	says 't.conf:2: no switch connects the 2 trees (b is the second)'
	wants 0 gf-topo --import "$data/topologies/slurm.yaml" --table
	says 'left out: topologies but for the default (2, first in line'
	prints 'tier2 x2: ethernet'
	prints 'switch 1: tux[4-7]: 4 hosts'
	wants 0 gf-topo --import "$data/topologies/scontrol.txt"
	jq -e '[.levels[].size] == [4, 2]' out.txt
	printf -- '- topology: x\n  flat: true\n' > flat.yaml
	wants 2 gf-topo --import flat.yaml
	says 'flat.yaml:1: want a tree, block, ring or torus3d with nodes, got flat, which names no nodes'; one_line
	printf 'BlockName=a Nodes=n[0-2]\nBlockName=b Nodes=n[3-5]\nBlockName=c\nBlockSizes=2,6\n' > blocks.conf
	wants 0 gf-topo --import blocks.conf
	says 'levels of 3 x 2; left out: blocks without nodes (1, first in line 3)'
	says 'BlockSizes: Slurm plans with 2 nodes of a block, and a block has 3'
	says 'BlockSizes: 6 nodes do not divide the blocks with nodes evenly: left out'
	printf -- '- topology: x\n  ring: {rings: [{ring: r, nodes: "n[0-3]"}]}\n' > ring.yaml
	wants 0 gf-topo --import ring.yaml --table
	says 'the hosts of rings are described as if switches that do not block connected them'
	prints 'ring x4: ethernet'
	printf -- '- topology: &a [*a, *a]\n  tree: [\n' > loop.yaml
	wants 2 gf-topo --import loop.yaml; one_line
	{ printf -- '- topology: x\n  tree: '; printf '[%.0s' {1..100000}; } > deep.yaml
	wants 2 gf-topo --import deep.yaml
	says 'deep.yaml:2: want at most 64 brackets inside each other'; one_line
}

@test "--import: the matrix of nvidia-smi topo -m" {
	wants 0 gf-topo --import "$data/topologies/nvidia-smi.txt" --table
	says 'nvidia-smi: 1 host, 2 devices, 9 network interfaces, levels of 2'
	says 'it does not say what GPUs these are: an NVLink counts for 20 GB/s'
	prints 'host x2: nvlink, 160 GB/s (assumed)'
	prints 'gpu GPU1, numa 0, near NIC4 (pix)'
	head -n 3 "$data/topologies/nvidia-smi.txt" | cut -c-60 > cut.txt
	wants 2 gf-topo --import "nvidia-smi:cut.txt"; one_line
	sed 's/^GPU1 .*//' "$data/topologies/nvidia-smi.txt" > row.txt
	wants 2 gf-topo --import row.txt
	says 'row.txt: want the matrix of nvidia-smi topo -m, got the rows of 1 of 2 GPUs'; one_line
}

@test "--import: uneven switches are flat, and said to be" {
	printf 'SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\n' > t.conf
	wants 0 gf-topo --import t.conf
	says 'the switches are not alike'
	jq -e '[.levels[] | [.name, .size]] == [["net", 5]]' out.txt
}

@test "--import: refusals" {
	echo hello > x; printf '<system><cpu/>' > y; printf 'a\0b' > z
	wants 2 gf-topo --import x; says 'x: it looks like none of'; one_line
	wants 2 gf-topo --import nccl:y; says 'y:1: want whole XML, got the end of the file'; one_line
	wants 2 gf-topo --import z; says 'z: want text, got a zero byte at offset 1'; one_line
	wants 3 gf-topo --import nosuch.xml; one_line
	wants 3 gf-topo --import nccl:nosuch; one_line
	wants 2 gf-topo --import x --measure; says '--import goes without'
	wants 2 gf-topo --ranks-per-host 2; says 'goes with --import'
	wants 2 gf-topo --import x --ranks-per-host 0; says '--ranks-per-host: want an integer'
	wants 2 gf-topo --import "$share/topologies/4x2-1gbe.json" --ranks-per-host 2
	says 'want a file that names hosts alone (slurm), got gf-topology'; one_line
}
