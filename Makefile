# hewn: see README.md. Useful targets: all demo check check-all zoo bench golden docs sizes install uninstall wheel
# dist lint clean
# Variables: MODE=rel|dbg|asan|ubsan|tsan|cov  V=1  BUILD=dir  CC=gcc|clang  PTXAS=path (empty: no cubins)
#   HEWN_TARGETS='sm_90a sm_100f'  HEWN_FAMILIES='gemm attention'  what the library holds (all, if not given)

MODE  ?= rel
BUILD ?= build$(if $(filter-out rel,$(MODE)),-$(MODE))
SRC   := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
O     := $(BUILD)/obj

CC          ?= cc
AR          ?= ar
NM          ?= nm
CUDA_HOME   ?= $(firstword $(wildcard /usr/local/cuda) $(CUDA_PATH))
PTXAS       ?= $(firstword $(wildcard $(CUDA_HOME)/bin/ptxas) $(shell command -v ptxas 2>/dev/null))
# A ptxas that does not run (it is not there, or made for another machine) counts as none, and so does our stand-in.
ifneq ($(PTXAS),)
ifeq ($(shell $(PTXAS) --version 2>/dev/null | grep ptxas | grep -v stand-in),)
$(info $(PTXAS) does not run as ptxas, and counts as absent)
override PTXAS :=
endif
endif
PYTHON      ?= python3
CLANG_TIDY  ?= clang-tidy
CPPCHECK    ?= cppcheck
CLANG_FORMAT ?= clang-format

VERSION := $(shell awk '/define HEWN_VERSION_/ {v = v s $$3; s = "."} END {print v}' \
             $(SRC)/include/hewn.h)
PREFIX  ?= /usr/local
DESTDIR ?=
bindir     = $(PREFIX)/bin
libdir     = $(PREFIX)/lib
includedir = $(PREFIX)/include
datadir    = $(PREFIX)/share/hewn
mandir     = $(PREFIX)/share/man/man1

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPT_rel   := -O2 -g -DNDEBUG
OPT_dbg   := -O0 -g3
OPT_asan  := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan  := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_cov   := -O0 -g --coverage
OPT_fuzz  := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT := $(OPT_$(MODE))
ifeq ($(OPT),)
$(error MODE=$(MODE) is none of rel dbg asan ubsan tsan cov fuzz)
endif

CFLAGS_ALL := -std=c11 $(WARN) $(OPT) -fPIC -fvisibility=hidden -D_GNU_SOURCE \
              -I$(SRC)/include $(CFLAGS)
# The simulator's rooms, in the order of their layers: a room uses only rooms to its left.
sim_rooms   := ptx decode machine async ops check explore trace worksheet cuda
sim_include := -I$(SRC)/tools/sim -I$(SRC)/runtime
SIM_CFLAGS := -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math $(sim_include)
ifneq ($(filter dbg asan ubsan tsan cov fuzz,$(MODE)),)
SIM_CFLAGS := -ffp-contract=off $(sim_include)
endif
LDFLAGS_ALL := $(OPT) $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)')

