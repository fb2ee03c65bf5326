"""Functions over the first dimension: `map_fn`, `foldl`, `foldr`, `scan`, each a while loop over TensorArrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.tensor_array import TensorArray
from timberframe.api.while_loops import while_loop
from timberframe_core import nest
from timberframe_core.dtypes import DType, as_dtype, int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor

__all__ = ["foldl", "foldr", "map_fn", "scan"]


class _Elements:
    """Nested tensors of equal first dimension, read row by row.

    count: the length of that dimension, an int where it is known.
    """

    def __init__(self, function: str, elems: Any) -> None:
        self.structure = elems
        self.tensors = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
        if not self.tensors:
            raise InvalidArgumentError(f"tf.{function}: elems holds no tensor; at least one is required")
        for tensor in self.tensors:
            if tensor.static_shape == ():
                raise InvalidArgumentError(
                    f"tf.{function}: '{tensor.name}' of elems is a scalar; its first dimension is gone through"
                )
        known = {t.static_shape[0] for t in self.tensors if t.static_shape and t.static_shape[0] is not None}
        if len(known) > 1:
            raise InvalidArgumentError(
                f"tf.{function}: first dimensions of elems are {sorted(d for d in known if d is not None)}; "
                "they must be equal"
            )
        self.count: Any = next(iter(known)) if known else _first_size(self.tensors[0])
        self._arrays = [TensorArray(t.dtype, size=self.count, infer_shape=False).unstack(t) for t in self.tensors]

    def read(self, index: Any) -> Any:
        """Returns the rows at `index`, in the structure of elems."""
        return nest.pack_sequence_as(self.structure, [a.read(index) for a in self._arrays])


def _first_size(tensor: Tensor) -> Any:
    shape = apply_op("Shape", [tensor])
    attrs = {"shrink_axis_mask": 1}
    return apply_op("StridedSlice", [shape, [0], [1], [1]], attrs)


def _check_callable(function: str, fn: Any) -> None:
    if not callable(fn):
        raise InvalidTypeError(f"tf.{function}: fn is {type(fn).__name__}; a function is required")


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` of each row of elems, the results stacked.

    elems: a tensor or a structure of tensors of equal first dimension. dtype: dtypes of what fn returns, in its
    structure, where they are not those of elems.
    """
    _check_callable("map_fn", fn)
    with get_default_graph().name_scope(name or "map"):
        rows = _Elements("map_fn", elems)
        wanted = nest.map_structure(lambda t: t.dtype, _tensors(rows)) if dtype is None else dtype
        dtypes = [as_dtype(d) for d in nest.flatten(wanted)]
        arrays = [TensorArray(d, rows.count, infer_shape=infer_shape) for d in dtypes]

        def body(i: Any, made: list[TensorArray]) -> tuple[Any, list[TensorArray]]:
            results = _results("map_fn", fn(rows.read(i)), wanted, dtypes, _GIVE_DTYPE)
            return i + 1, [a.write(i, r) for a, r in zip(made, results, strict=True)]

        _, made = while_loop(
            lambda i, _: apply_op("Less", [i, rows.count]),
            body,
            (convert_to_tensor(0, int32), arrays),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return nest.pack_sequence_as(wanted, [a.stack() for a in made])


def _tensors(rows: _Elements) -> Any:
    return nest.pack_sequence_as(rows.structure, rows.tensors)


_GIVE_DTYPE = "give dtype=, the dtypes of fn's results in their structure, if they differ from those of elems"
_GIVE_INITIALIZER = "fn's result must be like its first argument; give initializer if that is not a row of elems"


def _results(function: str, results: Any, structure: Any, dtypes: Sequence[DType], hint: str) -> list[Tensor]:
    """Returns what fn returned, flat. hint: appended to the error if structure or dtypes differ."""
    try:
        nest.assert_same_structure(structure, results, check_types=False)
    except InvalidArgumentError as e:
        raise type(e)(f"tf.{function}: fn returns another structure than required: {e}; {hint}") from None
    try:
        return [convert_to_tensor(r, d) for r, d in zip(nest.flatten(results), dtypes, strict=True)]
    except InvalidArgumentError as e:
        raise type(e)(f"tf.{function}: fn returns another dtype than required: {e}; {hint}") from None


def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[-1])``; a missing initializer is the first row."""
    return _fold("foldl", fn, elems, initializer, False, parallel_iterations, name)


def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(... fn(fn(initializer, elems[-1]), elems[-2]) ..., elems[0])``; a missing initializer is the last row."""
    return _fold("foldr", fn, elems, initializer, True, parallel_iterations, name)


def _fold(
    function: str,
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    backwards: bool,
    parallel: int,
    name: str | None,
) -> Any:
    _check_callable(function, fn)
    with get_default_graph().name_scope(name or function):
        rows = _Elements(function, elems)
        iterations, row = _order(rows, initializer, backwards)
        start = _start(rows, initializer, row)
        dtypes = [t.dtype for t in nest.flatten(start)]

        def body(i: Any, value: Any) -> tuple[Any, Any]:
            leaves = _results(function, fn(value, rows.read(row(i))), start, dtypes, _GIVE_INITIALIZER)
            return i + 1, nest.pack_sequence_as(start, leaves)

        _, result = while_loop(
            lambda i, _: apply_op("Less", [i, iterations]),
            body,
            (convert_to_tensor(0, int32), start),
            parallel_iterations=parallel,
        )
        return result


def _order(rows: _Elements, initializer: Any, backwards: bool) -> tuple[Any, Callable[[Any], Any]]:
    """Returns the number of iterations, and the row that iteration i reads; -1 marks the row
    that serves as initializer.
    """
    skipped = 1 if initializer is None else 0
    if backwards:
        return rows.count - skipped, lambda i: rows.count - 1 - skipped - i
    return rows.count - skipped, lambda i: i + skipped if skipped else i


def _start(rows: _Elements, initializer: Any, row: Callable[[Any], Any]) -> Any:
    if initializer is None:
        return rows.read(row(-1))
    return nest.map_structure(convert_to_tensor, initializer)


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Returns all the partial results of a fold over the rows of elems, stacked; from the last row to
    the first with `reverse`.

    Without an initializer the first row (the last with `reverse`) is the first result.
    """
    _check_callable("scan", fn)
    with get_default_graph().name_scope(name or "scan"):
        rows = _Elements("scan", elems)
        iterations, row = _order(rows, initializer, reverse)
        start = _start(rows, initializer, row)
        flat = nest.flatten(start)
        arrays = [
            TensorArray(t.dtype, rows.count, infer_shape=infer_shape, element_shape=t.shape if infer_shape else None)
            for t in flat
        ]
        if initializer is None:
            arrays = [a.write(row(-1), t) for a, t in zip(arrays, flat, strict=True)]

        def body(i: Any, value: Any, made: list[TensorArray]) -> tuple[Any, ...]:
            results = fn(value, rows.read(row(i)))
            leaves = _results("scan", results, start, [t.dtype for t in flat], _GIVE_INITIALIZER)
            return i + 1, results, [a.write(row(i), r) for a, r in zip(made, leaves, strict=True)]

        _, _, made = while_loop(
            lambda i, *_: apply_op("Less", [i, iterations]),
            body,
            (convert_to_tensor(0, int32), start, arrays),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return nest.pack_sequence_as(start, [a.stack() for a in made])
