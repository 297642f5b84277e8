#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_tags=long
# Removes a selection, an algorithm, a policy and an importer in a copy of the tree, by their files
# alone: what is left builds, and the tests that walk registries pass. What is compiled is taken
# along. Pages and schemas that still describe an entry are not looked at.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
[ -e "$build/config.txt" ] || { echo "nothing is built in $build"; exit 77; }
entries=(dgc swing mg-wfbp mscclpp)
walkers=(test_algorithms test_cost test_select test_plan test_stream test_optimizer_bounds test_predict
	test_planner test_explain test_replay test_replay_plan test_exchange_calls test_exchange_values
	test_scale test_train_parts)
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$copy" 2> /dev/null
mkdir -p "$copy/build"
cp -a "$build/." "$copy/build"
cd "$copy" || exit 1

# The files of its name: NAME.c, select_NAME.h, test_ANY_NAME.c, entries/*/NAME.json, ...
for name in "${entries[@]}"; do
	mapfile -t files < <(find lib kernels cmd tests -type f -regextype posix-extended \
		-regex ".*/([a-z_-]*[_-])?${name//-/[_-]}\.(c|h|cu|json|txt|bats)" -not -path '*/fuzz/*' -not -path '*/data/*')
	[ "${#files[@]}" -gt 0 ] || { echo "$name has no files"; exit 1; }
	echo "rm ${files[*]}"
	rm "${files[@]}"
done
bad=0
make -s -j"$(nproc)" WERROR=1 all "${walkers[@]/#/build/tests/}" > build.log 2>&1 ||
	{ grep -E 'error|undefined|No rule' build.log | head -n 20; exit 1; }
export GF_SOURCE=$copy BUILD=build PATH=$copy/build/bin:$PATH
for name in "${entries[@]}"; do
	! { gf-plan --list && gf-profile --help; } 2> /dev/null | grep -qE "^ *$name( |$)" ||
		{ echo "$name is still listed"; bad=1; }
done
for test in "${walkers[@]/#/build/tests/}" tests/layers.sh tests/traits.sh tests/docs/agreement.sh; do
	timeout 600 "$test" > test.log 2>&1 || { echo "$test fails:"; tail -n 20 test.log; bad=1; }
done
[ $bad -ne 0 ] || echo "without ${entries[*]} all of it builds, and ${#walkers[@]} tests of all entries pass"
exit $bad
