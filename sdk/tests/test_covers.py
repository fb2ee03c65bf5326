"""Kernels that run several nodes as one."""

from __future__ import annotations

import itertools
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import fallback
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_sdk import KernelDef, KernelNode, Launcher, Part, Support, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin

F = np.float32
X, W, B = np.arange(6, dtype=F).reshape(2, 3) - 3, np.arange(12, dtype=F).reshape(3, 4), np.arange(4, dtype=F) - 20
built: list[str] = []

SUM = (Part("product", "MatMul", ("x", "w")), Part("out", "AddV2", ("product", "bias")))
LAYER = (*SUM[:1], Part("sum", "AddV2", ("product", "bias")), Part("out", "Maximum", ("sum", "floor")))
SQUARE = (Part("half", "Mul", ("x", "y")), Part("out", "Mul", ("half", "half")))


def plain(node: KernelNode) -> Support:
    attrs = node.inner[0].nodes[0].attrs
    return "an operand is transposed" if attrs["transpose_a"] or attrs["transpose_b"] else None


def few_rows(node: KernelNode) -> Support:
    if node.inputs[0].shape[0] == 1:
        raise KeyError("a defect")
    return plain(node) or (f"{node.inputs[0].shape[0]} rows" if node.inputs[0].shape[0] > 4 else None)


def build_sum(node: KernelNode) -> Launcher:
    built.append(f"{node.op} {node.name}")
    return lambda x, w, b, out: np.copyto(out, x @ w + b)


def build_layer(node: KernelNode) -> Launcher:
    built.append(f"{node.op} {node.name}")
    return lambda x, w, b, floor, out: np.maximum(x @ w + b, floor, out=out)


def build_square(node: KernelNode) -> Launcher:
    built.append(f"{node.op} {node.name}")
    return lambda x, y, out: np.square(x * y, out=out)


def kernels(device: str) -> list[KernelDef]:
    floats = {"T": ("float32",)}
    return [
        KernelDef("Acme>Sum", device, build_sum, floats, covers=SUM, suits=plain),
        KernelDef("Acme>Layer", device, build_layer, floats, covers=LAYER, suits=few_rows),
        KernelDef("Acme>Square", device, build_square, floats, covers=SQUARE),
        KernelDef("Maximum", device, lambda node: lambda x, y, out: np.maximum(x, y, out=out), priority=-1),
    ]


@pytest.fixture(scope="module", autouse=True)
def added() -> Iterator[None]:
    hook = hookimpl(lambda: [k for device in ("CPU", "NUMPY") for k in kernels(device)])
    with loaded_plugin("covers", types.SimpleNamespace(timberframe_kernels=hook)):
        yield


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0"])
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    built.clear()
    with tf.Graph().as_default() as graph, tf.device(request.param), tf.Session(graph=graph) as session:
        yield session


