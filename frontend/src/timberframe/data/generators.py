"""`Dataset.from_generator`: elements that Python makes while a session runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe.api.python_functions import py_func
from timberframe.data.structure import TensorLeaf, attrs_of, declared, flatten, flatten_up_to, map_leaves
from timberframe.data.tracing import Traced
from timberframe_core.dtypes import int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, to_array
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import compatible, format_shape


class _Running:
    """The iterators of a generator that are gone through, by number."""

    def __init__(self, generator: Callable[..., Any], structure: Any) -> None:
        self._generator, self._structure = generator, structure
        self._leaves = flatten(structure)
        self._types = map_leaves(lambda leaf: leaf.dtype, structure)
        self._iterators: dict[int, Iterator[Any]] = {}
        self._numbers = itertools.count()

    def start(self, *args: Any) -> np.int64:
        """Calls the function, and gives the number of what it returns."""
        number = next(self._numbers)
        self._iterators[number] = iter(self._generator(*args))
        return np.int64(number)

    def step(self, number: Any) -> list[np.ndarray]:
        """Returns the next element; raises StopIteration at the end."""
        value = next(self._iterators[int(number)])
        try:
            values = flatten_up_to(
                self._types, tuple(value) if isinstance(value, list) and len(self._leaves) > 1 else value
            )
        except InvalidTypeError:
            raise TypeError(
                f"`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{self._types}, but the yielded element was {value}."
            ) from None
        return [self._array(x, leaf) for x, leaf in zip(values, self._leaves, strict=True)]

    def _array(self, value: Any, leaf: TensorLeaf) -> np.ndarray:
        if type(value) is np.ndarray and value.dtype == leaf.dtype.numpy and leaf.dtype is not string:
            array = value
        else:
            try:
                array = to_array(value, leaf.dtype)[0]
            except InvalidArgumentError:
                raise TypeError(
                    "`generator` yielded an element that could not be converted to the expected type. The expected "
                    f"type was {leaf.dtype.name}, but the yielded element was {value}."
                ) from None
        if not compatible(leaf.shape, array.shape):
            raise TypeError(
                f"`generator` yielded an element of shape {format_shape(array.shape)} where an element of shape "
                f"{format_shape(leaf.shape)} was expected."
            )
        return array

    def end(self, number: Any) -> np.int64:
        """Drops an iterator."""
        self._iterators.pop(int(number), None)
        return np.int64(0)


def from_generator(
    generator: Callable[..., Any], output_types: Any, output_shapes: Any, trace: Callable[..., Traced]
) -> tuple[Callable[[Sequence[Tensor]], Tensor], Any]:
    """Returns what makes the tensor of a dataset of what the generator of some arguments gives,
    and its elements' structure.
    """
    if not callable(generator):
        raise InvalidTypeError(f"Dataset.from_generator: generator is {generator!r}; a function is required")
    structure = declared(output_types, output_shapes)
    leaves = flatten(structure)
    running = _Running(generator, structure)
    number = TensorLeaf(int64, ())

    def step(n: Tensor) -> Any:
        made = py_func(running.step, [n], [leaf.dtype for leaf in leaves])
        for tensor, leaf in zip(made, leaves, strict=True):
            tensor.set_shape(leaf.shape)
        return tuple(made)

    def make(values: Sequence[Tensor]) -> Tensor:
        begin = trace(lambda: py_func(running.start, list(values), int64), [], "from_generator")
        following = trace(step, [number], "from_generator")
        end = trace(lambda n: py_func(running.end, [n], int64), [number], "from_generator")
        attrs = {"init_func": begin.graph, "next_func": following.graph, "finalize_func": end.graph}
        functions = [begin.captures, following.captures, end.captures]
        made: Tensor = apply_op("GeneratorDataset", functions, {**attrs, **attrs_of(structure)})
        return made

    return make, structure
