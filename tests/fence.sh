#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares what the commands print for shipped and recorded inputs with the digests of
# tests/data/fence, byte for byte. A change that is to leave the bytes as they are runs it. Another
# change runs --record, and its commit says which bytes differ and why.
#   tests/fence.sh [--tenth | --record] [REGEX]
# --tenth    every tenth case of the quick ones, which make check runs
# --record   writes the digests, and the texts of the tenth, anew
# REGEX      only cases with such names
# Each output is left in $BUILD/fence/ under the name of its case. A text that tests/data/fence
# keeps is shown beside it. For another one, run the script at the commit before as well.
# T stands for a time that was measured. Trained weights are compared on processors with AVX-512
# alone, since other instructions round otherwise.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
PATH="$PWD/$BUILD/bin:$PATH"
. tests/launcher.sh
export LC_ALL=C COLUMNS=100 OMP_NUM_THREADS=1
unset GF_SHARE
[ "$(uname -m)" = x86_64 ] || { echo 'digests are of x86-64'; exit 77; }

which=all
case ${1:-} in --tenth | --record) which=${1#--}; shift ;; esac
pattern=${1:-.}
kept=tests/data/fence
out=$BUILD/fence
rm -rf "$out"
mkdir -p "$out" || exit 1

# --- cases: a name, a tab, a command whose $O is the path of its output -----------------
. tests/facts.bash
row() { printf '%s\t%s\n' "$1" "$2"; }

option_sets=(
	'wire|--codecs f32,f16,q8 --lanes 2'
	'keys|--selection topk:density=.01,putback=conserve --staleness 2:warmup=5%'
	'dear|--policy dear'
	'threshold|--policy threshold --threshold 4M'
	'few|--accumulate 4 --max-messages 8'
	'reproducible|--reproducible --tolerance 1%'
	'server|--servers 1 --algorithm ps'
	'gradientflow|--system gradientflow'
	'pipe-sgd|--system pipe-sgd'
	'asc-wfbp|--system asc-wfbp'
	'blueconnect|--system blueconnect'
	'diloco|--period diloco'
	'streaming|--period streaming:hide=5%'
)
# and what selections' facts say of themselves (tests/entries)
mapfile -t -O "${#option_sets[@]}" option_sets < <(facts 'select(.fence) | "\($name)|--selection \($name) \(.fence)"')
targets=(ddp fsdp2 horovod nccl-env nccl-tuner rccl-tuner ncclx-tuner ompi ompi-han deepspeed megatron xla
	torchft maxtext)

# Replays of some hundred ranks take seconds: there a few models have every option.
plan_cases() {
	local model topology m t set target
	for topology in share/topologies/*.json; do
		t=$(basename "$topology" .json)
		for model in share/models/*.json; do
			m=$(basename "$model" .json)
			row "plan/$m/$t/auto.json" "gf-plan --model $m $topology"
			# younger models and nodes: a plan each
			case $t/$m in dgx-* | mi300x-* | */llama* | */vit*) continue ;; esac
			case $t/$m in
			*/resnet50 | */lstm-ptb | */bert-base | */digits-cnn) ;;
			blueconnect* | gradientflow*) continue ;;
			esac
			for set in "${option_sets[@]}"; do
				row "plan/$m/$t/${set%%|*}.json" "gf-plan --model $m ${set#*|} $topology"
			done
			row "words/$m/$t/compare.txt" "gf-plan --model $m --compare $topology"
			row "words/$m/$t/compare.jsonl" "gf-plan --model $m --compare --table=json $topology"
			row "words/$m/$t/explain.txt" "gf-plan --model $m --explain $topology"
			row "words/$m/$t/table.txt" \
				"gf-plan --model $m --codecs f32,f16 --lanes 2 --table $topology"
			case $t/$m in gradientflow*/resnet50 | blueconnect*/lstm-ptb) ;; gradientflow* | blueconnect*) continue ;; esac
			for target in "${targets[@]}"; do
				case $target in torchft | maxtext) set='--period diloco' ;; *) set= ;; esac
				row "emit/$m/$t/$target" "gf-plan --model $m $set --emit $target $topology"
			done
		done
	done
}

