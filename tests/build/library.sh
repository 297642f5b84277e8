#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# include/gradflow.h is for other programs: C99, C11 and C++ compile it by itself and
# without a warning, and the library alone is enough to link with.
set -u
build=${BUILD:-build}
[ -e "$build/lib/libgradflow.so.0" ] || { echo "no shared library in this build"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "library: $*"; bad=1; }

for language in c/c99 c/c11 c++/c++98 c++/c++17; do
	compiler=cc
	[ "${language%/*}" = c ] || compiler=c++
	command -v "$compiler" > /dev/null || continue
	"$compiler" -x "${language%/*}" -std="${language#*/}" -Wall -Wextra -pedantic -Werror \
		-fsyntax-only include/gradflow.h 2> "$scratch/log" || offend "$language: $(head -n 3 "$scratch/log")"
done

echo '#include <gradflow.h>
#include <string.h>
int main(void) { return strlen(gradflow_version()) == 0; }' > "$scratch/user.c"
cc -Iinclude -o "$scratch/user" "$scratch/user.c" "$build/lib/libgradflow.so.0" 2> "$scratch/log" ||
	offend "linking: $(head -n 3 "$scratch/log")"
readelf -d "$build/lib/libgradflow.so.0" | grep 'NEEDED.*dnnl' && offend "oneDNN is loaded for no layer"
LD_LIBRARY_PATH=$build/lib "$scratch/user" || offend "what was linked does not run"
exit $bad
