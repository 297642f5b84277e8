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

# sample ARG WORD: something to give an option, by the name of its argument
sample() {
	case $1 in
	N | K | M | A | B | D | E | F | S | P | EPOCHS) echo 2 ;;
	SIZE) echo 4K ;;
	TIME) echo 9s ;;
	RATE) echo 1Gb/s ;;
	FILE | DIR) echo file ;;
	*) echo "${2:-2}" ;;
	esac
}

# bats test_tags=long
@test "whatever one rank alone is told, ranks run together or are refused" {
	local base name arg word status tried
	while read -r base; do
		tried=0
		# shellcheck disable=SC2086 # they are several words
		while IFS='|' read -r name arg word; do
			case $name in help | usage | version | join | rank | ranks | output) continue ;; esac
			by_rank $base -- $base --$name ${arg:+"$(sample "$arg" "$word")"}
			status=0
			MPI_TIMEOUT=100 mpi 2 ./by_rank > out.txt 2> err.txt < /dev/null || status=$?
			if ! [[ $status =~ ^[0-3]$ ]] || grep -qiE 'MPI_ERR|truncated' err.txt; then
				echo "${base%% *} --$name of one rank: status $status"
				cat err.txt
				return 1
			fi
			tried=$((tried + 1))
		done < <(${base%% *} --completion | awk -F'\t' '
			function put() { if (name) print name "|" arg "|" word; name = "" }
			$1 == "option" { put(); name = $2; arg = $4; word = "" }
			$1 == "word" { word = $2 }
			END { put() }')
		[ "$tried" -gt 10 ]
	done <<- 'END'
		gf-allreduce -q -b 1K -e 8K -n 2 -a library:all --timeout 60s
		gf-profile -q --model digits-mlp --repeats 2 --budget 300ms --points time=1ms -a ring --lanes 1 --timeout 60s
		gf-train -q --model digits-mlp --data synthetic:200 --steps 2 --timeout 60s
	END
}
