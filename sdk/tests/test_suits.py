"""Kernels and devices that decline nodes by their attrs and shapes, and where such nodes run then."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.plugin import loader
from timberframe_sdk import (
    DEPENDS,
    EXACT,
    Arg,
    KernelDef,
    KernelNode,
    Launcher,
    Sample,
    Support,
    define_op,
    hookimpl,
)
from timberframe_sdk.testing import asynchronous_device, reference_device
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

F = np.float32
REASON = "7 elements are odd; it takes even numbers"


def even(node: KernelNode) -> Support:
    """Declines odd numbers of elements, and `mode` = "never"."""
    if node.attrs["mode"] == "never":
        return "mode is never"
    if any(d < 0 for d in node.inputs[0].shape):
        return DEPENDS
    size = node.inputs[0].size
    return f"{size} elements are odd; it takes even numbers" if size % 2 else None


def doubling(factor: float) -> Callable[[KernelNode], Launcher]:
    return lambda node: lambda x, out: np.multiply(x, factor, out=out)


def build_double(node: KernelNode) -> Launcher:
    return doubling(2)(node)


def define_ops() -> None:
    define_op(
        "Acme>Even", inputs=["x: T"], outputs=["y: T"], attrs=["mode: string = 'any'", "T: {float, int64}"],
        doc="Twice x.", shape=lambda c: [c.shapes[0]], reference=lambda attrs, x: x * 2, accuracy=EXACT,
        samples=lambda: [Sample([Arg((n,))]) for n in (4, 7)],
    )  # fmt: skip
    for name in ("Raises", "Undecided", "Both", "Agrees"):
        define_op(
            f"Acme>{name}", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=lambda c: [c.shapes[0]],
            reference=lambda attrs, x: x, accuracy=EXACT,
        )  # fmt: skip


class DecidingDevice(asynchronous_device.AsynchronousDevice):
    """Compiles clusters as a whole, and decides about nodes itself."""

    type = "DECIDING"
    supports_by_dtype = False

    def __init__(self) -> None:
        super().__init__(0, None)
        self.spec = "/device:DECIDING:0"

    def supports(self, node: KernelNode) -> Support:
        return even(node) if node.op == "Acme>Even" else super().supports(node)


def raises(node: KernelNode) -> Support:
    raise KeyError("block")


def kernels(device: str) -> list[KernelDef]:
    return [
        KernelDef("Acme>Even", device, build_double, suits=even),
        KernelDef("Acme>Raises", device, build_double, suits=raises),
        KernelDef("Acme>Undecided", device, build_double, suits=lambda node: DEPENDS),
        KernelDef("Acme>Agrees", device, build_double, suits=lambda node: True),  # type: ignore[arg-type, return-value]
        KernelDef("Acme>Both", device, build_double, suits=lambda node: "it takes nothing", priority=1),
        KernelDef("Acme>Both", device, doubling(1)),
    ]


@hookimpl
def devices(config: Mapping[str, Any]) -> list[Any]:
    return [DecidingDevice()] * config["count"].get("DECIDING", 0)


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    made = hookimpl(lambda: [*kernels("CPU"), *kernels("NUMPY")])
    even_plugin = types.SimpleNamespace(timberframe_kernels=made, timberframe_devices=devices)
    with temporary_ops(), loaded_plugin("reference", reference_device), loaded_plugin("even", even_plugin):
        define_ops()
        yield


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0", "/device:DECIDING:0"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def config(soft: bool) -> tf.SessionConfig:
    return tf.SessionConfig(allow_soft_placement=soft, device_count={"DECIDING": 1})


@pytest.fixture
def soft(device: str) -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device(device), tf.Session(graph=graph, config=config(True)) as session:
        yield session


@pytest.fixture
def hard(device: str) -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device(device), tf.Session(graph=graph, config=config(False)) as session:
        yield session


def double(x: tf.Tensor, mode: str = "any") -> tf.Tensor:
    found: tf.Tensor = apply_op("Acme>Even", [x], {"mode": mode}, name="twice")
    return found


def placed(session: tf.Session, y: tf.Tensor, feeds: Any = None) -> list[tuple[str, str]]:
    """Devices of the node, with the reasons, in the order in which they were decided."""
    found = session.explain(y, feeds).placements
    return [(p.device, p.reason) for p in found if p.op == "Acme>Even"]


def test_a_node_whose_static_shape_suits_runs_where_it_was_placed(soft: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [4])
    assert [where for where, _ in placed(soft, double(x))] == [device]


def test_a_declined_static_shape_moves_the_node_with_the_reason(soft: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [7])
    ((where, why),) = placed(soft, double(x))
    assert where != device
    assert REASON in why


def test_a_declined_attr_moves_the_node(soft: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [4])
    ((where, why),) = placed(soft, double(x, "never"))
    assert (where != device, "mode is never" in why) == (True, True)


def test_a_shape_that_is_declined_when_it_is_fed_runs_elsewhere(soft: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = double(x)
    for n in (4, 7, 4, 7):
        np.testing.assert_array_equal(soft.run(y, {x: np.arange(n)}), 2 * np.arange(n))
    first, second = placed(soft, y, {x: np.zeros(7, F)})
    assert (first[0], second[0] != device) == (device, True)
    assert REASON in second[1]
    assert len(placed(soft, y, {x: np.zeros(4, F)})) == 1


def test_without_soft_placement_every_reason_is_reported(hard: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = double(x)
    np.testing.assert_array_equal(hard.run(y, {x: np.ones(4)}), [2] * 4)
    with pytest.raises(tf.errors.NoKernelError, match=rf"Acme>Even 'twice'.*{device}: .*{REASON}.*place it on") as e:
        hard.run(y, {x: np.ones(7)})
    assert "test_suits.py" in str(e.value)
    np.testing.assert_array_equal(hard.run(y, {x: np.ones(4)}), [2] * 4)


def test_a_rank_that_is_not_known_while_placing_is_decided_when_it_is(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    y = double(x)
    for shape in ((2, 3), (7,), ()):
        np.testing.assert_array_equal(soft.run(y, {x: np.ones(shape)}), 2 * np.ones(shape))


def test_nodes_before_and_after_a_declined_one_stay_on_their_device(soft: tf.Session, device: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    before = x + 1.0
    after = double(before) * 3.0 - before
    metadata = tf.RunMetadata()
    for n in (4, 7):
        got = soft.run([after, before], {x: np.arange(n)}, tf.RunOptions(trace=True), metadata)
        np.testing.assert_array_equal(got, [5 * np.arange(n) + 5, np.arange(n) + 1])


def test_updates_around_a_declined_node_are_done_in_order(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(np.zeros((), F))
    soft.run(v.initializer)
    update = v.assign_add(tf.reduce_sum(double(x + v)))
    assert [soft.run(update, {x: np.ones(n)}) for n in (4, 7)] == [8, 8 + 2 * 7 * 9]
    assert soft.run(v) == 134


def test_a_shape_known_during_the_run_is_decided_then(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = double(apply_op("Where", [tf.less(x, 2.0)]))
    for values in ([1, 1, 5], [5, 1, 5], [1, 1, 1]):
        np.testing.assert_array_equal(soft.run(y, {x: values}), 2 * np.argwhere(np.less(values, 2)))


def test_a_declined_node_in_a_loop_runs_elsewhere(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, double(z)), [tf.constant(0), x])
    for n in (4, 7):
        np.testing.assert_array_equal(soft.run(y, {x: np.ones(n)}), [8] * n)


def test_a_loop_whose_kernel_declines_some_shapes_is_driven_for_these_alone(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, double(z)), [tf.constant(0), x])
    y = y + 1.0
    found = []
    for n in (4, 7, 4):
        soft.run(y, {x: np.ones(n)})
        found += [(r.driver, r.reason) for r in soft.explain(y, {x: np.ones(n)}).loops]
    drivers, reasons = zip(*found, strict=True)
    if soft.explain(y).loops[0].driver == "executor":
        assert "does not run StatelessWhile" in reasons[0]  # this device never does
    else:
        assert drivers == ("kernel", "executor", "kernel")
        assert "Acme>Even '" in reasons[1]
        assert REASON in reasons[1]


def test_a_loop_with_a_kernel_that_declines_is_compiled_by_nobody(
    session: tf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, double(z)), [tf.constant(0), x])
    device = session.list_devices()[0] if "CPU" in y.device else session.list_devices()[-1]
    compiled: list[str] = []
    compile_ = device.compile
    monkeypatch.setattr(device, "compile", lambda c: compiled.extend(n.op for n in c.nodes) or compile_(c))
    session.run(y, {x: np.ones(7)})
    assert "StatelessWhile" not in compiled


def test_a_declined_node_in_a_branch_runs_elsewhere(soft: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: double(x), lambda: x)
    for n in (4, 7):
        np.testing.assert_array_equal(soft.run(y, {x: np.ones(n)}), [2] * n)


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0"])
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    """A session on a device that looks its kernels up."""
    with tf.Graph().as_default() as graph, tf.device(request.param), tf.Session(graph=graph) as session:
        yield session


@pytest.mark.parametrize("shape", [[4], [None]])
def test_an_exception_in_suits_names_plugin_and_kernel(session: tf.Session, shape: Any) -> None:
    x = tf.placeholder(tf.float32, shape)
    words = r"Acme>Raises '.*': suits of kernel .*build_double of plugin 'even' raised KeyError: 'block'"
    with pytest.raises(tf.errors.UnknownError, match=words):
        session.run(apply_op("Acme>Raises", [x]), {x: np.ones(4)})


def test_a_kernel_must_decide_when_all_shapes_are_known(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [4])
    with pytest.raises(tf.errors.InternalError, match=r"depends on shapes, all of which are known"):
        session.run(apply_op("Acme>Undecided", [x]), {x: np.ones(4)})


def test_an_answer_of_another_kind_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [4])
    with pytest.raises(
        tf.errors.InternalError, match=r"suits of kernel .* returned True; None, a reason or DEPENDS is"
    ):
        session.run(apply_op("Acme>Agrees", [x]), {x: np.ones(4)})


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_the_next_kernel_of_the_device_runs_what_the_first_declines(device: str) -> None:
    better = KernelDef("Acme>Even", device, doubling(2.5), suits=even, label="ranked", priority=2)
    plain = KernelDef("Acme>Even", device, doubling(2), label="ranked")
    made = types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [plain, better]))
    loader.registry.add(f"ranked{device}", made)
    with tf.Graph().as_default() as graph, tf.device(f"/{device}:0"), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None])
        y = apply_op("Acme>Even", [x], {"_kernel": "ranked"})
        assert [session.run(y, {x: np.ones(n)})[0] for n in (4, 7)] == [2.5, 2]


@pytest.mark.parametrize("device", ["/device:CPU:0", "/device:NUMPY:0"])
def test_explain_names_the_kernel_that_runs_and_those_that_declined(hard: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [4])
    y = apply_op("Acme>Both", [x], name="both")
    assert hard.run(y, {x: [1, 2, 3, 4]}).tolist() == [1, 2, 3, 4]
    (found,) = hard.explain(y, {x: [1, 2, 3, 4]}).kernels
    assert (found.kernel.endswith("doubling.<locals>.<lambda>"), found.plugin) == (True, "even")
    assert found.declined == (f"{build_double.__module__}.build_double: it takes nothing",)
