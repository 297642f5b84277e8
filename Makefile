# SPDX-License-Identifier: BSD-3-Clause
#
# make            build everything into build/
# make help       the targets
#
# Every .c under lib/X or lib/X/Y becomes part of build/lib/libgf-X.a, every cmd/gf-X.c a
# command, every tests/unit/test_X.c a test: no list to edit when adding one.
# Variables: V=1 (show commands), CC, CFLAGS, BUILD, SAN=address,undefined,
# WERROR=1, HARDEN=0, MPICC (the MPI to use), WITH_ONEDNN=0, WITH_VERBS=0, WITH_UCX=0,
# WITH_JPEG=0, CUDA=0, CUDA_ARCH="75 80 90", CUDA_HOME, DEPS=0 (install nothing), PREFIX, LIBDIR,
# DESTDIR, INSTALL_PROGRAM="install -s" (without symbols).

VERSION  := 0.4.0
BUILD    ?= build
CC       := $(if $(filter default,$(origin CC)),gcc,$(CC))
CFLAGS   ?= -O2 -g
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
INSTALL_PROGRAM ?= install
SHELL    := /bin/bash
MAKEFLAGS += --no-builtin-rules

# --- what is there -----------------------------------------------------------
PKG_CONFIG ?= pkg-config
have = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo 1)

