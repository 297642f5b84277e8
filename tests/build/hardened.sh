#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Commands and library are hardened: position-independent, with stack protection,
# and with tables of the linker that are read-only once the program has begun.
# HARDEN=0 leaves that out.
set -u
build=${BUILD:-build}
bad=0
offend() { echo "hardened: $*"; bad=1; }
grep -q -- -fstack-protector-strong "$build/flags.txt" || { echo 'built with HARDEN=0'; exit 77; }
library=$build/lib/libgradflow.so.0
[ -e "$library" ] || library=
for file in "$build"/bin/gf-* $library; do
	readelf -hldW "$file" > "$build/hardened.txt" || offend "$file: readelf cannot read it"
	has() { grep -qE -- "$1" "$build/hardened.txt" || offend "$file: want $2"; }
	has 'Type: +DYN' 'a program that is position-independent'
	has 'GNU_RELRO' 'RELRO'
	has 'BIND_NOW|Flags:.*NOW' 'BIND_NOW'
	has 'GNU_STACK .* RW ' 'a stack that is not executable'
	symbols=$(nm -D "$file")
	[[ $symbols == *__stack_chk_fail* ]] || offend "$file: want stack protection"
	[[ $(cat "$build/flags.txt") != *_FORTIFY_SOURCE=* || $symbols == *_chk@* ]] ||
		offend "$file: want FORTIFY"
done
rm -f "$build/hardened.txt"
env -u MAKEFLAGS -u MAKELEVEL make -n HARDEN=0 BUILD="$build/soft" "$build/soft/bin/gf-plan" 2> /dev/null |
	grep -q -e stack-protector -e _FORTIFY_SOURCE && offend 'HARDEN=0: want none of the flags'
exit $bad
