#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a machine for tests: a tree like /sys out of a description. The fake of
# NVIDIA's library reads the same description (tests/gpu/fake_nvml.c).
#   tests/machine.sh DESCRIPTION FOLDER
# Lines, # for comments:
#   gpu PLACE NUMA GT/S LANES [facts that only the driver knows]
#   switch PLACE
#   nic NAME PLACE NUMA RATE       an InfiniBand port of RATE Gb/s
#   eth NAME PLACE NUMA RATE       an Ethernet interface of RATE Mb/s
# PLACE is the way from the host bridge, pci0000:16/0000:16:00.0/0000:17:00.0.
set -eu
folder=$2
mkdir -p "$folder/bus/pci/devices" "$folder/class/net" "$folder/class/infiniband"

place() { # way numa: the device's folder, below $folder/devices
	local at=$folder/devices/$1
	mkdir -p "$at"
	echo "$2" > "$at/numa_node"
	ln -sfn "../../../devices/$1" "$folder/bus/pci/devices/${1##*/}"
}

while read -r kind a b c d _; do
	case $kind in
	gpu) place "$a" "$b"
		at=$folder/devices/$a
		echo 0x10de > "$at/vendor"; echo 0x030200 > "$at/class"
		echo 0x2330 > "$at/device"
		echo "$c GT/s PCIe" > "$at/max_link_speed"
		echo "$d" > "$at/max_link_width" ;;
	switch) place "$a" -1
		echo 0x10de > "$folder/devices/$a/vendor"
		echo 0x068000 > "$folder/devices/$a/class" ;;
	nic) place "$b" "$c"
		port=$folder/class/infiniband/$a/ports/1
		mkdir -p "$port"
		ln -sfn "../../../devices/$b" "$folder/class/infiniband/$a/device"
		echo InfiniBand > "$port/link_layer"
		echo '4: ACTIVE' > "$port/state"
		echo "$d Gb/sec (4X NDR)" > "$port/rate" ;;
	eth) place "$b" "$c"
		net=$folder/class/net/$a
		mkdir -p "$net"
		ln -sfn "../../../devices/$b" "$net/device"
		echo up > "$net/operstate"; echo 1 > "$net/type"
		echo "$d" > "$net/speed" ;;
	'' | '#'* | fault | virtual) ;;
	*) echo "machine.sh: $1: no such line: $kind" >&2; exit 2 ;;
	esac
done < "$1"