WITH_ONEDNN ?= $(if $(wildcard /usr/include/dnnl.h /usr/include/*/dnnl.h),1,0)
WITH_VERBS  ?= $(if $(call have,libibverbs),1,0)
WITH_UCX    ?= $(if $(call have,ucx),1,0)
# libjpeg-turbo, which counts from 1 to 3; the other libjpeg has no parts of pictures.
WITH_JPEG   ?= $(if $(call have,'libjpeg < 9'),1,0)

# CUDA where there is a compiler for it; the programs run without a GPU, too.
NVCC      ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA_HOME ?= $(patsubst %/include/cuda_runtime_api.h,%,$(firstword $(wildcard \
	$(addsuffix /include/cuda_runtime_api.h,/usr/local/cuda \
	$(patsubst %/bin/,%,$(dir $(realpath $(NVCC)))) /usr))))
CUDA      ?= $(if $(and $(NVCC),$(CUDA_HOME)),1,0)
# Machine code for these, and PTX of the last one for what comes after it.
CUDA_ARCH ?= 75 80 90
NCCL_H    := $(firstword $(wildcard $(CUDA_HOME)/include/nccl.h \
	/usr/local/include/nccl.h /usr/include/nccl.h))
# Layers on a GPU: the headers of cuDNN and cuBLAS; the libraries are loaded.
WITH_CUDNN ?= $(if $(and $(filter 1,$(CUDA)),$(firstword $(wildcard \
	$(CUDA_HOME)/include/cudnn.h /usr/local/include/cudnn.h \
	/usr/include/cudnn.h)),$(wildcard $(CUDA_HOME)/include/cublas_v2.h)),1,0)
WITH_NCCL ?= $(if $(and $(filter 1,$(CUDA)),$(NCCL_H)),1,0)
# Runs the kernels of CUDA in tests, compiled for this processor.
EMULATOR_CXX ?= $(shell command -v g++)
# Asked once, not for every object.
NVCC := $(NVCC)
CUDA_HOME := $(CUDA_HOME)
CUDA := $(CUDA)
WITH_NCCL := $(WITH_NCCL)
WITH_CUDNN := $(WITH_CUDNN)
WITH_VERBS := $(WITH_VERBS)
WITH_UCX := $(WITH_UCX)
WITH_JPEG := $(WITH_JPEG)
EMULATOR_CXX := $(EMULATOR_CXX)
$(if $(filter 1,$(CUDA)),$(if $(and $(shell command -v $(NVCC)),$(CUDA_HOME)),,\
	$(error gradflow: CUDA=1 wants nvcc (NVCC=$(NVCC)) and the headers \
	(CUDA_HOME=$(CUDA_HOME)))))

# The MPI whose compiler is on PATH, as its mpirun is; or the one that pkg-config knows.
MPICC    ?= $(shell command -v mpicc)
MPI_FLAGS := $(shell $(if $(MPICC),$(MPICC) -show,$(PKG_CONFIG) --cflags --libs ompi-c) 2>/dev/null)
MPI_LIBS := $(filter -L% -l% -Wl%,$(MPI_FLAGS))
# An MPI may bring along a UCX or an hwloc of its own. One process works with one of each,
# so that programs look for theirs where that MPI has its own.
MPI_FILE := $(firstword $(wildcard $(addsuffix /libmpi.so.[0-9]*,$(patsubst -L%,%,$(filter -L%,$(MPI_LIBS))))))
MPI_BRINGS := $(if $(MPI_FILE),$(filter-out $(realpath $(dir $(realpath $(shell \
	$(CC) -print-file-name=libhwloc.so)))),$(realpath $(sort $(shell ldd $(MPI_FILE) 2>/dev/null | \
	sed -nE 's,.* => (/.*)/lib(ucp|hwloc)\.so.*,\1,p')))))

MISSING := $(strip $(foreach p,jansson hwloc zlib expat yaml-0.1,$(if $(call have,$(p)),,$(p))) \
	$(if $(MPI_LIBS),,mpicc))

# --- flags -------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wundef -Wpointer-arith -Wno-missing-field-initializers
ALL_CPPFLAGS = -Ilib -I$(BUILD) -Ikernels -Iinclude -D_GNU_SOURCE -DGF_VERSION='"$(VERSION)"' \
	-DGF_HAVE_ONEDNN=$(WITH_ONEDNN) -DGF_HAVE_VERBS=$(WITH_VERBS) \
	-DGF_HAVE_UCX=$(WITH_UCX) -DGF_HAVE_JPEG=$(WITH_JPEG) -DGF_HAVE_MPI=1 \
	-DGF_HAVE_CUDA=$(CUDA) -DGF_HAVE_NCCL=$(WITH_NCCL) \
	-DGF_HAVE_CUDNN=$(WITH_CUDNN) -DGF_PLAN_HALF=0 $(CPPFLAGS)
# Flags by which an error in memory ends the program instead of changing it.
# HARDEN=0 leaves them out, for packagers that bring their own; a sanitizer finds
# more. FORTIFY wants an optimising compiler.
HARDEN ?= $(if $(SAN),0,1)
FORTIFY := $(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,$(if \
	$(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN_CFLAGS := $(if $(filter 1,$(HARDEN)),$(FORTIFY) -fstack-protector-strong \
	$(shell echo 'int x;' | $(CC) -Werror -fstack-clash-protection -x c -c \
	-o /dev/null - 2>/dev/null && echo -fstack-clash-protection))
RELRO := -Wl,-z,relro -Wl,-z,now
HARDEN_LDFLAGS := $(if $(filter 1,$(HARDEN)),$(RELRO))
HARDEN_PIE := $(if $(filter 1,$(HARDEN)),-pie)
# No contraction of a*b+c: every machine and kernel set gives the same bits.
# Everything may go into the shared library, which shows what it marks: so calls
# between files cost no more than in a program.
ALL_CFLAGS = -std=gnu11 $(WARNINGS) -pthread -fPIC -fvisibility=hidden \
	-ffunction-sections -ffile-prefix-map=$(CURDIR)=. \
	-fdata-sections -ffp-contract=off $(HARDEN_CFLAGS) $(if $(filter-out 0,$(WERROR)),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
	$(CFLAGS)
ALL_LDFLAGS = -pthread $(HARDEN_LDFLAGS) -Wl,--gc-sections -Wl,--as-needed \
	$(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

# Third-party flags reach only the folder that wraps them.
MPI_CFLAGS := $(filter -I% -D%,$(MPI_FLAGS))
UCX_CFLAGS := $(if $(filter 1,$(WITH_UCX)),$(shell $(PKG_CONFIG) --cflags ucx))
JPEG_CFLAGS := $(if $(filter 1,$(WITH_JPEG)),$(shell $(PKG_CONFIG) --cflags libjpeg))
JPEG_LIBS   := $(if $(filter 1,$(WITH_JPEG)),$(shell $(PKG_CONFIG) --libs libjpeg))
UCX_LIBS   := $(if $(filter 1,$(WITH_UCX)),$(shell $(PKG_CONFIG) --libs ucx))
CUDA_CFLAGS := $(if $(filter 1,$(CUDA)),-isystem $(CUDA_HOME)/include)
CUDA_LIBS   := $(if $(filter 1,$(CUDA)),-L$(firstword $(wildcard \
	$(CUDA_HOME)/lib64 $(CUDA_HOME)/lib)) -lcudart_static -lrt)
# No -fmad: the bits of kernels/ref.
NVCC_FLAGS = -std=c++17 -O3 -fmad=false -Ikernels -Ilib -I$(BUILD) \
	$(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH)) \
	-Xcompiler=-fPIC,-Wall,-Wextra,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-ffunction-sections \
	$(if $(filter-out 0,$(WERROR)),-Werror=all-warnings -Xcompiler=-Werror)
# Warnings about headers of others are theirs (UCX 1.22 has one).
FOREIGN_CFLAGS_transport := $(patsubst -I%,-isystem %,$(MPI_CFLAGS) $(UCX_CFLAGS))
FOREIGN_CFLAGS_lanes := $(CUDA_CFLAGS) \
	$(if $(NCCL_H),-isystem $(dir $(NCCL_H)))
FOREIGN_CFLAGS_cuda := $(FOREIGN_CFLAGS_lanes)
FOREIGN_CFLAGS_nn := $(CUDA_CFLAGS)
FOREIGN_CFLAGS_data := $(patsubst -I%,-isystem %,$(JPEG_CFLAGS))
# Vectors of square roots: the same bits, but no errno of a negative one.
FOREIGN_CFLAGS_ref := -fno-math-errno
FOREIGN_CFLAGS_x86 := -fno-math-errno
FOREIGN_LIBS := $(MPI_BRINGS:%=-Wl,-rpath,%) -ljansson -lhwloc $(MPI_LIBS) $(UCX_LIBS) $(JPEG_LIBS) -lz -lexpat -lyaml \
	$(if $(filter 1,$(WITH_ONEDNN)),-ldnnl) \
	$(if $(filter 1,$(WITH_VERBS)),-libverbs) $(CUDA_LIBS) -ldl -lm

# --- sources -----------------------------------------------------------------
LIBS    := $(notdir $(patsubst %/,%,$(wildcard lib/*/)))
EXCLUDE := $(if $(filter 1,$(WITH_ONEDNN)),,$(wildcard lib/nn/*onednn*.c)) \
	$(if $(filter 1,$(WITH_VERBS)),,lib/discovery/verbs.c) \
	$(if $(filter 1,$(WITH_UCX)),,$(wildcard lib/transport/ucx*.c)) \
	$(if $(filter 1,$(WITH_JPEG)),,lib/data/jpeg.c) \
	$(if $(filter 1,$(CUDA)),,$(wildcard lib/cuda/cuda*.c) kernels/cuda/table.c \
	kernels/cuda/nn_table.c) \
	$(if $(filter 1,$(WITH_NCCL)),,lib/cuda/lanes/nccl.c) \
	$(if $(filter 1,$(WITH_CUDNN)),,$(wildcard lib/nn/gpu_*.c)) \
	$(if $(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),,$(wildcard kernels/x86/*.c))
SOURCES := $(filter-out $(EXCLUDE),$(wildcard lib/*/*.c lib/*/*/*.c kernels/*.c \
	kernels/ref/*.c kernels/x86/*.c kernels/cuda/*.c))
CUDA_SOURCES := $(if $(filter 1,$(CUDA)),$(wildcard kernels/cuda/*.cu))
COMMANDS := $(patsubst cmd/%.c,%,$(wildcard cmd/gf-*.c))
UNIT    := $(filter-out $(if $(filter 1,$(WITH_JPEG)),,test_jpeg%),$(patsubst \
	tests/unit/%.c,%,$(wildcard tests/unit/test_*.c)))
FUZZ    := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
GPU     := $(filter-out $(if $(filter 1,$(WITH_CUDNN)),,test_gpu_nn%),\
	$(patsubst tests/gpu/%.c,%,$(filter-out tests/gpu/test_host%,\
	$(wildcard tests/gpu/test_*.c))))
# The same tests on an emulated GPU are unit tests. Its coroutines are no
# threads that a sanitizer knows.
EMULATED := $(if $(SAN),,$(if $(EMULATOR_CXX),$(filter-out test_nccl,$(GPU)) \
	$(if $(filter 1,$(WITH_CUDNN)),test_host_nn)))
TOOLS   := gf-figures gf-schema
PAGES   := $(patsubst man/%,$(BUILD)/man/%,$(patsubst %.in,%,$(wildcard man/*.[1357] man/*.in)))
BENCH   := $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/*.c)) allreduce_peers

# --- lists of entries --------------------------------------------------------
# An entry is a constant in a file of its own kind; nothing else names it. LIST_X := the entries'
# struct, what their names begin with, the library that has list X, the files. A program that does
# without some of the files (lean, below) gets a list of its own.
LIST_gf_document_formats := gf_document_format gf_document_ documents lib/%.c
LIST_gf_algorithms := gf_algorithm gf_algorithm_ collectives lib/collectives/algorithms/%.c
LIST_gf_sparse_algorithms := gf_algorithm gf_sparse_ collectives lib/collectives/algorithms/%.c
LIST_gf_select_plans := gf_select_plan gf_select_plan_ documents lib/documents/selections/%.c lib/compressors/%.c
LIST_gf_selections := gf_selection_entry gf_selection_ compressors lib/compressors/%.c
LIST_gf_period_plans := gf_period_plan gf_period_plan_ documents lib/documents/periods/%.c
LIST_gf_shard_plans := gf_shard_plan gf_shard_plan_ documents lib/documents/%.c
LIST_gf_policies := gf_policy gf_policy_ planner lib/planner/%.c
LIST_gf_emitters := gf_emitter gf_emitter_ settings lib/settings/%.c
LIST_gf_transports := gf_transport gf_transport_ transport lib/transport/%.c
LIST_gf_optimizers := gf_optimizer_ops gf_optimizer_ trainer lib/trainer/optim/%.c
LIST_gf_data_formats := gf_data_format gf_data_ data lib/data/%.c
LIST_gf_importers := gf_importer gf_importer_ imports lib/imports/%.c
LIST_gf_topology_formats := gf_topology_format gf_format_ discovery lib/discovery/%.c
LISTS := $(patsubst LIST_%,%,$(filter LIST_%,$(.VARIABLES)))
lists_of = $(foreach l,$(LISTS),$(if $(filter $(1),$(word 3,$(LIST_$(l)))),$(BUILD)/lists/$(l).o))
make_list = lib/list.sh $(1) $* $(wordlist 1,2,$(LIST_$*)) $(filter $(wordlist 4,9,$(LIST_$*)),$(2))

# The library for others, named by its binary interface; a sanitizer cannot be
# brought along.
SO := $(if $(SAN),,$(BUILD)/lib/libgradflow.so.0)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(1)))
archive = $(BUILD)/lib/libgf-$(1).a
ARCHIVES := $(foreach l,$(LIBS) kernels,$(call archive,$(l)))

# The planner's commands link with these alone: the linker proves that they
# need neither MPI nor hwloc nor oneDNN nor CUDA.
PLANNING := settings planner simulator collectives cost documents json cli base
LINK_gf-plan := $(PLANNING)
LINK_gf-sim  := imports profiler $(PLANNING)
LINK_gf-report := $(LINK_gf-sim)
archives_of = $(if $(LINK_$(1)),$(foreach l,$(LINK_$(1)),$(call archive,$(l))),$(ARCHIVES))
foreign_of  = $(if $(LINK_$(1)),-ljansson -lz -lm,$(FOREIGN_LIBS))

Q := $(if $(V),,@)
say = $(if $(V),,@echo '   $(1)' $(patsubst $(BUILD)/%,%,$@);)

.PHONY: all help config demo deps wheel check check-only check-long check-build check-programs check-commands check-unit check-cli check-mpi \
	faults soak fuzz fuzzers analyze analyses check-lab check-docs check-torch check-gpu bench-gpu carry-gpu asan tsan install uninstall clean bench convergence bench-methods bench-model \
	bench-plan format deb \
	tables
.DEFAULT_GOAL := all

all: config $(COMMANDS:%=$(BUILD)/bin/%) $(TOOLS:%=$(BUILD)/tools/%) $(BUILD)/schema/made $(PAGES) $(SO)

help:
	@echo 'targets of gradflow $(VERSION):'
	@echo '  all         build the commands into $(BUILD)/bin (default)'
	@echo '  demo        install what is missing, build, plan, train, compare'
	@echo '  check       install what is missing, build with -Werror, run the tests'
	@echo '              (minutes; DEPS=0 installs nothing, and skips more)'
	@echo '  check ONLY=NAME   of one entry (tests/entries), e.g. ring (a minute)'
	@echo '  check-build build what check runs; FILTER=REGEX tests/run.sh SUITE...'
	@echo '              builds and runs some of it'
	@echo '  check-long  slower tests; unit tests and jobs of two ranks under'
	@echo '              sanitizers (a quarter of an hour, or two)'
	@echo '  check-unit  check-cli  check-mpi  check-docs   parts of check'
	@echo '  check-torch tests of the Python package with the newest PyTorch, which'
	@echo '              pip gets (gigabytes, the first time; kept), and its own'
	@echo '              tests of DistributedDataParallel'
	@echo '  check-lab   tests on an emulated cluster (root; share/lab)'
	@echo '  check-gpu   kernels, layers, training on an NVIDIA GPU (skipped'
	@echo '              without one)'
	@echo '  bench-gpu   their rates, beside a copy, CUB and PyTorch'
	@echo '  carry-gpu   both, for a bare GPU machine, in $(BUILD)/carried.tar.xz'
	@echo '  asan tsan   the tests again under a sanitizer (SUITES="cli mpi": some)'
	@echo '  analyze     gcc -fanalyzer, clang --analyze, cppcheck (ANALYZERS=: some);'
	@echo '              findings are mended, or explained in tests/analyze.txt'
	@echo '  faults soak fuzz   faults in jobs, long runs, hostile inputs'
	@echo '              (docs/reliability.md)'
	@echo '  convergence   train by every method, three seeds: a table and'
	@echo '              pictures in $(BUILD)/convergence (minutes)'
	@echo '  bench-methods   time of a step and to an accuracy by every method'
	@echo '              on an emulated cluster (root, minutes)'
	@echo '  bench-model predicted beside measured steps, by many plans'
	@echo '  bench-plan  plans beside a long search, and what planning takes'
	@echo '  bench       measure (minutes); prints ratios within one run'
	@echo '  tables      the papers'"'"' tables beside our predictions, as text'
	@echo '              and pictures in $(BUILD)/tables'
	@echo '  wheel       the Python package, for pip, in $(BUILD)/wheel'
	@echo '  deb         packages for Debian, in $(BUILD)/deb (dpkg-dev, debhelper)'
	@echo '  install     PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'
	@echo '  uninstall clean format'

config:
	@$(if $(MISSING),echo 'gradflow: not found: $(MISSING) (looked for by pkg-config,' \
	  'mpicc on PATH or as MPICC=; on Debian tests/install-deps.sh installs them)' >&2;\
	  exit 1,:)
	@mkdir -p $(BUILD)
	@line='MPI $(or $(MPICC),of pkg-config)$(if $(MPI_BRINGS), (brings along what is in $(MPI_BRINGS))), oneDNN $(if $(filter 1,$(WITH_ONEDNN)),on,off (plain C layers)), libibverbs $(if $(filter 1,$(WITH_VERBS)),on,off), UCX $(if $(filter 1,$(WITH_UCX)),on,off), libjpeg-turbo $(if $(filter 1,$(WITH_JPEG)),on,off), CUDA $(if $(filter 1,$(CUDA)),on,off), NCCL $(if $(filter 1,$(WITH_NCCL)),on,off), cuDNN $(if $(filter 1,$(WITH_CUDNN)),on,off)'; \
	  [ "$$(cat $(BUILD)/config.txt 2>/dev/null)" = "$$line" ] || \
	  { echo "$$line" > $(BUILD)/config.txt; echo "gradflow $(VERSION): $$line"; }

# --- rules -------------------------------------------------------------------
# Flags that change the code live in a file the objects depend on. -Werror, a compiler's cache and
# the place of the tree do not.
FLAGS_FILE := $(BUILD)/flags.txt
$(FLAGS_FILE): FORCE
	@mkdir -p $(@D); \
	f='$(subst ','\'',$(filter-out ccache -Werror% -Xcompiler=-Werror -ffile-prefix-map=%,\
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(MPI_FLAGS) $(NVCC_FLAGS)))'; \
	[ "$$(cat $@ 2> /dev/null)" = "$$f" ] || echo "$$f" > $@
.PHONY: FORCE # .SECONDARY would take it for a file that may be missing
FORCE:

isa = $(if $(findstring _avx512,$(1)),-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c,$(if $(findstring _avx2,$(1)),-mavx2 -mfma -mf16c))

# Files come and go: a list is looked at each time, and changes if it would.
$(LISTS:%=$(BUILD)/lists/%.h): $(BUILD)/lists/%.h: FORCE
	@$(call make_list,$(@:.h=),$(SOURCES))
$(LISTS:%=$(BUILD)/lists/%.c): %.c: %.h ;
# Codecs by number: their places in gf_codecs, and in the tables of the kernels.
CODEC_NUMBERS := $(BUILD)/lists/gf_codec_number.h
$(CODEC_NUMBERS): lib/collectives/codecs/codec.c Makefile
	@mkdir -p $(@D)
	@{ echo '#pragma once /* made by the Makefile */'; echo 'enum gf_codec_number {'; \
	  sed -nE 's/^\t\[(GF_CODEC_\w+)\] = .*/\t\1,/p' $<; printf '\tGF_CODECS\n};\n'; } > $@
$(BUILD)/lists/%.o: $(BUILD)/lists/%.c $(FLAGS_FILE) Makefile
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.o: %.c $(FLAGS_FILE) Makefile | $(LISTS:%=$(BUILD)/lists/%.h) $(CODEC_NUMBERS)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) \
	  $(FOREIGN_CFLAGS_$(notdir $(patsubst %/,%,$(dir $<)))) $(call isa,$<) \
	  -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.cu.o: %.cu $(FLAGS_FILE) Makefile | $(CODEC_NUMBERS)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# Selections are compiled twice (compressors/halves.h): what plans need goes to the library of
# documents, which runs nothing.
PLAN_HALVES := $(patsubst %.c,$(BUILD)/obj/plan/%.o,$(shell grep -lw GF_PLAN_HALF lib/compressors/*.c))
$(BUILD)/obj/plan/%.o: %.c $(FLAGS_FILE) Makefile | $(LISTS:%=$(BUILD)/lists/%.h) $(CODEC_NUMBERS)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) -UGF_PLAN_HALF -DGF_PLAN_HALF=1 $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(call archive,documents): $(PLAN_HALVES)

define archive_rule
$(call archive,$(1)): $(call object,$(filter $(2),$(SOURCES) $(CUDA_SOURCES))) $(call lists_of,$(1))
	@mkdir -p $$(@D); rm -f $$@
	$$(call say,AR)ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach l,$(LIBS),$(eval $(call archive_rule,$(l),lib/$(l)/%.c)))
$(eval $(call archive_rule,kernels,kernels/%.c kernels/%.cu))

link = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(HARDEN_PIE) -o $@ $(filter %.o,$^) \
	-Wl,--start-group $(filter %.a,$^) -Wl,--end-group

define command_rule
$(BUILD)/bin/$(1): $(BUILD)/obj/cmd/$(1).o $(call archives_of,$(1))
	@mkdir -p $$(@D)
	$$(call say,LD)$$(link) $(call foreign_of,$(1))
endef
$(foreach c,$(COMMANDS),$(eval $(call command_rule,$(c))))

# The runtime for other programs' loops (include/gradflow.h). It computes no layers, so
# its table of them is the one without oneDNN: programs then need not load that.
lean = $(patsubst %,$(BUILD)/obj/lean/lib/%.o,$(1))
link_library = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -o $@ \
	-Wl,-soname,$(@F) -Wl,--version-script=lib/libgradflow/gradflow.map \
	-Wl,-z,defs $(filter %.o,$^) -Wl,--whole-archive $(call archive,libgradflow) \
	-Wl,--no-whole-archive -Wl,--start-group \
	$(filter-out $(call archive,libgradflow),$(ARCHIVES)) -Wl,--end-group $(FOREIGN_LIBS)
$(BUILD)/lib/libgradflow.so.0: $(call lean,nn/net_backends data/jpeg_reader) $(ARCHIVES) lib/libgradflow/gradflow.map
	$(call say,LD)$(link_library)

# For a Python wheel: the same objects under tables without MPI, oneDNN and
# verbs, which the linker then leaves out.
WHEEL := $(addprefix $(BUILD)/lean/,libgradflow.so.0 gf-plan gf-profile gf-report gf-sim gf-topo)
LEAN := -UGF_HAVE_MPI -DGF_HAVE_MPI=0 -UGF_HAVE_ONEDNN -DGF_HAVE_ONEDNN=0 \
	-UGF_HAVE_VERBS -DGF_HAVE_VERBS=0 -UGF_HAVE_CUDNN -DGF_HAVE_CUDNN=0 \
	-UGF_HAVE_JPEG -DGF_HAVE_JPEG=0
LEAN_LISTS := $(BUILD)/lean/lists/gf_transports.o
$(LEAN_LISTS:.o=.c): $(BUILD)/lean/lists/%.c: FORCE
	@$(call make_list,$(@:.c=),$(filter-out lib/transport/mpi%.c,$(SOURCES)))
$(LEAN_LISTS): %.o: %.c $(FLAGS_FILE) Makefile
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
$(BUILD)/obj/lean/%.o: ALL_CPPFLAGS += $(LEAN)
$(BUILD)/obj/lean/%.o: %.c $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/lean/libgradflow.so.0: $(call lean,nn/net_backends data/jpeg_reader) $(LEAN_LISTS) \
	$(ARCHIVES) lib/libgradflow/gradflow.map
	@mkdir -p $(@D)
	$(call say,LD)$(link_library) -s
$(BUILD)/lean/gf-profile $(BUILD)/lean/gf-topo: $(call lean,nn/net_backends discovery/registry) $(LEAN_LISTS)
$(BUILD)/lean/%: $(BUILD)/obj/cmd/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS) -s
# Programs that know no more than a user's.
EMBED := $(addprefix $(BUILD)/embed/,caller misuse own_loop joined periods zero3 \
	$(if $(filter 1,$(CUDA)),on_device))
$(addprefix $(BUILD)/embed/,caller misuse): $(BUILD)/embed/%: tests/embed/%.c
$(addprefix $(BUILD)/embed/,own_loop joined periods zero3 on_device): $(BUILD)/embed/%: share/examples/%.c
$(BUILD)/embed/on_device: private EMBED_CFLAGS = $(CUDA_CFLAGS)
$(BUILD)/embed/on_device: private EMBED_LIBS = $(CUDA_LIBS) -ldl
$(EMBED): include/gradflow.h $(SO)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 $(WARNINGS) $(if $(filter-out 0,$(WERROR)),-Werror) -Iinclude $(EMBED_CFLAGS) \
	  $(CFLAGS) -pthread -o $@ $(filter %.c,$^) $(SO) -Wl,-rpath,$(abspath $(BUILD)/lib) \
	  $(EMBED_LIBS) -lm

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(call object,tests/unit/local.c) $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS)
# MPI keeps memory to the end, which is no leak of these programs.
$(if $(SAN),$(addprefix $(BUILD)/,bin/gf-allreduce bin/gf-profile bin/gf-topo bin/gf-train \
	tests/test_engine_mpi tests/test_exec_elements tests/test_mpi tests/test_shm): \
	$(call object,tests/mpi/leaks.c))
# A policy of the report on the papers' tables.
$(BUILD)/tests/test_asc_printed: $(call object,share/tools/tables/asc_printed.c)
# On a GPU and an NCCL of the tests' own.
$(addprefix $(BUILD)/tests/test_,device_engine device_lane sparse_nccl stage \
	train_device train_device_nccl train_device_graphs train_device_shards train_place \
	bench_device bench_device_faults bench_profile_device told_nccl \
	exchange_device): \
	$(patsubst %,$(BUILD)/obj/tests/gpu/%.o,fake fake_chunks fake_gpu \
	fake_kernels fake_graph fake_nccl)
$(addprefix $(BUILD)/tests/test_,train_device train_device_nccl \
	train_device_graphs train_device_shards train_place bench_profile_device): \
	$(BUILD)/obj/tests/gpu/fake_net.o
# With a mutator of their own, or with libFuzzer's (LIBFUZZER=1, CC=clang).
FUZZ_MAIN := $(call object,$(addprefix tests/fuzz/,harness.c \
	$(if $(LIBFUZZER),libfuzzer.c,driver.c)))
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_MAIN) $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(if $(LIBFUZZER),-fsanitize=fuzzer) $(FOREIGN_LIBS)
$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS)
# One program of several files.
$(BUILD)/bench/allreduce_peers: $(call object,$(wildcard tests/bench/peers/*.c)) $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS)

# Preloaded into a job, it stops or ends a process at a chosen call.
$(BUILD)/faults/strike.so: tests/faults/strike.c $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -shared -fPIC -std=gnu11 -D_GNU_SOURCE $(WARNINGS) \
	  $(if $(filter-out 0,$(WERROR)),-Werror) -DGF_HAVE_UCX=$(WITH_UCX) $(FOREIGN_CFLAGS_transport) \
	  $(CFLAGS) -o $@ $< -ldl

# Preloaded into a program, it refuses memory at a chosen request.
$(BUILD)/faults/no_memory.so: tests/faults/no_memory.c $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -shared -fPIC -std=gnu11 -D_GNU_SOURCE $(WARNINGS) \
	  $(if $(filter-out 0,$(WERROR)),-Werror) $(CFLAGS) -o $@ $<

# NVIDIA's management library as gf-topo's tests see it, and one that lacks a
# call.
FAKE_NVML := $(addprefix $(BUILD)/fake/,libnvidia-ml.so.1 libold-nvml.so)
$(FAKE_NVML): tests/gpu/fake_nvml.c lib/discovery/nvml.h $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -shared -fPIC -std=gnu11 $(WARNINGS) -Ilib \
	  $(if $(filter-out 0,$(WERROR)),-Werror) $(if $(findstring old,$@),-DGF_FAKE_NVML_OLD) \
	  $(CFLAGS) -o $@ $<

# Preloaded into gf-topo, adapters that libibverbs would show.
FAKE_VERBS := $(if $(filter 1,$(WITH_VERBS)),$(BUILD)/fake/verbs.so)
$(BUILD)/fake/verbs.so: tests/faults/fake_verbs.c $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -shared -fPIC -std=gnu11 $(WARNINGS) \
	  $(if $(filter-out 0,$(WERROR)),-Werror) $(CFLAGS) -o $@ $<

# Tests of the kernels on a GPU: they need its driver and nothing else.
$(BUILD)/gpu/%: $(BUILD)/obj/tests/gpu/%.o $(BUILD)/obj/tests/gpu/memory_cuda.o \
	$(foreach l,cuda base kernels,$(call archive,$(l)))
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(CUDA_LIBS) -ldl -lm

$(patsubst %,$(BUILD)/gpu/%,$(filter test_gpu_nn%,$(GPU))): $(BUILD)/gpu/%: \
	$(BUILD)/obj/tests/gpu/%.o $(call object,tests/gpu/nn_adapter.c \
	tests/gpu/nn_cuda.c) $(foreach l,nn documents json trainer cuda base kernels,$(call archive,$(l)))
	@mkdir -p $(@D)
	$(call say,LD)$(link) -ljansson $(if $(filter 1,$(WITH_ONEDNN)),-ldnnl) \
	  $(CUDA_LIBS) -ldl -lm

# What test_device_lane does on fakes; and what lanes cost.
$(BUILD)/gpu/test_nccl $(BUILD)/gpu/lane_cost: $(BUILD)/gpu/%: \
	$(BUILD)/obj/tests/gpu/%.o $(call object,tests/unit/local.c) $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS)

# What a GPU does for any program: for tests/gpu/first-hour.sh.
$(BUILD)/gpu/kernel_trace.so: tests/gpu/kernel_trace.c $(FLAGS_FILE) Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -shared -fPIC -std=gnu11 $(WARNINGS) $(CUDA_CFLAGS) \
	  $(if $(filter-out 0,$(WERROR)),-Werror) $(CFLAGS) -o $@ $< -ldl

# For the newest of the processors alone: CUB takes its time.
$(BUILD)/obj/tests/gpu/%.cu.o: CUDA_ARCH := $(lastword $(CUDA_ARCH))
$(BUILD)/gpu/bench_kernels: $(BUILD)/obj/tests/gpu/bench_kernels.cu.o \
	$(foreach l,base kernels,$(call archive,$(l)))
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(CUDA_LIBS) -lstdc++ -ldl -lm

# The same on this processor (tests/gpu/emulate.h); an address that no vector
# may be loaded from ends them.
EMULATE := $(EMULATOR_CXX) -x c++ -std=gnu++17 -O1 -g -Ikernels -Ilib -I$(BUILD) -Itests/gpu \
	-DGF_EMULATE -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas \
	-fsanitize=alignment -fsanitize-undefined-trap-on-error \
	$(if $(filter-out 0,$(WERROR)),-Werror)
EMULATED_OBJECTS := $(patsubst %,$(BUILD)/emulated/%.o,$(wildcard \
	kernels/cuda/*.cu tests/gpu/emulate.cpp))
$(BUILD)/emulated/%.o: % $(FLAGS_FILE) Makefile | $(CODEC_NUMBERS)
	@mkdir -p $(@D)
	$(call say,C++)$(EMULATE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
EMULATED_NN := $(filter test_gpu_nn% test_host_nn,$(EMULATED))
$(patsubst %,$(BUILD)/tests/%,$(filter-out $(EMULATED_NN),$(EMULATED))): \
	$(BUILD)/tests/%: $(BUILD)/obj/tests/gpu/%.o \
	$(call object,tests/gpu/memory_host.c kernels/cuda/table.c) \
	$(EMULATED_OBJECTS) $(foreach l,base kernels,$(call archive,$(l)))
	@mkdir -p $(@D)
	$(call say,LD)$(link) -lstdc++ -lm

# Nets, with cuDNN and cuBLAS played by a fake.
$(BUILD)/emulated/tests/gpu/fake_cu%.cpp.o: EMULATE += $(CUDA_CFLAGS)
$(EMULATED_NN:%=$(BUILD)/tests/%): $(BUILD)/tests/%: \
	$(BUILD)/obj/tests/gpu/%.o $(call object,$(addprefix tests/gpu/,\
	nn_adapter.c nn_host.c) kernels/cuda/table.c kernels/cuda/nn_table.c) \
	$(EMULATED_OBJECTS) $(patsubst %,$(BUILD)/emulated/tests/gpu/%.cpp.o,\
	host_gpu fake_math fake_cudnn fake_cublas) $(foreach l,nn documents json trainer base kernels,$(call archive,$(l)))
	@mkdir -p $(@D)
	$(call say,LD)$(link) -ljansson $(if $(filter 1,$(WITH_ONEDNN)),-ldnnl) \
	  -lstdc++ -ldl -lm

# The report on the papers' tables asks for figures that no command prints.
$(BUILD)/tools/gf-figures: $(call object,$(wildcard share/tools/tables/*.c)) \
	$(filter $(ARCHIVES),$(call archives_of,gf-plan))
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(call foreign_of,gf-plan)

# The JSON Schemas of documents, from the tables of their readers.
$(BUILD)/tools/gf-schema: $(call object,share/tools/gf-schema.c) $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LD)$(link) $(FOREIGN_LIBS)
$(BUILD)/schema/made: $(BUILD)/tools/gf-schema
	@mkdir -p $(@D); rm -f $(@D)/*.json
	$(call say,SCHEMA)$< $(@D) && touch $@

# Pages of the manual; what is made in them is asked of the commands, and stands in files of lib.
make_page = @mkdir -p $(@D); man/page.sh $< $(BUILD) > $@.new && mv $@.new $@
$(PAGES): man/page.sh $(wildcard man/common/*) $(COMMANDS:%=$(BUILD)/bin/%) $(BUILD)/schema/made
$(BUILD)/man/%: man/%.in
	$(make_page)
$(BUILD)/man/%: man/%
	$(make_page)

# test_mpi asks MPI itself
FOREIGN_CFLAGS_unit := $(FOREIGN_CFLAGS_transport)
FOREIGN_CFLAGS_bench := $(FOREIGN_CFLAGS_transport)
FOREIGN_CFLAGS_peers := $(FOREIGN_CFLAGS_transport)
-include $(shell find $(BUILD)/obj $(BUILD)/emulated -name '*.d' 2>/dev/null)
.SECONDARY:

# --- tests -------------------------------------------------------------------
# All processors build if nobody said how many.
every_processor = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	$(Q)$(if $(filter 0,$(DEPS)),:,tests/install-deps.sh --tests)

# The longest suites begin first, so that no processor is idle at the end.
check: $(if $(ONLY),check-only,deps)
ifndef ONLY
	+$(Q)$(MAKE) --no-print-directory $(every_processor) WERROR=1 check-build
	$(Q)BUILD=$(BUILD) tests/run.sh layers lint docs mpi python cli build fence unit fuzz
endif

# Of one entry: the tests of its name, and those that walk the entries' files, for it alone.
WALKERS = $(basename $(notdir $(shell grep -lE 'test_each_selection|entry_lines|entry_is_wanted' tests/unit/*.c)))
empty :=
ONLY_FILTER = (unit/($(subst $(empty) $(empty),|,$(strip $(WALKERS))))$$|[_-]$(subst -,[_-],$(ONLY))([.]|$$)|gf-plan.bats|traits|agreement)
check-only:
	$(Q)ls tests/entries/*/$(ONLY).* > /dev/null || { echo 'ONLY=$(ONLY): want the name of an entry in tests/entries' >&2; exit 2; }
	+$(Q)FILTER='$(ONLY_FILTER)' $(MAKE) --no-print-directory $(every_processor) WERROR=1 all check-programs
	$(Q)BUILD=$(BUILD) GF_TEST_ONLY=$(ONLY) FILTER='$(ONLY_FILTER)' BATS_FILTER='every selection|$(ONLY)' \
	  tests/run.sh layers docs unit cli

# The tests of the Python package again, with the newest PyTorch.
check-torch: deps
	+$(Q)$(MAKE) --no-print-directory $(every_processor) WERROR=1 check-build
	$(Q)python=$$(tests/install-torch.sh) || { [ $$? -eq 77 ] && \
	  echo 'skipped: no PyTorch, and no index to get one from'; exit; }; \
	  GF_PYTHON=$$python BUILD=$(BUILD) tests/run.sh python

# What takes longer. The commands' suites under AddressSanitizer are make asan's; here
# the commands run in pairs.
check-long: deps
	+$(Q)$(MAKE) --no-print-directory $(every_processor) WERROR=1 check-build
	$(Q)FUZZ_SECONDS=$${FUZZ_SECONDS:-20} BUILD=$(BUILD) tests/run.sh --long fence fuzz unit cli mpi python
	$(Q)BUILD=$(BUILD) JOBS=1 TEST_TIMEOUT=7200 tests/run.sh --long build
	$(Q)BUILD=$(BUILD) tests/run.sh lab
	+$(Q)$(MAKE) --no-print-directory SUITES='unit fuzz two-ranks' asan
	+$(Q)$(MAKE) --no-print-directory tsan

# Every source by every analyzer that is there; a changed header does all anew.
ANALYZED := $(SOURCES) $(wildcard cmd/*.c)
ANALYZERS ?= gcc clang cppcheck
ANALYSES := $(foreach a,$(foreach t,$(ANALYZERS),$(if $(shell command -v $t),$t)),\
	$(ANALYZED:%.c=$(BUILD)/analyze/%.$a))
# The file that defines it must not be told what tests/analyze.h tells.
told = $(if $(filter lib/base/error.c,$<),,$(1)tests/analyze.h)
analysis = $(call told,-include ) $(ALL_CPPFLAGS) -std=gnu11 -O1 -pthread -ffunction-sections $(1) \
	$(FOREIGN_CFLAGS_$(notdir $(patsubst %/,%,$(dir $<)))) $(call isa,$<)
$(ANALYSES): $(wildcard tests/analyze.h lib/*/*.h lib/*/*/*.h kernels/*.h kernels/*/*.h include/*.h)
$(BUILD)/analyze/%.gcc: %.c
	@mkdir -p $(@D)
	$(call say,gcc)gcc $(call analysis,-fanalyzer) -S -o /dev/null $< 2> $@.part; mv $@.part $@
$(BUILD)/analyze/%.clang: %.c
	@mkdir -p $(@D)
	$(call say,clang)clang --analyze --analyzer-output text \
	  $(call analysis,-Wno-unknown-warning-option) -o /dev/null $< 2> $@.part; mv $@.part $@
$(BUILD)/analyze/%.cppcheck: %.c
	@mkdir -p $(@D)
	$(call say,cppcheck)cppcheck --quiet --std=c11 --platform=unix64 --library=posix \
	  --enable=warning,portability --suppressions-list=tests/cppcheck.txt \
	  -D__CPPCHECK__ '-D__attribute__(x)=' -D__x86_64__ $(call told,--include=) \
	  $(filter -I% -D%,$(ALL_CPPFLAGS)) --template='{file}:{line}: {id}: {message}' \
	  $< 2> $@.part; mv $@.part $@
analyses: $(ANALYSES)
analyze: deps
	+$(Q)$(MAKE) --no-print-directory $(every_processor) analyses
	$(Q)BUILD=$(BUILD) tests/analyze.sh $(ANALYZERS)

# Each goes on for as long as it is told to; the same seed draws the same faults.
# Without FAULTS as many are struck as FAULT_SECONDS allow.
SEED ?= 1
FAULT_SECONDS ?= 300
SOAK_SECONDS ?= 600
faults: deps
	+$(Q)$(MAKE) --no-print-directory $(every_processor) all $(BUILD)/faults/strike.so
	$(Q)BUILD=$(BUILD) tests/faults/campaign.py --seed $(SEED) \
	  $(if $(FAULTS),--faults $(FAULTS),--seconds $(FAULT_SECONDS))

soak: deps
	+$(Q)$(MAKE) --no-print-directory $(every_processor) all
	$(Q)BUILD=$(BUILD) tests/faults/soak.sh $(SOAK_SECONDS)

# libFuzzer where clang is, for FUZZ_SECONDS each, one after the other.
fuzzers: $(FUZZ:%=$(BUILD)/fuzz/%)
fuzz: deps
	+$(Q)if command -v clang > /dev/null; then \
	  $(MAKE) --no-print-directory $(every_processor) BUILD=$(BUILD)/libfuzzer \
	  CC=clang SAN=address,undefined LIBFUZZER=1 EMULATOR_CXX= \
	  CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' fuzzers; \
	  else echo 'fuzz: clang is not installed: inputs are changed without a look at coverage'; \
	  $(MAKE) --no-print-directory $(every_processor) fuzzers; fi
	$(Q)BUILD=$(BUILD) tests/fuzz/run.sh $(FUZZ_TARGETS)

# The programs whose names in tests/run.sh FILTER matches, and what all other suites run.
PROGRAMS := $(UNIT:%=unit/%) $(EMULATED:%=unit/%) $(FUZZ:%=fuzz/%)
programs = $(patsubst unit/%,$(BUILD)/tests/%,$(patsubst fuzz/%,$(BUILD)/fuzz/%,$(1)))
# (FILTER is of the environment: make would take its $$ for a variable's.)
check-programs: $(if $(value FILTER),$(call programs,$(shell printf '%s\n' $(PROGRAMS) | grep -E -- "$$FILTER")))
check-commands: all $(FAKE_NVML) \
	$(if $(SO),$(EMBED) $(WHEEL) $(BUILD)/faults/strike.so \
	$(BUILD)/faults/no_memory.so $(FAKE_VERBS))
check-build: check-commands $(call programs,$(PROGRAMS)) $(BENCH:%=$(BUILD)/bench/%) \
	$(if $(filter 1,$(CUDA)),$(GPU:%=$(BUILD)/gpu/%) \
	$(BUILD)/gpu/bench_kernels $(if $(wildcard $(CUDA_HOME)/include/cupti.h),\
	$(BUILD)/gpu/kernel_trace.so)) \
	$(if $(filter 1,$(WITH_NCCL)),$(BUILD)/gpu/lane_cost)

# Needs one NVIDIA GPU of sm_$(firstword $(CUDA_ARCH)) or later and its driver; skips aloud without.
check-gpu:
	+$(Q)$(MAKE) --no-print-directory $(every_processor) check-build
	$(Q)BUILD=$(BUILD) tests/gpu/run.sh check || [ $$? -eq 77 ]

# The same machine: docs/gpu.md says what is measured, PARTS="kernels nccl"
# measures some of it.
bench-gpu:
	+$(Q)$(MAKE) --no-print-directory $(every_processor) check-build
	$(Q)BUILD=$(BUILD) tests/gpu/run.sh bench $(PARTS) || [ $$? -eq 77 ]

# Both, in a folder for a machine that has a GPU and nothing else.
carry-gpu: check-build
	$(Q)BUILD=$(BUILD) tests/gpu/carry.sh --pack $(BUILD)/carried

check-unit check-cli check-mpi check-lab check-docs: check-%:
	+$(Q)$(MAKE) --no-print-directory $(every_processor) check-build
	$(Q)BUILD=$(BUILD) tests/run.sh $*

# A sanitizer sees nothing of a GPU's code: it is compiled for one kind.
one_gpu = CUDA_ARCH=$(lastword $(CUDA_ARCH))

# hwloc's plugins leak memory in modules that are unloaded, where no suppression
# finds it; its core discovers enough for the tests. SUITES takes other suites.
asan:
	+$(Q)$(MAKE) --no-print-directory $(every_processor) BUILD=$(BUILD)/asan $(one_gpu) \
	  SAN=address,undefined CFLAGS='-O1 -g' WERROR=1 check-build
	$(Q)HWLOC_PLUGINS_PATH=/nonexistent BUILD=$(BUILD)/asan \
	  tests/run.sh $(or $(SUITES),unit fuzz cli mpi)

# UCX watches calls that threads make when ThreadSanitizer has left them.
tsan:
	+$(Q)$(MAKE) --no-print-directory $(every_processor) BUILD=$(BUILD)/tsan $(one_gpu) \
	  SAN=thread CFLAGS='-O1 -g' WERROR=1 check-build
	$(Q)OMP_NUM_THREADS=1 UCX_MEM_EVENTS=n BUILD=$(BUILD)/tsan \
	  TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.txt \
	  tests/run.sh --threads $(or $(SUITES),unit two-ranks)

format:
	clang-format -i $(wildcard cmd/*.c lib/*/*.[ch] lib/*/*/*.[ch] kernels/*.[ch] \
	  kernels/*/*.[ch] kernels/*/*.cu include/*.h tests/*.h tests/*/*.[ch] \
	  tests/*/*.cu tests/*/*/*.[ch] share/examples/*.c share/tools/*/*.[ch])

demo:
	$(Q)tests/install-deps.sh
	+$(Q)$(MAKE) --no-print-directory $(every_processor) all
	$(Q)BUILD=$(BUILD) share/examples/demo.sh

convergence: check-build
	$(Q)BUILD=$(BUILD) tests/bench/convergence.sh

bench-methods: check-build
	$(Q)BUILD=$(BUILD) tests/bench/methods.sh

bench-plan: check-build
	$(Q)BUILD=$(BUILD) tests/bench/run.sh plan quality

bench-model: check-build
	$(Q)BUILD=$(BUILD) tests/bench/model.sh

bench: check-build
	$(Q)BUILD=$(BUILD) tests/bench/run.sh

tables: $(BUILD)/bin/gf-plan $(BUILD)/bin/gf-profile $(BUILD)/bin/gf-sim $(BUILD)/tools/gf-figures
	@mkdir -p $(BUILD)/tables
	@command -v gnuplot > /dev/null || \
	  echo 'skipped: pictures, which need gnuplot (Debian: gnuplot-nox)'
	$(Q)PATH="$(abspath $(BUILD)/bin):$(abspath $(BUILD)/tools):$$PATH" \
	  python3 share/tools/tables --csv $(BUILD)/tables $$(! command -v gnuplot > /dev/null || \
	  echo --svg $(BUILD)/tables --pdf $(BUILD)/tables) \
	  -o $(BUILD)/tables/report.txt
	$(Q)cat $(BUILD)/tables/report.txt

# --- installation ------------------------------------------------------------
wheel: config $(WHEEL) $(PAGES)
	$(Q)share/python/wheel.sh $(VERSION) $(BUILD)/wheel $(WHEEL)

# Debian packages, made of a copy of what is here without builds: dpkg writes beside
# the folder that it builds in. DEB_BUILD_PROFILES=pkg.gradflow.cuda makes
# gradflow-cuda, too.
DEB := $(BUILD)/deb
deb:
	rm -rf $(DEB); mkdir -p $(DEB)/gradflow-$(VERSION)
	tar -c --exclude='./build*' --exclude=./.git . | tar -x -C $(DEB)/gradflow-$(VERSION)
	cd $(DEB)/gradflow-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL \
	  dpkg-buildpackage -us -uc -b
	rm -rf $(DEB)/gradflow-$(VERSION)
	if command -v lintian > /dev/null; then lintian $(DEB)/*.changes; fi

D := $(DESTDIR)$(PREFIX)
L := $(DESTDIR)$(LIBDIR)
DOC := $(D)/share/doc/gradflow
# What users may read, whatever the umask and the modes of this checkout.
put = umask 022; put() { install -Dm$$1 "$$2" "$$3" || exit; }
define PC
prefix=$(PREFIX)
libdir=$(LIBDIR)
Name: gradflow
Version: $(VERSION)
Description: gradients of data-parallel training by a plan
Cflags: -I$${prefix}/include
Libs: -L$${libdir} -lgradflow
endef
export PC
install: all
	umask 022; set -e; install -d $(D)/bin; \
	$(INSTALL_PROGRAM) $(COMMANDS:%=$(BUILD)/bin/%) $(D)/bin
	$(if $(SO),umask 022; set -e; install -d $(L)/pkgconfig; \
	$(INSTALL_PROGRAM) -m755 $(SO) $(L)/$(notdir $(SO)); \
	ln -sf $(notdir $(SO)) $(L)/libgradflow.so; \
	install -Dm644 include/gradflow.h $(D)/include/gradflow.h; \
	echo "$$PC" > $(L)/pkgconfig/gradflow.pc)
	$(put); for f in $(PAGES); do put 644 $$f $(D)/share/man/man$${f##*.}/$${f##*/}; done
	$(put); for c in $(COMMANDS); do \
	  put 644 completions/gradflow.bash $(D)/share/bash-completion/completions/$$c; \
	  put 644 completions/gradflow.fish $(D)/share/fish/vendor_completions.d/$$c.fish; done; \
	put 644 completions/_gradflow $(D)/share/zsh/site-functions/_gradflow
	$(put); for f in README.md CHANGES LICENSE docs/*.md docs/timeline.svg docs/tables/*; do \
	  put 644 $$f $(DOC)/$$f; done
	$(put); find share -type f ! -name '*.pyc' | while read -r f; do m=644; \
	  [ ! -x $$f ] || m=755; put $$m $$f $(D)/share/gradflow/$${f#share/}; done
	$(put); for f in $(BUILD)/schema/*.json; do put 644 $$f $(D)/share/gradflow/schema/$${f##*/}; done

uninstall:
	rm -f $(COMMANDS:%=$(D)/bin/%)
	rm -f $(foreach p,$(notdir $(PAGES)),$(D)/share/man/man$(patsubst .%,%,$(suffix $(p)))/$(p))
	rm -f $(COMMANDS:%=$(D)/share/bash-completion/completions/%)
	rm -f $(COMMANDS:%=$(D)/share/fish/vendor_completions.d/%.fish)
	rm -f $(D)/share/zsh/site-functions/_gradflow
	rm -f $(L)/libgradflow.so $(L)/libgradflow.so.0 \
	  $(D)/include/gradflow.h $(L)/pkgconfig/gradflow.pc
	rm -rf $(D)/share/gradflow $(DOC)

clean:
	rm -rf $(BUILD)