profile_cases() {
	local profile p topology=share/topologies/4x2-1gbe.json
	for profile in share/profiles/*.json; do
		p=$(basename "$profile" .json)
		row "profile/$p/plan.json" "gf-plan --ranks 8 $profile $topology"
		row "profile/$p/compare.txt" "gf-plan --ranks 8 --compare $profile $topology"
		row "profile/$p/over.txt" \
			"gf-plan --ranks 8 --compare --over policies:codecs $profile $topology"
		row "profile/$p/table.txt" "gf-profile --table $profile"
	done
	for profile in tests/data/import/* tests/data/foreign/*; do
		case $profile in *.csv | *.json | *.jsonl | *.log | *.gz | *.txt | *.md | *.pickle) ;; *) continue ;; esac
		p=$(basename "$profile")
		row "import/$p.json" "gf-profile --import $profile"
		row "import/report-$p.jsonl" "gf-report --table=json $profile"
	done
	row import/late.jsonl 'tar xf tests/data/import/late.tar -C $D && for job in $D/*; do gf-report --table=json $job/*; done'
	for topology in tests/data/topologies/* tests/data/hwloc/*.xml; do
		[ -f "$topology" ] || continue
		p=$(basename "$topology")
		row "topology/$p.json" "gf-topo --import $topology"
		row "topology/$p.txt" "gf-topo --table --import $topology"
	done
	for topology in share/topologies/*.json; do
		p=$(basename "$topology")
		row "topology/shipped-$p.txt" "gf-topo --table --import $topology"
	done
	for p in plan train allreduce; do row "lists/$p.txt" "gf-$p --list"; done
	for p in topo profile plan sim allreduce train report; do row "lists/help-$p.txt" "gf-$p --help"; done
}

# Rows of every kind, of each shipped plan and of some that are planned here.
sim_cases() {
	local plan p topology o
	local options=(
		'rows.jsonl|--table=json' 'rows.csv|--table=csv' 'table.txt|--table'
		'ranks.csv|--ranks 8,16,32,1024 --table=csv' 'ranks.txt|--ranks 8,16 --replan --table'
		'bandwidth.jsonl|--bandwidth 1Gb/s,10Gb/s --table=json' 'accumulate.txt|--accumulate 4 --table'
		'slow.csv|--slow 0:2 --table=csv' 'jitter.jsonl|--jitter 5%:network=10us,runs=50 --table=json'
		'slow-link.txt|--slow-link 0:2 --table' 'period.csv|--period-steps 10,50 --table=csv'
		'iterations.jsonl|--iterations 1000:epoch_steps=100 --table=json'
		'steps.txt|--steps --table' 'verify.txt|--verify'
		'trace.json|--trace $O.trace -q && cat $O.trace' 'picture.csv|--plot $O.csv -q && cat $O.csv'
	)
	for plan in share/plans/*.json; do
		p=$(basename "$plan" .json)
		for o in "${options[@]}"; do
			row "sim/$p/${o%%|*}" "gf-sim $plan --costs 4x2-1gbe ${o#*|}"
			row "sim/$p/own-${o%%|*}" "gf-sim $plan ${o#*|}"
		done
	done
	topology=share/topologies/4x2-1gbe.json
	for p in resnet50 digits-cnn; do
		for o in '' '--codecs f16 --lanes 2 --policy wfbp' '--policy dear' '--system pipe-sgd' \
			'--selection topk' '--period diloco' '--period streaming'; do
			plan=$(tr -cd a-z0-9 <<< "${o:-auto}")
			for set in "${options[@]}"; do
				row "sim/$p-$plan/${set%%|*}" \
					"gf-plan --model $p $o $topology > \$D/plan && gf-sim \$D/plan ${set#*|}"
			done
			row "report/$p-$plan.jsonl" "gf-plan --model $p $o $topology > \$D/plan && \
				gf-sim -q \$D/plan --slow 0:2 --trace \$D/trace.json && gf-report --table=json \$D/trace.json"
			row "report/$p-$plan.txt" "gf-plan --model $p $o $topology > \$D/plan && \
				gf-sim -q \$D/plan --slow 0:2 --trace \$D/trace.json && gf-report --table --plan \$D/plan \$D/trace.json"
		done
	done
}

# Jobs: what was measured is printed as T.
run_cases() {
	local name options
	row measured/allreduce.jsonl \
		'mpirun -np 2 gf-allreduce -q -b 1K -e 2K -n 2 -w 1 -a ring,rhd,gtopk,library --density .01 --table=json | rows'
	row measured/allreduce.csv \
		'mpirun -np 2 gf-allreduce -q -b 1K -e 2K -n 2 -w 1 -a ring,direct --codec q8 --error --table=csv | head -n 1'
	row measured/best.json 'mpirun -np 2 gf-allreduce -q -b 1K -e 2K -n 2 -a ring --best $O.best > $D/table && rows < $O.best'
	row measured/pairs.jsonl 'mpirun -np 2 gf-profile -q --pairs --table=json | rows'
	while IFS='|' read -r name options _; do
		row "trained/$name.txt" "gf-plan --model digits-mlp $options --ranks 2 \
			share/topologies/4x2-1gbe.json > \$D/plan && trained \$D/plan"
	done < <(
		facts '"\($name)|\(.options)"'
		printf '%s\n' 'stale|--staleness 2' 'f16|--codecs f16' 'q8|--codecs q8' 'dear|--policy dear'
	)
}

# Two ranks train eight steps at once, and four and then the rest: both end with the same bytes.
# How often a rank waits depends on the load: these spans are left out, and the number of all spans.
trained() { # plan
	local common="mpirun -np 2 gf-train -q --device ref --data digits --batch 8 --plan $1 --bad-gradients skip"
	{
		$common --steps 8 --checkpoint "$D/whole" --log "$D/log" --trace "$D/trace" &&
			$common --steps 4 --checkpoint "$D/parts" &&
			$common --steps 8 --checkpoint "$D/parts" --resume
	} > "$D/words" || return
	rows < "$D/log"
	rows < "$D/trace" | sed -E 's/"(ts|dur)": [0-9.]+/"\1": T/g' | grep -o '"\(ph\|cat\|name\)": "[^"]*"' | sort | uniq -c |
		grep -v -e wait -e clock -e load -e '"ph": "X"'
	cmp <(cat "$D"/whole/step-8/*.safetensors) <(cat "$D"/parts/step-8/*.safetensors) || return
	(cd "$D/whole" && find . -type f | sort)
	(cd "$D/whole" && for file in step-8/*.safetensors; do
		echo "$(sed -E "$version" "$file" | sha256sum | cut -d ' ' -f 1)  $file"
	done)
}
rows() {
	sed -E 's/"([a-z0-9_]*(_s|_per_s|_rss_bytes|seconds|share_of_link|busbw|algbw)|clock[a-z_]*)": ("[^"]*"|\[[^]]*\]|[^],}]*)/"\1": T/g
		s/"(host|library)": "[^"]*"/"\1": T/g'
}
export -f rows trained
export version='s/(gf-[a-z]+) [0-9]+\.[0-9]+\.[0-9]+/\1 VERSION/g'

# Runs one case; its status and its words are part of the output.
one() { # name tab command
	local name=${1%%$'\t'*} command=${1#*$'\t'}
	O=$out/$name
	D=$(mktemp -d) || exit 1
	export O D
	mkdir -p "${O%/*}"
	timeout 300 bash -c "$command" > "$O.part" 2>&1 < /dev/null
	echo "status $?" >> "$O.part"
	sed -E "s|$D|DIR|g; s|$out/||g; $version" "$O.part" > "$O"
	rm -rf "$O.part" "$O.trace" "$O.csv" "$O.best" "$D"
}
export -f one
export out

cases() { plan_cases; profile_cases; sim_cases; run_cases; }
quick() { grep -v -e blueconnect-4x16x3 -e gradientflow-cluster -e '^sim/blueconnect/own' -e '/replan' -e '/over' -e '^measured/'; }
tenth() { quick | awk 'NR % 10 == 7'; }
chosen() { if [ "$which" = tenth ]; then cases | tenth; else cases; fi | grep -E "^[^	]*$pattern"; }

chosen | tr '\n' '\0' | xargs -0 -n 1 -P "$(nproc)" bash -c 'one "$1"' -
case " $(grep -m 1 ^flags /proc/cpuinfo) " in *' avx512f '*) trained_too=1 ;; *) trained_too= ;; esac
(cd "$out" && find . -type f | sed 's|^\./||' | LC_ALL=C sort | xargs sha256sum) > "$BUILD/fence.sha256"

if [ "$which" = record ]; then
	mkdir -p "$kept/texts"
	if [ "$pattern" = . ]; then
		cp "$BUILD/fence.sha256" "$kept/digests"
		rm -rf "${kept:?}/texts"
		cases | tenth | cut -f 1 | grep -E '\.(txt|jsonl|csv)$|^emit/' | while read -r name; do
			[ "$(stat -c %s "$out/$name")" -gt 6000 ] || install -Dm 644 "$out/$name" "$kept/texts/$name"
		done
	else
		awk 'NR == FNR { new[$2] = $0; next } !($2 in new) { print } END { for (n in new) print new[n] }' \
			"$BUILD/fence.sha256" "$kept/digests" | LC_ALL=C sort -k 2 > "$BUILD/fence.merged"
		cp "$BUILD/fence.merged" "$kept/digests"
		(cd "$kept/texts" && find . -type f) | while read -r name; do
			[ ! -e "$out/$name" ] || cp "$out/$name" "$kept/texts/$name"
		done
	fi
	echo "recorded $(wc -l < "$BUILD/fence.sha256") digests"
	exit
fi

# Each line: a case whose digest is not the recorded one.
differing() {
	awk 'NR == FNR { want[$2] = $1; next } want[$2] != $1 { print $2, want[$2] ? "" : "new" }' \
		"$kept/digests" "$BUILD/fence.sha256"
}
bad=0
while read -r name new; do
	case $name in trained/*) [ "$trained_too" ] || continue ;; esac
	bad=$((bad + 1))
	echo "$name: ${new:+no digest is recorded; }the bytes are in $out/$name"
	[ ! -e "$kept/texts/$name" ] || diff "$kept/texts/$name" "$out/$name" | head -n 12
done < <(differing)
echo "$(wc -l < "$BUILD/fence.sha256") outputs, $bad of them other than recorded"
[ $bad -eq 0 ]
