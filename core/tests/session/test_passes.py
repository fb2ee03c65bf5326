"""Passes that join from outside: when they run, what they change, and what becomes of those that fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import fallback
from timberframe_core.compiler.passes.rewriter import ClusterRewriter, ProgramRewriter
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin import loader
from timberframe_core.plugin.hooks import hookimpl
from timberframe_core.plugin.passes import Pass, PassRegistry, with_passes

Join = Callable[..., None]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Join:
    """Adds passes for the time of a test."""
    monkeypatch.setattr(loader.registry.passes, "_owners", dict(loader.registry.passes._owners))
    return lambda *passes: loader.registry.passes.register(passes)


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def cubes_by_products(rewriter: ProgramRewriter) -> None:
    """x ** 3 as x * x * x."""
    for node in rewriter.nodes:
        if node.op.name != "Pow":
            continue
        x, power = rewriter.inputs(node)
        if power.node.op.role == "constant" and np.all(power.node.attrs["value"] == 3):
            square = rewriter.create("Mul", [x, x], {"T": x.dtype}, node)
            cube = rewriter.create("Mul", [square.outputs[0], x], {"T": x.dtype}, node)
            rewriter.insert(square, node)
            rewriter.insert(cube, node)
            rewriter.replace(node.outputs[0], cube.outputs[0])
            rewriter.erase(node)


CUBES = Pass("cubes", "program", cubes_by_products, "computes cubes by products")


def test_a_pass_rewrites_what_a_run_needs(join: Join) -> None:
    join(CUBES)
    x = tf.placeholder(tf.float32, [None])
    y = tf.pow(x, 3.0, name="cube") + 1.0
    with tf.Session() as session:
        assert session.run(y, {x: [2, 3]}).tolist() == [9, 28]
        report = session.explain(y, {x: [2, 3]})
    assert report.rewritten("cubes") == ("cube",)
    assert "  cubes: cube" in str(report).splitlines()


def test_a_pass_rewrites_bodies_of_loops_alike(join: Join) -> None:
    join(CUBES)
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.pow(v, 3.0)), [0, x])[1]
    with tf.Session() as session:
        assert session.run(y, {x: [1, 2]}).tolist() == [1, 512]
        assert session.explain(y, {x: [1, 2]}).rewritten("cubes") == ("Pow",)


def test_a_pass_that_is_switched_off_does_nothing(join: Join) -> None:
    join(CUBES)
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=tf.SessionConfig(optimizations={"cubes": False})) as session:
        assert not any(p.name == "cubes" for p in session.explain(tf.pow(x, 3.0)).passes)


def halves_as_products(rewriter: ClusterRewriter) -> None:
    """x / 2 as x * 0.5."""
    for node in rewriter.nodes:
        divisor = node.const(1) if node.op == "RealDiv" else None
        if divisor is not None and np.all(divisor == 2):
            half = rewriter.constant(np.array(0.5, divisor.dtype))
            made = rewriter.create("Mul", [rewriter.inputs(node)[0], half], node.attrs, node)
            rewriter.insert(made, node)
            rewriter.replace(node.outputs[0], made.outputs[0])
            rewriter.erase(node)


def test_a_pass_over_clusters_knows_shapes_and_constants(join: Join) -> None:
    join(Pass("halves", "cluster", halves_as_products, "multiplies by a half"))
    x = tf.placeholder(tf.float32, [None])
    y = tf.divide(x, 2.0, name="half")
    with tf.Session() as session:
        assert session.run([y, y + 1.0], {x: [3, 5]})[0].tolist() == [1.5, 2.5]
        assert session.explain(y, {x: [3, 5]}).rewritten("halves") == ("half",)


def test_passes_run_after_those_that_they_name() -> None:
    registry = PassRegistry()

    def named(name: str, *after: str) -> Pass:
        return Pass(name, "program", cubes_by_products, "", after)

    registry.register([named("last", "middle"), named("middle", "first"), named("first")])
    assert [p.name for p in registry.selected((), {})] == ["first", "middle", "last"]
    with pytest.raises(InvalidArgumentError, match="each waits for another"):
        registry.register([named("a", "b"), named("b", "a")])
    assert len(registry.selected((), {})) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Pass("Cubes", "program", cubes_by_products, ""), "must be of lower-case letters"),
        (
            Pass("cubes", "late", cubes_by_products, ""),
            "phase is 'late'; one of graph, fed_graph, program, placed, cluster",
        ),
        (Pass("fold", "placed", cubes_by_products, ""), "there is one of this name"),
        (cubes_by_products, "is a function; a Pass is required"),
    ],
)
def test_a_wrong_pass_is_refused(join: Join, wrong: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        join(wrong)


def _fails(rewriter: ProgramRewriter) -> None:
    cubes_by_products(rewriter)
    raise KeyError("a defect")


def _erases_what_is_read(rewriter: ProgramRewriter) -> None:
    rewriter.erase(next(n for n in rewriter.nodes if n.op.name == "Pow"))


def _erases_what_is_fed(rewriter: ProgramRewriter) -> None:
    rewriter.erase(next(n for n in rewriter.nodes if n.feed))


def _closes_a_cycle(rewriter: ProgramRewriter) -> None:
    node = next(n for n in rewriter.nodes if n.op.name == "Pow")
    made = rewriter.create("Mul", [node.outputs[0], node.outputs[0]], {"T": node.outputs[0].dtype}, node)
    rewriter.insert(made, node)
    rewriter.replace(node.inputs[0], made.outputs[0])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (_fails, "KeyError: 'a defect'"),
        (_erases_what_is_read, "InternalError: .* reads a value of a node that the pass erased"),
        (_erases_what_is_fed, "InternalError: .*is fed, stateful or ordered"),
        (_closes_a_cycle, "InternalError: the pass closed a cycle"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_pass_that_fails_is_left_out_and_reported(
    join: Join, monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], None], message: str
) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    join(Pass("wrong", "program", run, "fails"))
    x = tf.placeholder(tf.float32, [2])
    y = tf.pow(x, 3.0) + tf.constant(1.0) * tf.constant(2.0)
    with tf.Session() as session:
        assert session.run(y, {x: [2, 3]}).tolist() == [10, 29]
        report = session.explain(y)
    failure = next(p.failure for p in report.passes if p.name == "wrong")
    assert re.match(message, failure)
    assert report.rewritten("fold"), "the other passes go on"


def test_a_plugin_brings_its_passes(join: Join) -> None:
    join()
    module = SimpleNamespace(timberframe_passes=hookimpl(lambda: [CUBES]))
    registry = loader.PluginRegistry()
    registry.add("cubist", module)
    assert registry.passes.selected(["cubist"], {}) == [CUBES]
    assert registry.passes.selected([], {}) == [], "where the plugin is not used, its passes are not"


def test_a_plugin_with_a_wrong_pass_is_left_out_whole() -> None:
    module = SimpleNamespace(timberframe_passes=hookimpl(lambda: [CUBES, CUBES]))
    with pytest.raises(InvalidArgumentError, match="there is one of this name"):
        loader.PluginRegistry().add("cubist", module)


@pytest.mark.cpu
def test_what_a_device_cannot_compile_is_compiled_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise tf.errors.InternalError("a defect of the fused kernel")

    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    monkeypatch.setattr(fallback, "_logged", set())
    monkeypatch.setattr("timberframe_cpu.preparation.build_blocks", fail)
    x = tf.placeholder(tf.float32, [100_000])
    y = tf.tanh(x * 2.0) + 1.0
    with tf.Session() as session, tf.device("/device:CPU:0"):
        assert session.run(y, {x: np.zeros(100_000)}).sum() == 100_000
        found = session.explain(y, {x: np.zeros(100_000)}).skipped_rewrites
    assert any("what the passes 'fuse' made failed" in line for line in found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [np.zeros(3, np.float32), np.zeros((), np.float64)])
def test_a_pass_that_changes_shape_or_dtype_is_left_out(
    join: Join, monkeypatch: pytest.MonkeyPatch, value: np.ndarray
) -> None:
    def run(rewriter: ProgramRewriter) -> None:
        for node in (n for n in rewriter.nodes if n.op.name == "Tanh"):
            made = rewriter.constant(value, node.outputs[0])
            made.outputs[0].dtype = tf.as_dtype(value.dtype)
            rewriter.insert(made, node)
            rewriter.replace(node.outputs[0], made.outputs[0])

    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    join(Pass("wrong", "program", run, "gives something else"))
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        assert session.run(tf.tanh(x), {x: 0}) == 0
        failure = next(p.failure for p in session.explain(tf.tanh(x)).passes if p.name == "wrong")
    assert "dtype and shape must stay" in failure


def test_passes_run_before_those_that_they_name() -> None:
    registry = PassRegistry()
    registry.register([CUBES, Pass("squares", "program", cubes_by_products, "", before=("cubes",))])
    assert [p.name for p in registry.selected((), {})] == ["squares", "cubes"]


def test_passes_of_a_plugin_that_is_loaded_within_the_block_stay() -> None:
    registry = PassRegistry()
    own, other = (Pass(name, "program", lambda rewriter: None, "A test.") for name in ("own", "other"))
    with with_passes(registry, [own]):
        registry.register([other], "acme")
    assert registry.selected(["acme"], {}) == [other]


def test_passes_that_are_registered_meanwhile_stay_when_a_plugin_is_refused() -> None:
    registry = PassRegistry()
    own, other = (Pass(name, "program", lambda rewriter: None, "A test.") for name in ("own", "other"))
    with suppress(ValueError), registry.registered([own], "wrong"):
        registry.register([other], "acme")
        raise ValueError("its kernels are wrong")
    assert registry.selected(["acme", "wrong"], {}) == [other]
