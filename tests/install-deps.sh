#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that gradflow needs, on Debian and its relatives; with
# --tests also those of its tests. Does nothing if all of them are there. A user who
# may not install reads the command that root has to run.
set -u
packages=(gcc libc6-dev make pkg-config libopenmpi-dev openmpi-bin libjansson-dev
	libhwloc-dev libdnnl-dev libibverbs-dev libucx-dev zlib1g-dev)
[ "${1:-}" != --tests ] || packages+=(bats git procps iproute2 mandoc groff-base
	shellcheck jq gnuplot-nox python3 python3-jsonschema python3-torch python3-pip
	python3-venv python3-wheel clang
	clang-format g++ zsh fish)
missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f '${Status}' "$p" 2> /dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
stop() { echo "install-deps: $*" >&2; exit 3; }

command -v apt-get > /dev/null ||
	stop "no apt-get here; please install what Debian calls ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2> /dev/null || stop "these packages are missing; please run
  sudo apt-get install --no-install-recommends ${missing[*]}"
	sudo=(sudo)
fi
echo "installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq || stop 'apt-get update fails'
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null ||
	stop "apt-get install fails; wanted: ${missing[*]}"
