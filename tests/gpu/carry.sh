#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Collects the programs of `make check-gpu` and `make bench-gpu`, and the libraries
# that they need, in one folder. The folder is for a machine that has a GPU and its
# driver and nothing else: no compiler, no Open MPI, jansson, hwloc or oneDNN.
#   tests/gpu/carry.sh [--pack] FOLDER [LIBRARY-FOLDER...]
# There: FOLDER/run.sh check, FOLDER/run.sh bench, FOLDER/first-hour.sh. --pack also
# makes one file of it beside the folder, FOLDER.tar.xz (.gz where there is no xz),
# which `tar xf` unpacks; CUDA_ARCH=90 has kernels for one processor. The C library there must be
# as new as here. NCCL, cuDNN and cuBLAS are large and come along only if a
# LIBRARY-FOLDER is named. Otherwise the commands look for them on their machine, in
# CUDA's folder and among PyTorch's packages.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
pack=
[ "${1:-}" != --pack ] || { pack=1; shift; }
folder=${1:?usage: tests/gpu/carry.sh [--pack] FOLDER [LIBRARY-FOLDER...]}
shift
[ -x "$build/bin/gf-train" ] || { echo "carry.sh: $build/bin/gf-train is not built" >&2; exit 3; }
[ ! -e "$folder" ] || [ -e "$folder/carried.txt" ] || {
	echo "carry.sh: $folder: want a new folder, or one of its own making" >&2; exit 2; }
rm -rf "$folder"
mkdir -p "$folder"/{build,lib,tests/gpu,tests/python,tests/data}
folder=$(cd "$folder" && pwd)

cp -R share "$folder/"
cp tests/gpu/*.{sh,py,awk} "$folder/tests/gpu/"
cp tests/launcher.sh "$folder/tests/"
cp tests/python/{torch_model,check_gpu}.py "$folder/tests/python/"
cp -R "$build/bin" "$folder/build/"
[ ! -e "$build/lib/libgradflow.so.0" ] || {
	mkdir "$folder/build/lib"
	cp -L "$build/lib/libgradflow.so.0" "$folder/build/lib/"
}
[ ! -d "$build/gpu" ] || cp -R "$build/gpu" "$folder/build/"
cp "$build/config.txt" "$folder/build/"
ln -s tests/gpu/run.sh tests/gpu/first-hour.sh "$folder/"
find "$folder/build" -type f -perm -u+x -exec strip -g {} +

# Open MPI: its launcher, and the parts of it that one machine uses. Those for
# fabrics, schedulers and files would bring their own libraries with them.
mpi=$folder/mpi
unused='(openib|ofi|ucx|psm2?|pml_cm|slurm|flux|jsm|gridengine|simulator|memheap|scoll|spml|sshmem|io_|fs_|fbtl|fcoll|sharedfp|monitoring|op_avx$|netlink)'
if command -v mpirun > /dev/null && command -v ompi_info > /dev/null; then
	place() { ompi_info --path "$1" --parsable 2> /dev/null | sed -n 's/^path:[^:]*://p'; }
	mkdir -p "$mpi/bin" "$mpi/etc" "$mpi/lib/openmpi"
	for program in mpirun orted prterun; do # Open MPI 4 has orted, 5 has prterun
		! file=$(command -v $program) || cp -L "$file" "$mpi/bin/$program"
	done
	messages=$(place pkgdatadir)
	[ ! -d "$messages" ] || cp -RL "$messages" "$mpi/share"
	for part in "$(place pkglibdir)"/mca_*.so; do
		[ ! -e "$part" ] || [[ $part =~ $unused ]] || cp -L "$part" "$mpi/lib/openmpi/"
	done
	messages=$(prte_info --path pkgdatadir 2> /dev/null | sed -n 's/.*: *//p') || messages=
	[ ! -d "$messages" ] || cp -RL "$messages" "$mpi/prte-share"
	# PMIx, which the launcher talks through, has parts of its own
	pmix=$(find "$mpi" \( -name '*pmix*.so' -o -name prterun \) -exec ldd {} + |
		awk '/libpmix/ {print $3; exit}')
	[ -z "$pmix" ] || {
		parts=$(dirname "$(readlink -f "$pmix")")
		mkdir -p "$mpi/lib/pmix"
		[ ! -d "$parts/pmix" ] || cp -L "$parts"/pmix/*.so "$mpi/lib/pmix/"
		[ ! -d "$parts/../share/pmix" ] || cp -RL "$parts/../share/pmix" "$mpi/pmix-share"
	}
fi

# The libraries of all of these, but for the C library and the driver.
find "$folder/build" "$mpi" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2> /dev/null |
	awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
	grep -vE '/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libcuda|libnvidia[^/]*)\.so' |
	while read -r library; do cp -L "$library" "$folder/lib/"; done
for from in "$@"; do
	found=$(find -L "$from" -maxdepth 1 -name 'lib*.so.[0-9]*' \
		\( -name 'libnccl*' -o -name 'libcudnn*' -o -name 'libcublas*' -o -name 'libnvrtc*' \) )
	[ -n "$found" ] || { echo "carry.sh: $from: no NCCL, cuDNN or cuBLAS there" >&2; exit 2; }
	while read -r library; do cp -L "$library" "$folder/lib/"; done <<< "$found"
done
{
	echo "gradflow, carried from $(git rev-parse --short HEAD 2> /dev/null || echo 'a source tree')"
	cat "$build/config.txt"
	echo "C library: $(getconf GNU_LIBC_VERSION 2> /dev/null || echo unknown), or later"
} > "$folder/carried.txt"
du -sh "$folder" | awk '{print "carried: " $1 " in " $2 "; there: run.sh check, run.sh bench, first-hour.sh"}'
[ -n "$pack" ] || exit 0

# Programs hold the same kernels: a window as large as all of them finds that.
rm -f "$folder".tar.*
if command -v xz > /dev/null; then
	archive=$folder.tar.xz
	tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | xz -6 --lzma2=dict=128MiB > "$archive"
else
	archive=$folder.tar.gz
	tar -C "$(dirname "$folder")" -czf "$archive" "$(basename "$folder")"
fi
du -m "$archive" | awk '{print "packed: " $1 " MiB in " $2}'
