# make run    sets up, runs the conformance suite on the CPU and a share of it on OpenCL, then an example on real data
# make check  sets up, then lint, types and the tests that take under half a second each: for every edit
# make test   sets up, then lint, types, the site of the documentation and every package's tests: for every commit
# make full   what takes longer: sanitizers, all mutants, soak levels, comparison with other systems, wheels
# make docs   the documentation as a site: docs/build/site/index.html
# make release    wheels of all packages in dist/: docs/releases.md
# make try-wheels tries them in empty environments, without a compiler
# make elsewhere compiles the CPU's kernels for Windows and macOS, and tries those for Windows where there is Wine
# make try-gpu-script tries what a machine with a GPU is to run, on the emulator: plugins/cuda/tests/README.md
#
# Where a share of something is tried, the commit chooses it: the same commit has the same verdict on every day.
# PYTHON=python3.12 make test uses another interpreter.

PYTHON ?= python3
# Each command says how long it took.
SHELL := bash
export TIMEFORMAT := %1R s
# Some hundred tests start interpreters of their own, which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
PEERS := .venv-peers
RELEASE := .venv-release
SERVING := .venv-serving
BIN := $(VENV)/bin
# On a terminal pip and Sphinx show how far they are; a log has their warnings and errors alone.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)
INSTALL := -m pip install $(QUIET) --disable-pip-version-check -c constraints.txt
PIP := $(BIN)/python $(INSTALL)
# What builds the packages is in requirements-dev.txt: an environment for the build of each takes pip three seconds of a processor.
EDITABLE := $(PIP) --no-build-isolation
# Builds find meson, ninja and the interpreter of the environment.
BUILDING := PATH="$(abspath $(BIN)):$$PATH"
# Where there are wheels of Ray; elsewhere its plugin is not installed, and its tests say so.
RAY := $(if $(filter Linux-x86_64 Linux-aarch64 Darwin-arm64,$(shell uname -s)-$(shell uname -m)),plugins/ray)
# What plugins/cpu needs installed, and what needs plugins/cpu.
BELOW := core sdk
ABOVE := frontend conformance plugins/accelerator plugins/opencl plugins/cuda plugins/onnx plugins/onnxruntime plugins/torch plugins/pjrt $(RAY) serving
# The parts of the frontend that need a library of others are judged, too.
EXTRAS := absl,images,re2,safetensors,scipy
SOURCES := core/src frontend/src sdk/src plugins/cpu/src plugins/accelerator/src plugins/opencl/src plugins/cuda/src plugins/ray/src plugins/onnx/src plugins/onnxruntime/src plugins/torch/src plugins/pjrt/src conformance/src serving/src release docs/site
STAMPS := $(VENV)/stamps
# A whole run on a driver that stands for the CPU takes too long for each change; make full has it.
OPENCL_SHARES := 16
# Where the OpenCL driver comes as a wheel; elsewhere those who have a driver judge the plugin.
OPENCL := $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m))
NATIVE := $(shell find plugins/cpu sdk/src/timberframe_sdk/include -type f \
  -not -path '*/build/*' -not -path '*/tests/*' -not -name '*.md' -not -name '*.pyc' 2>/dev/null)

CPU_BUILD := plugins/cpu/build/wheel
EMULATOR := plugins/cuda/tests/emulator
GPU_TRIAL := plugins/cuda/build/gpu
NVRTC := $(shell sed -n 's/^nvidia-cuda-nvrtc==//p' constraints.txt)
# A warning of the C compiler is an error where changes are judged; elsewhere, with a newer compiler, it is none.
WERROR := $(if $(CI),--config-settings=setup-args=-Dwerror=true)

.PHONY: always setup run check test lint types tests full docs sanitize faults peers release try-wheels elsewhere try-gpu-script clean

setup: $(STAMPS)/cpu $(STAMPS)/above

$(STAMPS)/venv: requirements-dev.txt constraints.txt
	@echo "== creating $(VENV)"
	@time $(PYTHON) -m venv $(VENV)
	@time $(PIP) -r requirements-dev.txt
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/below: $(STAMPS)/venv $(BELOW:%=%/pyproject.toml)
	@echo "== installing $(BELOW)"
	@time $(EDITABLE) $(BELOW:%=-e ./%)
	@touch $@

# pip builds and installs the package once; from then on ninja compiles what is edited, in the same build folder.
$(STAMPS)/wheel: $(STAMPS)/below plugins/cpu/pyproject.toml $(if $(wildcard $(CPU_BUILD)/build.ninja),,always)
	@echo "== building and installing plugins/cpu"
	@touch $(STAMPS)/cpu.begin
	@time $(BUILDING) $(PIP) --no-build-isolation --config-settings=build-dir=build/wheel $(WERROR) ./plugins/cpu
	@touch -r $(STAMPS)/cpu.begin $@

