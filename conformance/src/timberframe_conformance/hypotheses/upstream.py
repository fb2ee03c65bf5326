"""Where in a graph an error begins: the first node whose result differs while its inputs are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.tolerance.compare import check
from timberframe_core.ops.definition.formats import FORMATS

Values = Callable[[Any], np.ndarray]
"""The value of a tensor."""


def first_wrong_node(tensor: Any, device: Values, truth: Values, tolerance: float) -> str:
    """Says at which node the error of a tensor begins, and what is wrong there.

    Goes from the tensor to an input that differs, as long as there is one. device: fetches one tensor alone, so that
    kernels that cover several nodes stay in use wherever that is possible. truth: the same in float64. tolerance: a
    fraction of the largest magnitude.
    """
    node, values = tensor.op, dict[Any, np.ndarray]()

    def differs(t: Any) -> bool:
        values[t] = device(t)
        return not _off(values[t], truth(t)) <= tolerance

    while True:
        inputs = [t for t in dict.fromkeys(node.inputs) if t.dtype.name in FORMATS and t.op.type != "Const"]
        wrong = next((t for t in inputs if t not in values and differs(t)), None)
        if wrong is None:
            break
        node = wrong.op
    return f"the first node that differs is {node.type} '{node.name}'{_alone(node, values, device)}"


def _off(got: np.ndarray, right: np.ndarray) -> float:
    """Returns the largest error, as a fraction of the largest magnitude."""
    if not right.size:
        return 0.0
    size = float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right))) or 1.0
    with np.errstate(all="ignore"):
        error = np.where(np.asarray(got) == right, 0, np.abs(np.asarray(got, right.dtype) - right))
    return float(np.max(np.where(np.isnan(error), np.inf, error))) / size


def _alone(node: Any, values: Mapping[Any, np.ndarray], device: Values) -> str:
    """Returns the suite's verdict on the node's results for the values that its inputs have on the device."""
    if node.op_def.reference is None or any(t.dtype.name == "resource" for t in node.inputs):
        return ""
    inputs = [values[t] if t in values else device(t) for t in node.inputs]
    got = [device(t) for t in node.outputs]
    try:
        check(node.op_def, node.attrs, inputs, got, [t.dtype.numpy for t in node.outputs])
    except CaseFailedError as e:
        return f": {e}"
    return (
        ", which is right for the inputs that it has when they are fetched: errors of nodes before it add up, or a "
        "kernel for several nodes or memory that is used again is wrong"
    )
