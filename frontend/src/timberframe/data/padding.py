"""What `padded_batch` is given, for each component."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.data.structure import TensorLeaf, flatten, flatten_up_to, is_nested, pack
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import Shape


def padding_of(structure: Any, shapes: Any, values: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    """Returns the padded shapes and the values of all components, and the structure of padded elements."""
    leaves = flatten(structure)
    if not all(isinstance(leaf, TensorLeaf) for leaf in leaves):
        raise InvalidTypeError(
            "Dataset.padded_batch: an element has datasets or sparse tensors in it; only dense tensors can be padded"
        )
    if shapes is None:
        found_shapes = [_shape_of(leaf.shape) for leaf in leaves]
    else:
        found_shapes = _for_each(structure, shapes)
    if values is None:
        found_values: list[Any] = [None] * len(leaves)
    else:
        found_values = (
            _for_each(structure, values) if is_nested(structure) and is_nested(values) else [values] * len(leaves)
        )
    tensors, known = zip(*(_padded_shape(leaf, s) for leaf, s in zip(leaves, found_shapes, strict=True)), strict=True)
    given = [_value(leaf, v) for leaf, v in zip(leaves, found_values, strict=True)]
    padded = pack(structure, iter([TensorLeaf(leaf.dtype, s) for leaf, s in zip(leaves, known, strict=True)]))
    return list(tensors), given, padded


def _shape_of(shape: Shape) -> Shape:
    if shape is None:
        raise InvalidArgumentError("Dataset.padded_batch: a component has an unknown rank; padded_shapes must be given")
    return shape


def _for_each(structure: Any, given: Any) -> list[Any]:
    """Returns what is given for each component, where tuples and lists may also be shapes."""
    if not is_nested(structure):
        return [given]
    if isinstance(given, list):
        given = tuple(given)
    return [x for x, _ in zip(flatten_up_to(structure, given), flatten(structure), strict=True)]


def _padded_shape(leaf: Any, given: Any) -> tuple[Tensor, Shape]:
    if isinstance(given, Tensor):
        size = given.static_shape[0] if given.static_shape else None
        return convert_to_tensor(given, int64), None if size is None else (None,) * size
    if isinstance(given, np.ndarray):
        given = given.tolist()
    sizes = as_shape([None if d in (-1, None) else d for d in given] if isinstance(given, list | tuple) else given)
    if sizes is None:
        raise InvalidArgumentError(f"Dataset.padded_batch: padded shape {given} has an unknown rank; it must be known")
    if leaf.shape is not None and len(leaf.shape) != len(sizes):
        raise InvalidArgumentError(
            f"Dataset.padded_batch: padded shape {given} for a component of shape {leaf.shape}; the ranks must be equal"
        )
    for have, want in zip(leaf.shape or (), sizes, strict=False):
        if have is not None and want is not None and have > want:
            raise InvalidArgumentError(
                f"Dataset.padded_batch: padded shape {given} for a component of shape {leaf.shape}; "
                "no size may be smaller"
            )
    return convert_to_tensor([-1 if d is None else d for d in sizes], int64), sizes


def _value(leaf: Any, given: Any) -> Tensor:
    if given is None:
        given = "" if leaf.dtype.name == "string" else leaf.dtype.numpy.type(0)
    value = convert_to_tensor(given, leaf.dtype, "padding_value")
    if value.static_shape != ():
        raise InvalidArgumentError(f"Dataset.padded_batch: a padding value is {given!r}; a scalar is required")
    return value
