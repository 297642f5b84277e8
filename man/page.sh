#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a page of the manual: the text that people write, in man/NAME.N.in or man/NAME.N, and what
# the built command and the files of entries say of themselves, where a line begins with @.
#   page.sh SOURCE BUILD > PAGE
#   @include NAME            the lines of common/NAME beside the source, which several pages have
# Of the options of the command NAME, in the order of its table:
#   @synopsis [but NAME...]  all, but for these
#   @form NAME...            another form: the first of these, and the others in brackets
#   @head NAME...            the head of an item for these; its text follows
#   @option NAME             the head, and what --help says; more text may follow
#   @options [GROUP]         an @option for each (of the group) that has no item before
# Of entries:
#   @entries LIST            an item for each of a list that the Makefile makes, or of the table in
#                            a file: the text of the comment in its own file before its .name,
#                                /* MANUAL
#                                 * lines as these here */
#                            else its .description. An empty comment: no item.
#   @key NAME                the head of an item for a key of the entry (out of such a text: of the
#                            first entry that has it), and what its record wants
# Exit status 1: an option has no item, or two, a key of an entry has none, or there is none.
set -eu -o pipefail
source=$1 build=$2 page=${1##*/}
name=${page%%.*}

# What an @entries stands for: "@item LIST NAME" and lines, for each entry.
entries() { # LIST
	local files=$1 order=''
	if [ -e "$build/lists/$1.c" ]; then
		order=$(sed -nE 's/^\t"(.*)",/\1/p' "$build/lists/$1.c" | tr '\n' ' ')
		files=$(grep -rlE "^const struct \w+ ($(sed -nE 's/^\t&(\w+),/\1/p' \
			"$build/lists/$1.c" | paste -sd '|')) = \{" lib --include='*.c')
	fi
	# shellcheck disable=SC2086 # several
	awk -v order="$order" -v list="$1" '
		/^\t*\/\* MANUAL/ { inside = told = 1; text = "" }
		inside {
			inside = !/\*\/$/
			sub(/^[ \t]*(\/\* MANUAL| \*)[ ]?/, "")
			sub(/[ ]?\*\/$/, "")
			text = text ($0 == "" ? "" : $0 "\n")
			next
		}
		/\.name = "/ {
			sub(/.*\.name = "/, ""); sub(/".*/, "")
			name = $0
			if (told) manual[name] = text
			told = 0
			all = all name " "
		}
		/\.description =/ { describing = 1; about[name] = "" }
		describing {
			describing = !/",$/
			for (; match($0, /"[^"]*"/); $0 = substr($0, RSTART + RLENGTH))
				about[name] = about[name] substr($0, RSTART + 1, RLENGTH - 2)
		}
		END {
			n = split(order ? order : all, names, " ")
			for (i = 1; i <= n; i++) {
				text = names[i] in manual ? manual[names[i]] : about[names[i]] "\n"
				if (text != "") printf "@item %s %s\n%s", list, names[i], text
			}
			print "@item", list
		}' $files
}

text() { # FILE
	local line
	while IFS= read -r line; do
		case $line in
		'@include '*) text "${source%/*}/common/${line#* }" ;;
		'@entries '*) entries "${line#* }" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done < "$1"
}

