#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every #include "x/y.h" in lib/ must be allowed by tests/layers.txt, the table
# must have no circle, and a third-party header stays in the folder that wraps
# it. Prints each offence; exit 1 if there is one.
set -u
shopt -s globstar
cd "$(dirname "$0")/.." || exit 1
bad=0
offend() { echo "layers: $*"; bad=1; }

declare -A may
while IFS=: read -r row allowed; do
	[[ $row =~ ^[a-z_/.]+$ ]] && may[$row]=" $allowed "
done < tests/layers.txt

# Sets $row: the one that a file or a folder of lib belongs to.
row_of() {
	row=$1
	until [ -n "${may[$row]+x}" ]; do
		case $row in
		*.[ch]) row=${row%.[ch]} ;;
		*/*) row=${row%/*} ;;
		*) return 1 ;;
		esac
	done
}

# A list of entries belongs to the library that the Makefile puts it in.
declare -A of_list
while read -r list library; do of_list[$list]=$library; done < <(
	sed -nE 's/^LIST_(\w+) := \S+ \S+ (\S+) .*/\1 \2/p' Makefile)

declare -A used has # "row grant", "row"
while IFS=: read -r file line text; do
	header=${text#*\"} header=${header%%\"*}
	if [ "$header" = lists/gf_codec_number.h ]; then
		header=collectives/codecs/number.h
	elif [[ $header == lists/* ]]; then
		list=${header#lists/}
		header=${of_list[${list%.h}]}/lists
	fi
	row_of "${file#lib/}" || { offend "$file is of no row of tests/layers.txt"; continue; }
	from=$row has[$row]=1
	row_of "$header" || row=$header # of no folder in lib
	[ "$row" = "$from" ] && continue
	case "${may[$from]}" in
	*" $header "*) used[$from $header]=1 ;;
	*" $row "*) used[$from $row]=1 ;;
	*) offend "$file:$line: $from must not include $header" ;;
	esac
done < <(grep -nE '^#include "' lib/**/*.[ch])

for row in "${!may[@]}"; do
	[ -n "${has[$row]+x}" ] || offend "tests/layers.txt: $row: no file of it includes anything"
	for a in ${may[$row]}; do
		[ -n "${used[$row $a]+x}" ] || offend "tests/layers.txt: $row: no file of it includes $a"
	done
done

# no circles: repeatedly remove rows all of whose allowances are removed
left=("${!may[@]}"); removed=" "
while [ ${#left[@]} -gt 0 ]; do
	next=()
	for from in "${left[@]}"; do
		ready=1
		for a in ${may[$from]}; do
			row_of "$a" || continue # of no folder in lib
			case "$removed" in *" $row "*) ;; *) ready=0 ;; esac
		done
		if [ $ready = 1 ]; then removed+="$from "; else next+=("$from"); fi
	done
	[ ${#next[@]} -eq ${#left[@]} ] && { offend "circle among: ${next[*]}"; break; }
	left=("${next[@]}")
done

foreign() { # header, the only folder that may include it
	while IFS=: read -r file _; do
		[[ $file =~ ^$2 ]] || offend "$file must not include <$1>, only $2 may"
	done < <(grep -rnE "#include <$1" lib kernels cmd --include='*.[ch]' --include='*.cu')
}
foreign jansson.h 'lib/json/json(_rows|_text)?.c'
foreign mpi.h lib/transport/
foreign ucp lib/transport/
foreign 'hwloc' lib/discovery/
foreign expat.h lib/discovery/xml.c
foreign yaml.h lib/discovery/yaml.c
foreign 'infiniband' lib/discovery/
foreign dnnl lib/nn/
foreign 'cu(da|dnn|blas)' '(lib/(cuda|nn)/[a-z_]+\.|kernels/cuda/)'
foreign nccl.h lib/cuda/lanes/
foreign argp.h '(lib/cli/|cmd/)'
foreign zlib.h '(lib/(checkpoints|data)/[a-z_]+\.|lib/base/gunzip.c)'

while IFS=: read -r file line _; do
	case "$file" in */registry.c | */table.c | lib/nn/net_backends.c | lib/data/jpeg_reader.c) ;;
	*) offend "$file:$line: GF_HAVE_ belongs into a registry" ;;
	esac
done < <(grep -rnE 'GF_HAVE_' lib kernels --include='*.[ch]')
# Each folder says what it is for, once.
while read -r folder; do
	[ "$folder" = lib/collectives/algorithms ] && continue # has no headers: collectives/algorithm.h
	[ "$(grep -lE "^/\* $folder: " "$folder"/*.h | wc -l)" -eq 1 ] ||
		offend "want one header of $folder to begin with \"$folder: ...\""
done < <(find lib -mindepth 1 -type d)
# One tag, one struct. (Each transport has its own body of a message under way.)
while read -r kind tag _; do
	[ "$tag" = gf_comm_request ] || offend "$kind $tag is defined more than once:" \
		"$(grep -lE "^$kind $tag \{" lib/**/*.[ch] kernels/*.h include/*.h | paste -sd' ')"
done < <(grep -hoE '^(struct|enum|union) gf_\w+ \{' lib/**/*.[ch] kernels/*.h include/*.h | sort | uniq -d)
# One file name, one place; an algorithm's file is called as it is.
while read -r name; do
	[ "$name" = registry ] && continue
	mapfile -t folders < <(find lib -name "$name.[ch]" ! -path "lib/collectives/algorithms/$name.c" -printf '%h\n' | sort -u)
	[ ${#folders[@]} -lt 2 ] || offend "$name is a file of ${folders[*]}"
done < <(basename -a lib/**/*.[ch] | sed 's/\.[ch]$//' | sort | uniq -d)
# One name, one function: a program may link with any of the archives.
[ ! -d "${BUILD:-build}/lib" ] || while read -r name places; do
	offend "$name is defined more than once:$places"
done < <(for dir in lib/*/; do
	echo "${BUILD:-build}/lib/libgf-$(basename "$dir").a"
done | xargs nm -A --defined-only 2> /dev/null | awk '
	$2 ~ /^[TDRB]$/ { split($1, at, ":"); n[$3]++; places[$3] = places[$3] " " at[2] }
	END { for (name in n) if (n[name] > 1) print name, places[name] }')
exit $bad
