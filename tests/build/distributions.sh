#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_tags=long
# README's two commands on bare systems: debootstrap makes each, with make, git and nothing
# else; `make demo` and `make check` run there on a copy of this tree. Needs root,
# debootstrap and a mirror, and 10 to 20 minutes for each system.
#   tests/build/distributions.sh [NAME...]      debian-12 debian-13 ubuntu-24.04
# Environment: KEEP=1 leaves the systems in BUILD/distributions, COMMANDS="demo check".
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath -m "${BUILD:-build}")/distributions
# name suite components mirror keyring
systems='
debian-12     bookworm  main           http://deb.debian.org/debian       debian-archive-keyring
debian-13     trixie    main           http://deb.debian.org/debian       debian-archive-keyring
ubuntu-24.04  noble     main,universe  http://archive.ubuntu.com/ubuntu   ubuntu-archive-keyring'
wanted=" ${*:-debian-12 debian-13 ubuntu-24.04} "
failed=0 tried=0

[ "$(id -u)" -eq 0 ] || { echo 'skipped: root makes bare systems'; exit 77; }
command -v debootstrap > /dev/null || { echo 'skipped: debootstrap is not installed'; exit 77; }
# Everything is mounted in a namespace of this script's own, and gone with it.
[ -n "${GF_OWN_MOUNTS:-}" ] || GF_OWN_MOUNTS=1 exec unshare --mount -- "$0" "$@"

bootstrap() { # ROOT SUITE COMPONENTS MIRROR KEYRING
	local script=/usr/share/debootstrap/scripts/$2 keyring=/usr/share/keyrings/$5.gpg
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/gutsy # any of Ubuntu's
	[ -e "$keyring" ] || { echo "$keyring is not there (Debian: ${5/archive-/})"; return 1; }
	mkdir -p "$1" && debootstrap --variant=minbase --include=make,git,ca-certificates --components="$3" \
		--keyring="$keyring" "$2" "$1" "$4" "$script"
}

# Devices, names of hosts and an index of Python's are no packages.
furnish() { # ROOT
	mount --rbind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" &&
		mount --rbind /dev "$1/dev" && cp /etc/hosts /etc/resolv.conf "$1/etc/" || return
	[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$1/etc/"
	rm -rf "$1/root/gradflow"
	mkdir -p "$1/root/gradflow"
	git ls-files -co --exclude-standard -z | xargs -0 sh -c 'ls -d -- "$@" 2> /dev/null' - |
		tar -c -T - -f - | tar -x -f - -C "$1/root/gradflow"
}

inside() { # ROOT COMMAND...
	local root=$1
	shift
	(cd "$root" && chroot . /usr/bin/env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		sh -c 'cd /root/gradflow && exec "$@"' - "$@") < /dev/null
}

while read -r name suite components mirror keyring; do
	[[ $wanted = *" $name "* ]] || continue
	root=$build/$name log=$build/$name.log
	mkdir -p "$build"
	rm -rf --one-file-system "$root"
	if ! bootstrap "$root" "$suite" "$components" "$mirror" "$keyring" > "$log" 2>&1; then
		echo "skipped: $name cannot be had: $(tail -n 1 "$log")"
		rm -rf --one-file-system "$root"
		continue
	fi
	tried=$((tried + 1)) status=0
	furnish "$root" >> "$log" 2>&1 || { status=$?; failed=$((failed + 1)); echo "FAIL  $name: $(tail -n 1 "$log")"; }
	for command in ${COMMANDS:-demo check}; do
		[ $status -eq 0 ] || break
		began=$SECONDS
		inside "$root" make "$command" > "$log.$command" 2>&1 || status=$?
		echo "$name: make $command: status $status after $((SECONDS - began)) s; $(tail -n 1 "$log.$command")"
		[ $status -eq 0 ] || { failed=$((failed + 1)); grep -aE '^FAIL|not ok|error:' "$log.$command" | head -n 40; }
		grep -a '^skip' "$log.$command"
	done
	umount -R "$root" 2> /dev/null
	[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
done <<< "$systems"
[ $tried -gt 0 ] || { echo 'skipped: no system could be had'; exit 77; }
[ $failed -eq 0 ]
