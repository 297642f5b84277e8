# SPDX-License-Identifier: BSD-3-Clause
# The words that bash offers for gradflow's commands: those that the command itself prints
# by its hidden option --completion (lib/cli/command.c).
_gradflow() {
	local cur=${COMP_WORDS[COMP_CWORD]} i=$COMP_CWORD
	local whole=$cur prev kind name letter arg repeats kinds rest
	local names='' operands='' words='' keys='' paths='' list='' before='' here='' found=''
	# what stands before and after : or = are words of their own
	while ((i > 1)) && [[ ${COMP_WORDS[i]} == [:=] || ${COMP_WORDS[i - 1]} == [:=] ]]; do
		whole=${COMP_WORDS[--i]}$whole
	done
	prev=${COMP_WORDS[i - 1]}
	[[ $whole != --*=* ]] || prev=${whole%%=*} whole=${whole#*=}
	[[ $cur != [:=] ]] || cur=''
	while IFS=$'\037' read -r kind name letter arg repeats kinds rest; do
		case $kind in
		command) [[ -z $letter ]] || paths=-f ;;
		name) operands+=" $name" ;;
		option)
			names+=" --$name" here=''
			[[ $arg && ($prev == "--$name" || $prev == "-$letter") ]] || continue
			found=1 here=1 list='' paths='' words=''
			[[ $arg != LIST ]] || list=1
			case $kinds in
			folders) paths=-d ;;
			files) paths=-f ;;
			esac ;;
		word) [[ -z $here ]] || words+=" $name" ;;
		key) [[ -z $here || $name && $whole != "$name":* ]] || keys+=" $letter=" ;;
		esac
	done < <("${COMP_WORDS[0]}" --completion 2> /dev/null | tr '\t' '\037')
	[[ $found || $cur == -* ]] || words=$operands
	if [[ ! $found && $cur == -* || ! $found && ! $paths ]]; then words=$names paths=''; fi
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	if [[ $keys && $whole == *:* ]]; then
		before=${cur%"${whole##*[:,]}"} cur=${whole##*[:,]} words=$keys
		compopt -o nospace 2> /dev/null || :
	fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gradflow gf-allreduce gf-plan gf-profile gf-report gf-sim gf-topo gf-train
