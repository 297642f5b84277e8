#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

# Pictures that gnuplot draws for gf-plan and gf-sim, and its scripts by hand.
setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	share=$GF_SOURCE/share
	gf-plan -q "$share/profiles/six.json" > plan.json
}

needs_gnuplot() { command -v gnuplot > /dev/null || skip "gnuplot is not installed"; }

# picture FILE: it is whole, and of the kind that its ending names.
picture() {
	case $1 in
	*.svg) python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1" ;;
	*.pdf) [ "$(head -c 5 "$1")" = %PDF- ] && tail -c 7 "$1" | grep -q '%%EOF' ;;
	*.png) [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] &&
		[ "$(tail -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 49454e44ae426082 ] ;;
	esac
}

@test "each picture in each format, as wide as a paper's columns" {
	needs_gnuplot
	for format in svg pdf png; do
		wants 0 gf-plan -q plan.json --plot "plan.$format" -o /dev/null
		picture "plan.$format"
		wants 0 gf-plan --compare "$share/profiles/six.json" --plot "compare.$format"
		picture "compare.$format"
		wants 0 gf-sim plan.json --plot "one.$format"
		picture "one.$format"
		wants 0 gf-sim plan.json --ranks 16,2,4 --bandwidth 1Gb/s,10Gb/s --plot "scaling.$format"
		picture "scaling.$format"
		wants 0 gf-sim -q plan.json --bandwidth 1Gb/s,10Gb/s --plot "rate.$format"
		picture "rate.$format"
		[ -z "$errors" ]
	done
	grep -q 'width="672"' plan.svg
	grep -q 'width="316"' scaling.svg
	gf-plan -q --model resnet50 --period streaming 4x2-1gbe > streaming.json
	wants 0 gf-sim streaming.json --plot period.svg
	picture period.svg
	grep -q 'steps [0-9]* to [0-9]* of a period of 100 steps' period.svg
}

@test "the same bytes each time (a PDF has its date)" {
	needs_gnuplot
	for format in svg png; do
		wants 0 gf-sim plan.json --plot "a.$format"
		sleep 1.1
		wants 0 gf-sim plan.json --plot "b.$format"
		cmp "a.$format" "b.$format"
	done
}

@test "the numbers of a picture need no gnuplot" {
	wants 0 env PATH="$GF_SOURCE/$BUILD/bin" gf-sim plan.json --plot one.csv
	[ "$(head -n 1 one.csv)" = row,kind,name,tensors,bytes,start_s,end_s ]
	[ "$(grep -c '^lane' one.csv)" -eq "$(jq '.messages | length' plan.json)" ]
	grep -qx ',mark,backward ends,,,20,20' one.csv
	# what is sent, not what it was made of
	wants 0 gf-plan -q --policy single --codecs f16 --model resnet20 4x2-1gbe --plot half.csv
	[ "$(awk -F, '$1 == "network" { print $5 }' half.csv)" -eq $((2 * 272474)) ]
	wants 0 gf-sim plan.json --ranks 2,4 --table=csv
	wants 0 env PATH="$GF_SOURCE/$BUILD/bin" gf-sim plan.json --ranks 2,4 --plot two.csv
	as_rows two.csv | jq -es 'map(.ranks) == ["2", "4"]'
	wants 0 gf-plan --compare "$share/profiles/six.json" --plot compare.csv
	[ "$(head -n 1 compare.csv)" = "policy,compute,exposed,lower bound" ]
	grep -qx 'optimal,20,23,40.75' compare.csv
}

# bars FILE ROW: kind, name, start and end of the row's bars.
bars() {
	awk -F, -v row="$2" '$1 == row { printf "%s %s %.9g %.9g\n", $2, $3, $6, $7 }' "$1"
}

