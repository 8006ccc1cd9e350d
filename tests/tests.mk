# Test programs and how `make check` runs them. A program that links simulator objects is in sim_tests;
# one that goes through libhewn.a or the driver API is in lib_tests. Scripts use tools.

lib_tests := gemm attention combine tensormap golden badinput inject params host npy safetensors bench bench_test rates
api_tests := driver_api driver_launch abi compiled
tools     := launch zoo mutate
sim_tests := sim_parse sim_exec sim_ops sim_async sim_tensor sim_tma sim_check recorded

test_bin := $(BUILD)/tests
test_common := $(O)/tests/harness.o
tests_src := $(wildcard $(SRC)/tests/*.c)

$(O)/tests/%.o: EXTRA := $(SIM_CFLAGS) -I$(SRC)/tools/hewn
$(O)/tests/abi.o: EXTRA += $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)
$(test_bin)/%: $(O)/tests/%.o
	$(call say,LD)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ -ldl -lm -lpthread

# Before the library, which they need.
$(test_bin)/gemm: $(addprefix $(O)/tests/,gemm_matrix.o gemm_judge.o)
$(test_bin)/bench: $(addprefix $(O)/tests/,bench_attention.o bench_ceiling.o bench_cudnn.o bench_gemm.o bench_host.o bench_meter.o \
  bench_peer.o bench_plot.o bench_report.o bench_sim.o bench_work.o golden_text.o wgmma_loop.o)
$(test_bin)/bench_test: $(addprefix $(O)/tests/,bench_plot.o bench_report.o)
$(test_bin)/rates: $(addprefix $(O)/tests/,golden_text.o wgmma_loop.o)
$(test_bin)/attention: $(patsubst $(SRC)/%.c,$(O)/%.o,$(wildcard $(SRC)/tests/attention_*.c))
$(test_bin)/badinput: $(addprefix $(O)/tests/,badinput_attention.o badinput_gemm.o)
$(test_bin)/params: $(O)/tests/params_gemm.o
$(addprefix $(test_bin)/,host bench): $(addprefix $(O)/tests/,host_work.o counting_driver.o)
$(addprefix $(test_bin)/,$(lib_tests)): $(test_common) $(O)/tests/device.o $(lib)
$(addprefix $(test_bin)/,inject badinput params): $(O)/tests/fake_driver.o
$(addprefix $(test_bin)/,gemm attention): $(O)/tests/digest.o
$(test_bin)/mutate: $(O)/tests/mutate_text.o
$(test_bin)/npy: $(O)/tools/hewn/npy.o
$(test_bin)/safetensors: $(addprefix $(O)/tools/hewn/,safetensors.o npy.o)
$(test_bin)/golden: $(patsubst $(SRC)/%.c,$(O)/%.o,$(wildcard $(SRC)/tests/golden_*.c))
$(addprefix $(test_bin)/,$(api_tests)): $(test_common)
$(addprefix $(test_bin)/,$(sim_tests)): $(test_common) $(sim_obj)
$(test_bin)/sim_async $(test_bin)/sim_check $(test_bin)/sim_tma: $(O)/tests/sim_run.o
$(test_bin)/sim_tensor: $(addprefix $(O)/tests/,sim_tensor_mma.o sim_tensor_warp.o sim_tensor_blackwell.o sim_tensor_copy.o tensor_model.o coverage.o)
$(test_bin)/recorded: $(addprefix $(O)/tests/,mma_words.o tensor_model.o coverage.o)

test_programs := $(addprefix $(test_bin)/,$(lib_tests) $(api_tests) $(sim_tests) $(tools))

.SECONDARY: $(patsubst $(SRC)/%.c,$(O)/%.o,$(tests_src))
.PHONY: tests
tests: $(test_programs)

run_tests = $(Q)BUILD=$(BUILD) SRC=$(SRC) CC='$(CC)' PTXAS='$(PTXAS)' NM='$(NM)' PYTHON='$(PYTHON)' \
  CUDA_HOME='$(CUDA_HOME)' MODE=$(MODE) SIM_TESTS='$(sim_tests)' sh $(SRC)/tests/run.sh

check: all tests
	$(run_tests) check

check-all: all tests
	$(run_tests) all

# tests/cuda/*.ptx, from the sources beside them. Any device of compute capability 9.0 or later.
.PHONY: cuda-ptx
cuda-ptx:
	$(Q)for f in $(SRC)/tests/cuda/*.cu; do \
	  $(CUDA_HOME)/bin/nvcc -arch=compute_90 -std=c++17 -ptx $$f -o $${f%.cu}.ptx || exit 1; done

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

# The suites on a GPU under compute-sanitizer.
.PHONY: sanitize
sanitize: all tests
	$(Q)BUILD=$(abspath $(BUILD)) CUDA_HOME='$(CUDA_HOME)' sh $(SRC)/tests/sanitize.sh

# On a GPU where one answers, beside cuBLASLt (the toolkit's) and cuDNN (PyTorch's), into build/bench; and on
# the simulator.
bench: all $(test_bin)/bench
	$(Q)LD_LIBRARY_PATH=$(CUDA_HOME)/lib64:$$LD_LIBRARY_PATH $(test_bin)/bench --out $(BUILD)/bench \
	  --attention-peer $(SRC)/tests/bench_attention.py
	$(Q)HEWN_LIBCUDA=$(abspath $(sim)) $(test_bin)/bench

# The cycle model's account of the attention kernels.
.PHONY: account
account: all
	$(Q)BUILD=$(BUILD) sh $(SRC)/tests/model/attention.sh

demo: all
	$(Q)mkdir -p $(BUILD)/demo
	$(Q)$(cli) demo -o $(BUILD)/demo

-include $(patsubst $(SRC)/%.c,$(O)/%.d,$(tests_src))
