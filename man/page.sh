#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a page of the manual: the text that people write, in man/NAME.N.in, and what the built
# command and the files of entries say of themselves, where a line begins with @.
#   page.sh SOURCE BUILD > PAGE
# Of the options of the command NAME, in the order of its table:
#   @synopsis [but NAME...]  all of them, but for these; a group "Details of a ..." is one
#   @form NAME [NAME...]     another form: the first of these, and the others in brackets
#   @head NAME...            the head of an item for these; its text follows
#   @option NAME             the head, and what --help says; more text may follow
#   @options [GROUP]         an @option for each (of the group) that has neither
#   @words NAME              the words that its argument may be
# Of entries, by a list that the Makefile makes or by the file of a table:
#   @entries LIST|FILE       an item for each, with the text of a comment in its own file
#                                /* MANUAL
#                                 * which stands before its .name, */
#                            of lines as these here; else its .description. An empty one: no item
#   @key NAME                in such a text: the head of a key's item, and what its record wants
# Exit status 1: an option is unknown, left out, or has two items.
set -eu -o pipefail
source=$1 build=$2 page=${1##*/}
name=${page%%.*}

# Prints what @entries NAME stands for.
entries() {
	local files=$1 order=''
	if [ -e "$build/lists/$1.c" ]; then
		order=$(sed -nE 's/^\t"(.*)",/\1/p' "$build/lists/$1.c" | tr '\n' ' ')
		files=$(grep -rlE "^const struct \w+ ($(sed -nE 's/^\t&(\w+),/\1/p' \
			"$build/lists/$1.c" | paste -sd '|')) = \{" lib --include='*.c')
	fi
	# shellcheck disable=SC2086 # several
	awk -v order="$order" -v list="$1" '
		/^\t*\/\* MANUAL/ { inside = 1; text = ""; some = 1 }
		inside {
			line = $0
			sub(/^[ \t]*(\/\* MANUAL| \*( |$))/, "", line)
			last = sub(/^\/$|[ ]?\*\/$/, "", line)
			if (line != "") text = text line "\n"
			inside = !last
			next
		}
		/\.name = "/ {
			name = $0; sub(/.*\.name = "/, "", name); sub(/".*/, "", name)
			if (some) manual[name] = text
			has[name] = some; some = 0
			all = all name " "
		}
		/\.description =/ { describing = name; description[name] = "" }
		describing {
			for (rest = $0; match(rest, /"([^"\\]|\\.)*"/); rest = substr(rest, RSTART + RLENGTH))
				description[name] = description[name] substr(rest, RSTART + 1, RLENGTH - 2)
			if (/",$/) describing = ""
		}
		END {
			n = split(order ? order : all, names, " ")
			for (i = 1; i <= n; i++) {
				name = names[i]
				if (!has[name]) manual[name] = description[name] "\n"
				if (manual[name] != "")
					printf "@item %s %s\n%s", list, name, manual[name]
			}
		}' $files
}

while IFS= read -r line; do
	case $line in
	'@entries '*) entries "${line#* }" ;;
	*) printf '%s\n' "$line" ;;
	esac
