# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced: how mpirun behaves in tests; with "plain" only what lets them run. Open MPI 4
# takes a setting by its OMPI_MCA_ variable, the launcher of Open MPI 5 (PRRTE) by its
# PRTE_MCA_ variable; each ignores the other's.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# more ranks than slots
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Without the kernel's routes, Open MPI 5 warns that TCP reaches no rank of this host.
export OMPI_MCA_reachable=${OMPI_MCA_reachable-weighted}
# On a crowded machine PMIx gives up waiting for mpirun as a rank ends well, and mpirun then
# calls that improper (docs/reliability.md).
export OMPI_MCA_orte_allowed_exit_without_sync=${OMPI_MCA_orte_allowed_exit_without_sync-1}
export PRTE_MCA_prte_allowed_exit_without_sync=$OMPI_MCA_orte_allowed_exit_without_sync
[ "${1:-}" != plain ] || return 0

# Open MPI takes ob1 where there is no fabric, too, but 0.2 s later
export OMPI_MCA_pml=${OMPI_MCA_pml-ob1}
# Ranks that wait leave the processors to the tests beside them.
export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle-1}
# mpirun and each rank ask hwloc as they start. It reads the registers of PCI devices, which takes
# a virtual machine longer than all the rest of a start, and it looks for displays. A test of a
# machine's own devices unsets this.
export HWLOC_COMPONENTS=${HWLOC_COMPONENTS--pci,-linuxio,-gl,-opencl}
# The other ranks of a job that has failed end at once, and not after a second.
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout-0}
export PRTE_MCA_odls_base_sigkill_timeout=$OMPI_MCA_odls_base_sigkill_timeout