def layer(x: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    product = tf.matmul(x, tf.constant(W), name="product")
    total = tf.add(product, tf.constant(B), name="total")
    return product, total, tf.maximum(total, 0.0, name="floored")


def test_the_largest_kernel_wins(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    np.testing.assert_array_equal(session.run(y, {x: X}), np.maximum(X @ W + B, 0))
    assert built == ["Acme>Layer floored"]


def test_a_smaller_one_takes_what_the_largest_declines(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    many = np.repeat(X, 3, 0)
    np.testing.assert_array_equal(session.run(y, {x: many}), np.maximum(many @ W + B, 0))
    assert built == ["Acme>Sum total"]


@pytest.mark.filterwarnings("ignore")
def test_a_suits_that_raises_leaves_the_nodes_to_other_kernels(
    session: tf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    rows = np.ones((1, 3), F)
    np.testing.assert_array_equal(session.run(y, {x: rows}), np.maximum(rows @ W + B, 0))
    assert built == ["Acme>Sum total"]
    (failure,) = session.explain(y, {x: rows}).skipped_rewrites
    assert re.search(r"suits of kernel .*build_layer of plugin 'covers' raised KeyError: 'a defect'", failure)


def test_parts_run_by_themselves_where_all_decline(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, None])
    y = tf.maximum(tf.matmul(x, tf.constant(W), transpose_a=True) + B, 0.0)
    np.testing.assert_array_equal(session.run(y, {x: X.T}), np.maximum(X @ W + B, 0))
    assert built == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_value_that_is_fetched_is_not_covered(session: tf.Session, which: int) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    made = layer(x)
    got = session.run([made[which], made[2]], {x: X})
    np.testing.assert_array_equal(got[0], (X @ W, X @ W + B)[which])
    np.testing.assert_array_equal(got[1], np.maximum(X @ W + B, 0))
    assert built == [[], ["Acme>Sum total"]][which]


def test_a_value_that_another_node_reads_is_not_covered(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    product, _, y = layer(x)
    got = session.run(y + tf.reduce_sum(product), {x: X})
    np.testing.assert_array_equal(got, np.maximum(X @ W + B, 0) + np.sum(X @ W))
    assert built == []


def test_operands_of_a_commutative_part_may_be_exchanged(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.constant(B) + tf.matmul(x, tf.constant(W))
    np.testing.assert_array_equal(session.run(y, {x: X}), X @ W + B)
    assert [b.split()[0] for b in built] == ["Acme>Sum"]


def test_a_part_may_be_read_twice_by_another(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    half = x * y
    np.testing.assert_array_equal(session.run(half * half, {x: X[0], y: X[1]}), (X[0] * X[1]) ** 2)
    assert [b.split()[0] for b in built] == ["Acme>Square"]


def test_another_value_in_the_place_of_the_same_is_not_covered(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    np.testing.assert_array_equal(session.run((x * y) * (x + y), {x: X[0], y: X[1]}), (X[0] * X[1]) * (X[0] + X[1]))
    assert built == []


def test_nodes_in_a_loop_are_covered(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [1, 2])
    w, b = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([1.0, 2.0])
    _, y = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, tf.matmul(z, w) + b), [tf.constant(0), x])
    np.testing.assert_array_equal(session.run(y, {x: [[1, 2]]}), [[6, 6]])
    assert [b.split()[0] for b in built] == ["Acme>Sum"]


def test_the_pass_can_be_switched_off(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    with tf.Session(graph=session.graph, config=tf.SessionConfig(optimizations={"cover": False})) as off:
        np.testing.assert_array_equal(off.run(y, {x: X}), np.maximum(X @ W + B, 0))
    assert built == []


def test_explain_says_why_a_kernel_for_several_nodes_declined(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    (report,) = [k for k in session.explain(y, {x: np.repeat(X, 3, 0)}).kernels if k.node == "floored"]
    assert [why.split(": ")[1] for why in report.declined] == ["6 rows"]


def test_explain_and_trace_name_what_is_covered(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    *_, y = layer(x)
    assert session.explain(y, {x: X}).rewritten("cover") == ("product", "total", "floored")
    metadata = tf.RunMetadata()
    session.run(y, {x: X}, tf.RunOptions(trace=True), metadata)
    events = {(e["name"], e.get("cat")) for e in metadata.trace["traceEvents"]}
    assert ("floored", "Acme>Layer") in events
    assert not {"product", "total"} & {name for name, _ in events}


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (KernelDef("MatMul", "CPU", build_sum, covers=SUM), "a name of its own, 'Vendor>Name', is required"),
        (KernelDef("Acme>A", "CPU", build_sum, covers=SUM[::-1]), "before what it reads"),
        (KernelDef("Acme>A", "CPU", build_sum, covers=(SUM[0], SUM[0])), "twice"),
        (KernelDef("Acme>A", "CPU", build_sum, covers=(SUM[0], Part("out", "Relu", ("x",)))), "no later part reads"),
        (KernelDef("Acme>A", "CPU", build_sum, {"X": ("float32",)}, covers=SUM), "types names 'X'"),
    ],
)
def test_a_wrong_pattern_is_refused(kernel: KernelDef, words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        KernelRegistry().register([kernel])


def test_of_equally_many_parts_the_higher_priority_wins() -> None:
    orders = [[1, 2], [2, 1]]
    for priorities, order in itertools.product([(1, 2)], orders):
        registry = KernelRegistry()
        made = {p: KernelDef(f"Acme>S{p}", "CPU", build_sum, covers=SUM, priority=p) for p in priorities}
        registry.register([made[p] for p in order])
        assert [k.priority for k in registry.covering("CPU")["AddV2"]] == [2, 1]
