#!/usr/bin/env bash
# For a machine with an NVIDIA GPU: judges and measures the CUDA plugin there, and writes the reports to
# conformance/results/<the GPU's name>/. Needs `make setup` and CuPy: .venv/bin/pip install cupy-cuda12x (or -cuda13x).
#
# usage: plugins/cuda/tests/on_gpu.sh [--jobs N]     status 1 if a case fails
set -euo pipefail
cd "$(dirname "$0")/../../.."
bin=${BIN:-.venv/bin}
jobs=4 # several processes share one GPU well
if [ "${1:-}" = --jobs ]; then jobs=$2; fi

"$bin/python" -m timberframe devices
name=$("$bin/python" - <<'PROGRAM'
import re
import cupy
print(re.sub("[^a-z0-9]+", "-", cupy.cuda.runtime.getDeviceProperties(0)["name"].decode().lower()).strip("-"))
PROGRAM
)
results=conformance/results/$name
mkdir -p "$results"
"$bin/python" -m timberframe devices --json > "$results/devices.json"

status=0
echo "== CuPy has what the plugin calls"
"$bin/python" -m pytest plugins/cuda/tests/test_cupy.py || status=1
echo "== conformance"
"$bin/conformance" run --device=cuda --level all --jobs "$jobs" \
  --json "$results/conformance.json" --html "$results/conformance.html" || status=1
echo "== benchmarks"
"$bin/conformance" bench --device=cuda --vs numpy --json "$results/bench.json" || status=1
echo "reports: $results"
exit $status
