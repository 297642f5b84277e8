#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Holds the streaming kernels to their machine code. A kernel is as fast as a copy
# only with enough loads under way: so many bytes of each thread, counted along
# the code from a load to the first use of its register. None of these kernels may
# keep registers in memory. The exponentials of neighbours wait for none of each other:
# no branch stands between them. Needs CUDA's cuobjdump (of the toolkit, or of a package for
# Python) and a build with CUDA; skips aloud without (77).
set -u
cd "$(dirname "$0")/.." || exit 3
objects=${BUILD:-build}/obj/kernels/cuda
skip() { echo "skipped: $*"; exit 77; }

tool=
for at in "$(command -v cuobjdump)" "${CUDA_HOME:-/usr/local/cuda}/bin/cuobjdump" \
	$(for python in "${GF_PYTHON:-}" python3; do
		[ -z "$python" ] || "$python" -c 'import sys, glob
for p in sys.path:
    print(*glob.glob(p + "/nvidia/**/bin/cuobjdump", recursive=True))
    print(*glob.glob(p + "/triton/**/bin/cuobjdump", recursive=True))' 2> /dev/null
	done); do
	[ -x "$at" ] && tool=$at && break
done
[ -n "$tool" ] || skip 'no cuobjdump here'
compgen -G "$objects/*.cu.o" > /dev/null || skip 'built without CUDA'

# file, kernel (of the mangled name), bytes under way at least
floors='vector each_quad.*add 64
vector each_quad.*scale 32
vector each_quad.*sgd 96
half each_quad.*6encode 32
half each_quad.*6decode 16
half each_quad.*10decode_add 48
minifloat encode 48
minifloat decode.*Lb1 48
chunks gatherILb1 32
chunks keepILb1 32
topk collectILb1 64
sum each_quad.*nonfinite 32
nn_norm map_wide.*normaliseI3f16 64
nn_norm map_wide.*gradientI3f16 128
nn_norm sum_wide.*gradient_sumsI3f16 128
nn_rows layernorm_kernelI3f16Lj32ELi4 64
nn_rows layernorm_dinI3f16Lj32ELi4 128
nn_rows sum_wide.*parameter_sumsI3f16 128
nn_rows softmax_kernelI3f16Lj32ELi4 64
nn_rows softmax_slopeI3f16Lj32ELi4 128
nn_rows softmax_kernelI3f16Lj8ELi1 16
nn_rows softmax_slopeI3f16Lj16ELi1 32
nn_loss loss_rowsI3f16Lj32ELi4 64
nn_loss loss_rowsI3f16Lj256ELi2 32
nn_embed look_upI3f16 64
nn_embed add_upI3f16 64
nn_embed add_runsI3f16 64'

# The code of one processor, the newest that the objects have.
newest() {
	"$tool" -lelf "$1" | sed -nE 's/.*\.(sm_[0-9]+)\.cubin.*/\1/p' | sort -t_ -k2n | tail -n 1
}

# in_flight: per function, the most bytes loaded and not yet used.
in_flight() {
	awk '
	function number(r) { return substr(r, 2) + 0 }
	/Function :/ { name = $3; delete width; delete owner; now = 0; next }
	/^ *\/\*[0-9a-f]+\*\/ / {
		code = $0
		sub(/^ *\/\*[0-9a-f]+\*\/ */, "", code)
		sub(/;.*/, "", code)
		sub(/^@!?U?P[0-9T]+ +/, "", code)
		op = code
		sub(/ .*/, "", op)
		load = op ~ /^LDG/
		bytes = op ~ /\.128/ ? 16 : op ~ /\.64/ ? 8 : op ~ /U8|S8/ ? 1 : op ~ /U16|S16/ ? 2 : 4
		rest = substr(code, length(op) + 1)
		gsub(/UR[0-9]+/, "", rest) # uniform registers
		first = ""
		while (match(rest, /R[0-9]+/)) {
			r = number(substr(rest, RSTART, RLENGTH))
			if (first == "")
				first = r
			# used, or written over, or an address
			else if (r in owner) {
				now -= width[owner[r]]
				width[owner[r]] = 0
				delete owner[r]
			}
			rest = substr(rest, RSTART + RLENGTH)
		}
		if (first != "" && first in owner && !(load && width[first] == bytes)) {
			now -= width[owner[first]]
			width[owner[first]] = 0
			delete owner[first]
		}
		if (load && first != "") {
			if (first in owner)
				now -= width[owner[first]]
			width[first] = bytes
			now += bytes
			for (r = first; r < first + bytes / 4; r++)
				owner[r] = first
			if (now > most[name])
				most[name] = now
		}
		if (!(name in most))
			most[name] = 0
	}
	END { for (name in most) print most[name], name }'
}

bad=0 looked=0 file=
while read -r kernels kernel floor; do
	object=$objects/$kernels.cu.o
	[ "$kernels" = "$file" ] || {
		file=$kernels
		flights=$("$tool" -sass -arch "$(newest "$object")" "$object" | in_flight)
	}
	found=$(grep -E " .*$kernel" <<< "$flights")
	[ -n "$found" ] || { echo "$kernels.cu: no kernel $kernel"; bad=1; }
	while read -r most name; do
		looked=$((looked + 1))
		[ -z "$name" ] || [ "$most" -ge "$floor" ] || {
			echo "$kernels.cu: $name: $most bytes under way, want $floor"
			bad=1
		}
	done <<< "$found"
done <<< "$floors"
# together: per function, the most exponentials without a branch between them
together() {
	awk '
	/Function :/ { name = $3; now = 0 }
	/BRA|BSYNC/ { now = 0 }
	/MUFU\.EX2/ { if (++now > most[name]) most[name] = now }
	END { for (name in most) print most[name], name }'
}
for kernels in nn_rows:softmax_kernel nn_loss:loss_rows; do
	object=$objects/${kernels%:*}.cu.o
	while read -r most name; do
		[ "$most" -ge 7 ] || {
			echo "${kernels%:*}.cu: $name: $most exponentials together, want 7"
			bad=1
		}
	done < <("$tool" -sass -arch "$(newest "$object")" "$object" | together | grep "${kernels#*:}")
done
for object in $(cut -d' ' -f1 <<< "$floors" | sort -u) q8 clip lars sparse; do
	object=$objects/$object.cu.o
	spilled=$("$tool" -res-usage "$object" 2>&1 | awk '
		/Function / { name = $2 }
		/STACK:/ { if ($0 !~ /STACK:0 / || $0 !~ /LOCAL:0 /) print name }' | sort -u)
	[ -z "$spilled" ] || { printf '%s: registers in memory: %s\n' "${object##*/}" "$spilled"; bad=1; }
done
[ "$bad" -ne 0 ] || echo "$looked kernels have their loads under way"
exit "$bad"
