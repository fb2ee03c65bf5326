"""Builds graphs in TensorFlow, imports them as GraphDef, and compares our results with TensorFlow's.

Everything here is skipped where tensorflow or a device plugin is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_core.config import SessionConfig
from timberframe_core.runtime.devices import devices_for

Build = Callable[..., Any]

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 1e-5,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}


@dataclass
class Feeds:
    """The inputs of a graph: `feeds(array)` makes a placeholder and records its feed."""

    tf: Any
    values: dict[str, Any] = field(default_factory=dict)

    def __call__(self, array: Any, shape: Any = "same") -> Any:
        array = np.asarray(array)
        dtype = self.tf.string if array.dtype.kind in "SUO" else array.dtype
        placeholder = self.tf.placeholder(dtype, array.shape if shape == "same" else shape)
        self.values[placeholder.name] = array
        return placeholder


@pytest.fixture(scope="session")
def tensorflow() -> Any:
    """tensorflow.compat.v1; skips the test where it or a device is missing."""
    if not devices_for(SessionConfig()):  # before TensorFlow, as an OpenCL driver's LLVM may not load after its own
        pytest.skip("no device plugin is installed")
    return pytest.importorskip("tensorflow.compat.v1", reason="tensorflow is not installed")


@pytest.fixture
def carry_over(tensorflow: Any) -> Callable[[Build], int]:
    """A function that builds a graph in TensorFlow, runs it on both sides, and returns how many results are equal."""

    def run(build: Build) -> int:
        tf = tensorflow
        with tf.Graph().as_default() as graph:
            feeds = Feeds(tf)
            fetches = build(tf, feeds)
            fetches = list(fetches) if isinstance(fetches, list | tuple) else [fetches]
            initializer = tf.global_variables_initializer().name if tf.global_variables() else None
            with tf.Session() as session:
                if initializer:
                    session.run(initializer)
                expected = session.run(fetches, feeds.values)
        names = [fetch.name for fetch in fetches]
        found = run_ours(graph.as_graph_def(add_shapes=True), names, feeds.values, initializer)
        for name, want, got in zip(names, expected, found, strict=True):
            assert_same(got, want, name)
        return len(names)

    return run


@pytest.fixture
def compare(tensorflow: Any) -> Callable[..., None]:
    """A function ``(op, inputs, attrs=None, unknown=False)`` that compares the gradients that both give for one op."""

    def run(op: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, unknown: bool = False) -> None:
        forward, y, fed, u, want = their_gradients(tensorflow, op, inputs, attrs or {}, unknown)
        with timberframe.Graph().as_default() as ours:
            timberframe.import_graph_def(forward, name="")
            xs = [ours.get_tensor_by_name(n) for n in fed]
            made = timberframe.gradients(ours.get_tensor_by_name(y), xs, grad_ys=[timberframe.constant(u)])
            found = [None if g is None else timberframe.convert_to_tensor(g) for g in made]
            with timberframe.Session(graph=ours) as session:
                for i, (f, w) in enumerate(zip(found, want, strict=True)):
                    assert (f is None) == (w is None), i
                    if f is not None:
                        assert_same(session.run(f, fed), w, f"{op} input {i}")

    return run


def their_gradients(tf: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any], unknown: bool) -> Any:
    """Returns the graph without gradients, its first result's name, the feeds, that result's gradient, and theirs."""
    with tf.Graph().as_default() as graph:
        fed: dict[str, np.ndarray] = {}
        arguments: dict[str, Any] = {}
        for name, value in inputs.items():
            values = value if isinstance(value, list) else [value]
            made = []
            for x in values:
                if x.dtype.kind in "fc":
                    made.append(tf.placeholder(x.dtype, None if unknown else x.shape))
                    fed[made[-1].name] = x
                else:
                    made.append(tf.constant(x))
            arguments[name] = made if isinstance(value, list) else made[0]
        result = getattr(tf.raw_ops, op)(**arguments, **attrs)
        y = result[0] if isinstance(result, tuple) else result
        forward = graph.as_graph_def(add_shapes=True)
        xs = [graph.get_tensor_by_name(n) for n in fed]
        with tf.Session() as session:
            value = session.run(y, fed)
            rng = np.random.default_rng(7)
            parts = rng.uniform(-1, 1, (2, *value.shape))
            u = np.asarray(parts[0] + 1j * parts[1] if value.dtype.kind == "c" else parts[0]).astype(value.dtype)
            made = tf.gradients(y, xs, grad_ys=[tf.constant(u)])
            want = [None if g is None else session.run(tf.convert_to_tensor(g), fed) for g in made]
    return forward, y.name, fed, u, want


def run_ours(graph_def: Any, fetches: list[str], feeds: dict[str, Any], initializer: str | None) -> list[Any]:
    """Imports TensorFlow's message and runs it."""
    with timberframe.Graph().as_default() as graph:
        timberframe.import_graph_def(graph_def, name="")
        with timberframe.Session(graph=graph) as session:
            if initializer:
                session.run(initializer)
            return list(session.run(fetches, feeds))


def assert_same(got: Any, want: Any, name: str) -> None:
    """Equal dtype, shape and values; floats within the dtype's tolerance, scaled by the largest value."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, name
    assert got.dtype == want.dtype, name
    tolerance = TOLERANCE.get(str(want.dtype))
    if tolerance is None:
        np.testing.assert_array_equal(got, want, name)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    finite = np.abs(want.astype(wide))[np.isfinite(want.astype(wide))]
    scale = max(float(finite.max()), 1e-3) if finite.size else 1.0
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance * scale, err_msg=name
    )