@test "titles say the model, the ranks, the system and the network" {
	needs_gnuplot
	net=$GF_SOURCE/tests/data/valid/topology-4x2-1gbe.json
	gf-plan -q --model digits-mlp --system pipe-sgd "$net" --plot one.svg -o pipe.json
	grep -q '>digits-mlp on 8 ranks, system pipe-sgd, K = 2<' one.svg
	grep -q '>4 x 2 ranks, ethernet 1 Gb/s, predicted<' one.svg
	gf-sim -q pipe.json --bandwidth 10Gb/s --jitter 0.2 --plot two.svg
	grep -q '>4 x 2 ranks, ethernet 10 Gb/s, drawn with jitter 20 %<' two.svg
	gf-sim -q plan.json --ranks 2,4 --plot three.svg
	grep -q '>six, policy ' three.svg
	grep -q '>measured network, simulated<' three.svg
	grep -q '>efficiency (%)<' three.svg
	gf-plan -q --compare --model digits-mlp "$net" --plot four.svg
	grep -q '>digits-mlp on 8 ranks: policies<' four.svg
	for label in compute exposed "lower bound" dear optimal; do grep -q ">$label<" four.svg; done
}

# A message of b bytes takes 3 + b / 4 s, forward 3 s and backward 17 s.
@test "dear: all-gathers of the step before, for which forward waits" {
	gf-plan -q --policy dear "$share/profiles/six.json" --plot dear.csv > dear.json
	bars dear.csv compute > compute.txt
	bars dear.csv network > network.txt
	python3 - <<-'END'
	import json
	plan = json.load(open("dear.json"))
	net = [line.rsplit(" ", 2) for line in open("network.txt")]
	tensors = plan["model"].get("tensors") or plan["tensors"]
	half = [(3 + sum(t["count_elems"] for t in tensors[m["first"]:m["last"] + 1])) / 2 for m in plan["messages"]]
	at, late = 0, 0
	gathers = [(float(s), float(e)) for name, s, e in net if name.startswith("all-gather")]
	assert len(gathers) == len(half) and len(net) == 2 * len(half), net
	for (start, end), took, m in zip(gathers, half[::-1], plan["messages"][::-1]):
	    assert abs(start - at) < 1e-5 and abs(end - at - took) < 1e-5, (start, end, at, took)
	    at = end
	    late = max(late, end - 3 * (1 - tensors[m["last"]]["ready_s"] / 17))
	bars = [line.split() for line in open("compute.txt")]
	before = [(b[0], float(b[2]), float(b[3])) for b in bars[:[b[0] for b in bars].index("backward")]]
	assert any(b[0] == "waiting" for b in before), before
	assert abs(sum(e - s for kind, s, e in before if kind == "forward") - 3) < 1e-4, before
	assert before[0][1] == 0 and abs(before[-1][2] - 3 - late) < 1e-4, (before, late)
	assert all(a[2] == b[1] for a, b in zip(before, before[1:])), before
	END
	jq -e --argjson drawn "$(awk -F, '$3 == "step ends" { print $6 }' dear.csv)" \
		'(.predicted.iteration_s - $drawn | fabs) < 1e-8' dear.json
}

# 180 bytes take 48 s: each step waits for those of the step before the last.
@test "stale gradients: two steps, with the messages of the step before" {
	gf-plan -q --policy single --staleness 2 "$share/profiles/six.json" --plot stale.csv > stale.json
	[ "$(bars stale.csv compute | tr '\n' ';')" = "forward forward 0 3;backward backward 3 20;\
waiting waiting 20 48;forward forward 48 51;backward backward 51 68;waiting waiting 68 96;" ]
	[ "$(bars stale.csv network | tr '\n' ';')" = "message step 0 0 48;message step 1 48 96;" ]
	grep -qx ',mark,step 2 ends,,,96,96' stale.csv
	# 16 times faster, it waits for backward alone
	gf-sim -q stale.json --bandwidth 1GB/s --plot fast.csv
	[ "$(bars fast.csv compute | tr '\n' ';')" = "forward forward 0 3;backward backward 3 20;\
forward forward 20 23;backward backward 23 40;" ]
}

