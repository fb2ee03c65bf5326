"""Values that follow from constants, so that they are known before a model runs: files compute shapes and paddings."""

from __future__ import annotations

import numpy as np

from timberframe_core.errors import OpError
from timberframe_core.ops.definition.opdef import evaluate
from timberframe_onnx.elements import Array
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.values import Tensor, Value

MOST_ELEMENTS = 1024
"""Of a tensor that is computed here: larger ones are data, which the compiler computes once."""
MOST_OPS = 64
"""One after another, that are followed to constants."""


def static(value: Value) -> Array | None:
    """Returns the value of a tensor that is known before the model runs, else None."""
    if value is None or not isinstance(value, tf.Tensor):
        return None
    found = tf.get_static_value(value)
    return np.asarray(found) if found is not None else _computed(value, MOST_OPS)


def _computed(tensor: Tensor, depth: int) -> Array | None:
    """Returns the value of a small tensor by references of the ops between it and constants."""
    known = tf.get_static_value(tensor)
    if known is not None:
        return np.asarray(known)
    op = tensor.op
    definition = op.op_def
    count = tensor.shape.num_elements()
    if depth == 0 or count is None or count > MOST_ELEMENTS or not op.inputs:
        return None
    if definition.reference is None or definition.stateful or any(arg.is_list for arg in definition.inputs):
        return None
    inputs = []
    for source in op.inputs:
        value = _computed(source, depth - 1)
        if value is None:
            return None
        inputs.append(value)
    try:
        outputs = evaluate(definition, op.attrs, inputs)
    except (OpError, ValueError, TypeError, IndexError):
        return None
    made: Array = outputs[op.outputs.index(tensor)].astype(tensor.dtype.numpy)
    return made
