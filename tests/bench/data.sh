#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Images per second of a folder of JPEG files, read, cropped at random to 224 x 224,
# flipped and normalised: by the loader's threads, beside as many workers of PyTorch's
# DataLoader with torchvision, in turns.
#   tests/bench/data.sh FOLDER [THREADS...]     (1)
# In the environment: GF_PYTHON, the interpreter that has torchvision (python3); ROUNDS
# (3) of both, of which the median counts; SECONDS_EACH (5). A set of another form is
# made by "data_peer.py --make".
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build} python=${GF_PYTHON:-python3}
[ $# -gt 0 ] || { echo "data.sh: want FOLDER [THREADS...]" >&2; exit 2; }
"$python" -c 'import torchvision' 2> /dev/null || { echo "skipped: $python has no torchvision"; exit 77; }
folder=$1
shift
[ $# -gt 0 ] || set -- 1

median() { # of the arguments
	printf '%s\n' "$@" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc --all) processors," \
	"torchvision $("$python" -c 'import torchvision; print(torchvision.__version__)')"
printf '%7s  %13s  %12s  %s\n' threads 'ours images/s' DataLoader 'ours beside DataLoader'
for threads in "$@"; do
	ours=() peer=()
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		ours+=("$("$build/bench/data_rate" "$folder" "$threads" "${SECONDS_EACH:-5}")") || exit 1
		peer+=("$("$python" tests/bench/data_peer.py "$folder" "$threads" "${SECONDS_EACH:-5}")") || exit 1
	done
	awk -v n="$threads" -v a="$(median "${ours[@]}")" -v b="$(median "${peer[@]}")" \
		'BEGIN {printf "%7d  %13.0f  %12.0f  %.2f\n", n, a, b, a / b}'
done
