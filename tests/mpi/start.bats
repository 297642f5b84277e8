#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of plain processes, which no launcher starts, watches or ends.
load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	needs_ucx
	long="-q --model digits-mlp --data synthetic:20000 --batch 8 --epochs 1000 --threads 1 --timeout 5s"
}

teardown() {
	for pid in "${pids[@]:-}"; do
		[ -z "$pid" ] || kill -KILL "$pid" 2> /dev/null || true
	done
}

# begin RANKS COMMAND...: that many processes, each with its rank
begin() {
	local ranks=$1 rank
	shift
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		timeout -k 5 200 "$@" --join job --rank $rank --ranks "$ranks" > out.$rank 2> err.$rank < /dev/null 3>&- &
		pids+=($!)
	done
}

# The process of a rank below its timeout(1).
process_of() { pgrep -P "${pids[$1]}"; }

# ends RANK STATUS SECONDS [WORDS]: it ends by itself within that time, which is far above
# what it takes, and below what it would take if it waited for something else. It says
# WORDS before, and nothing keeps it for 5 s after them.
ends() {
	local status=0 began=$SECONDS
	[ -z "${4:-}" ] || promptly "$1" "$4"
	wait "${pids[$1]}" || status=$?
	pids[$1]=
	echo "rank $1: status $status after $((SECONDS - began)) s"
	cat err.$1
	[[ $status == $2 ]] && [ $((SECONDS - began)) -le "$3" ]
}

# The 5 s are fifty naps of a tenth: on a busy machine this shell has its turns as late as
# the rank has.
promptly() { # RANK WORDS
	local naps=0
	until grep -sq "$2" err.$1; do
		kill -0 "${pids[$1]}" 2> /dev/null || break
		sleep 0.1
	done
	while kill -0 "${pids[$1]}" 2> /dev/null && [ $((naps += 1)) -le 50 ]; do sleep 0.1; done
	echo "rank $1: $naps tenths of a second after its verdict"
	[ "$naps" -le 50 ] && grep -q "$2" err.$1 || { cat err.$1; return 1; }
}

# Up to the second checkpoint.
trains() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		[ "$(ls -d ckpt/step-*[0-9] 2> /dev/null | wc -l)" -lt 2 ] || return 0
		sleep 0.1
	done
	cat err.*
	return 1
}

ring() {
	jq -n '{format: "gf-plan", version: 1, policy: "threshold",
		rule: {threshold_bytes: 20000, lanes: 2, algorithms: [{min_bytes: 0, algorithm: "ring"}]}}' > ring.json
}

@test "plain processes train to the bits of a job under mpirun" {
	ring
	for ranks in 2 4; do
		training="-q --model digits-mlp --threads 1 --steps 20 --plan ring.json"
		wants 0 mpi $ranks gf-train $training --checkpoint by-mpi
		wants 0 mpi $ranks gf-train $training --checkpoint by-ucx --transport ucx
		begin $ranks gf-train $training --checkpoint plain
		for ((rank = 0; rank < ranks; rank++)); do ends $rank 0 60; done
		[ "$(ls by-mpi/step-20/rank-* | wc -l)" -eq $ranks ]
		diff -r by-mpi by-ucx
		diff -r by-mpi plain
		[ -z "$(ls -A job)" ] # nothing is left in the folder
		rm -r by-mpi by-ucx plain
	done
}

@test "ranks meet at a port, as torchrun's variables say or as options do" {
	port=$((20000 + RANDOM % 10000))
	for how in variables options; do
		pids=()
		for rank in 0 1 2; do
			if [ $how = variables ]; then
				RANK=$rank WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=$port \
					timeout 60 gf-allreduce -b 4K -e 4K -n 3 > out.$rank 2> err.$rank < /dev/null 3>&- &
			else
				timeout 60 gf-allreduce -b 4K -e 4K -n 3 --join "localhost:$((port + 1))" --rank $rank --ranks 3 \
					> out.$rank 2> err.$rank < /dev/null 3>&- &
			fi
			pids+=($!)
		done
		for rank in 0 1 2; do ends $rank 0 60; done
		grep -q '^# 3 ranks, 3 on this host' out.0
		[ ! -s out.1 ]
		[ ! -s out.2 ]
	done
}

@test "a launcher's rank and ranks are the defaults of --rank and --ranks" {
	wants 0 mpi 3 gf-allreduce --join job -b 4K -e 4K -n 3
	grep -q '^# 3 ranks, 3 on this host' out.txt
}

@test "a rank that is killed in a step: the others name it and end" {
	begin 3 gf-train $long --checkpoint ckpt --checkpoint-every 20
	trains
	kill -KILL "$(process_of 1)"
	for rank in 0 2; do
		ends $rank 3 30 'rank 1 is gone'
	done
}

