"""Ops by their references: what programs of family `edges` that call one op are judged by without TensorFlow."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core import dtypes as _dtypes
from timberframe_core.dtypes import DType
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph
from timberframe_core.ops.definition import registry


class NotModelledError(AttributeError):
    """The program is one of gradients, or its op has no reference for these dtypes."""


def device(name: str) -> Any:
    """Does nothing."""
    return contextlib.nullcontext()


def constant(x: Any) -> Any:
    return x


def __getattr__(name: str) -> Any:
    """Returns a dtype."""
    found = getattr(_dtypes, name, None)
    if isinstance(found, DType):
        return found
    raise NotModelledError(name)


class _RawOps:
    def __getattr__(self, name: str) -> Any:
        op = registry.get(name)

        def call(**given: Any) -> Any:
            inputs = [given.pop(n) for n in list(given)[: len(op.inputs)]]
            arrays = [[np.asarray(x) for x in i] if isinstance(i, list) else np.asarray(i) for i in inputs]
            with Graph().as_default() as graph:  # checks, and gives dtypes and attrs
                made = apply_op(name, arrays, given)
                node = graph.get_operations()[-1]
            del made
            flat = [x for i in arrays for x in (i if isinstance(i, list) else [i])]
            try:
                outputs = true_outputs(op, node.attrs, flat)
            except Exception as e:
                raise NotModelledError(str(e)) from e
            narrow = [
                round_to(np.asarray(y), t.dtype.base_dtype.numpy) for y, t in zip(outputs, node.outputs, strict=True)
            ]
            return narrow[0] if len(op.outputs) == 1 and not op.outputs[0].is_list else narrow

        return call


raw_ops = _RawOps()
