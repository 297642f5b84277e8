#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What an algorithm, a codec or a selection can do stands in its table entry.
# So nothing compares a name with one of a table, and nothing but a selection's
# own files asks which selection a plan has. Libraries leave the process alone: its environment and its signals are
# the command's. In tests an entry's facts stand in tests/entries and in the tests
# of its name (test_NAME.c, test_ANY_NAME.c, gf-plan-NAME.bats), and nowhere else is
# it named. The list below has the exceptions.
# Prints each offence, and each exception that nothing needs; exit 1 if there is
# one.
set -u
shopt -s globstar
cd "$(dirname "$0")/.." || exit 1
bad=0
offend() { echo "traits: $*"; bad=1; }

# files (an extended regular expression), kind of name, why they may
allowed='
lib/documents/selections/selection\.[ch]         selection        dense, where a plan names none
lib/compressors/[a-z0-9_]+\.c            selection        each its own
lib/planner/systems\.c                   selection        what each paper chose
lib/settings/emit_buckets\.c              selection        the hook that PyTorch has
lib/cli/[a-z]+\.c                        process          what commands share
lib/cuda/lanes/nccl_tell\.c                    process          NCCL is told algorithms there alone
lib/transport/mpi_told\.c                     process          and Open MPI that it will be told
lib/transport/ucx\.c                          process          gives back what UCX takes
tests/analyze\.txt                             tested           what is found is told by file
tests/(bench|gpu)/.*\.(sh|c|cu|py)             tested|example           named methods are measured
tests/(cli|mpi|python)/.*\.(bats|py)|tests/two-ranks\.sh  example  the selections with a half for GPUs, and what systems choose
'
declare -A used
may() { # file kind
	local files kind why found=1
	while read -r files kind why; do
		[[ -n $files && $1 =~ ^$files && $2 =~ ^($kind)$ ]] || continue
		used[$files$kind]=1
		found=0
	done <<< "$allowed"
	return $found
}

# what a row begins with, a name that must be among theirs, files: sets $names
find_names() {
	local row=$1 one=$2
	shift 2
	names=$(grep -hoE "$row\"[a-z][a-z0-9-]*\"" "$@" | grep -oE '[a-z][a-z0-9-]*"$' |
		tr -d '"' | sort -u | paste -sd '|')
	[[ "|$names|" == *"|$one|"* ]] || offend "the names in $* are not found"
}
compared() { # kind names
	local file text
	while IFS=: read -r file text; do
		may "$file" "$1" || offend "$file compares with a $1: $text"
	done < <(grep -Pzo \
		"str(n|case|ncase)?cmp\\(([^()]|\\([^()]*\\))*\"($2)\"" lib/**/*.[ch] cmd/*.c |
		tr -s '\n\t' ' ' | tr '\0' '\n')
}
find_names '^	\.name = ' ring lib/collectives/algorithms/*.c
compared algorithm "$names"
find_names '\.name = ' q8 lib/collectives/codecs/codec.c
compared codec "$names"
find_names '^	\.name = ' topk lib/compressors/*.c
selections=$names
compared selection "$selections"
while read -r file; do
	may "$file" selection || offend "$file takes the parameters of one selection"
done < <(grep -lE "gf_($selections)_params\(" lib/**/*.[ch] cmd/*.c | grep -vE '^lib/(doc/selections/select_|compressors/)')

while read -r file; do
	may "$file" selection || offend "$file names a selection's entry"
done < <(grep -lP 'gf_select_plan_(?!find\b)[a-z]' lib/**/*.[ch] cmd/*.c)

while IFS=: read -r file text; do
	may "$file" process || offend "$file is at the process: $text"
done < <(grep -E '\b((un)?setenv|getenv|signal|sigaction|atexit)\(|\bconstructor\b' lib/**/*.c kernels/**/*.c)

# The names of a kind, all but those that any test may take as an example, stand in their own tests.
own() { # names examples kind
	local name file
	for name in ${1//|/ }; do
		[[ "|$2|" != *"|$name|"* ]] || continue
		while read -r file; do
			[[ $file =~ ^tests/(entries/|fuzz/corpus/|data/(fence|import|foreign)/|traits\.sh|build/removal\.sh)|[_-]${name//-/[_-]}\.(c|bats)$ ]] ||
				may "$file" "$3" || offend "$file names $name"
		done < <(grep -rIlwE --exclude-dir=corpus --exclude-dir=fence -- "(select_)?$name" tests)
	done
}
# Sets that are gathered or merged, and chunks, are topologies, systems and algorithms, too.
own "$selections" 'dense|csc|topk|gtopk' tested
own csc '' example
# Algorithms that others are built of, or that have a trait alone; policies that systems are made of;
# formats whose samples stand in one test.
find_names '^	\.name = ' ring lib/collectives/algorithms/*.c
own "$names" 'ring|rhd|butterfly|tree|linear|hierarchical|blueconnect|direct|ps|library|gather|gtopk' tested
find_names '^	\.name = ' wfbp lib/planner/policies/*.c lib/planner/search/optimal.c
own "$names" 'sequential|single|wfbp|threshold|mg-wfbp|asc-wfbp|ddp|horovod|at-most|optimal|dear' tested
find_names '^	\.name = ' csv lib/imports/*.c
own "$names" 'csv|gf-allreduce|nccl-tests|osu|imb|all_reduce_bench|mscclpp|inspector|gf-train|kineto' tested

while read -r files kind why; do
	[ -z "$files" ] || [ -n "${used[$files$kind]+x}" ] ||
		offend "no file of $files needs its exception ($why)"
done <<< "$allowed"
exit $bad
