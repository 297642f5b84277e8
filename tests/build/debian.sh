#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# debian/ knows this version, and its packages hold each installed file once.
# ("make deb" builds them.)
set -u
build=${BUILD:-build}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "debian: $*"; bad=1; }

version=$(sed -n 's/^VERSION *:= *//p' Makefile)
head -n 1 debian/changelog | grep -qF "gradflow ($version)" ||
	offend "debian/changelog: want version $version, got $(head -n 1 debian/changelog)"
[ -e "$build/lib/libgradflow.so.0" ] || { echo 'built without the library'; exit 77; }
# "all" stands: what is tested is the build that is there
env -u MAKEFLAGS -u MAKELEVEL make -s -o all install BUILD="$build" DESTDIR="$scratch" \
	PREFIX=/usr LIBDIR=/usr/lib/arch > "$scratch/log" 2>&1 || offend "$(head -n 3 "$scratch/log")"
rm "$scratch/usr/share/doc/gradflow/LICENSE" # debian/rules: copyright has it
for list in debian/*.install; do
	while read -r from to; do
		found=0
		for path in "$scratch"/$from; do
			[ -e "$path" ] || [ -L "$path" ] || continue
			found=1
			# as dh_install: into the named folder, else where it was
			into=$scratch/packages/${to:-$(dirname "${path#"$scratch/"}")}
			mkdir -p "$into" && mv "$path" "$into/"
		done
		[ $found = 1 ] || offend "$list: nothing is installed as $from${to:+ (for $to)}"
	done < "$list"
done
left=$(find "$scratch/usr" ! -type d | head -n 3)
[ -z "$left" ] || offend "no package has ${left//$scratch/}"
# where shells and readers look
for path in zsh/vendor-completions/_gradflow bash-completion/completions/gf-plan \
	fish/vendor_completions.d/gf-plan.fish doc/gradflow-common/README.md; do
	[ -f "$scratch/packages/usr/share/$path" ] || offend "the packages lack usr/share/$path"
done
exit $bad
