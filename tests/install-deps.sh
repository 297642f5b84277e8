#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that gradflow needs, on Debian and its relatives; with
# --tests also those of its tests. Does nothing if all of them are there.
set -eu
packages=(gcc make pkg-config libopenmpi-dev openmpi-bin libjansson-dev
	libhwloc-dev libdnnl-dev libibverbs-dev libucx-dev zlib1g-dev)
[ "${1:-}" = --tests ] && packages+=(bats mandoc shellcheck jq gnuplot-nox
	python3 python3-jsonschema python3-torch clang clang-format g++ zsh fish)
missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f '${Status}' "$p" 2> /dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ]; then sudo=(); else sudo=(sudo); fi
command -v apt-get > /dev/null || {
	echo "install-deps: no apt-get here; please install: ${missing[*]}" >&2; exit 3; }
echo "installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
