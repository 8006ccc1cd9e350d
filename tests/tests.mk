# Test programs, and the targets that run them. A file with `int main` in a room of tests/ is a program, named
# after the file: build/tests/NAME. Files NAME_*.c beside it belong to it; all others are at the disposal of every
# program (tests.a), except what replaces functions of libc. Programs of the rooms sim and check link the simulator's
# objects, those of driver nothing of ours, the others the library.

test_bin := $(BUILD)/tests
preloaded := $(SRC)/tests/oracle/tee.c $(SRC)/tests/engine/nccl_stand_in.c
tests_src := $(filter-out $(preloaded),$(wildcard $(SRC)/tests/*/*.c))
test_main := $(shell grep -l '^int main' $(tests_src))
test_object = $(patsubst $(SRC)/%.c,$(O)/%.o,$(1))
test_programs := $(patsubst %.c,$(test_bin)/%,$(notdir $(test_main)))
# The files of a program beside its main one, by the latter's path; the programs of some rooms, by name.
test_own = $(filter-out $(test_main),$(filter $(1:.c=)_%.c,$(tests_src)))
in_rooms = $(foreach room,$(1),$(patsubst %.c,%,$(notdir $(filter $(SRC)/tests/$(room)/%,$(test_main)))))
sim_tests := $(call in_rooms,sim check fuzz)
lib_tests := $(filter-out $(sim_tests) $(call in_rooms,driver),$(notdir $(test_programs)))

test_parts := $(O)/tests/tests.a
replaces_malloc := $(SRC)/tests/lib/counting_driver.c
test_shared := $(filter-out $(test_main) $(replaces_malloc) $(foreach m,$(test_main),$(call test_own,$(m))),$(tests_src))

$(O)/tests/%.o: EXTRA := $(SIM_CFLAGS) -I$(SRC)/tools/hewn -I$(SRC)/tests
$(O)/tests/watch/%.o: EXTRA += -I$(SRC)/tools/watch
$(O)/tests/engine/%.o: EXTRA += -I$(SRC)/tools
$(O)/tests/package/fold.o $(O)/tests/runtime/packs.o: EXTRA += -I$(SRC)/tools/mod
$(O)/tests/runtime/abi.o: EXTRA += $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)

$(test_parts): $(call test_object,$(test_shared)) $(SRC)/tests/tests.mk
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(addprefix $(test_bin)/,$(filter-out sim_bare,$(sim_tests))): $(sim_obj)
# Without observers and driver.
$(test_bin)/sim_bare: $(foreach room,ptx decode machine async ops,$(filter $(O)/tools/sim/$(room)/%,$(sim_obj)))
$(addprefix $(test_bin)/,host bench): $(call test_object,$(replaces_malloc))
$(test_bin)/kinds: $(addprefix $(O)/tests/gemm/,gemm_judge.o gemm_matrix.o)
$(addprefix $(test_bin)/,bench_products bench_w4 bench_kinds): $(O)/tests/bench/bench_peer.o
$(test_bin)/bench_test: $(addprefix $(O)/tests/bench/,bench_plot.o bench_report.o)
$(test_bin)/fold: $(O)/tools/mod/fold.o
$(test_bin)/packs: $(addprefix $(O)/tools/mod/,squeeze.o parse.o)
# What the fuzzed readers of the command line are made of.
fuzz_cli := $(O)/runtime/dtype.o $(addprefix $(O)/tools/hewn/,run_text.o npy.o safetensors.o)
# .. and those of the engine.
fuzz_cli += $(addprefix $(O)/tools/engine/,config.o config_deepseek.o config_experts.o json.o pattern.o problem.o tokenizer.o \
  tokenizer_bpe.o tokenizer_load.o tokenizer_steps.o unicode.o unicode_table.o utf8.o weights.o)
$(O)/tests/fuzz/fuzz_model.o: EXTRA += -I$(SRC)/tools
$(test_bin)/fuzz: $(fuzz_cli)
$(test_bin)/watch_text: $(addprefix $(O)/tools/watch/,rewrite.o snippet.o) $(addprefix $(O)/tools/sim/ptx/,arena.o lex.o)
$(addprefix $(test_bin)/,npy safetensors): $(addprefix $(O)/tools/hewn/,safetensors.o npy.o)
$(test_bin)/bench_engine_kernels: $(addprefix $(O)/tools/engine/,kernels.o kernels_slots.o kernels_experts.o kernels_latent.o kernels_exchange.o kernels_attend.o kernels_multiply.o kernels_project.o) $(engine_modules)
$(addprefix $(test_bin)/,$(call in_rooms,engine)): $(engine_parts)
$(addprefix $(test_bin)/,$(lib_tests)): $(lib)

# The stand-in for NCCL, which HEWN_LIBNCCL names.
nccl := $(test_bin)/nccl/libnccl.so.2
$(nccl): $(O)/tests/engine/nccl_stand_in.o
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) $(no_undefined) $(LDFLAGS_ALL) $^ -o $@ -ldl

# $(1): the main file of a program. Archives stand behind the objects that need them.
define test_program
$(test_bin)/$(basename $(notdir $(1))): $(call test_object,$(1) $(call test_own,$(1))) $(test_parts)
	$$(call say,LD)
	$(Q)mkdir -p $$(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $$(filter %.o,$$^) $(test_parts) $$(filter $(lib),$$^) -o $$@ -ldl -lm -lpthread
endef
$(foreach source,$(test_main),$(eval $(call test_program,$(source))))

# libFuzzer's program, for MODE=fuzz: the same readers, its main function.
$(test_bin)/fuzzer: $(call test_object,$(filter $(SRC)/tests/fuzz/fuzz_%.c,$(tests_src))) $(fuzz_cli) $(sim_obj)
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer $(sort $^) -o $@ -ldl -lm -lpthread

.SECONDARY: $(call test_object,$(tests_src))
.PHONY: tests
tests: $(test_programs) $(nccl)

test_settings = BUILD=$(BUILD) SRC=$(SRC) CC='$(CC)' PTXAS='$(PTXAS)' NM='$(NM)' \
  PYTHON='$(PYTHON)' CUDA_HOME='$(CUDA_HOME)' MODE=$(MODE) SIM_TESTS='$(sim_tests)'
run_tests = $(Q)$(test_settings) sh $(SRC)/tests/run.sh

# The tests are of the whole library.
lacking := $(strip $(filter-out $(targets),$(every_target)) $(filter-out $(families),$(every_family)))
.PHONY: whole
whole:
	$(if $(lacking),$(error the tests need all targets and families; HEWN_TARGETS and HEWN_FAMILIES leave out: $(lacking)),@:)

check: whole all tests
	$(run_tests) check

check-all: whole all tests
	$(run_tests) all

# What a program weighs that links one family, of all targets and of one.
.PHONY: sizes
sizes: whole all
	$(Q)$(test_settings) SIM='$(abspath $(sim))' sh $(SRC)/tests/package/sizes.sh

# For MODE=asan and MODE=ubsan.
.PHONY: check-share
check-share: whole all tests
	$(run_tests) share

# libFuzzer on every reader of foreign bytes, SECONDS_EACH seconds each: tests/fuzz/libfuzzer.sh.
.PHONY: fuzz
fuzz: $(test_bin)/fuzz
	$(Q)$(test_settings) BUILD=$(abspath $(BUILD)) SRC=$(abspath $(SRC)) SUITE=all sh $(SRC)/tests/fuzz/libfuzzer.sh

# Conformance vectors, recorded on a GPU: tests/golden/*.bin.
golden: all $(test_bin)/golden
	$(Q)$(test_bin)/golden --record $(SRC)/tests/golden

# Digests of results, recorded on a GPU: tests/golden/results-*.txt.
.PHONY: golden-gemm golden-attention
golden-gemm golden-attention: golden-%: all $(test_bin)/gemm $(test_bin)/attention
	$(Q)env -u HEWN_LIBCUDA $(test_bin)/$* --record $(SRC)/tests/golden/results-$*.txt

# The zoo: real bugs in small, under 20 seeds each, and their repaired twins.
.PHONY: zoo
zoo: $(cli) $(sim) $(test_bin)/zoo
	$(Q)$(test_bin)/zoo $(cli) $(SRC)/tests/zoo/*.ptx

# Its Hopper part on a GPU, plain and under compute-sanitizer: tests/zoo/hardware.md.
.PHONY: zoo-gpu
zoo-gpu: all
	$(Q)BUILD=$(abspath $(BUILD)) SRC=$(SRC) CUDA_HOME='$(CUDA_HOME)' sh $(SRC)/tests/zoo/hardware.sh

# All that a Blackwell GPU can be asked first: tests/first-hour.md.
.PHONY: first-hour
first-hour: all tests
	$(Q)BUILD=$(abspath $(BUILD)) SRC=$(SRC) sh $(SRC)/tests/bench/first_hour.sh

# hewn watch on a GPU: hangs that it must name, and what it costs.
.PHONY: watch-gpu
watch-gpu: all $(addprefix $(test_bin)/,gemm attention watch_times)
	$(Q)BUILD=$(abspath $(BUILD)) SRC=$(abspath $(SRC)) PYTHON='$(PYTHON)' sh $(SRC)/tests/watch/hardware.sh

# What this build's kernels and checker do, recorded into OUT; two records compared. Options: oracle.py --help.
.PHONY: oracle-record oracle-compare
oracle-record: all tests
	$(Q)CC='$(CC)' $(PYTHON) $(SRC)/tests/oracle/oracle.py record $(OUT) --build $(BUILD) --source $(SRC) \
	  --ptxas '$(PTXAS)' $(OPTIONS)
oracle-compare:
	$(Q)$(PYTHON) $(SRC)/tests/oracle/oracle.py compare $(OLD) $(NEW) $(OPTIONS)

# The suites on a GPU under compute-sanitizer.
.PHONY: sanitize
sanitize: all tests
	$(Q)BUILD=$(abspath $(BUILD)) CUDA_HOME='$(CUDA_HOME)' sh $(SRC)/tests/bench/sanitize.sh

# On a GPU where one answers, beside cuBLASLt (the toolkit's) and cuDNN (PyTorch's), into build/bench; and on
# the simulator. On a GPU also the tables of decode, MLA, the indexer and top-k.
serving_benches := $(addprefix $(test_bin)/,bench_decode bench_mla bench_indexer)
bench: all $(test_bin)/bench $(serving_benches)
	$(Q)LD_LIBRARY_PATH=$(CUDA_HOME)/lib64:$$LD_LIBRARY_PATH $(test_bin)/bench --out $(BUILD)/bench \
	  --attention-peer $(SRC)/tests/bench/bench_attention.py
	$(Q)HEWN_LIBCUDA=$(abspath $(sim)) $(test_bin)/bench
	$(Q)if env -u HEWN_LIBCUDA $(cli) info 2>/dev/null | head -n 1 | grep '^driver: ' | grep -qv 'no GPU here'; then \
	  set -e; for b in $(serving_benches); do echo "$${b##*/}:"; env -u HEWN_LIBCUDA $$b; done; \
	else echo 'SKIP $(notdir $(serving_benches)): no GPU answers here'; fi

# The cycle model's account of the attention kernels.
.PHONY: account
account: all $(test_bin)/account_work
	$(Q)BUILD=$(BUILD) sh $(SRC)/tests/bench/account.sh

# The simulated GPU is one that the library has kernels for.
verdicts = $(BUILD)/demo/model.jsonl
demo: all
	$(Q)mkdir -p $(BUILD)/demo
	$(Q)$(if $(filter sm_100f,$(targets)),,HEWN_SIM_GPU=$${HEWN_SIM_GPU:-h200} )$(cli) demo -o $(BUILD)/demo
	$(if $(lacking),,$(Q)printf '\nmodel:  tools/engine/model, 853,120 parameters that know one book, writes on by $(notdir $(engine))\n'; \
	  rm -f $(verdicts); HEWN_SIM_QUIET=1 HEWN_SIM_STRICT=1 HEWN_SIM_REPORT=$(verdicts) \
	  $(engine) run $(SRC)/tools/engine/model --prompt 'Alice was beginning' -n 40 --check && if [ -f $(verdicts) ]; then \
	  echo "check:  $$(grep -c '"verdict":"clean"' $(verdicts)) of $$(grep -c '"verdict":' $(verdicts)) launches are clean"; fi)

-include $(patsubst %.o,%.d,$(call test_object,$(tests_src)))
