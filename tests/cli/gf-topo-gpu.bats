#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# GPUs as NVIDIA's library and the PCI bus show them: machines of
# tests/data/machines, made by tests/machine.sh, and a fake of the library.
load common

# here DESCRIPTION [LINE...]: the machine, with lines added to the description
here() {
	cp "$data/machines/$1.txt" machine.txt
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" >> machine.txt
	rm -rf sys
	"$GF_SOURCE/tests/machine.sh" machine.txt sys
	# processors of a machine with two sockets, whose GPUs are no more
	sed 's/"0302 \[10de/"0200 [10de/' "$data/hwloc/gpu-node.xml" > cpus.xml
	export GF_FAKE_NVML=$PWD/machine.txt
	fake=$GF_SOURCE/$BUILD/fake
	case $BUILD in /*) fake=$BUILD/fake ;; esac
	topo=(gf-topo --machine hwloc=cpus.xml,sysfs=sys,nvml="$fake/libnvidia-ml.so.1")
}

@test "eight GPUs behind NVSwitches: one level, every adapter with its GPU" {
	here dgx
	wants 0 "${topo[@]}"
	[ -z "$errors" ]
	jq -e '.levels == [{name: "host", size: 8, link: "nvlink", bandwidth_bytes_per_s: 478116e6, bandwidth_origin: "reported", latency_s: 3e-6, latency_origin: "assumed"}]' out.txt
	jq -e '.hosts[0].links | length == 28 and all(.path == "nvswitch" and .count == 18 and .bandwidth_bytes_per_s == 478116e6)' out.txt
	jq -e '[.hosts[0].devices[] | [.nic, .nic_path]] == [range(8) | ["mlx5_\(.):1", "pix"]]' out.txt
	jq -e '(.hosts[0].devices[7] | .bandwidth_bytes_per_s += 0) == {type: "gpu", name: "NVIDIA H100", pci: "0000:cb:00.0", numa: 1, memory_bytes: 85520809984, bandwidth_bytes_per_s: (64e9 * 128 / 130), bandwidth_origin: "reported", nic: "mlx5_7:1", nic_path: "pix"}' out.txt
	gf-topo --import out.txt | cmp - out.txt
	wants 0 "${topo[@]}" --table
	prints 'host x8: nvlink, 478 GB/s (reported), 3.00 us (assumed)'
	prints 'gpu NVIDIA H100, pci 0000:18:00.0, numa 0, 79.6 GiB, nvswitch to 7, near mlx5_0:1 (pix), 63.0 GB/s (reported)'
}

@test "pairs on NVLink bridges: a level of pairs, the pairs over PCI Express" {
	here pairs
	wants 0 "${topo[@]}"
	jq -e '[.levels[] | [.name, .size, .link, .bandwidth_origin]] == [["nvlink", 2, "nvlink", "reported"], ["host", 2, "pcie", "reported"]]' out.txt
	jq -e '.levels[0].bandwidth_bytes_per_s == 4 * 14062e6' out.txt
	jq -e '[.hosts[0].links[] | [.path, .count // 0]] == [["nvlink", 4], ["sys", 0], ["sys", 0], ["sys", 0], ["sys", 0], ["nvlink", 4]]' out.txt
	# the one adapter is on the second GPU's host bridge
	jq -e '[.hosts[0].devices[].nic_path] == ["node", "phb", "sys", "sys"]' out.txt
	gf-plan -q --model resnet50 --ranks 4 out.txt | jq -e '.levels | length == 2'
}

@test "PCI Express alone: paths from the bus, with and without the library" {
	here pcie 'fault ancestor'
	wants 0 "${topo[@]}"
	jq -e '.levels | length == 1 and .[0].link == "pcie" and .[0].size == 3 and .[0].bandwidth_origin == "reported"' out.txt
	jq -e '[.hosts[0].links[] | [.from, .to, .path]] == [["0000:19:00.0", "0000:1a:00.0", "pix"], ["0000:19:00.0", "0000:31:00.0", "node"], ["0000:1a:00.0", "0000:31:00.0", "node"]]' out.txt
	jq -e '[.hosts[0].devices[].nic_path] == ["node", "node", "phb"]' out.txt
	# the slowest of them: eight lanes of 8 GT/s
	jq -e '.levels[0].bandwidth_bytes_per_s == 8e9 * 128 / 130' out.txt
	wants 0 gf-topo --machine hwloc=cpus.xml,sysfs=sys
	[ -z "$errors" ]
	jq -e '[.hosts[0].devices[] | .name] == ["NVIDIA 2330", "NVIDIA 2330", "NVIDIA 2330"]' out.txt
	wants 3 gf-topo --machine hwloc=cpus.xml,sysfs=sys,nvml="$PWD/none.so"
	says '--machine: nvml: '; says 'none.so'
	one_line
}

@test "the library is found by its name where none is named" {
	command -v mpirun > /dev/null || skip "mpirun is not installed"
	here dgx
	unset GF_FAKE_NVML
	export LD_LIBRARY_PATH=$fake
	# it shows no GPU of this machine
	wants 0 gf-topo
	jq -e '.hosts[0] | has("links") | not' out.txt
	export GF_FAKE_NVML=$PWD/machine.txt
	wants 0 gf-topo
	jq -e '[.hosts[0].devices[] | select(.name == "NVIDIA H100")] | length == 8' out.txt
	wants 0 mpi 2 gf-topo
	jq -e '.levels == [.levels[0]] and .levels[0].link == "nvlink" and .levels[0].size == 2' out.txt
}

@test "a library that lacks a call, does not start, or cannot count" {
	here pairs
	wants 3 gf-topo --machine hwloc=cpus.xml,sysfs=sys,nvml="$fake/libold-nvml.so"
	says '--machine: nvml: '; says 'it lacks nvmlDeviceGetHandleByIndex_v2'; one_line
	here pairs 'fault start'
	wants 0 "${topo[@]}"
	says '4 NVIDIA GPUs are described from the PCI bus alone'
	says 'Driver/library version mismatch'; one_line
	jq -e '(.hosts[0].devices | length) == 4 and .levels[0].link == "pcie"' out.txt
	here pairs 'fault count'
	wants 0 "${topo[@]}"
	says 'Unknown Error'; one_line
	echo hello > text.so
	wants 3 gf-topo --machine hwloc=cpus.xml,sysfs=sys,nvml="$PWD/text.so"
	says 'text.so'; one_line
}

@test "lost and hidden GPUs are left out, and said to be" {
	here pairs
	sed -i '/0000:d8:00.0 1/s/$/ lost/; /0000:af:00.0 1/s/$/ hidden/' machine.txt
	wants 0 "${topo[@]}"
	says 'GPU 2 is left out: GPU is lost'
	says 'the GPU at 0000:d8:00.0 is left out: the driver does not show it'
	says 'the GPU at 0000:af:00.0 is left out'
	jq -e '[.hosts[0].devices[].pci] == ["0000:3b:00.0", "0000:5e:00.0"]' out.txt
	jq -e '.levels == [.levels[0]] and .levels[0].link == "nvlink" and .levels[0].size == 2' out.txt
	wants 0 "${topo[@]}" -q
	[ -z "$errors" ]
}

@test "a GPU divided into instances has no NVLinks" {
	here dgx
	sed -i '/0000:18:00.0 /s/$/ mig/' machine.txt
	wants 0 "${topo[@]}"
	says '0000:18:00.0) is divided into instances (MIG)'
	says 'NVLink does not connect the GPUs in equal groups'
	jq -e '.levels == [.levels[0]] and .levels[0].link == "pcie" and .levels[0].size == 8' out.txt
	jq -e '[.hosts[0].links[] | select(.path == "nvswitch")] | length == 21' out.txt
}

@test "what an old driver or a virtual machine does not say" {
	# no rate: what NCCL counts on
	here dgx 'fault fields'
	wants 0 "${topo[@]}"
	jq -e '.levels[0] | .link == "nvlink" and .bandwidth_origin == "assumed" and .bandwidth_bytes_per_s == 18 * 20.6e9' out.txt
	# no kind of the other end: the PCI bus shows that it is a switch
	here dgx 'fault remote-type'
	wants 0 "${topo[@]}"
	jq -e '.levels[0].link == "nvlink"' out.txt
	# kinds alone, without addresses
	here dgx virtual
	wants 0 "${topo[@]}"
	jq -e '.levels[0].link == "nvlink"' out.txt
	# neither
	here dgx virtual 'fault remote-type'
	wants 0 "${topo[@]}"
	says '18 NVLinks of the GPU at 0000:18:00.0 lead to nothing known here: not counted'
	jq -e '.levels[0].link == "pcie" and .levels[0].size == 8' out.txt
}

@test "GPUs that links name and are not there: the document is read all the same" {
	here pairs
	wants 0 "${topo[@]}"
	jq '.hosts[0].links[0].to = "nowhere"' out.txt > t.json
	gf-topo --import t.json | jq -e '.hosts[0].links[0].to == "nowhere"'
	jq '.hosts[0].links[0].path = "wire"' out.txt > t.json
	wants 2 gf-topo --import t.json
	says '/hosts/0/links/0/path: want'
	one_line
}
