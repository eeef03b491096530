# SPDX-License-Identifier: Apache-2.0
# A thin front of CMake and Ninja: make, make test, make demo. Everything is built into build/.
PREFIX ?= /usr/local
BUILD := build
JOBS ?= $(shell nproc)
CTEST := ctest --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: all help fuzz bootstrap configure demo demo-torch test soak torch test-torch soak-torch bench bench-torch lint format asan tsan install clean

# The first target, so that "make" builds.
all: configure
	@cmake --build $(BUILD) -j $(JOBS)

help:
	@echo 'make             builds liboffload.so and the offload command into build/'
	@echo 'make demo        trains a small GPT with room, without, and with liboffload (GPU=real: on the real GPU)'
	@echo 'make test        runs the tests; make soak runs the long ones too, for two and a half hours on two cores'
	@echo 'make demo-torch  the same as demo with PyTorch; test-torch and soak-torch (an hour) likewise'
	@echo 'make bench       measures, into build/bench.json; bench-torch under PyTorch, into build/bench-torch.json'
	@echo 'make install     installs below PREFIX=$(PREFIX)'
	@echo 'make lint, make format, make asan, make tsan, make fuzz, make clean: for who changes it'
	@echo 'JOBS=N says how many things are done at once; it is $(JOBS) now.'

bootstrap:
	@scripts/bootstrap.sh

configure: bootstrap
	@test -e $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja

# The three training runs: with room, without, and with liboffload. GPU=real runs them on the machine's own.
demo: configure
	@cmake --build $(BUILD) -j $(JOBS) --target liboffload offload simgpu_cuda simgpu_cudart train_gpt train_gpt_twins
	@GPU=$(or $(GPU),simulated) scripts/demo.sh $(BUILD)

# PyTorch's stock CUDA wheel, and stand-ins for all that it links.
torch: bootstrap
	@scripts/torch_wheel.sh $(BUILD)
	@test -e $(BUILD)/build.ninja -a -e $(BUILD)/tests/simgpu/torch/generated || cmake -S . -B $(BUILD) -G Ninja
	@cmake --build $(BUILD) -j $(JOBS) --target simgpu_torch liboffload offload

demo-torch: torch
	@scripts/demo_torch.sh $(BUILD)

test-torch: torch
	@cd $(BUILD) && $(CTEST) -L torch -LE soak

soak-torch: torch
	@cd $(BUILD) && $(CTEST) -L torch

# What a change must pass; the long runs are in soak: an hour of random programs, an hour of the explorer, the gate's, races, faults.
test: all
	@cd $(BUILD) && $(CTEST) -LE soak

soak: all
	@cd $(BUILD) && $(CTEST)

bench: all
	@scripts/bench.sh

bench-torch: torch
	@tests/torch/bench.py --build $(BUILD)

lint: configure
	@scripts/bootstrap.sh --lint
	@scripts/lint.sh $(BUILD)

format:
	@git ls-files '*.h' '*.cpp' '*.c' '*.cu' | xargs clang-format -i

# The engine's own tests under the sanitizers.
asan: SANITIZE := address,undefined
tsan: SANITIZE := thread
asan tsan: bootstrap
	@cmake -S . -B $(BUILD)/$@ -G Ninja -DOFFLOAD_SANITIZE=$(SANITIZE) >/dev/null
	@cmake --build $(BUILD)/$@ -j $(JOBS) --target engine_tests
	@cd $(BUILD)/$@ && $(CTEST) -L engine

# Each fuzzer for so many seconds, from its corpus on.
FUZZ_SECONDS ?= 20
fuzz: bootstrap
	@scripts/bootstrap.sh --fuzz
	@CC=clang CXX=clang++ cmake -S . -B $(BUILD)/fuzz -G Ninja -DOFFLOAD_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
	@cmake --build $(BUILD)/fuzz -j $(JOBS) --target fuzzers
	@scripts/fuzz.sh $(BUILD)/fuzz $(FUZZ_SECONDS)

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

# Keeps what was downloaded.
clean:
	@test ! -d $(BUILD) || find $(BUILD) -mindepth 1 -maxdepth 1 ! -name venv ! -name torch-venv -exec rm -rf {} +