runtime_src := $(wildcard $(SRC)/runtime/*.c)
sim_src     := $(foreach room,$(sim_rooms),$(wildcard $(SRC)/tools/sim/$(room)/*.c))
cli_src     := $(wildcard $(SRC)/tools/hewn/*.c)
mod_src     := $(wildcard $(SRC)/tools/mod/*.c)
watch_src   := $(wildcard $(SRC)/tools/watch/*.c)
engine_src  := $(wildcard $(SRC)/tools/engine/*.c)
runtime_obj := $(runtime_src:$(SRC)/%.c=$(O)/%.o)
sim_obj     := $(sim_src:$(SRC)/%.c=$(O)/%.o)
cli_obj     := $(cli_src:$(SRC)/%.c=$(O)/%.o)
stand_in_src   := $(wildcard $(SRC)/tools/ptxas/*.c)
nvrtc_src   := $(wildcard $(SRC)/tools/nvrtc/*.c)
mod_obj     := $(mod_src:$(SRC)/%.c=$(O)/%.o)
watch_obj   := $(watch_src:$(SRC)/%.c=$(O)/%.o)
engine_obj  := $(engine_src:$(SRC)/%.c=$(O)/%.o)
# What tests of the engine link.
engine_parts = $(filter-out $(O)/tools/engine/main.o,$(engine_obj)) $(engine_modules)

lib := $(BUILD)/libhewn.a
so  := $(BUILD)/libhewn.so.0
cli := $(BUILD)/hewn
sim := $(BUILD)/sim/libcuda.so.1
stand_in := $(BUILD)/sim/bin/ptxas
nvrtc := $(BUILD)/sim/libnvrtc.so.13
mod := $(BUILD)/mod
watch := $(BUILD)/watch/libhewn-watch.so
engine := $(BUILD)/hewn-engine

all: $(lib) $(so) $(cli) $(engine) $(sim) $(stand_in) $(nvrtc) $(watch) modules $(BUILD)/hewn.1
.PHONY: all modules demo check check-all bench golden docs install uninstall dist lint format clean
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# As many jobs as cores, unless -j says otherwise; not with several goals, which may lean on their order.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

include $(SRC)/ptx/modules.mk
include $(SRC)/tests/tests.mk

$(O)/tools/sim/%.o: EXTRA := $(SIM_CFLAGS)
# What looks at descriptions and tables, before a plan's first run.
$(O)/runtime/%_check.o $(O)/runtime/%_tables.o: EXTRA := $(if $(filter rel,$(MODE)),-Os)
$(O)/tools/ptxas/%.o: EXTRA := $(sim_include)
$(O)/tools/mod/%.o $(O)/tools/hewn/%.o: EXTRA := -I$(SRC)/runtime -I$(SRC)/tools/mod -I$(SRC)/tools/sim
# No launch passes here, except those of groups, and the runtime's size is limited.
ifeq ($(MODE),rel)
$(addprefix $(O)/runtime/,gemm_kernels.o gemm_tune.o gemm_table.o gemm_check.o gemm_few.o grouped.o w4_choose.o module.o device.o target.o describe.o decode.o): EXTRA := -Os
endif

$(O)/tools/watch/%.o: EXTRA := -I$(SRC)/tools/sim -I$(SRC)/runtime

$(O)/%.o: $(SRC)/%.c
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(EXTRA) -MMD -MP -c $< -o $@

library_modules := $(filter-out $(engine_modules),$(module_obj))
$(lib): $(runtime_obj) $(library_modules)
	$(call say,AR)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# A sanitiser's own symbols come with the program.
no_undefined := $(if $(filter asan tsan ubsan fuzz,$(MODE)),,-Wl,-z,defs)
$(so): $(runtime_obj) $(library_modules) $(SRC)/runtime/exports.map
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(SRC)/runtime/exports.map $(no_undefined) \
	  $(LDFLAGS_ALL) $(filter %.o,$^) -o $@ -ldl -lpthread

# The names of per_thread.txt as further names of functions that cuda_api.def has, for the linker.
per_thread := $(O)/tools/sim/cuda/per_thread.ld
$(per_thread): $(SRC)/tools/sim/cuda/per_thread.txt $(SRC)/tools/sim/cuda/cuda_api.def
	$(Q)mkdir -p $(@D)
	$(Q)awk -F'[(, ]+' 'NR == FNR { if (/^(API|ALIAS|STUB)/) has[$$3] = 1; next } \
	  /^cu/ { name = $$1; sub(/_pt[ds][sz]$$/, "", name); if (name in has) print $$1 " = " name ";" }' \
	  $(SRC)/tools/sim/cuda/cuda_api.def $(SRC)/tools/sim/cuda/per_thread.txt >$@

$(sim): $(sim_obj) $(SRC)/tools/sim/cuda/exports.map $(per_thread)
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(SRC)/tools/sim/cuda/exports.map \
	  $(no_undefined) $(LDFLAGS_ALL) $(sim_obj) $(per_thread) -o $@ -lm -ldl -lpthread

# The stand-in for NVRTC, which the simulated driver loads from its own folder.
$(nvrtc): $(nvrtc_src:$(SRC)/%.c=$(O)/%.o) $(SRC)/tools/nvrtc/exports.map
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(SRC)/tools/nvrtc/exports.map $(no_undefined) \
	  $(LDFLAGS_ALL) $(filter %.o,$^) -o $@ -ldl -lpthread

# What hewn watch preloads. It reads PTX as the simulator does.
$(watch): $(watch_obj) $(filter $(O)/tools/sim/ptx/%,$(sim_obj)) $(O)/tools/sim/decode/names.o
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) $(no_undefined) $(LDFLAGS_ALL) $^ -o $@ -ldl -lpthread

$(mod): $(mod_obj)
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(mod_obj) -o $@

# hewn run preprocesses as the module builder does; hewn fidelity reads the simulator's table of instructions.
$(cli): $(cli_obj) $(addprefix $(O)/tools/mod/,ptx.o fold.o plan.o plan_attention.o plan_combine.o plan_decode.o plan_engine.o plan_few.o plan_grouped.o plan_grouped_sum.o plan_indexer.o plan_mla.o plan_scaled.o plan_w4.o text.o) \
    $(addprefix $(O)/tools/sim/decode/,optable.o fidelity.o) $(engine_modules) $(lib)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ -ldl -lm

$(engine): $(engine_obj) $(engine_modules) $(lib)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ -ldl -lm

# The stand-in for ptxas checks what the simulator reads and decodes; it runs nothing.
stand_in_obj := $(stand_in_src:$(SRC)/%.c=$(O)/%.o) \
  $(foreach room,ptx decode machine async ops,$(filter $(O)/tools/sim/$(room)/%,$(sim_obj)))
$(stand_in): $(stand_in_obj)
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ -lm -lpthread

# The manuals' tables and the man page are made from the lists in the code.
docs_tool := $(BUILD)/docs
docs_obj  := $(patsubst $(SRC)/%.c,$(O)/%.o,$(wildcard $(SRC)/tools/docs/*.c) $(SRC)/tools/hewn/usage.c)
manuals   := $(patsubst $(SRC)/%,%,$(shell grep -l '^<!-- generated: ' $(wildcard $(addprefix $(SRC)/, \
               *.md tools/*/*.md tests/*.md tests/*/*.md ptx/*.md runtime/*.md))))
$(O)/tools/docs/%.o: EXTRA := -I$(SRC)/tools/sim -I$(SRC)/tools/hewn

$(docs_tool): $(docs_obj)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@

$(BUILD)/hewn.1: $(docs_tool)
	$(call say,MAN)
	$(Q)$(docs_tool) --man > $@

docs: all
	$(Q)cd $(SRC) && $(abspath $(docs_tool)) $(abspath $(BUILD)) $(manuals)

# The targets that the families have modules for.
installed := $(sort $(patsubst %/,%,$(dir $(module_list))))

# $(call install_modules,TARGET,FILES): those of the target, in a line of their own: a shell's command is at most 128 KB.
define install_modules
$(if $(filter $(BUILD)/modules/$(1)/%,$(2)),install -m 644 $(filter $(BUILD)/modules/$(1)/%,$(2)) $(DESTDIR)$(datadir)/modules/$(1)/)

endef

# The simulator goes where neither linker nor loader finds it by accident.
install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(includedir) $(DESTDIR)$(libdir)/pkgconfig \
	  $(DESTDIR)$(libdir)/hewn/sim $(DESTDIR)$(libdir)/hewn/watch $(DESTDIR)$(datadir) $(DESTDIR)$(mandir)
	install -m 644 $(SRC)/include/hewn.h $(DESTDIR)$(includedir)/
	install -m 644 $(lib) $(DESTDIR)$(libdir)/
	install -m 755 $(so) $(DESTDIR)$(libdir)/
	ln -sf $(notdir $(so)) $(DESTDIR)$(libdir)/libhewn.so
	install -m 755 $(sim) $(nvrtc) $(DESTDIR)$(libdir)/hewn/sim/
	install -d $(DESTDIR)$(libdir)/hewn/sim/bin
	install -m 755 $(stand_in) $(DESTDIR)$(libdir)/hewn/sim/bin/
	install -m 755 $(watch) $(DESTDIR)$(libdir)/hewn/watch/
	install -m 755 $(cli) $(DESTDIR)$(bindir)/
	install -m 644 $(BUILD)/hewn.1 $(DESTDIR)$(mandir)/
	install -d $(installed:%=$(DESTDIR)$(datadir)/modules/%)
	$(foreach t,$(installed),$(foreach e,ptx cubin json,$(call install_modules,$(t),$(filter %.$(e),$(module_products)))))
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' $(SRC)/runtime/hewn.pc.in \
	  > $(DESTDIR)$(libdir)/pkgconfig/hewn.pc

uninstall:
	rm -f $(DESTDIR)$(includedir)/hewn.h $(DESTDIR)$(bindir)/hewn
	rm -f $(DESTDIR)$(libdir)/libhewn.a $(DESTDIR)$(libdir)/libhewn.so $(DESTDIR)$(libdir)/libhewn.so.0
	rm -f $(DESTDIR)$(libdir)/pkgconfig/hewn.pc $(DESTDIR)$(mandir)/hewn.1
	rm -rf $(DESTDIR)$(libdir)/hewn $(DESTDIR)$(datadir)

dist:
	$(Q)mkdir -p $(BUILD)
	git -C $(SRC) archive --prefix=hewn-$(VERSION)/ -o $(abspath $(BUILD))/hewn-$(VERSION).tar.gz HEAD

# For authors of kernels in Python: the command line and the simulated driver, where the former finds the latter.
.PHONY: wheel
wheel: all
	$(Q)rm -f $(BUILD)/hewn-*.whl
	$(Q)$(PYTHON) $(SRC)/tools/wheel/wheel.py $(BUILD) $(VERSION) $(NM) scripts/hewn=$(cli) \
	  data/lib/hewn/sim/libcuda.so.1=$(sim) data/lib/hewn/sim/bin/ptxas=$(stand_in) \
	  data/lib/hewn/sim/libnvrtc.so.13=$(nvrtc) \
	  data/lib/hewn/watch/libhewn-watch.so=$(watch) \
	  data/share/man/man1/hewn.1=$(BUILD)/hewn.1

# Static analysis and format, with the configuration in the tree.
lint_src := $(runtime_src) $(sim_src) $(cli_src) $(mod_src) $(stand_in_src) $(nvrtc_src) $(watch_src) $(engine_src) $(wildcard $(SRC)/tools/docs/*.c) \
  $(wildcard $(SRC)/tests/*/*.c)
