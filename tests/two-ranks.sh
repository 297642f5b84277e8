#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands as jobs of two ranks, for sanitizers: each method and each transport once,
# in few steps. A sanitizer's report gives a rank, and so the job, another status.
#   BUILD=build/tsan tests/two-ranks.sh
set -u
cd "$(dirname "$0")/.." || exit 1
PATH=$(realpath "${BUILD:-build}")/bin:$PATH
export GF_SOURCE="$PWD"
. tests/launcher.sh
. "$GF_SOURCE/tests/facts.bash"
command -v mpirun > /dev/null || { echo 'skipped: two ranks: mpirun is not installed'; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
passed=0 failed=0

# pair NAME COMMAND...
pair() {
	local name=$1 began=$SECONDS status=0
	shift
	timeout -k 5 180 mpirun --bind-to none -np 2 "$@" > out.txt 2> err.txt < /dev/null || status=$?
	if [ $status -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok    two ranks: $name ($((SECONDS - began)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL  two ranks: $name (status $status): $*"
		tail -n 60 err.txt
	fi
}

gf-topo -q --synthetic 'host:2@8GB/s,1us' > topo.json || exit 1
train='gf-train -q --model digits-mlp --data synthetic:200 --batch 8 --threads 1 --steps 8 --check-replicas 4 --timeout 60s'
# train NAME TRANSPORT PLAN-OPTION...
train() {
	local name=$1 transport=$2
	shift 2
	gf-plan -q --model digits-mlp --ranks 2 "$@" topo.json > plan.json || { failed=$((failed + 1)); return; }
	rm -rf ckpt
	# shellcheck disable=SC2086
	pair "$name, $transport" $train --plan plan.json --transport "$transport" --checkpoint ckpt \
		--checkpoint-every 4 --log log.jsonl --trace trace.json
}

transports=mpi
! gf-allreduce --list | grep -q '^transport  *ucx' || transports='mpi ucx'
for transport in $transports; do
	train ring "$transport" --algorithm ring
	train 'two lanes' "$transport" --policy wfbp --lanes 2
	train q8 "$transport" --codecs q8
	# shellcheck disable=SC2046
	train pieces "$transport" $(jq -r .options "$GF_SOURCE/tests/entries/selection/csc.json")
	# shellcheck disable=SC2086
	pair "a resumed run, $transport" $train --plan plan.json --transport "$transport" --checkpoint ckpt --resume --steps 12
done
train library mpi --algorithm library
train stale mpi --staleness 2
while IFS='|' read -r name options _; do
	read -ra words <<< "$options"
	train "$name" mpi "${words[@]}"
done < <(facts '"\($name)|\(.options)"')
train dear mpi --policy dear
pair gf-allreduce gf-allreduce -q -b 4K -e 256K -f 8 -n 5 --lanes 2 --timeout 60s
pair 'gf-profile --pairs' gf-profile -q --pairs --budget 1s --timeout 60s
pair gf-profile gf-profile -q -a ring --lanes 1 --budget 1s --max-bytes 64K --timeout 60s
pair gf-topo gf-topo -q
echo "$passed passed, $failed failed of two ranks"
[ "$failed" -eq 0 ]
