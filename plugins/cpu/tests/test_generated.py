"""Ops that have a source, and no kernel by hand: the build or the system's compiler makes them one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
import timberframe_cpu
import timberframe_sdk
from timberframe_core.ops.definition import registry
from timberframe_cpu import compiled
from timberframe_cpu.broadcast import SHORT_RUN
from timberframe_cpu.kernels import all_kernels
from timberframe_cpu.loops import loop_source
from timberframe_cpu.native import available_isas, find
from timberframe_cpu.testing import run_op
from timberframe_sdk import Pointwise, apply_op, define_op, define_source
from timberframe_sdk.elementwise.expressions import source_types
from timberframe_sdk.elementwise.sources import SOURCES, Source
from timberframe_sdk.settings import CACHE_VARIABLE
from timberframe_sdk.testing.loaded import temporary_ops

N = 20_011

needs_compiler = pytest.mark.skipif(compiled.compiler() is None, reason="no C compiler on this machine")


def _blend(attrs: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    share = np.asarray(attrs["share"], x.dtype)
    return np.asarray(x + share * (y - x))


def _define(name: str, floats: str, branches: bool = False) -> None:
    define_op(
        name,
        inputs=["x: T", "y: T"],
        outputs=["z: T"],
        attrs=["share: float = 0.5", "T: {float, double, half, bfloat16, int32}"],
        doc="x + share * (y - x).",
        shape=lambda c: [np.broadcast_shapes(*c.shapes)] if None not in c.shapes else [None],
        reference=_blend,
        elementwise=True,
        accuracy=Pointwise(float32=2, float64=2),
    )
    define_source(name, floats, integers="{0} + ({T}){share} * ({1} - {0})", branches=branches)


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[None]:
    with temporary_ops():
        _define("Acme>Blend", "{0} + ({T}){share} * ({1} - {0})")
        _define("Acme>Wrong", "acme_no_such_function({0}, {1})", branches=True)
        yield


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on disk, and nothing compiled in this process."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiled, "sources", compiled.CompiledSources())
    return tmp_path


def _run(op: str, x: Any, y: Any, share: float) -> np.ndarray:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        found: np.ndarray = session.run(apply_op(op, [tf.constant(x), tf.constant(y)], {"share": share}))
        return found


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("shapes", [((3, 5), (3, 5)), ((3, 5), ()), ((4, 1, SHORT_RUN + 1), (3, 1)), ((2, 0), (2, 1))])
def test_a_compiled_kernel_gives_what_the_reference_gives(dtype: str, shapes: Any, cache: Path) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-8, 8, shape).astype(tf.as_dtype(dtype).as_numpy_dtype) for shape in shapes)
    np.testing.assert_array_equal(_run("Acme>Blend", x, y, 3.0), _blend({"share": 3.0}, x, y))
    assert list(cache.rglob("*.so"))


@needs_compiler
def test_an_op_with_a_source_is_taken_into_chains() -> None:
    given = np.linspace(-1, 1, N, dtype=np.float32)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [N])
        y = tf.exp(apply_op("Acme>Blend", [x * 2.0, x], {"share": 0.25}) + 1.0)
        assert "arena 0 bytes" in str(session.explain(y))
        found = session.run(y, {x: given})
    np.testing.assert_allclose(found, np.exp(1.75 * given + 1), rtol=1e-6)


def test_without_a_compiler_the_reference_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    assert _run("Acme>Blend", np.float32([1, 2]), np.float32([3, 4]), 0.5).tolist() == [2, 3]


@needs_compiler
def test_a_source_that_does_not_compile_is_logged_and_the_reference_computes(caplog: pytest.LogCaptureFixture) -> None:
    assert _run("Acme>Wrong", np.float32([1, 2]), np.float32([3, 4]), 0.5).tolist() == [2, 3]
    assert "Acme>Wrong: its source does not compile" in caplog.text


def test_ops_of_the_table_need_no_compiler_when_they_run() -> None:
    by_hand = {k.op for k in all_kernels()}
    ops = [op for op in SOURCES if op not in by_hand and ">" not in op]
    assert "PopulationCount" in ops
    for op in ops:
        for dtype in (source_types(registry.get(op)) or {})["T"]:
            assert find(f"{op}_{dtype}", "scalar")


@pytest.mark.parametrize("isa", ["scalar", None])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_the_build_makes_kernels_of_the_table(dtype: str, isa: str | None) -> None:
    x = np.array([0, 1, 3, -1, 100, *range(-600, 600)]).astype(dtype)
    (found,) = run_op("PopulationCount", {}, [x], isa)
    mask = (1 << 8 * x.itemsize) - 1
    assert found.dtype == np.uint8
    assert found.tolist() == [(int(n) & mask).bit_count() for n in x]


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("alpha", [0.3, -1.5])
def test_kernels_of_the_build_take_attrs(dtype: str, alpha: float, isa: str) -> None:
    op, rng = registry.get("LeakyReluGrad"), np.random.default_rng(0)
    gradient, features = (rng.normal(size=1_000).astype(tf.as_dtype(dtype).as_numpy_dtype) for _ in range(2))
    attrs = {"alpha": alpha, "T": tf.as_dtype(dtype)}
    assert op.reference is not None
    wanted = op.reference(attrs, gradient, features)
    np.testing.assert_array_equal(run_op(op.name, attrs, [gradient, features], isa)[0], wanted)


def test_a_loop_reads_integer_attrs_as_integers() -> None:
    source = Source(integers="{0} + {count} * {factor}", integer_attrs=("count",))
    loop = loop_source("added", source, ["int32"], "int32")
    assert "const int64_t attr_count = ((const int64_t *)in[1])[0];" in loop
    assert "const double attr_factor = tf_double(((const int64_t *)in[1])[1]);" in loop
    assert "a0 + attr_count * attr_factor" in loop


def test_generated_kernels_are_made_again_when_declarations_of_kernels_change(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "csrc" / "elementwise" / "generate.py"
    sdk, package = (Path(m.__file__ or "").parent for m in (timberframe_sdk, timberframe_cpu))
    output, depfile = tmp_path / "generated.c", tmp_path / "generated.d"
    subprocess.run([sys.executable, script, sdk, package, output, depfile], check=True, cwd=tmp_path, timeout=60)
    target, read = depfile.read_text().split(": ")
    assert target == "generated.c"
    assert str(package / "kernels" / "binary.py") in read.split()