@test "jitter is drawn: the median iteration; of stale gradients two steps" {
	gf-sim -q plan.json --jitter 0.2:runs=99 --plot one.csv > one.json
	jq -e --argjson drawn "$(awk -F, '$3 == "step ends" { print $6 }' one.csv)" '(.p50_s - $drawn | fabs) < 1e-8' one.json
	# the slowest of four ranks: forward and backward take as much longer, 1.2 times or so
	bars one.csv compute | awk '$1 == "forward" { f = ($4 - $3) / 3 } $1 == "backward" { b = ($4 - $3) / 17 }
		END { exit !(f > 1.05 && f < 1.5 && (f - b) ^ 2 < 1e-9) }'
	gf-plan -q --policy single --staleness 2 "$share/profiles/six.json" > stale.json
	gf-sim -q stale.json --jitter 0.2 --plot two.csv
	bars two.csv compute | awk '$1 == "backward" { b[n++] = $4 - $3 } END { exit !(n == 2 && b[0] != b[1]) }'
	gf-sim -q stale.json --jitter 0.2:seed=2 --plot three.csv
	fails cmp -s two.csv three.csv
}

@test "another ending is refused" {
	for file in plan.jpg plan svg .svg/ plan.SVG; do
		wants 2 gf-plan plan.json --plot "$file"
		says "want a file that ends in .svg, .pdf, .png or .csv, got \"$file\""
		[ ! -e "$file" ]
	done
}

@test "without gnuplot one line says so, and nothing is left behind" {
	wants 3 env PATH="$GF_SOURCE/$BUILD/bin" gf-sim plan.json --plot one.pdf
	[ "$(wc -l < err.txt)" -eq 1 ]
	says "one.pdf: want gnuplot to draw (Debian: gnuplot-nox"
	[ -z "$(ls one.* 2> /dev/null)" ]
}

@test "a gnuplot that fails is quoted, and the old picture stays" {
	mkdir bin
	printf '#!/bin/sh\necho "half a picture"\necho "no terminal\nlast words" >&2\nexit 1\n' > bin/gnuplot
	chmod +x bin/gnuplot
	echo before > one.svg
	PATH=$PWD/bin:$PATH wants 3 gf-sim plan.json --plot one.svg
	[ "$(cat err.txt)" = "gf-sim: one.svg: gnuplot: last words" ]
	[ "$(cat one.svg)" = before ]
	[ "$(ls one.*)" = one.svg ]
}

@test "where nothing can be written" {
	for format in svg pdf png csv; do
		wants 3 gf-sim plan.json --plot "nowhere/one.$format"
		[ "$(wc -l < err.txt)" -eq 1 ]
		says "nowhere/one.$format"
		[ -z "$output" ]
	done
}

@test "hostile names are drawn as they are" {
	needs_gnuplot
	# shellcheck disable=SC2016 # nothing is to expand
	jq --arg name $'<b>&"\'`touch run`$(touch run)\\n{x_y}^2,@z~%d#\u00e9\ufffe\'; system "touch run"; a=\'' '
		.model.name = $name | .policy = $name |
		.tensors |= [to_entries[] | .value.name = "\(.key)\($name)" | .value]' plan.json > hostile.json
	for format in svg pdf png; do
		wants 0 gf-sim hostile.json --plot "a.$format"
		picture "a.$format"
		wants 0 gf-sim hostile.json --plot "b.$format" --ranks 2,4
		picture "b.$format"
		wants 0 gf-sim hostile.json --plot "|touch run;.$format"
		picture "|touch run;.$format"
	done
	[ ! -e run ]
	grep -q '&lt;b.*&amp;' a.svg
	grep -qF '{x_y}^2' a.svg
	[ "$(awk -F, '{print NF}' <(wants 0 gf-sim hostile.json --plot c.csv; cat c.csv) | sort -u)" = 7 ]
}