.PHONY: lint lint-cppcheck lint-tidy lint-format
lint: lint-cppcheck lint-tidy lint-format
lint-cppcheck:
	$(Q)$(CPPCHECK) --quiet -j "$$(nproc)" --std=c11 --enable=warning,performance,portability --inline-suppr \
	  --suppressions-list=$(SRC)/.cppcheck --error-exitcode=1 -D_GNU_SOURCE -I$(SRC)/include \
	  $(sim_include) -I$(SRC)/tools/hewn -I$(SRC)/tools/watch -I$(SRC)/tests -I$(SRC)/tools $(lint_src)
lint-tidy:
	@# one file a call: with several, clang-tidy 14 reports uninitialised va_lists that are not
	$(Q)printf '%s\n' $(lint_src) | xargs -P "$$(nproc)" -I '{}' $(CLANG_TIDY) --quiet '{}' -- \
	  -std=c11 -D_GNU_SOURCE -I$(SRC)/include $(sim_include) \
	  -I$(SRC)/tools/hewn -I$(SRC)/tools/mod -I$(SRC)/tools/watch -I$(SRC)/tests -I$(SRC)/tools 2>/dev/null
lint-format:
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(lint_src)

format:
	$(CLANG_FORMAT) -i $(lint_src)

clean:
	rm -rf $(BUILD)

-include $(runtime_obj:.o=.d) $(sim_obj:.o=.d) $(cli_obj:.o=.d) $(mod_obj:.o=.d) $(watch_obj:.o=.d) $(engine_obj:.o=.d) $(docs_obj:.o=.d) \
  $(stand_in_src:$(SRC)/%.c=$(O)/%.d)