# A source that changes while it is compiled leaves an object file of its old text that is newer than the source. Ninja
# would keep that, beside Python code that belongs to the new text; so such a source is compiled again.
$(STAMPS)/cpu: $(STAMPS)/wheel $(NATIVE)
	@echo "== bringing plugins/cpu up to date"
	@[ -e $@.begin ] || touch $@.begin
	@time while $(BIN)/python plugins/cpu/update.py || exit 1; \
	  changed=$$(find $(NATIVE) -newer $@.begin 2> /dev/null); [ -n "$$changed" ]; do \
	  echo "changed meanwhile, compiled again:" $$changed; touch $$changed $@.begin; done
	@mv $@.begin $@

$(STAMPS)/above: $(STAMPS)/below $(ABOVE:%=%/pyproject.toml) | $(STAMPS)/cpu
	@echo "== installing $(ABOVE)"
	@time $(EDITABLE) $(patsubst ./frontend,'./frontend[$(EXTRAS)]',$(ABOVE:%=-e ./%))
	@touch $@

run: setup
	@echo "== conformance run --device=cpu"
	@time $(BIN)/conformance run --device=cpu
ifneq ($(OPENCL),)
	@echo "== conformance run --device=opencl, the commit's share"
	@time $(BIN)/conformance run --device=opencl --share commit/$(OPENCL_SHARES)
endif
	@echo "== examples/digits.py"
	@time $(BIN)/python examples/digits.py
	@echo "make run: passed (conformance on the CPU and of a share on OpenCL, digits example)"

# All tests but those marked slow, whatever was edited: nearly every test runs through ops, graph, compiler and CPU, so
# that a choice by changed files would be most of them, or miss some.
check: lint types
	@echo "== pytest, but for slow tests"
	@time $(BIN)/pytest -n 2 -m "not slow"
	@echo "make check: passed (ruff, mypy --strict, tests that are not slow)"

test: lint types docs tests
	@echo "make test: passed (ruff, mypy --strict, the site without a warning, tests of core, frontend, sdk, plugins, conformance, serving)"

lint: setup
	@echo "== ruff"
	@time $(BIN)/ruff check .
	@time $(BIN)/ruff format --check --quiet .

types: setup
	@echo "== mypy --strict"
	@time $(BIN)/mypy $(SOURCES)

tests: setup
	@echo "== pytest"
	@time $(BIN)/pytest -n 2 --durations=20 --durations-min=2

full: test run sanitize faults peers try-wheels elsewhere try-gpu-script
ifneq ($(OPENCL),)
	@echo "== conformance run --device=opencl"
	@time $(BIN)/conformance run --device=opencl
	@echo "== random graphs on OpenCL"
	@time $(BIN)/conformance fuzz --device=opencl --seconds 300 --seed commit
	@echo "== a convolutional network trained on OpenCL"
	@time $(BIN)/python examples/digits_cnn.py --device /device:OPENCL:0
	@echo "== small cases on oclgrind, the commit's share, where it is installed"
	@time if command -v oclgrind > /dev/null; then \
	  $(BIN)/python plugins/opencl/tests/oclgrind.py --share commit/$(OPENCL_SHARES); fi
endif
	@echo "== the core without plugins, on the reference device"
	@time TIMBERFRAME_PLUGINS=reference $(BIN)/pytest core/tests
	@echo "== all CUDA sources"
	@time $(BIN)/python plugins/cuda/tests/test_nvrtc.py
	@echo "== registers, stack, spills and shared memory of all CUDA kernels"
	@time $(BIN)/python $(EMULATOR)/kernel_figures.py --check
	@echo "== CUDA on emulated streams that work late, the commit's share"
	@time EMULATED_STREAMS=late PYTHONPATH=$(abspath $(EMULATOR)):$(abspath $(EMULATOR))/driver \
	  $(BIN)/conformance run --device=cuda --share commit/40
	@echo "== all mutants"
	@time $(BIN)/conformance mutants
	@echo "== all known bugs of a provider of ONNX Runtime"
	@time TIMBERFRAME_ALL_MUTANTS=1 $(BIN)/pytest -n 2 plugins/onnxruntime/tests/test_mutants.py
	@echo "== random graphs on the CPU, and known bugs of the framework that they must find"
	@time $(BIN)/conformance fuzz --device=cpu --seconds 300 --seed commit
	@time $(BIN)/conformance mutants --framework --device=cpu
	@echo "== lazy kernels of every op"
	@time $(BIN)/conformance mutants --lazy
	@echo "== 5,000 damaged files"
	@time $(BIN)/conformance hostile --count 5000
	@echo "== 1,000 damaged ONNX models"
	@time $(BIN)/python plugins/onnx/tests/damage.py --count 1000
	@echo "== killed writers of checkpoints"
	@time $(BIN)/python frontend/tests/killing/kill_writer.py --kills 200 --everywhere
	@echo "== killed trainings"
	@time $(BIN)/python frontend/tests/killing/kill_training.py --kills 50 --everywhere
	@echo "== 1,000 hostile requests to a server, drawn anew for each commit"
	@time $(BIN)/python serving/tests/hostile.py --count 1000 --seed $$(git rev-parse HEAD)
	@echo "== versions swapped under load; an hour of it: --minutes 60"
	@time $(BIN)/python serving/tests/soak.py --requests 100000 --swaps 20
