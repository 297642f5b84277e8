#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What `make wheel` makes, in an environment that has PyTorch and nothing else.
# bats file_tags=long
load torch

setup_file() {
	needs_torch 'pip, venv'
	lean=$GF_SOURCE/$BUILD/lean
	[ -e "$lean/libgradflow.so.0" ] || skip "no shared library in this build"
	PYTHON=$python timeout 600 "$GF_SOURCE/share/python/wheel.sh" 0.0.1 "$BATS_FILE_TMPDIR/wheel" \
		"$lean"/{libgradflow.so.0,gf-plan,gf-profile,gf-report,gf-sim,gf-topo} > "$BATS_FILE_TMPDIR/wheel.txt" 2>&1
	clean=$BATS_FILE_TMPDIR/clean
	"$python" -m venv "$clean"
	"$clean/bin/pip" install -q --no-index "$BATS_FILE_TMPDIR"/wheel/*.whl
	bare=$BATS_FILE_TMPDIR/bare
	"$python" -m venv "$bare"
	"$bare/bin/pip" install -q --no-index "$BATS_FILE_TMPDIR"/wheel/*.whl
	export bare
	"$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' \
		> "$(echo "$clean"/lib/python3*/site-packages)/torch.pth"
	export clean
	unset GRADFLOW_LIBRARY PYTHONPATH
}

@test "wheel: its name fits any Python 3 of this machine" {
	ls "$BATS_FILE_TMPDIR"/wheel/gradflow-0.0.1-py3-none-*linux*_"$(uname -m)".whl
}

@test "wheel: nothing in it needs MPI or oneDNN" {
	files=("$clean"/lib/python3*/site-packages/gradflow/{libgradflow.so.0,bin/*})
	[ ${#files[@]} -eq 6 ]
	wants 0 ldd "${files[@]}"
	fails grep -E 'libmpi|libopen-|libdnnl|libibverbs|not found' out.txt
}

@test "wheel: auditwheel takes all but the C library along, whose version the name says" {
	log=$BATS_FILE_TMPDIR/wheel/auditwheel.log
	[ -e "$log" ] || skip "auditwheel is neither installed nor to be had"
	wheel=("$BATS_FILE_TMPDIR"/wheel/*.whl)
	[[ ${wheel[0]} =~ -manylinux_2_([0-9]+)_ ]]
	minor=$(getconf GNU_LIBC_VERSION) minor=${minor##*.}
	[ "${BASH_REMATCH[1]}" -ge 17 ]
	[ "${BASH_REMATCH[1]}" -le "$minor" ]
	own=("$clean"/lib/python3*/site-packages/gradflow/libgradflow.so.0)
	wants 0 ldd "${own[@]}" "$(dirname "${own[0]}")"/bin/*
	grep -q 'gradflow\.libs/libuc[pst]' out.txt
	# beside these, what the policy lets a wheel rely on
	fails grep -vE '^/.*:$|linux-vdso|gradflow\.libs/|/(ld-linux[^/ ]*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|expat|z))\.so' out.txt
}

@test "wheel: its commands run, and know the shipped models" {
	wants 0 "$clean/bin/gf-profile" --estimate --flops 1e12 --model resnet18
	cp out.txt profile.json
	wants 0 "$clean/bin/gf-plan" --policy wfbp "$share/topologies/4x2-1gbe.json" profile.json
	jq -e '.format == "gf-plan"' out.txt
	cp out.txt plan.json
	wants 0 "$clean/bin/gf-sim" plan.json
	wants 2 "$clean/bin/gf-plan" --nonsense
}

@test "wheel: its commands need no PyTorch; gf-topo, manual pages and docs are there" {
	wants 0 "$bare/bin/gf-topo"
	cp out.txt topology.json
	wants 0 "$bare/bin/gf-plan" --model resnet50 4x2-1gbe
	wants 1 "$bare/bin/python" -m gradflow
	prints "gradflow 0.0.1" "gf-topo      /" "PyTorch      missing"
	[ "$("$bare/bin/python" -c 'import gradflow; print(gradflow.__version__)')" = 0.0.1 ]
	[ -e "$bare/share/man/man1/gf-plan.1" ] && [ -e "$bare/share/man/man5/gf-plan.5" ]
	for file in $(grep -o '`share/doc/gradflow/[^`]*' "$bare"/lib/python3*/site-packages/gradflow-*/METADATA | tr -d '`'); do
		[ -e "$bare/$file" ]
	done
	for file in $(grep -oh '](tables/[^)]*' "$bare"/share/doc/gradflow/*.md | sort -u); do
		[ -e "$bare/share/doc/gradflow/${file#](}" ]
	done
	fails grep -E '\]\([^h]' "$bare"/lib/python3*/site-packages/gradflow-*/METADATA
	[ -e "$(echo "$bare"/lib/python3*/site-packages/gradflow/share/gradflow/examples/pytorch_job.py)" ]
	[ -e "$(echo "$bare"/lib/python3*/site-packages/gradflow/py.typed)" ]
}

@test "wheel: what its metadata say" {
	metadata=$(echo "$bare"/lib/python3*/site-packages/gradflow-*/METADATA)
	grep -qE '^License(-Expression)?: BSD-3-Clause$' "$metadata"
	grep -q '^Author: the gradflow authors$' "$metadata"
	for key in Keywords Classifier Requires-Python Summary; do grep -q "^$key: " "$metadata"; done
	fails grep -iE 'deprecat|importable|warning' "$BATS_FILE_TMPDIR/wheel.txt"
}

# The lines of the README that have that word in them.
typed() { sed -n "/^    .*$1/s/^    //p" "$GF_SOURCE/README.md"; }

@test "wheel: README's lines and its job, under torchrun" {
	sed -n '/^This is a whole job.py/,/^`gradflow/s/^    //p' "$GF_SOURCE/README.md" > job.py
	[ "$(wc -l < job.py)" -eq 5 ]
	# as typed, but that the wheel is there already and that pip asks nobody
	make() { [ "$*" = wheel ] && mkdir -p build && cp -r "$BATS_FILE_TMPDIR/wheel" build; }
	pip() { "$clean/bin/pip" "$@" -q --no-index --force-reinstall; }
	[ "$(typed 'make wheel')" = "$(typed 'pip install')" ]
	eval "$(typed 'make wheel')"
	echo 'print("modules:", sum("/ucx/lib" in line for line in open("/proc/self/maps")))' >> job.py
	# Debian's torchrun finds no name for its default, 0, in Python 3.11
	torchrun() {
		timeout 300 "$clean/bin/python" -m torch.distributed.run --redirects 1 --tee 1 --standalone "$@"
	}
	read -ra line < <(typed torchrun)
	[ "${line[*]}" = "torchrun --nproc_per_node 2 job.py" ]
	wants 0 "${line[@]}"
	grep -v 'rank [01] has ' out.txt || true
	[ "$(grep -c 'rank [01] has ' out.txt)" -eq 2 ]
	[ "$(sed -n 's/.* has //p' out.txt | sort -u | wc -l)" -eq 1 ]
	# one UCX: a wheel that has its own leaves the machine's alone
	[ ! -e "$(echo "$clean"/lib/python3*/site-packages/gradflow.libs)" ] ||
		[ "$(grep -c 'modules: 0' out.txt)" -eq 2 ]
}
