"""Feeds: checks what `Session.run` is given and brings it into the form of the tensor that it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from timberframe_core.casts import REAL_KINDS, cast_exactly
from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, NotFoundError, OpError
from timberframe_core.graph.apply import to_array
from timberframe_core.graph.feeds_and_fetches import is_handle
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.device_array import HOST, DeviceArray
from timberframe_core.shapes import StaticShape, compatible, format_shape

_HOST_MEMORY = (HOST, (3, 0))
"""What NumPy reads: the host's memory, and that of the host which CUDA has pinned (kDLCUDAHost)."""


FeedCount: TypeAlias = "int | tuple[FeedCount, ...]"
"""How many tensors a key means: several for a sparse tensor or rows of one; for a tuple of keys, that of each."""


def feed_counts(feed_dict: Mapping[Any, Any]) -> tuple[FeedCount, ...]:
    """Returns how many tensors each key means; () where each means one."""
    counts = [_count(key) for key in feed_dict]
    return tuple(counts) if any(n != 1 for n in counts) else ()


def _count(key: Any) -> FeedCount:
    if hasattr(key, "fetch_parts"):
        return len(key.fetch_parts()[0])
    return tuple(map(_count, key)) if isinstance(key, tuple) else 1


def flat_feeds(counts: Sequence[FeedCount], values: Sequence[Any]) -> list[Any]:
    """Returns the values of all tensors: a SparseTensorValue, or a tuple, gives several. counts: see `feed_counts`."""
    return [value for pair in zip(counts, values, strict=True) for value in _flat_feed(*pair)]


def _flat_feed(count: FeedCount, value: Any) -> Sequence[Any]:
    if count == 1:
        return [value]
    if isinstance(count, tuple):
        if not isinstance(value, tuple | list) or len(value) != len(count):
            given = f"{type(value).__name__}{f' of {len(value)}' if hasattr(value, '__len__') else ''}"
            raise InvalidTypeError(
                f"feed of a tuple of {len(count)} tensors is a {given}; a tuple of {len(count)} values is required"
            )
        return flat_feeds(count, value)
    if not isinstance(value, tuple | list) or len(value) < count:
        raise InvalidTypeError(
            f"feed of a sparse tensor is a {type(value).__name__}; a SparseTensorValue, or a tuple of {count} "
            "arrays, is required"
        )
    return value[:count]


def feed_tensors(graph: Graph, feed_dict: Mapping[Any, Any]) -> tuple[Tensor, ...]:
    """Returns the tensors that the keys mean.

    InvalidTypeError for a key that is none of the graph's tensors, as in TensorFlow; InvalidArgumentError for one that
    cannot be fed or is named twice.
    """
    found: dict[Tensor, Any] = {}
    for key in flat_keys(feed_dict):
        try:
            element = graph.as_graph_element(key, allow_operation=False)
        except (InvalidArgumentError, NotFoundError) as e:
            raise InvalidTypeError(f"key {key!r} of feed_dict is no tensor of the graph: {e}") from e
        assert isinstance(element, Tensor)
        if element in found:
            raise InvalidArgumentError(
                f"feed '{element.name}' is given twice ({found[element]!r} and {key!r}); once is enough"
            )
        if not graph.is_feedable(element):
            what = f"is a {element.dtype.name} handle" if is_handle(element) else "is one of Graph.prevent_feeding"
            raise InvalidArgumentError(f"feed '{element.name}' {what}; it cannot be fed")
        found[element] = key
    return tuple(found)


def flat_keys(feed_dict: Iterable[Any]) -> Iterator[Any]:
    """Yields the keys, each sparse tensor as its parts, and each tuple, such as an LSTMStateTuple, as what is in it."""
    for key in feed_dict:
        if hasattr(key, "fetch_parts"):
            yield from key.fetch_parts()[0]
        elif isinstance(key, tuple):
            yield from flat_keys(key)
        else:
            yield key


