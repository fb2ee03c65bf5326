"""Pipelines, which are what datasets are while a session runs, and cursors, which go through them."""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.numbers import Numbers
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, OpError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.plugin.host_ops import HostCall, HostFunction, PreparedFunction
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.functions import Streams
from timberframe_core.shapes import Shape

Element = Sequence[Any]
"""The components of an element: arrays of the host, and pipelines where a component is a dataset."""

State = dict[str, Any]
"""Where a cursor stands: None, numbers, text, bytes, arrays, and lists and dicts of these."""

INFINITE, UNKNOWN = -1, -2
"""Numbers of elements that are none."""


class Block:
    """Some consecutive elements, in rows or in columns: whichever is asked for and was not given is made."""

    __slots__ = ("_columns", "_elements", "_made", "count")

    def __init__(
        self,
        count: int,
        columns: Callable[[], Sequence[np.ndarray]] | None = None,
        elements: Sequence[Element] | None = None,
    ) -> None:
        self.count = count
        self._columns = columns
        self._elements = elements
        self._made: Sequence[np.ndarray] | None = None

    @property
    def has_columns(self) -> bool:
        """Whether its columns need not be put together of elements."""
        return self._columns is not None

    def columns(self) -> Sequence[np.ndarray]:
        """For each component an array whose rows are those of the elements; nobody else has it."""
        assert self._columns is not None
        if self._made is None:
            self._made = self._columns()
        return self._made

    def part(self, begin: int, end: int) -> Block:
        """Returns some of the elements."""
        if self._columns is None:
            return Block(end - begin, None, self.elements()[begin:end])
        return Block(end - begin, lambda: [c[begin:end] for c in self.columns()])

    def some(self, chosen: np.ndarray) -> Block:
        """Returns some of the elements, by their numbers."""
        if self._columns is None:
            elements = self.elements()
            return Block(len(chosen), None, [elements[i] for i in chosen])
        return Block(len(chosen), lambda: [c[chosen] for c in self.columns()])

    def elements(self) -> Sequence[Element]:
        """Returns the elements one by one."""
        if self._elements is None:
            columns = self.columns()
            self._elements = [tuple([c[i, ...] for c in columns]) for i in range(self.count)]
        return self._elements


class Kept:
    """Elements that a pipeline keeps for its next cursors; None before there are any."""

    elements: Sequence[Element] | None = None


class Context:
    """What the cursors of one iterator share.

    scope: the way to the iterator, which distinguishes the functions that it runs. shared: whether the cursors of one
    pipeline, wherever it stands, draw their seeds one after the other and share what it keeps, those of other iterators
    included, as in TensorFlow's eager execution; in its graphs each place in an iterator is on its own.
    """

    def __init__(self, scope: str, streams: Streams, shared: bool = False) -> None:
        self._cancel = [CancelToken()]
        self.scope = scope
        self.streams = streams
        self._shared = shared
        self.draws_alone = False
        """Whether cursors are begun so that seeds are drawn, and give no element."""
        self._numbers: dict[str, Numbers] = {}
        self._kept: dict[str, Kept] = {}
        self.functions: dict[Any, PreparedFunction] = {}
        self.row_functions: dict[Any, FuncGraph | None] = {}
        """Functions of rows, by those of elements."""

    @property
    def cancel(self) -> CancelToken:
        """What stops the call that is going on."""
        return self._cancel[0]

    @cancel.setter
    def cancel(self, token: CancelToken) -> None:
        self._cancel[0] = token

    @property
    def cancelled(self) -> bool:
        """Whether the call that is going on was stopped: what it has taken must come again."""
        return self._cancel[0].reason is not None

    def child(self) -> Context:
        """Returns the same for cursors that another thread moves: with a cancel token of its own."""
        made = copy.copy(self)
        made._cancel = [CancelToken()]
        return made

    def nested(self) -> Context:
        """Returns the context for cursors of a pipeline that a function has made, or has from outside and shares."""
        made = copy.copy(self)
        made._numbers, made._kept, made._shared = {}, {}, True
        return made

    def drawing(self) -> Context:
        """Returns the context for cursors that give no element; see `draws_alone`."""
        made = copy.copy(self)
        made.draws_alone = True
        return made

    def numbers(self, path: str, own: Numbers) -> Numbers:
        """Returns where the seeds of cursors that are begun again and again come from. own: those of their pipeline."""
        found = self._numbers.get(path)
        if found is None:
            found = self._numbers[path] = own if self._shared else own.restarted()
        return found

    def kept(self, path: str, own: Kept) -> Kept:
        """Returns the elements that a pipeline keeps. own: those of its cursors in all iterators."""
        return self._kept.setdefault(path, own if self._shared else Kept())

    def seeds(self) -> State:
        """Returns where the seeds of the next cursors come from."""
        return {path: numbers.position() for path, numbers in self._numbers.items()}

    def set_seeds(self, state: State) -> None:
        """Makes the seeds come from where those of another context came from."""
        for path, numbers in state.items():
            self._numbers.setdefault(path, Numbers(0, 1)).set_position(numbers)

    def function(self, function: HostFunction) -> PreparedFunction:
        """Returns a function, ready to be called."""
        key = function.key
        found = self.functions.get(key)
        if found is None:
            found = self.functions[key] = function.prepare(f"{self.scope}/{function.scope}", self.streams)
        return found


