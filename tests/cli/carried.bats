#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What make carry-gpu packs, on a machine that has the C library, bash, coreutils,
# sed, grep and awk, and nothing else: no ssh, no launcher, no libraries of ours.
load common

# A root folder with these tools and their libraries.
bare_root() { # FOLDER
	local tool library
	mkdir -p "$1"/{usr/bin,dev,proc,tmp,etc}
	for tool in bash env sed awk grep tee timeout date mktemp rm sort tail wc cat cp paste dirname readlink head ls tr \
		uname getconf ldd true mkdir; do
		cp -L "$(type -P "$tool")" "$1/usr/bin/"
	done
	ln -s usr/bin "$1/bin"
	ldd "$1"/usr/bin/* 2> /dev/null | grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -L "$library" "$1$library"
	done
}

@test "a carried folder runs on a bare machine" {
	local root=$BATS_TEST_TMPDIR/root build=$BATS_TEST_TMPDIR/build from
	[ "$(id -u)" -eq 0 ] || skip 'needs root, to change it'
	command -v unshare > /dev/null && command -v chroot > /dev/null || skip 'needs unshare and chroot'
	command -v mpirun > /dev/null || skip 'needs mpirun'
	unshare --mount true 2> /dev/null || skip 'no mount namespaces here'
	bare_root "$root"
	# the commands alone: tests of kernels are as large
	from=$(dirname "$(dirname "$(command -v gf-train)")")
	mkdir "$build"
	cp -R "$from/bin" "$from/config.txt" "$build/"
	BUILD=$build wants 0 bash "$GF_SOURCE/tests/gpu/carry.sh" "$root/carried"
	# shellcheck disable=SC2016 # the inner shell's
	wants 0 unshare --mount --fork bash -c '
		mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" || exit
		exec "$(command -v chroot)" "$1" /usr/bin/env -i PATH=/usr/bin bash /carried/run.sh cpu' - "$root"
	prints 'four ranks'
	prints 'training on the processors'
	prints 'all is well'
}