ifneq ($(RAY),)
	@$(MAKE) --no-print-directory $(SERVING)/stamp
	@echo "== a replica of Ray Serve killed under load, and spans of OpenTelemetry"
	@time $(SERVING)/bin/python serving/tests/kill_replica.py
	@time $(SERVING)/bin/python -m pytest serving/tests/test_tracing.py
	@echo "== killed workers and parameter servers"
	@time $(BIN)/python plugins/ray/tests/kills.py --kills 100
	@echo "== conformance on a worker of a cluster"
	@time $(BIN)/python -m timberframe_ray up && { $(BIN)/conformance run --device=ray:local; status=$$?; \
	  $(BIN)/python -m timberframe_ray down; exit $$status; }
endif
	@echo "== soak"
	@time $(BIN)/conformance run --device=cpu --level soak --timeout 600
	@time $(BIN)/conformance mutants --device=cpu --soak
	@echo "make full: passed (tests, conformance, OpenCL, CUDA sources, sanitizers, faults, peers, mutants, killed writers, trainings and workers, soak)"

sanitize: setup
	@echo "== address, undefined behaviour and thread sanitizers"
	@time $(PIP) -r requirements-full.txt
	@time $(BUILDING) $(BIN)/python plugins/cpu/tests/sanitize.py address
	@time $(BUILDING) $(BIN)/python plugins/cpu/tests/sanitize.py thread

elsewhere: setup $(RELEASE)/stamp
	@echo "== the CPU's kernels for Windows and macOS; with Wine, calls recorded here repeated by those for Windows"
	@time $(BIN)/python plugins/cpu/tests/elsewhere/record.py plugins/cpu/build/calls
	@time $(RELEASE)/bin/python plugins/cpu/tests/elsewhere/build.py \
	  $$(if command -v wine > /dev/null; then echo --run plugins/cpu/build/calls; fi)

# The commit decides which faults it tries. One that nothing notices is to be judged: see conformance/README.md.
faults: setup
	@echo "== random faults in the C sources"
	@time $(PIP) -r requirements-full.txt
	@time $(BUILDING) $(BIN)/python conformance/tools/source_mutants --seed commit --count 25
ifneq ($(OPENCL),)
	@time $(BUILDING) $(BIN)/python conformance/tools/source_mutants --seed commit --headers --count 3
endif

# A warning is an error: a page that no list has, a link that leads nowhere.
docs: setup $(STAMPS)/docs
	@echo "== documentation"
	@time $(BIN)/python -m sphinx $(QUIET) -j 2 -W --keep-going -c docs/site -d docs/build/doctrees . docs/build/site
	@echo "make docs: docs/build/site/index.html"

$(STAMPS)/docs: requirements-docs.txt constraints.txt
	@time $(PIP) -r requirements-docs.txt
	@touch $@

