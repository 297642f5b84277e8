# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # its readers' variables
# What run.sh and first-hour.sh have in common: the folder, in the tree or carried
# (carry.sh), what its programs find there and on the machine, and scratch space.
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
cd "$here" || exit 3
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
gpu_tests=$BUILD/gpu
export PATH=$BUILD/bin:$PATH
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*"; }

# what other programs than ours are to find, such as python3
foreign_path=${LD_LIBRARY_PATH:-}
libraries=
if [ -e carried.txt ]; then
	libraries=$here/lib
	[ ! -d mpi ] || {
		# given a prefix, the launcher of Open MPI 5 forgets LD_LIBRARY_PATH
		[ -e mpi/bin/prterun ] || export OPAL_PREFIX=$here/mpi
		export OPAL_BINDIR=$here/mpi/bin
		export OPAL_LIBDIR=$here/lib OPAL_PKGLIBDIR=$here/mpi/lib/openmpi
		export OPAL_PKGDATADIR=$here/mpi/share OPAL_SYSCONFDIR=$here/mpi/etc
		export PMIX_PREFIX=$here/mpi PMIX_PKGLIBDIR=$here/mpi/lib/pmix
		export PMIX_PKGDATADIR=$here/mpi/pmix-share
		export OMPI_PRTERUN=$here/mpi/bin/prterun PRTE_PKGDATADIR=$here/mpi/prte-share
		export PATH=$here/mpi/bin:$PATH
	}
fi
# NCCL, cuDNN, cuBLAS and CUPTI: CUDA's own, or those that PyTorch brought along.
nvidia=
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib \
	$(python3 -c 'import site, glob
for s in site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(s + "/nvidia/*/lib"))' 2> /dev/null); do
	[ ! -d "$folder" ] || nvidia=$nvidia${nvidia:+:}$folder
done
LD_LIBRARY_PATH=$libraries:$nvidia:$foreign_path
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH%:}
. tests/launcher.sh plain
export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI looks for ssh before it starts anything, on this machine alone, too
command -v ssh > /dev/null || command -v rsh > /dev/null ||
	export OMPI_MCA_plm_rsh_agent=${OMPI_MCA_plm_rsh_agent:-true}
# the root of a container has no home that a launcher could write to
export TMPDIR=$scratch HOME=${HOME:-$scratch}

# python3 with libraries of its own, not with those that were carried
python=(env "LD_LIBRARY_PATH=$foreign_path" python3)

# (GF_GPU_DEVICES: the devices that tests of these scripts pretend)
has_gpu() { compgen -G "${GF_GPU_DEVICES:-/dev/nvidia[0-9]*}" > /dev/null; }
