"""Kernels of small elements read and write packs of neighbours, and single elements where packs cannot be."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import ml_dtypes
import numpy as np
from timberframe_accelerator import DeviceTensor, Source
from timberframe_accelerator import traversal
from timberframe_accelerator.kernels.elementwise import build_checked, build_single
from timberframe_conformance.cluster import one_node
from timberframe_core import dtypes
from timberframe_core.ops.definition import registry
from timberframe_cuda.device import devices

if "unchecked" in sys.argv:  # packs wherever tensors begin
    loops = traversal.Traversal.loops
    traversal.Traversal.loops = lambda self, body, packed, aligned: loops(self, body, packed, ["1"])
device = devices({"count": {}, "memory_limit": {}})[0]
rng = np.random.default_rng(0)

def on_device(x, shift):
    held = device.empty(x.dtype, (x.size + shift,))
    return DeviceTensor(held.handle + shift * x.itemsize, x.dtype, x.shape, held)

def run(op, attrs, arrays, shifts, build=build_single):
    attrs = {name: dtypes.as_dtype(value) if name.endswith("T") else value for name, value in attrs.items()}
    cluster, _ = one_node(device, registry.get(op), attrs, arrays)
    node = cluster.nodes[0]
    given = []
    for x, shift in zip(arrays, shifts):
        held = on_device(x, shift)
        device.copy(device.copy_in(x), held)
        given.append(held)
    out = node.outputs[0]
    whole = device.copy_in(np.full(out.size + 2 * 16, 7, out.dtype))  # what lies around the result is to stay
    shift = 16 + shifts[-1]
    target = DeviceTensor(whole.handle + shift * out.dtype.itemsize, out.dtype, out.shape, whole)
    build(node)(*given, target)
    found = device.copy_out(whole)
    assert (np.delete(found, slice(shift, shift + out.size)) == np.asarray(7, out.dtype)).all()
    return found[shift : shift + out.size].reshape(out.shape)

def check(op, attrs, types, shapes, reference, shifts=(0, 0, 0)):
    arrays = [rng.integers(0, 2 if t == "bool" else 9, s).astype(t) for t, s in zip(types, shapes)]
    found = run(op, attrs, arrays, shifts[: len(arrays)] + shifts[-1:])
    np.testing.assert_array_equal(found, np.asarray(reference(*arrays)).astype(found.dtype))
"""

SUMS = """
for dtype in ("bfloat16", "float16", "int8", "uint16"):
    for shapes in (((1,), (1,)), ((7,), (7,)), ((16,), (16,)), ((97,), (97,)), ((97,), ()), ((), (64,)),
                   ((3, 64), (64,)), ((3, 64), (3, 1)), ((3, 33), (33,)), ((2, 3, 16), (3, 1)), ((2, 3, 5), (3, 1)),
                   ((2, 1, 4, 16), (3, 1, 16)), ((70, 2), (2,))):
        for shifts in ((0, 0, 0), (1, 0, 0), (0, 0, 1), (8, 8, 8)):
            check("AddV2", {"T": dtype}, [dtype] * 2, shapes, np.add, shifts)
"""

OTHERS = """
for shape in ((1,), (5,), (40,), (131,)):
    for shifts in ((0, 0, 0), (1, 1, 1)):
        check("Less", {"T": "float32"}, ["float32"] * 2, [shape] * 2, np.less, shifts)
        check("LogicalAnd", {}, ["bool"] * 2, [shape] * 2, np.logical_and, shifts)
        check("SelectV2", {"T": "float16"}, ["bool", "float16", "float16"], [shape] * 3, np.where, (*shifts, 0))
        for source, target in (("int8", "float64"), ("float64", "int8"), ("bool", "bfloat16"), ("bfloat16", "float32"),
                               ("float32", "float16"), ("uint8", "int16")):
            check("Cast", {"SrcT": source, "DstT": target}, [source], [shape], lambda x: x, shifts)
"""

REFUSED = """
x, y = np.arange(200, dtype=np.int8), np.ones(200, np.int8)
y[137] = 0
cluster, _ = one_node(device, registry.get("FloorDiv"), {"T": dtypes.int8}, [x, y])
launch, status = build_checked(cluster.nodes[0]), device.copy_in(np.zeros(6, np.int64))
out = device.empty(np.dtype(np.int8), (200,))
launch(device.copy_in(x), device.copy_in(y), out, status)
assert device.copy_out(status)[1:4].tolist() == [1, 137, 0], device.copy_out(status)
found = device.copy_out(out)
assert (np.delete(found, 137) == np.delete(x, 137)).all() and found[137] == 0
"""


def run(environment: dict[str, str], program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("streams", ["at once"], indirect=True)
@pytest.mark.parametrize("program", [SUMS, OTHERS, REFUSED], ids=["sums", "others", "refused"])
def test_all_elements_are_right_wherever_tensors_begin_and_end(
    emulated_environment: dict[str, str], program: str
) -> None:
    done = run(emulated_environment, program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("streams", ["at once"], indirect=True)
def test_packs_at_odd_addresses_would_end_the_process(emulated_environment: dict[str, str]) -> None:
    program = 'check("AddV2", {"T": "bfloat16"}, ["bfloat16"] * 2, [(64,)] * 2, np.add, (int(sys.argv[2]), 0, 0))'
    assert run(emulated_environment, program, "unchecked", "0").returncode == 0
    assert run(emulated_environment, program, "unchecked", "1").returncode == -signal.SIGILL


MACHINE_CODE = r"""
import re
import nvrtc
from kernel_sources import kernel_sources
from timberframe_cuda.compiler import flags

compiler = nvrtc.Nvrtc()
for source, what in kernel_sources(3, ["AddV2", "LogicalAnd", "Tanh"]).items():
    program = compiler.createProgram(source, "kernel.cu", (), ())
    compiler.compileProgram(program, flags("compute_80"))
    ptx = compiler.getPTX(program).decode()
    if "ld.global.v4.u32" in ptx and "st.global.v4.u32" in ptx:
        print(what.split()[0], *re.findall(r"'T': '(\w+)'", what))
"""


@pytest.mark.parametrize("streams", ["at once"], indirect=True)
def test_machine_code_reads_and_writes_16_bytes_at_once(emulated_environment: dict[str, str]) -> None:
    import nvrtc

    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed; the package nvidia-cuda-nvrtc has it")
    command = [sys.executable, "-c", MACHINE_CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=emulated_environment)
    sums = [f"AddV2 {dtype}" for dtype in ("bfloat16", "float16", "int16", "int8", "uint16", "uint8")]
    assert sorted({*done.stdout.splitlines()}) == [*sums, "LogicalAnd", "Tanh bfloat16", "Tanh float16"], done.stderr
