# SPDX-License-Identifier: BSD-3-Clause
# Input that no user means to give, and some do.
load common

# One line of nothing that a terminal would obey, with the reason in it.
one_plain_line() { # reason
	[ "$(grep -cv '^Try ' err.txt)" -eq 1 ] || { echo "want one line:"; cat -v err.txt; return 1; }
	fails grep -qP '[\x00-\x08\x0b-\x1f\x7f]' err.txt
	says "$1"
}

@test "names with control characters, and very long ones" {
	local odd=$'o\x01d\nd\e[31m' shown='o\x01d\x0Ad\x1B[31m' long command
	long=$(printf 'x%.0s' {1..5000})
	cp "$share/profiles/six.json" .
	while IFS='|' read -r status command; do
		# shellcheck disable=SC2086
		wants "$status" ${command%@} "$odd"
		one_plain_line "$shown" || { echo "$command"; return 1; }
		# shellcheck disable=SC2086
		wants "$status" ${command%@} "$long"
		one_plain_line "xxx..." || { echo "$command"; return 1; }
	done <<- 'COMMANDS'
		2|gf-plan @
		2|gf-plan six.json --policy @
		2|gf-plan six.json --algorithm @
		2|gf-plan six.json --emit @
		2|gf-sim @
		2|gf-sim six.json --costs @
		2|gf-topo --import @
		2|gf-profile --model @
		3|gf-profile --import @
		2|gf-topo @
		2|gf-allreduce -a @
		3|gf-allreduce --plan @
		3|gf-train --plan @
		2|gf-train --model @
		3|gf-train --data @
	COMMANDS
}

@test "a folder that may not be read" {
	needs_permissions
	mkdir data && cp "$share"/data/digits/* data && chmod 000 data
	wants 3 plain gf-train --data data --model digits-mlp --steps 2
	one_line
	says 'data: Permission denied'
	chmod 700 data && chmod 000 data/*
	wants 3 plain gf-train --data data --model digits-mlp --steps 2
	one_line
	says ': Permission denied'
}

@test "an open file by its name: what a script wrote before and after is there, too" {
	local option
	gf-plan -q "$share/profiles/six.json" > plan.json
	ln -s /dev/stdout link
	for option in /dev/stdout /dev/fd/1 /proc/self/fd/1 link; do
		{ echo before && gf-sim -q plan.json -o "$option" && echo after; } > all.txt
		[ "$(sed 's/{.*/row/' all.txt | paste -sd' ')" = 'before row after' ] || { echo "$option"; cat all.txt; return 1; }
	done
	{ echo before && gf-plan -q "$share/profiles/six.json" --plot /dev/fd/3 -o plan2.json 3>&1 || [ $? -eq 2 ]; echo after; } > all.txt 2> /dev/null
	[ "$(paste -sd' ' all.txt)" = 'before after' ]
	{ echo before && gf-train -q --data digits --model digits-mlp --steps 2 --log /dev/stdout -o /dev/null && echo after; } > all.txt 2> err.txt
	[ "$(head -1 all.txt)" = before ] && [ "$(tail -1 all.txt)" = after ] && grep -q '"step"' all.txt
}

@test "many write one file at once: one of them whole, and nothing beside it" {
	local i
	gf-plan -q "$share/profiles/six.json" > plan.json
	for ((i = 1; i <= 8; i++)); do
		gf-sim plan.json --ranks "$((1 << i))" -o same.json 2> /dev/null &
	done
	wait
	jq -e '.ranks' same.json
	[ "$(ls)" = "$(printf 'plan.json\nsame.json')" ]
}
