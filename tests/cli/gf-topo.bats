#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
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

@test "a saved GPU node: GPUs, ports and their rates" {
	wants 0 gf-topo --hwloc "$data/hwloc/gpu-node.xml" --sysfs "$data/sysfs/gpu-node"
	jq -e '.hosts[0].name == "gpu-node"' out.txt
	jq -e '[.hosts[0].devices[].pci] == ["0000:17:00.0", "0000:b3:00.0"]' out.txt
	jq -e '.levels[0] | .size == 2 and .link == "pcie" and .bandwidth_origin == "reported"' out.txt
	jq -e '[.hosts[0].nics[] | select(.link == "infiniband") | .bandwidth_bytes_per_s] == [25e9, 25e9]' out.txt
	wants 0 gf-topo --device cpu --hwloc "$data/hwloc/gpu-node.xml" --sysfs "$data/sysfs/gpu-node"
	jq -e '.levels[0] | .size == 8 and .link == "shm" and .bandwidth_origin == "assumed"' out.txt
}

@test "--tree draws a saved node" {
	wants 0 gf-topo --tree --hwloc "$data/hwloc/gpu-node.xml" --sysfs "$data/sysfs/gpu-node"
	cat > want.txt <<-'END'
	host (discovered)
	host x2: pcie, 31.5 GB/s (reported), 5 us (assumed)
	└─ gpu-node: 2 sockets, 2 NUMA nodes, 8 cores, 16 threads, 128 GiB
	   ├─ gpu NVIDIA Corporation GA100 [A100 PCIe 80GB], pci 0000:17:00.0, numa 0, 31.5 GB/s (reported)
	   ├─ gpu NVIDIA Corporation GA100 [A100 PCIe 80GB], pci 0000:b3:00.0, numa 1, 31.5 GB/s (reported)
	   ├─ eno1: ethernet, up, pci 0000:04:00.0, numa 0, 125 MB/s (reported)
	   ├─ eno2: ethernet, down, pci 0000:04:00.1, numa 0, rate unknown
	   ├─ ib0: ipoib, up, pci 0000:18:00.0, numa 0, 25 GB/s (reported)
	   ├─ mlx5_0:1: infiniband, up, pci 0000:18:00.0, numa 0, 25 GB/s (reported)
	   ├─ mlx5_1:1: infiniband, up, pci 0000:b4:00.0, numa 1, 25 GB/s (reported)
	   └─ mlx5_2:1: roce, down, pci 0000:06:00.0, numa 0, 5 GB/s (reported)
	END
	diff want.txt out.txt
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
	wants 1 gf-topo --device gpu --hwloc no-gpu.xml
	says 'no GPU or accelerator is visible'
	one_line
}

@test "files that are no machines: exit 2 or 3, one line, no output" {
	wants 3 gf-topo --hwloc no-such-file.xml
	says 'no-such-file.xml'
	one_line
	echo '{"format": "gf-topology"}' > wrong.xml
	wants 2 gf-topo --hwloc wrong.xml
	says 'wrong.xml'
	[ -z "$output" ]
}

@test "a sysfs that is not there: interfaces unknown, figures assumed" {
	wants 0 gf-topo --sysfs /no/such/folder
	jq -e '.hosts[0] | (.nics // []) == []' out.txt
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
	says 'want auto, cpu or gpu, got tpu'
	wants 2 gf-topo stray
	says 'want no argument, got stray'
	wants 2 gf-topo --nonsense
	wants 0 gf-topo --help
	prints '--synthetic'
	wants 0 gf-topo --version
	prints 'gf-topo (gradflow)'
}
