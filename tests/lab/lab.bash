# SPDX-License-Identifier: BSD-3-Clause
# For tests on an emulated cluster: skipped aloud where there can be none.
load ../cli/common

# Tests of commands don't wait for the links' rates.
export GF_LAB_LINKS=true

lab() { "$GF_SOURCE/share/lab/gf-lab" "$@"; }

needs_lab() {
	local able=0
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	ip netns add gf-try 2> /dev/null || skip "network namespaces are not permitted here"
	ip -n gf-try link add try0 type veth peer name try1 &&
		ip netns exec gf-try tc qdisc add dev try0 root tbf rate 1gbit burst 32kb latency 100ms &&
		ip -n gf-try link add try2 type ifb && ip netns exec gf-try tc qdisc add dev try1 clsact || able=$?
	ip netns del gf-try
	[ $able -eq 0 ] || skip "no veth, ifb, tbf or clsact in this kernel"
}
