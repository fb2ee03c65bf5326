"""NVTX ranges show which cluster, node or graph enqueued what, and are made where a profiler is attached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import numpy as np
import timberframe as tf
from cupy.cuda import nvtx

options = {"CUDA": eval(sys.argv[1])}
with tf.Graph().as_default(), tf.device("/device:CUDA:0"):
    x = tf.placeholder(tf.float32, [4, 4], name="x")
    y = x
    for i in range(5):
        y = tf.nn.softmax(tf.transpose(y), name=f"soft{i}")
    with tf.Session(config=tf.SessionConfig(device_options=options)) as session:
        for _ in range(3):
            nvtx.ranges.clear()
            session.run(y, {x: np.ones((4, 4), np.float32)})
            print(*(f"{'  ' * depth}{name}" for depth, name in nvtx.ranges), sep="\\n", end="\\n--\\n")
"""


def run(environment: dict[str, str], options: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [text.strip("\n") for text in done.stdout.split("--\n")[:3]]


@pytest.fixture
def environment(emulated_environment: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in emulated_environment.items() if name != "NVTX_INJECTION64_PATH"}
    return kept | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}


@pytest.mark.parametrize("streams", ["at once"], indirect=True)
def test_runs_nodes_and_graphs_are_ranges(environment: dict[str, str]) -> None:
    first, _, third = run(environment, "{'nvtx': True}")
    begun = first.splitlines()
    assert begun[0] == "cluster of 10: Transpose transpose to Softmax soft4"
    assert begun[1:3] == ["  Transpose transpose", "  Softmax soft0"]
    assert begun[-1] == "  Softmax soft4"
    assert third.splitlines() == [begun[0], "  graph of 10: Transpose transpose to Softmax soft4"]


@pytest.mark.parametrize("streams", ["at once"], indirect=True)
def test_ranges_are_made_under_a_profiler_or_where_they_are_asked_for(environment: dict[str, str]) -> None:
    assert run(environment, "{}") == ["", "", ""]
    profiled = environment | {"NVTX_INJECTION64_PATH": "libprofiler.so"}
    assert all(text.startswith("cluster") for text in run(profiled, "{}"))
    assert run(profiled, "{'nvtx': False}") == ["", "", ""]


PROFILER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A library as NVTX loads it (nvtx3/nvtxDetail/nvtxTypes.h): it puts functions of its own into NVTX's table. */
typedef void (*Function)(void);
typedef struct {
  size_t size;
  int (*table)(int module, Function ***table, unsigned *count);
} Callbacks;
static FILE *out;
static int push(const char *text) { return fprintf(out, "push %s\n", text); }
static int pop(void) { return fprintf(out, "pop\n"); }
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
  const Callbacks *callbacks = export_table(1);
  Function **table;
  unsigned count;
  if (!callbacks || !callbacks->table(1, &table, &count) || !(out = fopen(getenv("RANGES"), "w"))) return 0;
  *table[9] = (Function)push; /* NVTX_CBID_CORE_RangePushA */
  *table[11] = (Function)pop; /* NVTX_CBID_CORE_RangePop */
  return 1;
}
"""


def test_a_profiler_sees_the_ranges_of_the_installed_cupy(tmp_path: Path) -> None:
    """It needs no GPU: NVTX loads the profiler's library at its first call."""
    compiler = shutil.which("cc")
    if find_spec("cupy") is None or compiler is None:
        pytest.skip("CuPy or a C compiler is not installed")
    library, ranges = tmp_path / "profiler.so", tmp_path / "ranges"
    (tmp_path / "profiler.c").write_text(PROFILER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "profiler.c"], check=True)
    program = (
        "from timberframe_cuda.ranges import marked, profiler_attached\nassert profiler_attached()\n"
        "with marked('MatMul a/b'), marked('Relu c'): ..."
    )
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(library), "RANGES": str(ranges)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert ranges.read_text().splitlines() == ["push MatMul a/b", "push Relu c", "pop", "pop"]
