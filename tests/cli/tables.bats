#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

# A tool of the source tree, not an installed command.
tables() {
	PATH=$GF_SOURCE/$BUILD/tools:$PATH python3 "$GF_SOURCE/share/tools/tables" "$@"
}

# The report takes seconds under a sanitizer: made once, read by most tests.
setup_file() {
	command -v python3 > /dev/null || skip "python3 is not installed"
	mkdir "$BATS_FILE_TMPDIR/csv" "$BATS_FILE_TMPDIR/svg"
	tables --csv "$BATS_FILE_TMPDIR/csv" > "$BATS_FILE_TMPDIR/report.txt"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	share=$GF_SOURCE/share
	svg=$BATS_FILE_TMPDIR/svg
	cp "$BATS_FILE_TMPDIR/report.txt" out.txt
}

# row TABLE LABEL: the numbers of that row, as "paper ours".
row() {
	awk -v table="$1: " -v label="  $2  " '
		index($0, table) == 1 { inside = 1; next }
		/^$/ { inside = 0 }
		inside && index($0, label) == 1 {
			n = split(substr($0, length(label)), f, " ")
			print f[1], f[2]
			exit
		}' out.txt
}

# near TABLE LABEL PAPER OURS: both numbers to within 1 %.
near() {
	local got
	got=$(row "$1" "$2")
	awk -v got="$got" -v p="$3" -v o="$4" 'BEGIN {
		n = split(got, f, " ")
		ok = n == 2 && (f[1] - p) ^ 2 <= (p / 100) ^ 2 &&
			(f[2] - o) ^ 2 <= (o / 100) ^ 2
		if (!ok)
			print "want " p " " o ", got " got
		exit !ok
	}' || { echo "in $1, $2"; return 1; }
}

@test "the report has every table of the five papers" {
	for table in "ASC-WFBP Table III" "ASC-WFBP Table IV" "ASC-WFBP Table V" \
		"GradientFlow Table 1" "GradientFlow Table 2" "GradientFlow Tables 3 and 4" \
		"gTop-k Table I" "gTop-k Table VII" "Pipe-SGD Eqs. 2-7" \
		"BlueConnect Figure 3a"; do
		prints "$table: "
	done
	prints "Figure 9 has no numbers in the text"
	prints "Figure 10 has no numbers in the text"
	if grep -nE '(^|[ -])(nan|inf)( |$)' out.txt; then false; fi
}

@test "the same bytes each time; pictures are optional" {
	wants 0 tables -o report.txt
	[ -z "$output" ]
	grep -v '^  picture: ' "$BATS_FILE_TMPDIR/report.txt" | cmp - report.txt
}

@test "what the papers' equations fix comes out exactly" {
	near "gTop-k Table I" "Top-k, 32 workers" 60.69 60.69
	near "gTop-k Table I" "gTop-k, 32 workers" 23.23 23.23
	near "Pipe-SGD Eqs. 2-7" "Eq. 2, synchronous" 358.24 358.24
	near "ASC-WFBP Table V" "ResNet-152, S_max" 17.5 17.5
	near "ASC-WFBP Table V" "DenseNet-201, S_max" 32.0 32.0
	near "ASC-WFBP Table V" "Inception-v4, S_max" 17.2 17.2
	near "ASC-WFBP Table V" "BERT-Base, S_max" 11.5 11.5
	for model in "ResNet-152 467" "DenseNet-201 604" "Inception-v4 449" "BERT-Base 206"; do
		near "ASC-WFBP Table III" "${model% *}, tensors" "${model#* }" "${model#* }"
	done
}

