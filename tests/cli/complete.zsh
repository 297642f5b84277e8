# SPDX-License-Identifier: BSD-3-Clause
# zsh complete.zsh FOLDER LINE: the words that zsh offers after LINE, one per
# line, by the completion functions of FOLDER. Needs a terminal of its own.
zmodload zsh/zpty || exit 77
setup=$(mktemp) || exit 1
trap 'rm -f "$setup"' EXIT
cat > "$setup" << 'EOF'
PS1=
autoload -U compinit; compinit -u -D
bindkey '^M' undefined; bindkey '^J' undefined; bindkey '^I' complete-word
before() { print BEGIN }
after() { print END; exit }
compprefuncs=(before) comppostfuncs=(after)
# prints what would be offered; calls that only fill an array pass through
compadd() {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
		builtin compadd "$@"
		return
	fi
	local -a hits
	builtin compadd -A hits "$@"
	(($#hits)) && print -l -- $hits
	builtin compadd "$@"
}
print READY
EOF
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "fpath=(${(q)1} \$fpath); source ${(q)setup}"
zpty -r shell line '*READY*'
zpty -w shell "$2"$'\t'
zpty -r shell line '*END*'
line=${line//$'\r'/}
line=${line#*BEGIN$'\n'}
print -rn -- "${line%END*}"
