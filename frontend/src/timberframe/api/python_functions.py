"""Functions of the program as operations, and printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.api.state import outermost
from timberframe.host_ops.python_functions import token_of
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor

__all__ = ["Print", "numpy_function", "py_func"]


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 - TensorFlow's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """What a Python function returns for the values of tensors, whenever it is run.

    func: gets NumPy arrays (NumPy scalars and bytes for scalars) and returns as many values as Tout lists, each of its
    dtype; shapes are unknown until `set_shape` says them. What it raises is an error of the run: InvalidArgumentError
    for a ValueError or TypeError, OutOfRangeError for StopIteration, UnknownError for most others.
    Tout: a dtype, or a list of dtypes; an empty list gives the Operation.
    stateful: False for a function that gives equal values for equal inputs and does nothing else: it may be called less
    often. Gradients through it are None. The function is not part of a GraphDef; it must be in the process that runs.
    """
    if not callable(func):
        raise InvalidTypeError(f"py_func: func is {func!r}; a function is required")
    many = isinstance(Tout, list | tuple)
    dtypes = [as_dtype(t) for t in (Tout if many else [Tout])]
    inputs = [convert_to_tensor(x) for x in inp]
    if get_default_graph().eager:
        return _called(func, inputs, dtypes, many)
    attrs = {"token": token_of(func, outermost(get_default_graph())), "Tin": [x.dtype for x in inputs], "Tout": dtypes}
    made = apply_op("PyFunc" if stateful else "PyFuncStateless", [inputs], attrs, name)
    if not dtypes:
        return get_default_graph().get_operations()[-1]  # there is no output to know it by
    return made if many else made[0]


def _called(func: Callable[..., Any], inputs: Sequence[Any], dtypes: Sequence[Any], many: bool) -> Any:
    """What the function returns in eager execution, as tensors of these dtypes."""
    result = func(*[x.numpy() for x in inputs])
    if not dtypes:
        return None
    values = list(result) if many and isinstance(result, list | tuple) else [result]
    if len(values) != len(dtypes):
        raise InvalidArgumentError(
            f"py_func: the function returned {len(values)} values; Tout has {len(dtypes)}, each needs one"
        )
    made = [convert_to_tensor(np.asarray(v, d.numpy), d) for v, d in zip(values, dtypes, strict=True)]
    return made if many else made[0]


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 - TensorFlow's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """`py_func` by its newer name."""
    return py_func(func, inp, Tout, stateful, name)


def Print(  # noqa: N802 - TensorFlow's name
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The input; whenever it is computed, a line with `message` and values of `data` is written to the standard error.

    first_n: how often in a session, always if None. summarize: how many elements of each tensor are shown, 3 if None,
    all if negative.
    """
    inputs = [convert_to_tensor(x) for x in data]
    attrs = {"message": message, "first_n": first_n, "summarize": summarize, "U": [x.dtype for x in inputs]}
    result: Tensor = apply_op("Print", [input_, inputs], attrs, name)
    return result
