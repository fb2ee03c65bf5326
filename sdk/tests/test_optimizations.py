"""What is rewritten before a device compiles it, as SessionConfig.optimizations says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import Cluster, numpy_device

OFF = {"simplify": False, "cse": False}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many nodes of each op the NumPy device was given, those in bodies included."""
    counts: Counter[str] = Counter()
    plain = numpy_device.NumpyDevice.compile

    def compile_(device: Any, cluster: Cluster) -> Any:
        counts.update(node.op for node in cluster.nodes)
        return plain(device, cluster)  # which compiles the inner clusters, too

    monkeypatch.setattr(numpy_device.NumpyDevice, "compile", compile_)
    with tf.Graph().as_default(), tf.device("/device:NUMPY:0"):
        yield counts


def wasteful(x: Any) -> Any:
    """x * x twice, and a copy of their sum."""
    return tf.identity(x * x + x * x)


def in_loop(x: Any) -> Any:
    return tf.while_loop(lambda i, _: i < 2.0, lambda i, y: (i + 1.0, wasteful(y)), [0.0, x])[1]


def true() -> Any:
    with tf.device("/device:CPU:0"):
        return tf.placeholder_with_default(True, [])


def in_branch(x: Any) -> Any:
    return tf.cond(true(), lambda: wasteful(x), lambda: x)


def in_nested_bodies(x: Any) -> Any:
    return tf.cond(true(), lambda: in_loop(x), lambda: x)


BODIES = pytest.mark.parametrize("build", [in_loop, in_branch, in_nested_bodies])


def run(build: Callable[[Any], Any], optimizations: dict[str, bool]) -> Any:
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=tf.SessionConfig(optimizations=optimizations)) as session:
        return session.run(build(x), {x: [1, 2]})


@BODIES
def test_bodies_are_not_merged_when_that_is_off(compiled: Counter[str], build: Any) -> None:
    run(build, {"cse": False})
    assert compiled["Mul"] == 2


@BODIES
def test_bodies_are_merged_when_nothing_else_is_said(compiled: Counter[str], build: Any) -> None:
    run(build, {})
    assert compiled["Mul"] == 1


@BODIES
def test_copies_in_bodies_stay_when_simplification_is_off(compiled: Counter[str], build: Any) -> None:
    run(build, {"simplify": False})
    assert compiled["Identity"] >= 1


@BODIES
def test_bodies_give_the_same_with_and_without_rewrites(build: Any) -> None:
    np.testing.assert_array_equal(run(build, OFF), run(build, {}))


def folded(*fetches: Any) -> tuple[str, ...]:
    with tf.Session() as session:
        return session.explain(list(fetches)).rewritten("fold")


@pytest.fixture
def constants() -> Iterator[tuple[Any, Any]]:
    """A chain of constants that can be computed, and a look-up outside its table, which cannot."""
    with tf.Graph().as_default():
        good = tf.add(tf.multiply(tf.constant([1.0, 2.0]), 3.0, name="product"), 1.0, name="total")
        yield good, tf.gather(tf.constant([1.0, 2.0]), tf.constant([5]), name="bad")


def test_a_constant_that_fails_leaves_the_others_folded(constants: Any) -> None:
    assert folded(*constants) == ("product", "total")


def test_what_rests_on_a_constant_that_fails_is_not_folded(constants: Any) -> None:
    good, bad = constants
    assert folded(tf.add(bad, good, name="sum"), good) == ("product", "total")


def test_several_constants_that_fail_leave_the_others_folded(constants: Any) -> None:
    fetches = []
    for i in range(5):
        fetches.append(tf.gather(tf.constant([1.0]), tf.constant([i]), name=f"look{i}"))  # 0 is inside
        fetches.append(tf.multiply(tf.constant([1.0]), float(i), name=f"product{i}"))
    assert set(folded(*fetches)) == {"look0", *(f"product{i}" for i in range(5))}


def test_a_constant_that_fails_raises_at_the_run(constants: Any) -> None:
    good, bad = constants
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"GatherV2 'bad': index 5.*test_optimizations\.py:\d+"),
    ):
        session.run([good, bad])


