# SPDX-License-Identifier: BSD-3-Clause
# share/examples/codecs.sh, which measures.

load ../cli/common

@test "codecs.sh: a time for each size and codec, and the best of them" {
	OUT=out CODECS="f32 q8" FROM=4K TO=64K ROUNDS=2 \
		MPIRUN="timeout -k 5 100 mpirun --oversubscribe --bind-to none -np 2" \
		wants 0 "$share/examples/codecs.sh" direct
	grep -qE '^ +bytes +f32 +q8 +best$' out.txt
	for size in 4096 16384 65536; do
		grep -qE "^ +$size +[0-9.]+ us +[0-9.]+ us +(f32|q8)$" out.txt
	done
	[ "$(wc -l < out/codecs.csv)" -eq 7 ]
	grep -q 'direct by codec' out/codecs.svg
}
