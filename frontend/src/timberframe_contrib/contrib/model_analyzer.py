"""`tf.contrib.slim.model_analyzer`: what a graph consists of, printed and counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from timberframe.boundary import guard

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]

_LINE = "-" * 9


def tensor_description(var: Any) -> str:
    """Returns the dtype and the sizes of a tensor or variable, such as ``(float32 2x3) [6, bytes: 24]``."""
    sizes = var.shape.as_list() if var.shape.ndims is not None else []
    count = _count(var)
    text = f"({var.dtype.name} {'x'.join(str(n) for n in sizes)})" if sizes else f"({var.dtype.name} )"
    return text if count is None else f"{text} [{count}, bytes: {count * var.dtype.base_dtype.size}]"


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """Returns how many numbers variables have together, and how many bytes. print_info: prints each one."""
    known = list(variables)
    counts = [_count(v) or 0 for v in known]
    total, size = sum(counts), sum(n * v.dtype.base_dtype.size for n, v in zip(counts, known, strict=True))
    if print_info:
        print(f"{_LINE}\nVariables: name (type shape) [size]\n{_LINE}")
        for v in known:
            print(v.name, tensor_description(v))
        print(f"Total size of variables: {total}\nTotal bytes of variables: {size}")
    return total, size


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """Returns how many numbers the outputs of a graph's operations have together. print_info: prints each operation."""
    if print_info:
        print(f"{_LINE}\nOperations: name -> (type shapes) [size]\n{_LINE}")
    total = 0
    for op in graph.get_operations():
        size = sum(_count(output) or 0 for output in op.outputs)
        if print_info:
            print(f"{op.name} -> " + ", ".join(tensor_description(output) for output in op.outputs) + f" [{size}]")
        total += size
    if print_info:
        print(f"Total size: {total}")
    return total


def _count(tensor: Any) -> int | None:
    """Returns the number of a tensor's elements, None where the shape is not known."""
    return int(np.prod(tensor.shape.as_list(), dtype=np.int64)) if tensor.shape.is_fully_defined() else None


guard([sys.modules[__name__]], "tf.contrib.slim.model_analyzer")