@test "a script of the working folder is not run" {
	needs_gnuplot
	echo 'system "touch run"' | tee gantt.gp curves.gp > common.gp
	mkdir plots && cp ./*.gp plots
	wants 0 gf-sim plan.json --plot one.svg
	echo 'system "touch run"' > .gnuplot
	HOME=$PWD wants 0 gf-sim plan.json --ranks 2,4 --plot two.svg
	[ ! -e run ]
}

@test "the scripts by hand, as share/plots/README shows them" {
	needs_gnuplot
	export LC_ALL=C.UTF-8
	gf-sim plan.json --ranks 2,4,8,16 --table=csv > scaling.csv
	wants 0 gnuplot -e "data='scaling.csv'; out='scaling.pdf'; x='ranks'; y='speedup'" "$share/plots/curves.gp"
	[ -z "$errors" ]
	picture scaling.pdf
	gf-sim plan.json --plot one.csv -o /dev/null
	gnuplot -e "data='one.csv'; out='png'; columns=1" "$share/plots/gantt.gp" > one.png
	picture one.png
	printf 'method,compute,network\n100 %%,1,2\nb,2,\n' > bars.csv
	wants 0 gnuplot -e "data='bars.csv'; out='bars.svg'; unit='s'" "$share/plots/bars.gp"
	picture bars.svg
	printf 'x,y,low,high\n1,2,1,3\n2,3,2,4\n' > band.csv
	wants 0 gnuplot -e "data='band.csv'; out='band.svg'; low='low'; high='high'" "$share/plots/curves.gp"
	picture band.svg
	wants 1 gnuplot -e "data='bars.csv'; out='bars.gif'" "$share/plots/bars.gp"
	says "want an out that ends in svg, pdf or png, got bars.gif"
}

# both NAME COMMAND...: draws the command's picture at both widths, by a gnuplot of its own, as
# NAME-1.svg and NAME-2.svg; gnuplot warns of no more than of a kind of bars that is not there.
both() {
	local name=$1
	shift
	if [ ! -d both ]; then
		mkdir both
		cat > both/gnuplot <<-END
			#!/bin/bash
			cat /dev/fd/3 > "\$PICTURE.csv"
			for columns in 1 2; do
				$(command -v gnuplot) -d -e "\${3/\\/dev\\/fd\\/3/\$PICTURE.csv} columns=\$columns;" "\$4" > "\$PICTURE-\$columns.svg" 2> "\$PICTURE.err" || exit
				grep -v -e 'no valid points$' -e 'iconv failed to convert' "\$PICTURE.err" >&2 && exit 1
			done
			cat "\$PICTURE-2.svg"
		END
		chmod +x both/gnuplot
	fi
	PICTURE=$name PATH=$PWD/both:$PATH wants 0 "$@" -q --plot "$name.svg" -o /dev/null
	cmp "$name.svg" "$name-2.svg"
}

readable() { python3 "$GF_SOURCE/tests/cli/picture_text.py" "$@"; }

@test "a text on another, on a bar's edge, a swatch, a marker or a line is found" {
	text() { echo "<text transform='translate($1,$2)' font-size='10.67'>$3</text>"; }
	svg() { echo "<svg width='200' height='100' xmlns='http://www.w3.org/2000/svg'>$1</svg>" > a.svg; }
	svg "$(text 10 20 forward)$(text 60 20 backward)<polygon fill='red' points='10,30 100,30 100,50 10,50'/>$(text 20 44 inside)"
	wants 0 readable a.svg
	svg "$(text 10 20 forward)$(text 40 20 backward)"
	wants 1 readable a.svg
	prints 'DejaVu Sans: "backward" is on "forward"'
	# the wider font alone
	svg "$(text 10 20 backward)<polygon fill='red' points='60,12 90,12 90,22 60,22'/>"
	wants 1 readable a.svg
	[ "$(cat out.txt)" = 'a.svg: DejaVu Sans: "backward" is on the edge of an area' ]
	svg "$(text 10 20 forward)<path stroke='black' d='M20,0 L20,40'/>$(text 180 20 outside)"
	wants 1 readable a.svg
	prints '"forward" is on a line'
	prints '"outside" leaves the picture'
	svg "$(text 10 20 forward)<use href='#gpPt6' transform='translate(20,16) scale(3)'/>"
	wants 1 readable a.svg
	prints '"forward" is on a marker'
}

# bats test_tags=long
@test "the texts of each picture can be read, at both widths" {
	needs_gnuplot
	local job=(--gpu v100 resnet20 4x2-1gbe)
	both six gf-plan "$share/profiles/six.json"
	both dear gf-plan "${job[@]}" --policy dear
	both pipe gf-plan "${job[@]}" --system pipe-sgd
	gf-plan -q "${job[@]}" --period streaming > streaming.json
	gf-plan -q "${job[@]}" --period diloco > diloco.json
	both streaming gf-sim streaming.json
	both diloco gf-sim diloco.json
	both compare gf-plan --compare "${job[@]}"
	both grid gf-plan --compare --over lanes=1,2:codecs=f32,q8 "${job[@]}"
	both over gf-plan --compare --over codecs,selections "${job[@]}"
	for selection in topk gtopk; do
		gf-plan -q "${job[@]}" --selection $selection > $selection.json
		gf-plan -q "${job[@]}" --selection $selection --policy single > $selection.single.json
	done
	gf-plan -q "${job[@]}" > auto.json
	gf-plan -q "${job[@]}" --codecs q8 > q8.json
	both plans gf-sim auto.json topk.json gtopk.json q8.json
	both ranks gf-sim auto.json topk.json gtopk.json q8.json --ranks 2,4,8,16,32,64
	both rates gf-sim auto.json topk.json gtopk.json q8.json --bandwidth 100Mb/s,1Gb/s,5Gb/s,10Gb/s,25Gb/s,100Gb/s
	both steps gf-sim diloco.json --period-steps 20,50,100,200 --bandwidth 100Mb/s,1Gb/s
	both left gf-sim streaming.json --period-steps 20,50,100,200
	grep -q '>.*; 2 of 4 left out<' left-2.svg
	for tic in 20 50 100 200; do grep -q ">$tic<" steps-1.svg; done
	for algorithm in hierarchical blueconnect; do
		gf-plan -q "${job[@]}" --algorithm $algorithm --policy single > $algorithm.json
		both steps-$algorithm gf-sim --steps $algorithm.json
	done
	both steps-gtopk gf-sim --steps gtopk.single.json
	both topology gf-topo --synthetic "gpu:8@450GB/s,3us,nvlink node:16@400Gb/s,5us,roce pod:64@400Gb/s,9us,roce"
	gf-plan -q "${job[@]::3}" --policy single blueconnect-4x16x3 > large.json
	both steps-large gf-sim --steps large.json
	both here gf-topo --import "hwloc:$GF_SOURCE/tests/data/hwloc/dgx2-nvswitch.xml"
	wants 0 readable ./*-[12].svg
	[ "$(find . -name '*-[12].svg' | wc -l)" -eq 38 ]
}

# look NAME...: what the last series of a picture looks like.
look() {
	gnuplot -e "columns=1; load '$share/plots/common.gp'; $(printf "dummy=claim('%s');" "$@") dummy=settle(0); set print '-'; print look(C)" 2> err.txt || cat err.txt
}

@test "a name has one colour and marker, whatever stands beside it" {
	needs_gnuplot
	topk=$(look topk)
	[ "$(look q8 dense topk)" = "$topk" ]
	[ "$(look gtopk q8 run.topk)" = "$topk" ]
	# each codec has its own
	for codec in $(gf-plan --list codecs | awk '/^  / { print $1 }'); do look "$codec"; done > looks.txt
	[ "$(wc -l < looks.txt)" -gt 5 ] && [ -z "$(sort looks.txt | uniq -d)" ]
	# two of one number differ
	[ "$(look ring ring)" != "$(look ring)" ]
}

@test "what counts in a picture is said in it" {
	needs_gnuplot
	local job=(--gpu v100 resnet20 4x2-1gbe)
	gf-plan -q --compare "${job[@]}" --table=json --plot compare.svg > compare.jsonl
	grep -q ">$(jq -sr '.[0] | .x_ddp * 100 | round / 100 | tostring | .[:4]' compare.jsonl)" <(sed -n 's/.*>[0-9.]* ms, \([0-9.]*\) x ddp<.*/>\1/p' compare.svg)
	# costs that are not known
	gf-plan -q --compare --over selections "${job[@]}" --table=json --plot over.svg > over.jsonl
	[ "$(grep -c ' +?<' over.svg)" -eq "$(jq -s 'map(select(.free or .assumed)) | length' over.jsonl)" ]
	grep -q '(+?)<' over.svg
	gf-plan -q --compare --over lanes=1,2:codecs=f32,q8 "${job[@]}" --plot grid.svg
	for text in lanes codecs: 'step (ms)'; do grep -qF ">$text<" grid.svg; done
	# a period has none of the policies
	gf-plan -q "${job[@]}" --period streaming --plot period.svg -o /dev/null
	grep -q '>resnet20 on 8 ranks, period streaming<' period.svg
	# waiting has its sum, and its time also where the bar has no room
	printf 'row,kind,name,tensors,bytes,start_s,end_s\ncompute,forward,forward,,,0,9\ncompute,waiting,waiting,,,9,9.1\n' > narrow.csv
	printf 'compute,backward,backward,,,9.1,20\nlane 1,message,a,0,4,2,2.001\n' >> narrow.csv
	gnuplot -e "data='narrow.csv'; out='narrow.svg'; columns=1" "$share/plots/gantt.gp"
	grep -q '>waiting (100 ms)<' narrow.svg
	grep -q '>100 ms<' narrow.svg
	# no bar of a message can be seen
	fails grep -q '>message<' narrow.svg
}

