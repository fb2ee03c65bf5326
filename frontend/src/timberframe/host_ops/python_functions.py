"""PyFunc and PyFuncStateless: functions of the program, known by tokens that nodes carry."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin.host_ops import HostCall, host_op

_CODES: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (NotImplementedError, UnimplementedError),
    (MemoryError, ResourceExhaustedError),
    (StopIteration, OutOfRangeError),
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
)
"""TensorFlow's errors for what functions raise; for all else UnknownError."""


class _Function:
    """A function, held by the graphs whose nodes call it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_by_token: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()
_by_graph: weakref.WeakKeyDictionary[Graph, list[_Function]] = weakref.WeakKeyDictionary()
_numbers = itertools.count()
_lock = threading.Lock()


def token_of(function: Callable[..., Any], graph: Graph) -> str:
    """Returns the token by which nodes of a graph call a function, which lives as long as the graph."""
    held = _Function(function)
    with _lock:
        token = f"pyfunc_{next(_numbers)}"
        _by_token[token] = held
        _by_graph.setdefault(graph, []).append(held)
    return token


def function_of(token: str) -> Callable[..., Any]:
    """Returns the function that nodes call by a token; NotFoundError where this process has none."""
    held = _by_token.get(token)
    if held is None:
        raise NotFoundError(
            f"no function of this process is known by token '{token}'; "
            "the graph must be built where it runs, and live as long"
        )
    return held.function


@host_op("PyFunc", "PyFuncStateless")
def _call(call: HostCall) -> list[np.ndarray]:
    function = function_of(call.attrs["token"])
    try:
        made = function(*(x[()] if x.ndim == 0 else x for x in call.inputs))
    except OpError:
        raise
    except Exception as e:
        kind = next((code for raised, code in _CODES if isinstance(e, raised)), UnknownError)
        raise kind(f"{call.op} '{call.name}': the function raised {type(e).__name__}: {e}", call.name) from e
    return _outputs(call, made)


def _outputs(call: HostCall, made: Any) -> list[np.ndarray]:
    """Returns what the function returned as arrays; InvalidArgumentError unless number and dtypes are as declared."""
    values = list(made) if isinstance(made, list | tuple) else [] if made is None else [made]
    if len(values) != len(call.dtypes):
        raise call.error(f"the function returned {len(values)} values; {len(call.dtypes)} are required")
    return [_output(call, i, x, dtype) for i, (x, dtype) in enumerate(zip(values, call.dtypes, strict=True))]


def _output(call: HostCall, i: int, value: Any, dtype: DType) -> np.ndarray:
    array = np.array(value)  # a copy: the function may go on to change what it returned
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        array = np.array(value, object)  # with the zeros at their ends, which NumPy's own strings lack
    if array.dtype.kind in "SUO":
        encoded = [x.encode() if isinstance(x, str) else x for x in array.ravel().tolist()]
        array = np.array([*encoded, None], object)[:-1].reshape(array.shape)
    if array.dtype != dtype.numpy:
        raise call.error(f"the function returned output {i} as {array.dtype}; {dtype.name} is required")
    return array