text "$source" | awk -F '\t' -v page="$page" '
	function fail(text) {
		printf "page.sh: %s: %s\n", page, text > "/dev/stderr"
		failed = 1
		exit 1
	}
	function known(name) {
		if (!(name in number)) fail("no option --" name)
		return number[name]
	}
	# " Ar size", or words that are meant as they are: " Cm auto|cpu"
	function argument(i) {
		if (arg[i] == "") return ""
		if (arg[i] ~ /^(FORM|SHARES|RANKS)$/) return " Ns Op = Ns Ar " tolower(arg[i]) # may be left out
		return (arg[i] ~ /^[a-z|]+$/ ? " Cm " : " Ar ") (arg[i] ~ /[a-z]/ ? arg[i] : tolower(arg[i]))
	}
	function flag(i) { return "Fl " (letter[i] == "" ? "-" name[i] : letter[i]) argument(i) }
	function head(names, m, i, j, text) {
		m = split(names, list, " ")
		for (j = 1; j <= m; j++) {
			i = known(list[j])
			if (treated[i]++) fail("two items for --" list[j])
			if (letter[i] != "") text = text " , " flag(i)
			text = text " , Fl -" list[j] argument(i)
		}
		print ".It" substr(text, 3)
	}
	# What --help says as a sentence: "draw N iterations (1000)", "Draw n iterations, by default 1000."
	function option(i, m, j, text, word, rest) {
		head(name[i])
		text = help[i]
		if (match(text, / \([^()]*\)$/)) {
			rest = substr(text, RSTART + 2, RLENGTH - 3)
			text = substr(text, 1, RSTART - 1) (rest ~ /^(else|a path) / ? ", " : ", by default ") rest
		}
		if (text !~ /^[a-z0-9-]+[,:]/) text = toupper(substr(text, 1, 1)) substr(text, 2)
		m = split(text ".", list, " ")
		text = ""
		for (j = 1; j <= m; j++) {
			word = rest = list[j]
			sub(/[.,;:]+$/, "", word)
			rest = substr(rest, length(word) + 1)
			if (word ~ /^[A-Z]+$/ && index(arg[i], word)) word = "\n.Ar " tolower(word) " " rest "\n"
			else if (word ~ /^--[a-z]/) word = "\n.Fl " substr(word, 2) " " rest "\n"
			else word = " " list[j]
			text = text word
		}
		gsub(/ *\n+ */, "\n", text)
		gsub(/^[ \n]+|\n$/, "", text)
		print text
	}
	# Where the sides of a rule share a name, or have one each, any two exclude each other.
	function exclusive(names, m, i, j, shared, seen) {
		m = split(names, list, " ")
		for (i = 1; i <= m; i++) if (seen[list[i]]++) shared = 1
		for (i = 1; i <= m && (shared || m == 2); i++)
			for (j = 1; j <= m; j++) without[list[i], list[j]]
	}
	function synopsis(but, i, line, plain) {
		print ".Nm"
		for (i = 1; i <= n + 1; i++) {
			if (i <= n && (index(but, " " name[i] " ") || name[i] ~ /^(help|usage|version)$/)) continue
			if (line != "" && (name[last], name[i]) in without) line = line " | " flag(i)
			else {
				if (line != "") print ".Op " line
				line = ""
				if (letter[i] != "" && arg[i] == "") plain = plain letter[i]
				else if (i <= n) line = flag(i)
			}
			last = i
		}
		if (plain != "") print ".Op Fl " plain
	}
	function form(names, m, j) {
		m = split(names, list, " ")
		for (j = 1; j <= m; j++) print (j > 1 ? ".Op " : ".Nm\n.") flag(known(list[j]))
	}
	function key(name, at) {
		at = entry == "" ? name : entry "\t" name
		if (!(at in wants)) fail("no key " name " of " (entry == "" ? "an entry" : entry))
		if (entry != "" && !keys++) print ".Bl -tag -width Ds -compact"
		print ".It Cm " name "\n" wants[at] ":"
		told[name]
	}
	# An entry begins, or the last one has ended.
	function item(list, name) {
		if (keys) print ".El"
		keys = 0
		entry = name == "" ? "" : list "\t" name
		listed[list]
		if (name != "") print ".It Cm " name
	}

	FILENAME ~ /keys$/ {
		wanted[++nwanted] = $1 "\t" $3
		wants[$1 "\t" $2 "\t" $3] = $4
		if (!($3 in wants)) wants[$3] = $4
		next
	}
	FILENAME != "-" {
		if ($1 == "group") heading = substr($2, 1, length($2) - 1)
		else if ($1 == "rule") exclusive($2 " " $3)
		else if ($1 == "option") {
			number[$2] = ++n
			name[n] = $2; letter[n] = $3; arg[n] = $4; help[n] = $7; group[n] = heading
		}
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
		} else if (part[1] == "@item") item(part[2], part[3])
		else if (part[1] == "@key") key(rest)
		else fail("unknown: " $0)
		next
	}
	/^\.It Cm / { for (i = split($0, part, " "); i > 2; i--) told[part[i]] }
	{ print }
	END {
		for (i = 1; i <= n && !failed; i++)
			if (page ~ /\.1/ && !treated[i]) fail("--" name[i] " has no item")
		for (i = 1; i <= nwanted; i++) {
			split(wanted[i], part, "\t")
			if (!failed && part[1] in listed && !(part[2] in told)) fail("key " part[2] " has no item")
		}
		exit failed
	}' "$build/schema/keys" <([ ! -x "$build/bin/$name" ] || "$build/bin/$name" --completion) -
