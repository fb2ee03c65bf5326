"""Feeds: checks what `Session.run` is given and brings it into the form of the tensor that it replaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe.errors import InvalidArgumentError
from timberframe.graph.apply import to_array
from timberframe.graph.graph import Graph
from timberframe.graph.operation import Tensor
from timberframe.shapes import compatible, format_shape


def feed_tensors(graph: Graph, feed_dict: Mapping[Any, Any]) -> tuple[Tensor, ...]:
    """The tensors that the keys mean; InvalidArgumentError for one that cannot be fed or is named twice."""
    found: dict[Tensor, Any] = {}
    for key in feed_dict:
        element = graph.as_graph_element(key, allow_operation=False)
        assert isinstance(element, Tensor)
        if element in found:
            raise InvalidArgumentError(
                f"feed '{element.name}' is given twice ({found[element]!r} and {key!r}); once is enough"
            )
        if not graph.is_feedable(element):
            raise InvalidArgumentError(f"feed '{element.name}' is a {element.dtype.name} handle; it cannot be fed")
        found[element] = key
    return tuple(found)


def feed_array(tensor: Tensor, value: Any) -> np.ndarray:
    """The value as an array of the tensor's dtype; InvalidArgumentError where dtype or shape do not suit."""
    wanted = tensor.dtype.numpy
    if isinstance(value, Tensor):
        raise InvalidArgumentError(f"{_head(tensor)}: fed with tensor '{value.name}'; a value is required")
    if type(value) is np.ndarray and value.dtype == wanted and wanted.kind != "O":
        array = value
    else:
        array = _convert(tensor, value)
    if not compatible(array.shape, tensor.static_shape):
        raise InvalidArgumentError(
            f"{_head(tensor)}: fed with shape {format_shape(array.shape)}; "
            f"it must be compatible with {format_shape(tensor.static_shape)}{_where(tensor)}",
            tensor.op.name,
        )
    return array


def _convert(tensor: Tensor, value: Any) -> np.ndarray:
    dtype = tensor.dtype.base_dtype
    try:
        if isinstance(value, np.ndarray | np.generic) and dtype.numpy.kind != "O":
            array = np.asarray(value)
            if not _castable(array.dtype, dtype.numpy):
                raise InvalidArgumentError(f"value of dtype {array.dtype} given; it must be {dtype.name}")
            return array.astype(dtype.numpy)
        return to_array(value, dtype)[0]
    except InvalidArgumentError as e:
        raise InvalidArgumentError(f"{_head(tensor)}: fed {e}{_where(tensor)}", tensor.op.name) from None


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


def _castable(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether a cast keeps the kind: bool to number, integer to floating, real to complex, or within one kind."""
    if source.kind not in _RANK or target.kind not in _RANK:
        return False
    return _RANK[source.kind] <= _RANK[target.kind]


def _head(tensor: Tensor) -> str:
    return f"{tensor.op.type} '{tensor.op.name}'"


def _where(tensor: Tensor) -> str:
    return f"  [{tensor.op.where}]" if tensor.op.where else ""
