#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An installed tree is whole, users can read it whatever the umask was, its
# commands find their files from anywhere, it names no folder of the build, and
# uninstall takes all of it away. Another PREFIX compiles nothing anew.
set -u
build=${BUILD:-build}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "install: $*"; bad=1; }
# "all" stands: what is tested is the build that is there
run() {
	env -u MAKEFLAGS -u MAKELEVEL make -s -o all "$@" BUILD="$build" DESTDIR="$scratch" \
		PREFIX=/opt/gf LIBDIR=/opt/gf/lib/arch > "$scratch/log" 2>&1 ||
		offend "make $1: $(head -n 3 "$scratch/log")"
}

before=$(cat "$build/flags.txt")
(umask 077; run install; exit $bad) || bad=1
[ "$(cat "$build/flags.txt")" = "$before" ] || offend "the build's flags changed"
tree=$scratch/opt/gf
closed=$(find "$tree" ! -type l ! -perm -o=r -o -type d ! -perm -o=x | head -n 3)
[ -z "$closed" ] || offend "users cannot read $closed"
[ "$("$tree/bin/gf-plan" --list models | wc -l)" -gt 10 ] || offend "gf-plan finds no models"
for file in share/doc/gradflow/LICENSE share/man/man1/gf-plan.1 share/man/man3/gradflow.3 \
	share/gradflow/schema/gf-plan.schema.json share/bash-completion/completions/gf-plan; do
	[ -e "$tree/$file" ] || offend "$file is missing"
done
for file in $(grep -oE '\]\(docs/[^)#]*' README.md | sort -u); do
	[ -e "$tree/share/doc/gradflow/${file#](}" ] || offend "README leads to ${file#](}, which is missing"
done
if [ -e "$build/lib/libgradflow.so.0" ]; then
	flags=$(PKG_CONFIG_PATH=$tree/lib/arch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch \
		pkg-config --cflags --libs gradflow)
	echo '#include <gradflow.h>
int main(void) { return !gradflow_version(); }' > "$scratch/user.c"
	# shellcheck disable=SC2086 # several flags
	cc -o "$scratch/user" "$scratch/user.c" $flags || offend "pkg-config's flags do not link: $flags"
	LD_LIBRARY_PATH=$tree/lib/arch "$scratch/user" || offend "what was linked does not run"
fi
grep -qF "$PWD" "$tree"/bin/gf-* && offend "a command names $PWD"
run uninstall
left=$(find "$tree" ! -type d | head -n 3)
[ -z "$left" ] || offend "uninstall leaves $left"
exit $bad