@test "where plans cross the dense one" {
	needs_gnuplot
	gf-plan -q --policy optimal "$share/profiles/six.json" > optimal.json
	gf-plan -q --policy wfbp "$share/profiles/six.json" > wfbp.json
	gf-sim -q optimal.json wfbp.json --bandwidth 1000B/s,8B/s --table=json --plot rates.svg > rates.jsonl
	# straight lines on logarithmic axes; in kb/s
	at=$(jq -rs 'map({key: "\(.plan) \(.bandwidth_bytes_per_s + 0)", value: (.iteration_s | log)}) | from_entries
		| (."wfbp 8" - ."optimal 8") as $low | (."wfbp 1000" - ."optimal 1000") as $high
		| 0.064 * pow(125; $low / ($low - $high)) * 100 | round / 100' rates.jsonl)
	grep -q ">optimal is as fast: wfbp at $at kb/s<" rates.svg
	# each in a line of its own, which has room for it
	gf-plan -q --policy threshold --threshold 0 "$share/profiles/six.json" > second.json
	gf-sim -q optimal.json wfbp.json second.json --bandwidth 1000B/s,8B/s --plot rates.svg > /dev/null
	for name in wfbp second; do grep -q ">optimal is as fast: $name at $at kb/s<" rates.svg; done
}

@test "--steps: each receive moves with its send" {
	gf-plan -q --gpu v100 resnet20 4x2-1gbe --algorithm blueconnect --policy single > plan.json
	wants 0 gf-sim --steps plan.json --plot steps.csv
	python3 - <<-'END'
	import csv
	rows = list(csv.DictReader(open("steps.csv")))
	moves = {way: sorted((*(r[a] for a in ends), r["moves_s"]) for r in rows if r["way"] == way)
	         for way, ends in (("send", ("rank", "peer")), ("receive", ("peer", "rank")))}
	assert moves["send"] == moves["receive"] and moves["send"]
	assert all(float(r["start_s"]) <= float(r["moves_s"]) <= float(r["end_s"]) for r in rows)
	# posted long before it moves
	assert any(float(r["moves_s"]) - float(r["start_s"]) > 1e-3 for r in rows if r["way"] == "receive")
	assert {r["by"].split(":")[0] for r in rows} == {"host", "net"}
	END
	# of many ranks the first ones
	gf-plan -q --gpu v100 resnet20 --policy single "$share/topologies/blueconnect-4x16x3.json" > large.json
	wants 0 gf-sim --steps large.json --plot large.csv
	ranks=$(jq .ranks large.json)
	drawn=$(awk -F, 'NR > 1 { print $1 }' large.csv | sort -u | wc -l)
	((ranks > 32 && drawn <= 32 && drawn > 8))
	[ "$(awk -F, 'NR > 1 { print $1 }' large.csv | sort -nu | head -n 1)" -eq 0 ]
}

@test "labels of sizes stand apart, and eight curves differ" {
	needs_gnuplot
	{ echo "size_bytes,name,time_s"
	for name in a b c d e f g h; do
		for size in 16384 65536 1048576; do echo "$size,$name,${size}e-9"; done
	done; } > sizes.csv
	gnuplot -e "data='sizes.csv'; out='sizes.svg'; x='size_bytes'; y='time_s'; series='name'" \
		-e "xunit='B'; yunit='s'; xlog=2" "$share/plots/curves.gp"
	grep -q '>64 KiB<' sizes.svg
	fails grep -E '>(32|128) KiB<' sizes.svg
	# the eighth marker is none of the others
	[ "$(grep -o "'#gpPt[0-9]*' transform='translate" sizes.svg | sort -u | wc -l)" -eq 8 ]
}