def test_constants_beside_one_that_fails_have_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = numpy_device.NumpyDevice.compile

    def compile_(device: Any, cluster: Cluster) -> Any:
        if not cluster.inputs and any(node.op == "Sub" for node in cluster.nodes):
            raise tf.errors.ResourceExhaustedError("no memory for constants")
        return plain(device, cluster)

    monkeypatch.setattr(numpy_device.NumpyDevice, "compile", compile_)
    with tf.Graph().as_default(), tf.device("/device:NUMPY:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        three = tf.constant([1.0, 2.0]) * 3.0
        less = tf.subtract(three, [1.0, 1.0], name="less")
        fetches = [x + three, less * (three + 1.0) + x]
        assert "less" not in session.explain(fetches, {x: [0, 0]}).rewritten("fold")
        results = session.run(fetches, {x: [0, 0]})
    np.testing.assert_array_equal(results, [[3, 6], [8, 35]])


def test_constants_of_one_device_that_rest_on_another_are_folded() -> None:
    with tf.Graph().as_default():
        with tf.device("/device:CPU:0"):
            first = tf.multiply(tf.constant([1.0, 2.0]), 3.0, name="first")
            own = tf.multiply(tf.constant([1.0]), 5.0, name="own")
        with tf.device("/device:NUMPY:0"):
            second = tf.add(first, 1.0, name="second")
        with tf.device("/device:CPU:0"):
            third = tf.add(second, own, name="third")
        assert {"first", "own", "second"} <= set(folded(third))
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(third), [9, 12])


@pytest.mark.parametrize("device", ["/device:CPU:0", "/device:NUMPY:0"])
def test_a_kernel_label_that_nobody_has_is_named(device: str) -> None:
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = apply_op("Mul", [x, x], {"_kernel": "fastest"}, name="y")
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"Mul 'y': no kernel has.*label is '', wanted 'fastest'"
        ):
            session.run(y, {x: [1, 2]})


def test_constants_of_a_device_that_compiles_slowly_are_computed_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        slow: Any = next(d for d in session.list_devices() if d.type == "NUMPY")
    compiled: list[str] = []
    compile_ = slow.compile
    monkeypatch.setattr(slow, "attributes", replace(slow.attributes, slow_compile=True))
    monkeypatch.setattr(slow, "compile", lambda c: compiled.extend(n.op for n in c.nodes) or compile_(c), raising=False)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with tf.device("/device:NUMPY:0"):
            y = x + tf.constant([1.0, 2.0]) * 3.0
        assert session.run(y, {x: [1, 1]}).tolist() == [4, 7]
        assert session.explain(y, {x: [1, 1]}).rewritten("fold") == ("mul",)
    assert compiled == ["AddV2"]


EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e30, 3e38, 1e-13, -1.5, 7.25]


def power(x: Any, exponent: Any, dtype: Any = tf.float32, **optimizations: bool) -> tuple[Any, tuple[str, ...]]:
    """Returns a power, and what the pass `powers` rewrote for it."""
    with tf.Graph().as_default(), tf.device("/device:CPU:0"):
        feeds = {tf.placeholder(dtype, [len(x)]): x}
        y = tf.pow(*feeds, exponent() if callable(exponent) else tf.constant(exponent, dtype), name="y")
        with tf.Session(config=tf.SessionConfig(optimizations=optimizations)) as session:
            explanation = session.explain(y, feeds)
            switched = [p.name for p in explanation.passes]
            return session.run(y, feeds), explanation.rewritten("powers") if "powers" in switched else ()


@pytest.mark.parametrize("exponent", [-1.0, 2.0, 3.0, 4.0])
def test_a_power_by_a_small_whole_number_is_a_product(exponent: float) -> None:
    got, rewritten = power(EDGES, exponent)
    with np.errstate(all="ignore"):
        expected = (np.array(EDGES, np.float32).astype(np.float64) ** exponent).astype(np.float32)
    np.testing.assert_allclose(got, expected, rtol=3e-7, atol=3e-45)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))
    assert rewritten == ("y",)


@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [(tf.float32, 0.5), (tf.float32, 2.5), (tf.float32, [3.0, 3.0]), (tf.float16, 3.0), (tf.int32, 3)],
)
def test_other_powers_stay(dtype: Any, exponent: Any) -> None:
    got, rewritten = power([4, 9], exponent, dtype)
    np.testing.assert_allclose(got, np.array([4, 9]) ** np.array(exponent), rtol=1e-3)
    assert rewritten == ()


def test_a_power_stays_where_the_pass_is_switched_off() -> None:
    got, rewritten = power([2, 3], 3.0, powers=False)
    np.testing.assert_allclose(got, [8, 27], rtol=1e-6)
    assert rewritten == ()


def test_a_power_with_a_computed_constant_is_a_product() -> None:
    got, rewritten = power([2, 3], lambda: tf.constant(1.0) + tf.constant(2.0))
    np.testing.assert_array_equal(got, [8, 27])
    assert rewritten == ("y",)
