#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans under DistributedDataParallel: share/python/gradflow/state.py.
load torch

@test "PyTorch, hook: DistributedDataParallel's result; buckets cut and joined; formats and types" {
	holds ddp 2 same worse whole_job empty cuts device chooses by_host formats
}
@test "PyTorch, hook: f64, complex, sparse; skipped buckets; a forward of one rank; its checkpoints; defaults" {
	holds ddp 2 types double sparse skipped functional compiled alone checkpointed defaults
}
# bats test_tags=long
@test "PyTorch, hook: in a program whose numbers have a comma, and whose i is Turkish" {
	makes_locale
	# a program asks for the locale of its environment
	echo 'import locale; locale.setlocale(locale.LC_ALL, "")' > sitecustomize.py
	PYTHONPATH=$PWD LC_ALL=$locale holds ddp 2 formats file
}
@test "PyTorch, hook: a model that is gone leaves nothing open; what each entry holds" {
	holds ddp 2 dropped lets_go left
}
@test "PyTorch: all that DistributedDataParallel lets a job set" { holds settable 2 distributed; }
@test "PyTorch: all that fully_shard lets a job set" { able settable 4 fully_sharded wholly_sharded; }
# bats test_tags=long
@test "PyTorch, hook: the same on three ranks, and uneven inputs" { holds ddp 3 same uneven types; }
@test "PyTorch, hook: several models, and groups of 2 + 2 ranks" { holds ddp 4 several groups meshes; }
@test "PyTorch, hook: every codec and selection learns and sends less" { holds ddp 2 plans; }
@test "PyTorch, hook: stale gradients, plans in files, a job that goes on bit for bit, refusals" {
	holds ddp 2 stale judged rescaled file resumed refusals arguments causes frozen again copied
}
@test "PyTorch, fully_shard: replicas' means are its own all-reduce's, or smaller; its state; refusals" {
	able hsdp 4 same accumulated named lengths selections resumed refusals
}
@test "PyTorch, fully_shard: factors, what is put off and forgotten, checkpoints by its own means" {
	able hsdp 4 factors lets_go checkpointed
}
@test "PyTorch, hook: the same on GPUs, by NCCL and by the host" {
	status=0
	checks gpu nccl 1 dense codecs between stale job > out.txt 2>&1 || status=$?
	[ "$status" -ne 77 ] || skip "$(tail -n 1 out.txt)"
	[ "$status" -eq 0 ] || { cat out.txt; return 1; }
	holds gpu gloo 2 dense codecs selections stale job tuned
}
