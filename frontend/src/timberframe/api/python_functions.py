"""Functions of the program as operations, and printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.api.variables import outermost
from timberframe.host_ops.python_functions import token_of
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

__all__ = ["Print", "numpy_function", "py_func", "py_function"]


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 - TensorFlow's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Returns what a Python function returns for the values of tensors, whenever it is run.

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
    """Returns what the function returns in eager execution, as tensors of these dtypes."""
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


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: Any = None,  # noqa: N803 - TensorFlow's name
    name: str | None = None,
) -> Any:
    """Returns what a function of eager tensors returns for the values of tensors, whenever it is
    run; it is differentiated.

    func: gets an eager tensor for each of inp and may compute with `tf.*`, or with `.numpy()`. Tout: as for `py_func`.
    Gradients flow to floating inp through what func did last; variables that it reads get none.
    """
    from timberframe.eager.python_functions import EagerFunction, is_real  # here: eager execution is loaded when used

    if not callable(func):
        raise InvalidTypeError(f"py_function: func is {func!r}; a function is required")
    inputs, many = [convert_to_tensor(x) for x in inp or ()], isinstance(Tout, list | tuple)
    dtypes = [as_dtype(t) for t in (Tout if many else [Tout])]
    if get_default_graph().eager:
        found = EagerFunction.results_of(func(*inputs), dtypes)
        return found if many else found[0]
    held = EagerFunction(func, [x.dtype for x in inputs], dtypes)
    made = py_func(held, inputs, dtypes, name=name or "EagerPyFunc")
    if not dtypes:
        return made

    def gradient(op: Operation, *grads: Any) -> list[Any]:
        given = [g for g, d in zip(grads, dtypes, strict=True) if is_real(d)]
        wanted = [x.dtype for x in op.inputs if is_real(x.dtype)]
        with get_default_graph().control_dependencies([op]):
            found = iter(py_func(held.gradient, given, wanted, name="EagerPyFuncGrad") if wanted else ())
        return [next(found) if is_real(x.dtype) else None for x in op.inputs]

    made[0].op.gradient = gradient
    return made if many else made[0]


def Print(  # noqa: N802 - TensorFlow's name
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the input; whenever it is computed, a line with `message` and values of `data` is
    written to the standard error.

    first_n: how often in a session, always if None. summarize: how many elements of each tensor are shown, 3 if None,
    all if negative.
    """
    inputs = [convert_to_tensor(x) for x in data]
    attrs = {"message": message, "first_n": first_n, "summarize": summarize, "U": [x.dtype for x in inputs]}
    result: Tensor = apply_op("Print", [input_, inputs], attrs, name)
    return result