def locate_feed(tensor: Tensor, value: Any, devices: Sequence[Device]) -> Located:
    """Returns the value as an array of the tensor's dtype, on the device where it is if one of these shares its memory.

    Whatever knows DLPack is taken as it is, without a copy; everything else becomes an array of the host.
    """
    if type(value) is np.ndarray or not hasattr(value, "__dlpack__") or isinstance(value, np.ndarray | np.generic):
        return feed_array(tensor, value), None
    if isinstance(value, DeviceArray):
        _check_device_array(tensor, value)
        return value.array, value.home
    kind = tuple(int(x) for x in value.__dlpack_device__())
    home = None if kind in _HOST_MEMORY else next((d for d in devices if d.dlpack_device == kind), None)
    if home is None and kind not in _HOST_MEMORY:
        known = ", ".join(f"{d.spec} {d.dlpack_device}" for d in devices if d.dlpack_device) or "none"
        raise InvalidArgumentError(
            f"{_head(tensor)}: fed with a {type(value).__name__} on DLPack device {kind}; the session's devices that "
            f"share memory are {known}, copy it to the host first{_where(tensor)}",
            tensor.op.name,
        )
    try:
        if home is None:
            return feed_array(tensor, _on_host(value, devices)), None
        array = home.from_dlpack(value)
    except OpError:
        raise
    except Exception as e:  # of another library: BufferError, RuntimeError, TypeError, ...
        raise InvalidArgumentError(
            f"{_head(tensor)}: fed with a {type(value).__name__} that cannot be shared ({type(e).__name__}: {e}); "
            f"an array of plain numbers is required{_where(tensor)}",
            tensor.op.name,
        ) from e
    _check_device_array(tensor, DeviceArray(array, home))
    return array, home


def _on_host(value: Any, devices: Sequence[Device]) -> np.ndarray:
    """Returns a view of an array of another library in host memory; what NumPy's DLPack does
    not know may still convert.
    """
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):
        host = next((d for d in devices if d.dlpack_device == HOST), None)
        if host is not None:
            with suppress(BufferError, RuntimeError, TypeError, OpError):
                found: np.ndarray = host.from_dlpack(value)  # knows bfloat16
                return found
        if not hasattr(value, "__array__"):
            raise
        return np.asarray(value)


def _check_device_array(tensor: Tensor, value: DeviceArray) -> None:
    wanted = tensor.dtype.base_dtype
    if value.dtype != wanted.numpy:
        raise InvalidArgumentError(
            f"{_head(tensor)}: fed a value of dtype {value.dtype} on {value.device}; it must be {wanted.name}"
            f"{_where(tensor)}",
            tensor.op.name,
        )
    _check_shape(tensor, value.shape)


def feed_array(tensor: Tensor, value: Any) -> np.ndarray:
    """Returns the value as an array of the tensor's dtype; InvalidArgumentError where dtype or shape do not suit."""
    wanted = tensor.dtype.numpy
    if isinstance(value, Tensor):
        raise InvalidTypeError(f"{_head(tensor)}: fed with tensor '{value.name}'; a value is required")
    if type(value) is np.ndarray and value.dtype == wanted and wanted.kind != "O":
        array = value
    else:
        array = _convert(tensor, value)
    _check_shape(tensor, array.shape)
    return array


def _check_shape(tensor: Tensor, shape: StaticShape) -> None:
    if not compatible(shape, tensor.static_shape):
        raise InvalidArgumentError(
            f"{_head(tensor)}: fed with shape {format_shape(shape)}; "
            f"it must be compatible with {format_shape(tensor.static_shape)}{_where(tensor)}",
            tensor.op.name,
        )


def _convert(tensor: Tensor, value: Any) -> np.ndarray:
    dtype = tensor.dtype.base_dtype
    try:
        if dtype is string:
            return to_array(value, dtype)[0]
        if isinstance(value, np.ndarray | np.generic):
            return _cast(np.asarray(value), dtype)
        return _cast_value(value, dtype)
    except InvalidArgumentError as e:
        raise type(e)(f"{_head(tensor)}: fed {e}{_where(tensor)}", tensor.op.name) from None
    except Exception as e:
        if not hasattr(value, "__array__"):
            raise
        raise InvalidArgumentError(  # of another library
            f"{_head(tensor)}: fed with a {type(value).__name__} that gives no array ({type(e).__name__}: {e}); "
            f"an array of plain numbers is required{_where(tensor)}",
            tensor.op.name,
        ) from e


def _cast_value(value: Any, dtype: DType) -> np.ndarray:
    """As `_cast`, of a number or a list."""
    with np.errstate(over="ignore"):
        try:
            return to_array(value, dtype)[0]
        except InvalidTypeError:
            array = np.asarray(value)
            if array.dtype.kind not in REAL_KINDS:
                raise
    return _cast(array, dtype)


def _cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Returns the array in a dtype, as `cast_exactly` does; one of objects as the list that it holds."""
    return _cast_value(array.tolist(), dtype) if array.dtype.kind == "O" else cast_exactly(array, dtype)


def _head(tensor: Tensor) -> str:
    return f"{tensor.op.type} '{tensor.op.name}'"


def _where(tensor: Tensor) -> str:
    return f"  [{tensor.op.where}]" if tensor.op.where else ""