@test "a rank that is stopped: the others name it and end, status 4" {
	begin 3 gf-train $long --checkpoint ckpt --checkpoint-every 20
	trains
	stopped=$(process_of 1)
	kill -STOP "$stopped"
	ends 0 4 40 'rank 1 does not answer'
	ends 2 4 40 'rank 1 does not answer'
	kill -KILL "$stopped"
}

@test "under mpirun, too, no rank stays when one is stopped" {
	timeout -k 5 100 mpirun --oversubscribe --bind-to none -np 3 gf-train $long --checkpoint ckpt \
		--checkpoint-every 20 > out.0 2> err.0 < /dev/null 3>&- &
	pids=($!)
	trains
	mpirun=$(pgrep -P "${pids[0]}")
	ranks=($(pgrep -P "$mpirun" -x gf-train))
	# a launcher that does not notice: the ranks end all the same
	kill -STOP "${ranks[1]}" "$mpirun"
	for ((tries = 0; tries < 400; tries++)); do
		states=$(ps -o stat= -p "${ranks[0]}","${ranks[2]}" | grep -vc '^Z') || break
		sleep 0.1
	done
	echo "$tries tenths of a second, $states left"
	[ "${states:-0}" -eq 0 ]
	kill -KILL "${ranks[1]}"
	kill -CONT "$mpirun"
	ends 0 '@(4|137)' 40 # of the first rank whose end mpirun learns of
	grep -q 'rank 1 does not answer' err.0
}

@test "a rank that never starts is named by those that do" {
	for rank in 0 2; do
		timeout 60 gf-allreduce --join job --rank $rank --ranks 3 --timeout 3s > out.$rank 2> err.$rank < /dev/null 3>&- &
		pids[rank]=$!
	done
	for rank in 0 2; do
		ends $rank 4 40 'job: waited 3 s, and rank 1 has not come'
		[ "$(grep -c . err.$rank)" -eq 1 ]
	done
}

@test "a rank 0 that never starts is named, at a folder and at a port" {
	for place in job "localhost:$((20000 + RANDOM % 10000))"; do
		timeout 60 gf-allreduce --join "$place" --rank 1 --ranks 2 --timeout 1s > out.1 2> err.1 < /dev/null 3>&- &
		pids[1]=$!
		ends 1 4 40 "$place: waited 1 s, and rank 0 has not come"
	done
}

# mpirun 5.0.7 loses part of a line that it has not read whole when standard error comes
@test "rows of more than a page come whole before words on standard error" {
	local i
	for i in 1 2 3 4 5; do
		wants 0 mpi 2 gf-allreduce -n 1 -w 0 -a all -b 4 -e 4 --table=json
		[ "$(wc -c < out.txt)" -gt 8192 ]
		jq -se 'all(has("wrong"))' out.txt
		says 'fastest'
	done
}

@test "a rank whose table nobody reads ends, as the others do" {
	full_pipe full
	to=(full /dev/null)
	sleep 60 > /dev/null 2>&1 3>&- 9>&- & # of the same shell, and no rank
	pids[2]=$!
	kill -STOP "${pids[2]}"
	for rank in 0 1; do
		gf-allreduce --join job --rank $rank --ranks 2 --timeout 5s -b 1K -e 1K > ${to[rank]} 2> err.$rank < /dev/null 3>&- &
		pids[rank]=$!
	done
	ends 0 4 60 'nobody has read what this rank prints for 5 s'
	fails grep "of this job is stopped" err.0
	ends 1 '[34]' 60 # by its own limit, or since rank 0 has gone
}

@test "a rank whose log, trace or -o nobody reads ends, as the others do" {
	full_pipe full
	mkfifo unopened
	options=("--log full" "--log unopened" "--trace unopened" "-o unopened")
	for n in ${!options[@]}; do # rank n of four jobs, and the other as rank n + 4
		for rank in 0 1; do
			timeout 60 gf-train --join job-$n --rank $rank --ranks 2 --timeout 5s --model digits-mlp --steps 2 ${options[n]} \
				> out.$((n + 4 * rank)) 2> err.$((n + 4 * rank)) < /dev/null 3>&- 9>&- &
			pids[n + 4 * rank]=$!
		done
	done
	for n in ${!options[@]}; do
		ends $n 4 60 "${options[n]##* }: nobody has read it for 5 s"
		ends $((n + 4)) '[34]' 60 # by its own limit, or since rank 0 has gone
	done
}

@test "ranks that disagree on their number" {
	for rank in 0 1; do
		timeout 60 gf-allreduce --join job --rank $rank --ranks $((2 + rank)) > out.$rank 2> err.$rank < /dev/null 3>&- &
		pids[rank]=$!
	done
	ends 0 2 30
	ends 1 2 30
	grep -q 'job: rank 1 has come with 3 ranks, rank 0 with 2' err.0
}