class Pipeline(ABC):
    """What a dataset is while a session runs; it has no position, and what it keeps changes none of its elements.

    A value of dtype variant. call: of the op that makes it. dtypes, shapes: of the components of an element.
    """

    shape: tuple[int, ...] = ()
    table: Sequence[Any] | None = None
    """Table of its cursors, known before one begins."""

    def __init__(self, call: HostCall, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.op, self.node, self.where = call.op, call.name, call.where
        self.path = call.path
        self.dtypes, self.shapes = tuple(dtypes), tuple(shapes)

    def copy(self) -> Pipeline:
        """Returns the pipeline itself: all may share it."""
        return self

    @abstractmethod
    def begin(self, context: Context, path: str) -> Cursor:
        """Returns a cursor before the first element. path: the way to it from the end of the pipeline."""

    def begin_repeated(self, context: Context, path: str, count: int) -> Cursor | None:
        """Returns a cursor that goes through the elements `count` times; None where each time has a cursor of its own.

        A negative count means without an end.
        """
        return None

    def size(self) -> int:
        """Returns how many elements there are, INFINITE or UNKNOWN."""
        return UNKNOWN

    def error(self, message: str, kind: type[OpError] = InvalidArgumentError) -> OpError:
        """Returns an error of the dataset's node, with the user's line that made it."""
        where = f"  [{self.where}]" if self.where else ""
        return kind(f"{self.op} '{self.node}': {message}{where}", self.node)


class Cursor(ABC):
    """Goes through a pipeline. One thread at a time moves it.

    An error in an element leaves it after that element. What `position` gives, `set_position` of a new cursor of the
    same pipeline takes.
    """

    fresh = False
    """Whether nobody else has the arrays that it gives."""

    table: Sequence[Any] | None = None
    """Where each element is a row of some columns: these. Then `rows` gives the numbers of the next ones."""

    @abstractmethod
    def next(self) -> Element | None:
        """Returns the next element; None at the end, and from then on."""

    def block(self, count: int) -> Block | None:
        """Up to `count` of the next elements, at least one; None at the end.

        An error may come only if no element is lost by it.
        """
        element = self.next()
        return None if element is None else Block(1, None, (element,))

    def rows(self, count: int) -> np.ndarray | None:
        """Returns the numbers of up to `count` of the next elements, at least one; None at the end."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    @abstractmethod
    def position(self) -> State:
        """Returns where it stands."""

    @abstractmethod
    def set_position(self, state: State) -> None:
        """Goes on from where another one stood."""

    def pause(self) -> None:  # noqa: B027 - most have no threads
        """Makes its threads wait between two elements, until `resume`; then its position is one of all its parts."""

    def resume(self) -> None:  # noqa: B027 - as above
        """Makes its threads go on."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends what it began: threads, files."""


class Empty(Cursor):
    """Gives nothing."""

    def next(self) -> Element | None:
        return None

    def position(self) -> State:
        return {}

    def set_position(self, state: State) -> None:
        """Does nothing: there is one position alone."""


def element_of(table: Sequence[Any], row: int) -> Element:
    """Returns a row of the columns of a table."""
    return tuple([column[row, ...] for column in table])


def block_of(table: Sequence[Any], rows: np.ndarray) -> Block:
    """Returns rows of the columns of a table."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all():
        first, end = int(rows[0]), int(rows[-1]) + 1
        return Block(len(rows), lambda: [np.array(column[first:end]) for column in table])
    return Block(len(rows), lambda: [column[rows] for column in table])


class Wrapper(Cursor):
    """A cursor that takes the elements of one other."""

    def __init__(self, source: Cursor) -> None:
        self.source = source
        self.fresh = source.fresh

    def position(self) -> State:
        return {"source": self.source.position()}

    def set_position(self, state: State) -> None:
        self.source.set_position(state["source"])

    def pause(self) -> None:
        self.source.pause()

    def resume(self) -> None:
        self.source.resume()

    def close(self) -> None:
        self.source.close()


def scalar(call: HostCall, index: int, name: str) -> Any:
    """Returns an input that must be a scalar, as a Python value."""
    value = np.asarray(call.inputs[index])
    if value.ndim:
        raise call.error(f"{name} has shape {value.shape}; it must be a scalar")
    return value.item()


def input_pipeline(call: HostCall, index: int = 0) -> Pipeline:
    """Returns an input that must be a dataset."""
    found = call.inputs[index]
    if not isinstance(found, Pipeline):
        raise call.error(f"input {index} is a {type(found).__name__}; a dataset is required")
    return found


class Captured:
    """A function of a dataset's node, and the values that it was given besides elements.

    function: which of the node's functions. declared: how many components it gets before them.
    """

    def __init__(
        self, call: HostCall, index: int, declared: int, values: Sequence[Any], types: Sequence[DType]
    ) -> None:
        handles: dict[int, str] = {}
        self.declared = declared
        self.values: list[Any] = []
        given, key = iter(values), itertools.count(_handles_before(call, index))
        for i, dtype in enumerate(types):
            if dtype.name == "resource":
                handles[declared + i] = call.handle(next(key))
            else:
                self.values.append(next(given))
        self.function = call.function(index, handles)
        self.graph = self.function.function

    @property
    def returns_inputs(self) -> bool:
        """Whether something that the function was given may be among what it returns."""
        graph = self.graph
        return any(t.op.type in ("Placeholder", "Const") or t.op.op_def.passes_through for t in graph.outputs)

    def prepare(self, context: Context) -> Callable[[Element], Sequence[Any]]:
        """Returns the function of the components of an element."""
        function, values = context.function(self.function), tuple(self.values)
        if values:
            return lambda element: function((*element, *values), context.cancel)
        return lambda element: function(element, context.cancel)


def _handles_before(call: HostCall, index: int) -> int:
    """Returns how many handles are captured by the functions of the node before this one."""
    names = [a.name for a in call.definition.attrs.values() if a.kind == "list(type)" and a.name.startswith("T")]
    lists = [n for n in names if n.endswith(("arguments", "args"))][:index]
    return sum(t.name == "resource" for n in lists for t in call.attrs[n])