done < "$source" | awk -F '\t' -v page="$page" -v keys="$build/schema/keys" '
	function fail(text) {
		printf "page.sh: %s: %s\n", page, text > "/dev/stderr"
		failed = 1
		exit 1
	}
	function known(name) {
		if (!(name in number)) fail("no option --" name)
		return number[name]
	}
	# " Ar size"; words that are meant as they are: " Cm auto|cpu"
	function argument(i) {
		if (arg[i] == "") return ""
		return (arg[i] ~ /^[a-z|]+$/ ? " Cm " : " Ar ") (arg[i] ~ /[a-z]/ ? arg[i] : tolower(arg[i]))
	}
	function flag(i) { return "Fl " (letter[i] == "" ? "-" name[i] : letter[i]) argument(i) }
	function head(names, n, i, j, text) {
		n = split(names, list, " ")
		for (j = 1; j <= n; j++) {
			i = known(list[j])
			if (treated[i]++) fail("two items for --" list[j])
			if (letter[i] != "") text = text " , Fl " letter[i] argument(i)
			text = text (letter[i] != "" && arg[i] == "" ? " , " : " , Fl ") "-" list[j] argument(i)
		}
		print ".It" substr(text, 3)
	}
	# What --help says, as a sentence, or as one that says what is taken by default.
	function sentence(i, n, j, text, word, mark, at) {
		text = help[i]
		if (match(text, / \([^()]*\)$/)) {
			at = substr(text, RSTART + 2, RLENGTH - 3)
			text = substr(text, 1, RSTART - 1) ", " (at ~ /^(else|a path) / ? "" : "by default ") at
		}
		if (text !~ /^[a-z0-9-]+[,:]/) text = toupper(substr(text, 1, 1)) substr(text, 2)
		n = split(text ".", list, " ")
		text = ""
		for (j = 1; j <= n; j++) {
			mark = match(list[j], /[.,;:]+$/) ? " " substr(list[j], RSTART) : ""
			word = mark ? substr(list[j], 1, RSTART - 1) : list[j]
			if (word ~ /^[A-Z]+$/ && index(arg[i], word)) word = ".Ar " tolower(word)
			else if (word ~ /^--[a-z]/) word = ".Fl " substr(word, 2)
			else { text = text (text == "" ? "" : " ") list[j]; continue }
			if (text != "") print text
			print word mark
			text = ""
		}
		if (text != "") print text
	}
	function option(i) { head(name[i]); sentence(i) }
	# Where the sides of a rule share a name, or have one each, any two exclude each other.
	function exclusive(names, m, i, j, shared, seen) {
		m = split(names, list, " ")
		for (i = 1; i <= m; i++) if (seen[list[i]]++) shared = 1
		for (i = 1; i <= m && (shared || m == 2); i++)
			for (j = 1; j <= m; j++) without[list[i], list[j]]
	}
	function excludes(i, j) { return (name[i], name[j]) in without }
	function synopsis(but, i, j, k, line, plain) {
		print ".Nm"
		for (i = 1; i <= n; i++) {
			if (index(but, " " name[i] " ") || name[i] ~ /^(help|usage|version)$/) continue
			if (group[i] ~ /^Details of /) {
				if (group[i] != group[i - 1]) print ".Op Ar " tolower(group[i])
			} else if (letter[i] != "" && arg[i] == "")
				plain = plain letter[i]
			else {
				line = flag(i)
				for (j = i + 1; j <= n && !index(but, " " name[j] " "); j++) {
					for (k = i; k < j && excludes(k, j); k++) ;
					if (k < j) break
					line = line " | " substr(flag(j), 4 * (flag(j) !~ /^Fl/))
				}
				i = j - 1
				print ".Op " line
			}
		}
		if (plain != "") print ".Op Fl " plain
	}
	function form(names, m, j) {
		m = split(names, list, " ")
		printf ".Nm\n.%s\n", flag(known(list[1]))
		for (j = 2; j <= m; j++) print ".Op " flag(known(list[j]))
	}
	# "a , b , c"
	function words(i) { known(name[i]); return offered[i] }

	FNR == NR {
		if ($1 == "group") heading = $2
		else if ($1 == "option") {
			number[$2] = ++n
			name[n] = $2; letter[n] = $3; arg[n] = $4; help[n] = $7; group[n] = heading
			sub(/:$/, "", group[n])
		} else if ($1 == "word") offered[n] = offered[n] (offered[n] == "" ? "" : " , ") $2
		else if ($1 == "rule") exclusive($2 " " $3)
		next
	}
	/^@/ {
		split($0, part, " ")
		rest = substr($0, length(part[1]) + 2)
		if (part[1] == "@synopsis") synopsis(substr(rest, 4) " ")
		else if (part[1] == "@form") form(rest)
		else if (part[1] == "@head") head(rest)
		else if (part[1] == "@option") option(known(rest))
		else if (part[1] == "@options") {
			for (i = 1; i <= n; i++)
				if (!treated[i] && (rest == "" || rest == group[i])) option(i)
		}
		else if (part[1] == "@words") print ".Cm " offered[known(rest)]
		else if (part[1] == "@item") { entry = part[2] "\t" part[3]; print ".It Cm " part[3] }
		else if (part[1] == "@key") print ".It Cm " rest
		else fail("unknown: " $0)
		next
	}
	{ print }
	END {
		for (i = 1; i <= n && !failed; i++)
			if (page ~ /\.1/ && !treated[i]) fail("--" name[i] " has no item")
		exit failed
	}' <([ ! -x "$build/bin/$name" ] || "$build/bin/$name" --completion; echo) -
