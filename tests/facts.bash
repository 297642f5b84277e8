# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced.

# facts FILTER: what jq prints of each selection's facts, where $name is its name
# (tests/entries/selection). GF_TEST_ONLY leaves one.
facts() {
	local entries=("${BASH_SOURCE[0]%/*}"/entries/selection/${GF_TEST_ONLY:-*}.json)
	[ ! -e "${entries[0]}" ] || jq -r "(input_filename | capture(\".*/(?<name>.*)[.]json$\").name) as \$name | $1" "${entries[@]}"
}
