"""Chains compiled by the system's C compiler: the bits of the plain kernels, and no harm where compiling fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_cpu import compiled
from timberframe_sdk.elementwise.expressions import has_source
from timberframe_sdk.elementwise.sources import SOURCES
from timberframe_sdk.settings import CACHE_VARIABLE

N = 65_536 + 17
SECONDS = 120

needs_compiler = pytest.mark.skipif(compiled.compiler() is None, reason="no C compiler on this machine")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on disk, and nothing compiled in this process."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiled, "sources", compiled.CompiledSources())
    return tmp_path


def _operands(dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    if dtype == "bool":
        return [rng.random(N) < 0.5 for _ in range(2)]
    if not dtype.startswith("float"):
        limits = np.iinfo(dtype)
        return [rng.integers(limits.min, limits.max, N, dtype, endpoint=True) for _ in range(2)]
    made = [rng.standard_normal(N).astype(dtype) * 3 for _ in range(2)]
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 1e30, 0.3]
    for i, x in enumerate(made):
        x[i : i + len(special)] = special
    return made


def _apply(op: str, x: Any, y: Any) -> Any:
    arity = len(registry.get(op).inputs)
    if op in ("Select", "SelectV2"):
        return apply_op(op, [tf.less(x, y) if x.dtype is not tf.bool else x, x, y])
    return apply_op(op, [x, y][:arity])


def _ops(dtype: str) -> list[str]:
    return [op for op in SOURCES if has_source(op, dtype)]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint64", "bool"])
def test_every_op_has_the_bits_of_its_kernel(dtype: str) -> None:
    feeds = _operands(dtype)
    ops = _ops(dtype)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x, y = (tf.placeholder(dtype, [N]) for _ in range(2))
        same = tf.logical_not(x) if dtype == "bool" else tf.maximum(x, x)  # what all are in one group with
        results = {}
        for op in ops:
            try:
                results[op] = _apply(op, same, y)
            except tf.errors.InvalidArgumentError:  # not an op of this dtype
                continue
        given = dict(zip((x, y), feeds, strict=True))
        session.run(list(results.values()), given)
        assert compiled.sources.wait(SECONDS)
        assert any(cell[0] for cell in compiled.sources._cells.values())
        fast = session.run(results, given)
        single = session.run(results, given, options=tf.RunOptions(trace=True))
    for op in results:
        np.testing.assert_array_equal(fast[op], single[op], err_msg=op)


@needs_compiler
def test_casts_and_rows_are_compiled_too() -> None:
    x, y = _operands("float32")
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        a, b = tf.placeholder(tf.float32, [17, None]), tf.placeholder(tf.float32, [None])
        wide = tf.cast(a * b, tf.float64) * 2.0
        result = tf.cast(tf.cast(wide > 1.0, tf.float64) * wide, tf.float32) + tf.reduce_max(b)
        given = {a: x[: 17 * 3855].reshape(17, -1), b: y[:3855]}
        session.run(result, given)
        assert compiled.sources.wait(SECONDS)
        fast = session.run(result, given)
        single = session.run(result, given, options=tf.RunOptions(trace=True))
    np.testing.assert_array_equal(fast, single)


@needs_compiler
def test_a_chain_that_ends_in_a_reduction_has_the_bits_that_it_has_block_by_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = []
    for build in (compiled.compiler, lambda: None):
        monkeypatch.setattr(compiled, "compiler", build)
        monkeypatch.setattr(compiled, "sources", compiled.CompiledSources())
        results.append(_reduced())
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(fast, plain)


def _reduced() -> list[np.ndarray]:
    x, y = (np.random.default_rng(5).standard_normal(s).astype(np.float32) for s in ((17, 3855), 3855))
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        a, b = tf.placeholder(tf.float32, [17, 3855]), tf.placeholder(tf.float32, [3855])
        fetches = [
            tf.reduce_sum(a * b + 1.0),
            tf.reduce_mean(tf.tanh(a) - b, axis=1),
            tf.reduce_max(a - b),
            tf.reduce_sum(tf.cast(a > b, tf.int32), axis=1, keepdims=True),
        ]
        given = {a: x, b: y}
        session.run(fetches, given)
        assert compiled.sources.wait(SECONDS)
        return list(session.run(fetches, given))


def test_a_compiler_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compiler", lambda: ("false", "version"))
    assert _chain() == pytest.approx(7.0)


def test_a_machine_without_a_compiler_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    assert _chain() == pytest.approx(7.0)


def _chain() -> float:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [N])
        y = x * 2.0 + 1.0
        session.run(y, {x: np.zeros(N)})
        assert compiled.sources.wait(SECONDS)
        return float(session.run(y, {x: np.full(N, 3.0)})[N // 2])


@pytest.mark.slow
@needs_compiler
def test_processes_share_one_cache(cache: Path) -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_compiled as t; print(t._chain())"
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [p.communicate(timeout=SECONDS)[0].strip() for p in started] == ["7.0"] * 3
    assert [f.suffix for f in (cache / "fused").iterdir()] == [".so"]


@needs_compiler
def test_what_a_killed_process_left_is_swept_away(cache: Path) -> None:
    left, fresh = cache / "fused" / "making-old", cache / "fused" / "making-new"
    for folder in (left, fresh):
        folder.mkdir(parents=True)
    os.utime(left, (0, 0))
    assert _chain() == pytest.approx(7.0)
    assert not left.exists()
    assert fresh.exists()


@needs_compiler
def test_libraries_in_a_folder_that_others_may_write_to_are_not_loaded(cache: Path) -> None:
    (cache / "fused").mkdir()
    (cache / "fused").chmod(0o777)
    with pytest.raises(PermissionError, match="others may write to"):
        compiled.compiled("int nothing;", "scalar")