@test "options that say too little or contradict each other" {
	refused() { # words OPTION...
		local words=$1
		shift
		for command in gf-allreduce gf-train; do
			wants 2 $command "$@"
			[[ $errors == *"$words"* ]] || { echo "$command $*: $errors"; return 1; }
		done
	}
	refused '--rank: want --join' --rank 1
	refused '--ranks: want --join' --ranks 2
	refused '--join: want --rank and --ranks' --join job --rank 1
	refused '--join: want --rank and --ranks' --join job --ranks 2
	refused 'want a rank below the 2 ranks, got 2' --join job --rank 2 --ranks 2
	refused '--join: want --transport ucx or auto, got mpi' --join job --rank 0 --ranks 2 --transport mpi
	export RANK=one WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500
	refused 'RANK: want a whole number from 0 to' -q
	export RANK=1 MASTER_PORT=65535
	refused 'MASTER_PORT: want a whole number from 0 to 65534' -q
	unset MASTER_PORT
	refused 'each would be a job of its own (--ranks 1): WORLD_SIZE says 2 processes, and MASTER_PORT is not set' -q
	wants 0 gf-profile -q --estimate --model resnet50 --flops 1TF -o one.json
	wants 0 gf-allreduce -q -b 4 -e 4 -n 1 --ranks 1
	# MPI by name asks nobody else
	wants 0 gf-allreduce -q -b 4K -e 4K --transport mpi -o table.txt
	[ ! -e job ]
	wants 3 gf-allreduce --join /proc/no/such --rank 0 --ranks 2
	[[ $errors == *'/proc/no/such: No such file or directory'* ]]
	unset RANK
	wants 2 gf-train --replay --plan x.json --transport nccl
	[[ $errors == *'--replay: want --transport mpi, ucx or auto, got nccl'* ]]
}

@test "ranks of one launcher that are told unlike transports" {
	printf '#!/bin/bash\nexec gf-allreduce -b 1K -e 1K $([ "$OMPI_COMM_WORLD_RANK" = 0 ] || echo --transport ucx)\n' > unlike
	chmod +x unlike
	wants 2 mpi 2 ./unlike
	[[ $errors == *'transport: rank 0 has mpi, rank 1 has ucx'* ]]
}

@test "plain processes measure a network, and rank 0 writes the profile" {
	begin 2 gf-profile -q -a ring --lanes 1 --budget 1s --points time=1ms --max-bytes 64K
	for rank in 0 1; do ends $rank 0 60; done
	jq -e '.network.ranks == 2 and .network.allreduce[0].algorithm == "ring"' out.0
	[ ! -s out.1 ]
	begin 2 gf-profile -q --pairs --budget 1s
	for rank in 0 1; do wait "${pids[$rank]}"; done
	grep -q 'rank' out.0
}

@test "a variable of Slurm's is a hint: what MPI sees alone writes, and is refused if others were started" {
	export SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_PROCID=1
	for made in "gf-topo" "gf-topo --synthetic host:2@8GB/s,1us" "gf-profile --estimate --model resnet50 --flops 1TF"; do
		rm -f one.json
		# shellcheck disable=SC2086 # they are several words
		wants 0 $made -o one.json
		[ -s one.json ]
		[ -z "$(grep -i slurm <<< "$errors")" ]
	done
	gf-topo --synthetic host:2@8GB/s,1us > topo.json
	wants 0 gf-topo --import topo.json -o one.json
	cmp topo.json one.json
	# the command line of one that is alone is complained about
	wants 2 gf-topo --nonsense
	[[ $errors == *nonsense* ]]
	# tasks of one step, of which each would be a job of its own: refused, and the first says so
	export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2
	for command in "gf-train --model digits-mlp --data digits --steps 1" "gf-allreduce -b 4 -e 4 -n 1" \
		"gf-profile --model digits-mlp"; do
		for SLURM_PROCID in 0 1; do
			export SLURM_PROCID
			wants 2 $command
			cp err.txt err.$SLURM_PROCID
		done
		grep -q 'each would be a job of its own (--ranks 1): SLURM_STEP_NUM_TASKS says 2 processes, and MPI sees 1 rank: start them by .*mpirun, srun --mpi=pmix' err.0
		[ ! -s err.1 ]
	done
	wants 0 gf-train -q --model digits-mlp --data digits --steps 1 --ranks 1
	# what is no job does not mind, and a description says that it is of one task
	wants 0 gf-profile -q --estimate --model resnet50 --flops 1TF -o one.json
	export SLURM_PROCID=0
	wants 0 gf-topo -q -o one.json
	[[ $errors == *'each is a job of its own: SLURM_STEP_NUM_TASKS'* ]]
}

@test "torchrun's ranks within a task of Slurm are two, with its variables inherited" {
	export SLURM_JOB_ID=9 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1
	export MASTER_ADDR=localhost MASTER_PORT=$((20000 + RANDOM % 10000)) WORLD_SIZE=2
	for rank in 0 1; do
		RANK=$rank timeout 60 gf-allreduce -b 1K -e 1K > out.$rank 2> err.$rank &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
	grep -q '^# 2 ranks' out.0
	[ ! -s out.1 ]
}
