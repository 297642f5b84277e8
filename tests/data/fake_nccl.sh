#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# all_reduce_perf with known costs: what nccl-tests prints for 8 ranks on 2 hosts,
# under NCCL_ALGO, NCCL_PROTO and NCCL_MAX_NCHANNELS of its environment. From FALLS bytes on,
# a byte costs a sixth.
#	cost of B bytes = startup + B * per byte, in microseconds
declare -A startup=([tree.ll]=10 [tree.simple]=30 [ring.ll]=20 [ring.simple]=60 [default]=35)
declare -A per_mib=([tree.ll]=900 [tree.simple]=300 [ring.ll]=800 [ring.simple]=150 [default]=320)
algorithm=${NCCL_ALGO:-} protocol=${NCCL_PROTO:-} channels=${NCCL_MAX_NCHANNELS:-}
key=default
[ -z "$algorithm" ] || key=${algorithm,,}.${protocol,,}
cat << 'END'
# nThread 1 nGpus 1 minBytes 4096 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
END
for rank in {0..7}; do
	echo "#  Rank  $rank Group  0 Pid  $((100 + rank)) on  node0$((rank / 4)) device  $((rank % 4)) [0x07] NVIDIA H100 80GB HBM3"
done
echo 'node00:100:100 [0] NCCL INFO NCCL version 2.28.9+cuda13.0'
[ -z "$algorithm" ] || echo "node00:100:100 [0] NCCL INFO NCCL_ALGO set by environment to $algorithm"
[ -z "$protocol" ] || echo "node00:100:100 [0] NCCL INFO NCCL_PROTO set by environment to $protocol"
[ -z "$channels" ] || echo "node00:100:100 [0] NCCL INFO NCCL_MAX_NCHANNELS set by environment to $channels"
cat << 'END'
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
END
for ((size = 4096; size <= 67108864; size *= 2)); do
	awk -v s=$size -v a="${startup[$key]}" -v b="${per_mib[$key]}" -v c="${channels:-8}" -v falls="${FALLS:-1e99}" 'BEGIN {
		t = a + b * s / 1048576 * (c < 8 ? 8 / c : 1) / (s < falls ? 1 : 6); g = s / t / 1000
		printf "%12d %13d     float     sum      -1   %.4f  %.4f  %.4f      0   %.4f  %.4f  %.4f      0\n",
			s, s / 4, t, g, g * 1.75, t, g, g * 1.75 }'
done
echo '# Out of bounds values : 0 OK'
echo '# Avg bus bandwidth    : 1.0'