# TensorFlow, PyTorch and ONNX Runtime live in an environment of their own: yardsticks, never dependencies.
peers: $(PEERS)/stamp
	@echo "== results and times against TensorFlow and NumPy"
	@time $(PEERS)/bin/pytest frontend/tests/tensorflow_oracle frontend/tests/training conformance/tests/test_bench_convolutions.py
	@echo "== PyTorch's CPU as a device, and known bugs of a backend"
	@time TIMBERFRAME_ALL_MUTANTS=1 $(PEERS)/bin/pytest plugins/torch/tests
	@time $(PEERS)/bin/conformance run --device=torch:cpu --level training --profile plugins/torch/profiles/cpu.toml
	@echo "== XLA's CPU as a device of PJRT, and known bugs of a plugin"
	@time TIMBERFRAME_ALL_MUTANTS=1 $(PEERS)/bin/pytest plugins/pjrt/tests
	@time $(PEERS)/bin/conformance run --device=pjrt:cpu --level training --profile plugins/pjrt/profiles/cpu.toml
	@time $(PEERS)/bin/conformance bench --device=cpu --vs numpy,tensorflow --one-core
	@echo "== random graphs beside TensorFlow"
	@time $(PEERS)/bin/conformance fuzz --device=cpu --vs tensorflow --oracles tensorflow --seconds 300 --seed commit
	@echo "== ONNX files of others against ONNX Runtime and TensorFlow"
	@time $(PEERS)/bin/python -m pip download $(QUIET) --disable-pip-version-check --no-deps --dest $(PEERS)/files \
	  -r plugins/onnx/tests/peers/files.txt
	@time TIMBERFRAME_PEER_FILES=$(PEERS)/files $(PEERS)/bin/pytest plugins/onnx/tests/peers
	@echo "== the server, asked by clients of others"
	@time $(BIN)/python serving/tests/clients/check.py --folder $(PEERS)/clients \
	  --tensorflow $$(echo $(abspath $(PEERS))/lib/python*/site-packages)
	@echo "== whole networks against TensorFlow and ONNX Runtime, few samples"
	@time $(PEERS)/bin/conformance bench --models --vs onnxruntime,tensorflow --quick

$(PEERS)/stamp: $(STAMPS)/cpu requirements-peers.txt
	@echo "== installing TensorFlow, PyTorch and ONNX Runtime into $(PEERS)"
	@time $(PYTHON) -m venv $(PEERS)
	@time $(PEERS)/bin/python $(INSTALL) -r requirements-dev.txt -r requirements-peers.txt $(BELOW:%=-e ./%)
	@time $(BUILDING) $(BIN)/python -m pip wheel $(QUIET) --no-build-isolation --no-deps \
	  --config-settings=build-dir=build/wheel --wheel-dir plugins/cpu/build/dist ./plugins/cpu
	@time $(PEERS)/bin/python $(INSTALL) --force-reinstall --no-deps plugins/cpu/build/dist/timberframe_cpu-*.whl
	@time $(PEERS)/bin/python $(INSTALL) $(ABOVE:%=-e ./%)
	@touch $@

# Ray Serve brings much; the environment has all else from that of the tests.
$(SERVING)/stamp: $(STAMPS)/above requirements-serving.txt
	@echo "== installing Ray Serve and OpenTelemetry into $(SERVING)"
	@time $(PYTHON) -m venv $(SERVING)
	@echo "import site; site.addsitedir('$$(echo $(abspath $(VENV))/lib/python*/site-packages)')" \
	  > $$(echo $(SERVING)/lib/python*/site-packages)/timberframe-tests.pth
	@time $(SERVING)/bin/python $(INSTALL) -r requirements-serving.txt
	@touch $@

release: $(RELEASE)/stamp
	@echo "== wheels"
	@time $(RELEASE)/bin/python release/wheels.py

$(RELEASE)/stamp: requirements-release.txt constraints.txt
	@time $(PYTHON) -m venv $(RELEASE)
	@time $(RELEASE)/bin/python $(INSTALL) -r requirements-release.txt
	@touch $@

try-wheels: release setup
	@echo "== the wheels in empty environments"
	@time $(BIN)/python release/try_wheels.py
	@echo "== the wheels for Arm, emulated, where qemu-user is installed and there are any"
	@time if command -v qemu-aarch64 > /dev/null && ls dist/*_aarch64.whl > /dev/null 2>&1; then \
	  $(BIN)/python release/try_aarch64.py; fi

# What a machine with a GPU is to be given and to run, tried on the emulator, so that it works when there is one.
try-gpu-script: release setup
	@echo "== preparing for a GPU machine"
	@time plugins/cuda/tests/gpu/prepare.sh --built --nvrtc $(NVRTC) \
	  --python $$($(BIN)/python -c "import sys; print('%d.%d' % sys.version_info[:2])") Softmax
	@echo "== the script for a GPU machine, on the emulator"
	@time OUT=$(GPU_TRIAL) PYTHON=$(abspath $(BIN)/python) plugins/cuda/tests/on_gpu.sh --emulated

clean:
	rm -rf $(VENV) $(PEERS) $(RELEASE) $(SERVING) $(GPU_TRIAL) .gpu plugins/cpu/build docs/build dist
