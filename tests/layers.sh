#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every #include "x/y.h" in lib/ must be allowed by tests/layers.txt, the table
# must have no circle, and a third-party header stays in the folder that wraps
# it. Prints each offence; exit 1 if there is one.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
offend() { echo "layers: $*"; bad=1; }

declare -A may
while IFS=: read -r folder allowed; do
	[[ $folder =~ ^[a-z]+$ ]] && may[$folder]=" $allowed "
done < tests/layers.txt

declare -A used # "folder grant"
for dir in lib/*/; do
	folder=$(basename "$dir")
	[ -n "${may[$folder]+x}" ] || { offend "$folder is not in tests/layers.txt"; continue; }
	while IFS=: read -r file line text; do
		header=${text#*\"} header=${header%%\"*}
		target=${header%%/*}
		[ "$target" = "$folder" ] && continue
		case "${may[$folder]}" in
		*" $header "*) used[$folder $header]=1 ;;
		*" $target "*) used[$folder $target]=1 ;;
		*)
			# codec/encode.c is the one file of codec that sees kernels
			[ "$file" = lib/codec/encode.c ] && [ "$header" = gf_kernels.h ] && continue
			offend "$file:$line: $folder must not include $header" ;;
		esac
	done < <(grep -nE '^#include "' "$dir"*.[ch] /dev/null)
done

for folder in "${!may[@]}"; do
	for a in ${may[$folder]}; do
		[ -n "${used[$folder $a]+x}" ] || offend "tests/layers.txt: $folder: no file of it includes $a"
	done
done

# no circles: repeatedly remove folders all of whose allowances are removed
left=("${!may[@]}"); removed=" "
while [ ${#left[@]} -gt 0 ]; do
	next=()
	for folder in "${left[@]}"; do
		ready=1
		for a in ${may[$folder]}; do
			a=${a%%/*}
			case $a in *.h) continue ;; esac # of no folder in lib/
			case "$removed" in *" $a "*) ;; *) ready=0 ;; esac
		done
		if [ $ready = 1 ]; then removed+="$folder "; else next+=("$folder"); fi
	done
	[ ${#next[@]} -eq ${#left[@]} ] && { offend "circle among: ${next[*]}"; break; }
	left=("${next[@]}")
done

foreign() { # header, the only folder that may include it
	while IFS=: read -r file _; do
		[[ $file =~ ^$2 ]] || offend "$file must not include <$1>, only $2 may"
	done < <(grep -rnE "#include <$1" lib kernels cmd --include='*.[ch]' --include='*.cu')
}
foreign jansson.h lib/json/json.c
foreign mpi.h lib/comm/
foreign ucp lib/comm/
foreign 'hwloc' lib/probe/
foreign expat.h lib/probe/xml.c
foreign yaml.h lib/probe/yaml.c
foreign 'infiniband' lib/probe/
foreign dnnl lib/nn/
foreign 'cu(da|dnn|blas)' '(lib/(gpu|nn)/|kernels/cuda/)'
foreign nccl.h lib/lane/
foreign argp.h '(lib/cli/|cmd/)'
foreign zlib.h '(lib/(ckpt|data)/|lib/base/gunzip.c)'

while IFS=: read -r file line _; do
	case "$file" in */registry.c | */table.c | lib/nn/net_backends.c) ;;
	*) offend "$file:$line: GF_HAVE_ belongs into a registry" ;;
	esac
done < <(grep -rnE 'GF_HAVE_' lib kernels --include='*.[ch]')
# Each folder says what it is for, once.
for dir in lib/*/; do
	folder=$(basename "$dir")
	[ "$(grep -lE "^/\* lib/$folder: " "$dir"*.h | wc -l)" -eq 1 ] ||
		offend "want one header of lib/$folder to begin with \"lib/$folder: ...\""
done
# One tag, one struct. (Each transport has its own body of a message under way.)
while read -r kind tag _; do
	[ "$tag" = gf_comm_request ] || offend "$kind $tag is defined more than once:" \
		"$(grep -lE "^$kind $tag \{" lib/*/*.[ch] kernels/*.h include/*.h | paste -sd' ')"
done < <(grep -hoE '^(struct|enum|union) gf_\w+ \{' lib/*/*.[ch] kernels/*.h include/*.h | sort | uniq -d)
# One file name, one place; an algorithm's file is called as it is.
while read -r name; do
	[ "$name" = registry ] && continue
	mapfile -t folders < <(find lib -name "$name.[ch]" ! -path "lib/coll/$name.c" -printf '%h\n' | sort -u)
	[ ${#folders[@]} -lt 2 ] || offend "$name is a file of ${folders[*]}"
done < <(basename -a lib/*/*.[ch] | sed 's/\.[ch]$//' | sort | uniq -d)
# One name, one function: a program may link with any of the archives.
[ ! -d "${BUILD:-build}/lib" ] || while read -r name places; do
	offend "$name is defined more than once:$places"
done < <(for dir in lib/*/; do
	echo "${BUILD:-build}/lib/libgf-$(basename "$dir").a"
done | xargs nm -A --defined-only 2> /dev/null | awk '
	$2 ~ /^[TDRB]$/ { split($1, at, ":"); n[$3]++; places[$3] = places[$3] " " at[2] }
	END { for (name in n) if (n[name] > 1) print name, places[name] }')
exit $bad
