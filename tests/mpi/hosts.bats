#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on two hosts: network namespaces with names of their own and one file system.
# Needs root; skipped aloud without.
load ../cli/common

setup_file() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	export NET=gfhosts$$
	ip netns add ${NET}a 2> /dev/null || skip "network namespaces are not permitted here"
	ip netns add ${NET}b
	ip link add va netns ${NET}a type veth peer name vb netns ${NET}b || skip "no veth in this kernel"
	local x at=1
	for x in a b; do
		mkdir -p /etc/netns/$NET$x
		# as Debian has them: a name of loopback alone, which other hosts know otherwise
		printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 h%s\n10.99.7.1 ha.example\n' $x > /etc/netns/$NET$x/hosts
		[ $x = a ] || echo '10.99.7.1 ha' >> /etc/netns/$NET$x/hosts
		ip -n $NET$x addr add 10.99.7.$((at++))/24 dev v$x
		ip -n $NET$x link set v$x addrgenmode none up
		ip -n $NET$x link set lo up
	done
	for x in a b; do # the kernel takes its time
		until [ "$(ip netns exec $NET$x cat /sys/class/net/v$x/operstate)" = up ]; do sleep 0.1; done
	done
}

teardown_file() {
	[ -n "${NET:-}" ] || return 0
	ip netns del ${NET}a 2> /dev/null || true
	ip netns del ${NET}b 2> /dev/null || true
	rm -rf /etc/netns/${NET}a /etc/netns/${NET}b
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	needs_ucx
}

on() { # HOST COMMAND...
	local host=$1
	shift
	timeout -k 5 100 ip netns exec "$NET$host" unshare --uts bash -c "hostname h$host; exec \"\$@\"" - "$@"
}

# Both ranks end with that status: meet STATUS PLACE COMMAND...
meet() {
	local want=$1 place=$2 first status=0
	shift 2
	on a "$@" --ranks 2 --join "$place" --rank 0 > out.0 2> err.0 < /dev/null 3>&- &
	first=$!
	on b "$@" --ranks 2 --join "$place" --rank 1 > out.1 2> err.1 < /dev/null 3>&- || status=$?
	wait $first || [ $? -eq "$want" ] || { cat err.0; return 1; }
	[ $status -eq "$want" ] || { echo "rank 1: status $status"; cat err.?; return 1; }
}

allreduce="gf-allreduce -q -b 4K -e 4K -n 2 -a ring --timeout 40s"

@test "ranks on two hosts meet in a folder" {
	meet 0 "$PWD/job" $allreduce
	meet 0 "$PWD/job" gf-train -q --threads 1 --model digits-mlp --data synthetic:64 --batch 8 --steps 2 --timeout 40s
	meet 0 "$PWD/job" gf-profile -q --algorithms ring --points min_bytes=4K,time=5ms --max-bytes 128K --lanes 1 --budget 2s --timeout 40s
	[ -z "$(ls job)" ]
}

@test "ranks on two hosts meet at an address, and at a name" {
	for place in 10.99.7.1:7001 ha:7002 ha.example:7003; do
		meet 0 $place $allreduce
	done
}

@test "a port of localhost is not there for another host" {
	on a gf-allreduce --join localhost:7004 --rank 0 --ranks 2 --timeout 4s > out.0 2> err.0 < /dev/null 3>&- &
	first=$!
	status=0
	on b $allreduce --join 10.99.7.1:7004 --rank 1 --ranks 2 --timeout 1s > out.1 2> err.1 < /dev/null 3>&- || status=$?
	[ $status -eq 4 ]
	grep -q 'waited 1 s, and rank 0 has not come$' err.1 # nothing took a connection
	wait $first || [ $? -eq 4 ]
	grep -q 'waited 4 s, and rank 1 has not come$' err.0
}
