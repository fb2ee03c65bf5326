"""The update ops of optimizers and scattered updates, compared with TensorFlow's on the same graph."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

STATE_OPS = [
    op
    for op in registry.all_ops()
    if op.updates and op.name.startswith(("ResourceApply", "ResourceSparseApply", "ResourceScatter"))
]
DTYPES = ("float32", "float64", "complex64")


def call(op: OpDef, number: int, dtype: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Inputs of the op's own sample of this number, and its attrs."""
    sample = list(op.samples())[number]
    rng = np.random.default_rng(zlib.crc32(op.name.encode()) + number)
    inputs = {}
    for arg, spec in zip(op.inputs, sample.inputs, strict=True):
        own = {"indices": "int32", "global_step": "int64"}.get(arg.name, dtype)
        low, high = (-1.0 if spec.low is None else spec.low), (1.0 if spec.high is None else spec.high)
        x = spec.values if spec.values is not None else rng.uniform(low, high, spec.shape)
        if spec.values is None and own == "complex64":
            x = x + 1j * rng.uniform(low, high, spec.shape)
        inputs[arg.name] = np.asarray(x).astype(own)
    return inputs, dict(sample.attrs)


def samples() -> list[Any]:
    """Up to three samples of each op, in each dtype that they allow."""
    chosen = []
    for op in STATE_OPS:
        for number, sample in enumerate(list(op.samples())[1:4], 1):
            allowed = next(iter(sample.types.values()))
            chosen += [pytest.param(op, number, t, id=f"{op.name}-{number}-{t}") for t in DTYPES if t in allowed]
    return chosen


@pytest.mark.parametrize(("op", "number", "dtype"), samples())
def test_an_update_gives_what_tensorflow_gives(
    carry_over: Callable[[Any], int], op: OpDef, number: int, dtype: str
) -> None:
    inputs, attrs = call(op, number, dtype)

    def build(tf: Any, feeds: Any) -> Any:
        states = {n: tf.Variable(inputs[n], use_resource=True) for n in op.updates}
        fed = {n: feeds(x) for n, x in inputs.items() if n not in states}
        if "bad_indices_policy" in op.attrs:
            attrs.setdefault("bad_indices_policy", "")
        done = getattr(tf.raw_ops, op.name)(**{n: v.handle for n, v in states.items()}, **fed, **attrs)
        with tf.control_dependencies([done]):
            return [v.read_value() for v in states.values()]

    assert carry_over(build) > 0
