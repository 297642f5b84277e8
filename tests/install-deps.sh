#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that gradflow needs, on Debian and its relatives; with
# --tests also those of its tests. Does nothing if all of them are there. A user who
# may not install reads the command that root has to run.
set -u
needed=(gcc libc6-dev make pkg-config libopenmpi-dev openmpi-bin libjansson-dev
	libhwloc-dev zlib1g-dev libexpat1-dev libyaml-dev)
useful=(libdnnl-dev libibverbs-dev libucx-dev libjpeg62-turbo-dev)
[ "${1:-}" != --tests ] || useful+=(bats git procps iproute2 mandoc groff-base
	shellcheck jq libjpeg-turbo-progs gnuplot-nox python3 python3-jsonschema python3-torch python3-pip
	python3-venv python3-wheel clang
	clang-format g++ zsh fish locales)
missing=()
for p in "${needed[@]}" "${useful[@]}"; do
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
# Not every relative of Debian has every package.
absent=()
for p in "${useful[@]}"; do
	apt-cache show "$p" > /dev/null 2>&1 || absent+=("$p")
done
if [ ${#absent[@]} -gt 0 ]; then
	echo "not to be had here: ${absent[*]} (what wants them is left out, or skipped)" >&2
	mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -vxF "$(printf '%s\n' "${absent[@]}")")
	[ ${#missing[@]} -gt 0 ] || exit 0
fi
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null ||
	stop "apt-get install fails; wanted: ${missing[*]}"