@test "fits give back what they were fitted to, and say so" {
	near "GradientFlow Table 1" "Cluster-P, NCCL" 75.7 75.7
	near "GradientFlow Table 1" "Cluster-V, NCCL+MP" 326.7 326.7
	grep -qE '^  Cluster-P, NCCL +75\.7 .* fitted$' out.txt
	grep -qE '^  two-level +58\.0 .* fitted$' out.txt
	prints "alpha = 240 us"
	# fitted: Cluster-P 1.065 ms, Cluster-V 3.96 ms
	prints "Cluster-V a = 3.96 ms"
	# as the shipped networks have them
	while read -r c digits; do
		prints "Cluster-${c^} a = $(printf "%.${digits}f" "$(jq '.network.allreduce[0].startup_s * 1e3' "$share/profiles/gradientflow-network-$c.json")") ms"
	done <<- 'END'
		p 3
		v 2
	END
}

@test "predictions beyond the fits" {
	near "GradientFlow Table 1" "Cluster-V, NCCL+MP+LA+CSC+Overlap" 1514.3 1537
	near "GradientFlow Table 2" "Cluster-P, NCCL+MP" 17.8 17.0
	near "ASC-WFBP Table IV" "ResNet-152, MG-WFBP, even layers" 0.710 0.684
	near "ASC-WFBP Table IV" "ResNet-152, ASC-WFBP, gamma <= link" 0.524 0.505
	prints 'it ends up with 1.0 messages per model'
	# Eq. 3 as printed: all hops are as slow as the slowest
	near "BlueConnect Figure 3a" "ring, by BlueConnect's gain over it" 118.3 115.1
	near "gTop-k Table VII" "AlexNet, dense" 39 441
	prints "Not reproduced. Eq. 5"
}

@test "the summary counts what the tables say" {
	yes=$(grep -cE ' %  yes$' out.txt)
	no=$(grep -cE ' %  no$' out.txt)
	sums=$(awk '/^table /{ on = 1; next } /^$/{ if (on) exit } on { y += $(NF-2); n += $NF } END { print y, n }' out.txt)
	[ "$sums" = "$yes $no" ] || { echo "summary $sums, rows $yes $no"; false; }
}

@test "docs/tables shows this summary" {
	sed -n '/^table /,/^$/p' out.txt | sed '$d' > summary.txt
	sed -n '/^table /,/^```$/p' "$GF_SOURCE/docs/tables/README.md" | sed '$d' | diff - summary.txt
}

@test "pictures are complete SVG files that the report names" {
	command -v gnuplot > /dev/null || skip "gnuplot is not installed"
	wants 0 tables --svg "$svg"
	[ "$(grep -c '^  picture: ' out.txt)" -eq "$(find "$svg" -name '*.svg' | wc -l)" ]
	for picture in "$svg"/*.svg; do
		grep -q '^<svg ' "$picture"
		grep -q '^</svg>' "$picture"
		prints "picture: ${picture##*/}"
	done
	wants 0 python3 "$GF_SOURCE/tests/cli/picture_text.py" "$svg"/*.svg
}

@test "the numbers of the pictures" {
	[ "$(grep -c '^  picture: .*csv$' out.txt)" -eq 8 ]
	for numbers in "$BATS_FILE_TMPDIR"/csv/*.csv; do
		prints "picture: ${numbers##*/}"
		[ "$(awk -F, '{print NF}' "$numbers" | sort -u | wc -l)" -eq 1 ]
	done
	grep -q '^ResNet-152,' "$BATS_FILE_TMPDIR/csv/asc-wfbp-table-4.csv"
}

@test "a folder that is not there, an argument too many" {
	wants 3 tables --csv nowhere/at/all
	says "nowhere/at/all"
	wants 2 tables extra
	says 'want no argument, got "extra"'
}

@test "a paper's file with a hole in it names the place" {
	cp -r "$share" copy
	jq '.tables[0].rows[0].values |= .[1:]' "$share/papers/asc-wfbp.json" > copy/papers/asc-wfbp.json
	GF_SHARE=$PWD/copy wants 2 tables
	says "/tables/0/rows/0/values: want 2 values, one per column, got 1"
	jq 'del(.inputs[0])' "$share/papers/asc-wfbp.json" > copy/papers/asc-wfbp.json
	GF_SHARE=$PWD/copy wants 2 tables
	says 'want an input "ranks", found none'
}
