"""Hypotheses on what a kernel was called with: another attr, an input that it left out, exchanged or transposed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError, WrongShapeError
from timberframe_conformance.cluster import output_shapes
from timberframe_conformance.hypotheses.wrong import Hypothesis, Wrong
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import AttrDef


def another_attr(wrong: Wrong) -> Iterator[str]:
    """Recognizes an attr that was read as its default, or as the other of two values."""
    for attr in wrong.op.attrs.values():
        for value in _others(attr, wrong.attrs.get(attr.name)):
            if wrong.equals(wrong.result_of(attrs={**wrong.attrs, attr.name: value})):
                yield f"equals the result with {attr.name}={value}"


_COMMON = (0.0, 1.0, 1e-3, 1e-4, 1e-5)
"""Numbers that implementations have in place of a float attr: defaults of other frameworks' epsilons, and what has no
effect."""


def _others(attr: AttrDef, value: Any) -> Iterator[Any]:
    if attr.kind == "bool":
        yield not value
    elif attr.kind == "string" and attr.allowed:
        yield from (v for v in attr.allowed if v != value)
    elif attr.kind == "float":
        yield from (v for v in dict.fromkeys((attr.default, *_COMMON)) if v is not None and v != value)
    elif attr.kind in ("int", "list(int)"):
        if not attr.required and attr.default is not None and attr.default != value:
            yield attr.default
        if isinstance(value, tuple) and any(v != 1 for v in value):
            yield (1,) * len(value)


def shape_explained(
    error: WrongShapeError, op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]
) -> CaseFailedError:
    """Returns an error on the shape of an output, with the attr that gives this shape when it is read as another value.

    op, attrs, inputs: of the call.
    """
    for attr in op.attrs.values():
        for value in _others(attr, attrs.get(attr.name)):
            try:
                shape, _ = output_shapes(op, {**attrs, attr.name: value}, inputs)[error.number]
            except Exception:  # a shape function may raise anything for what the op does not take
                continue
            if shape == error.shape:
                return CaseFailedError(f"{error}; with {attr.name}={value} it would have this shape")
    return error


def input_left_out(wrong: Wrong) -> Iterator[str]:
    """Recognizes a bias that was not added, a factor that was not multiplied by."""
    for i, x in enumerate(wrong.inputs):
        if len(wrong.inputs) < 2 or x.dtype.name not in FORMATS:
            continue
        for number in (0, 1):
            rest = [np.full_like(x, number) if k == i else y for k, y in enumerate(wrong.inputs)]
            if wrong.equals(wrong.result_of(inputs=rest)):
                yield f"equals the result without input {i} (with {number} in its place)"


def inputs_exchanged(wrong: Wrong) -> Iterator[str]:
    """Recognizes two operands that were taken for each other."""
    for i, k in itertools.combinations(range(len(wrong.inputs)), 2):
        if wrong.inputs[i].dtype == wrong.inputs[k].dtype:
            swapped = list(wrong.inputs)
            swapped[i], swapped[k] = swapped[k], swapped[i]
            if wrong.equals(wrong.result_of(inputs=swapped)):
                yield f"equals the result with inputs {i} and {k} exchanged"


def input_transposed(wrong: Wrong) -> Iterator[str]:
    """Recognizes an operand that was read by columns in place of rows."""
    for i, x in enumerate(wrong.inputs):
        if x.ndim > 1 and min(x.shape[-2:]) > 1:
            for words, other in (
                ("transposed", np.swapaxes(x, -1, -2)),
                ("read by columns", np.swapaxes(x, -1, -2).reshape(x.shape)),
            ):
                if wrong.equals(wrong.result_of(inputs=[other if k == i else y for k, y in enumerate(wrong.inputs)])):
                    yield f"equals the result with input {i} {words}"


def end_left_out(wrong: Wrong) -> Iterator[str]:
    """Recognizes a loop by blocks that leaves out what does not fill the last one."""
    for i, x in enumerate(wrong.inputs):
        for axis in range(x.ndim if x.dtype.name in FORMATS else 0):
            size = x.shape[axis]
            for count in sorted({size % block for block in _BLOCKS} - {0, size}):
                rest = np.array(x)
                rest[(slice(None),) * axis + (slice(size - count, None),)] = 0
                if wrong.equals(wrong.result_of(inputs=[rest if k == i else y for k, y in enumerate(wrong.inputs)])):
                    yield f"equals the result without the last {count} of {size} of input {i} along dimension {axis}"


_BLOCKS = (2, 4, 8, 16)
"""Elements that kernels take at once."""


def nan_passed_over(wrong: Wrong) -> Iterator[str]:
    """Recognizes a reduction that leaves out NaN, as if it were another number."""
    nan = [np.isnan(x) if x.dtype.name in FORMATS and x.dtype.kind != "c" else None for x in wrong.inputs]
    if not any(mask is not None and mask.any() for mask in nan):
        return
    for number in (-np.inf, np.inf, 0.0):
        rest = [
            x if mask is None else np.where(mask, x.dtype.type(number), x)
            for x, mask in zip(wrong.inputs, nan, strict=True)
        ]
        if wrong.equals(wrong.result_of(inputs=rest)):
            yield f"equals the result with {number} in place of NaN, which is passed over"


def node_left_out(wrong: Wrong) -> Iterator[str]:
    """Recognizes one of several nodes that was not computed."""
    for words, candidate in wrong.candidates():
        if wrong.equals(candidate):
            yield f"equals {words}"


HYPOTHESES: tuple[Hypothesis, ...] = (
    node_left_out,
    another_attr,
    input_left_out,
    inputs_exchanged,
    input_transposed,
    nan_passed_over,
    end_left_out,
)
