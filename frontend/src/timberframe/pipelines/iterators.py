"""Iterators as a session keeps them: a position in a pipeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.pipelines.base import Context, Cursor, Element, Pipeline
from timberframe.pipelines.positions import decode, encode
from timberframe_core import logging
from timberframe_core.dtypes import DType
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.functions import Streams
from timberframe_core.shapes import Shape, compatible, format_shape

_IDLE = CancelToken()


class IteratorResource:
    """An iterator. Each call of `next` gives another element, also where threads call it at the same time.

    factory: makes the pipeline at first need, for one that needs no initialization.
    """

    def __init__(
        self,
        name: str,
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
        factory: Callable[[CancelToken], Pipeline] | None = None,
    ) -> None:
        self.name = name
        self.handle = f"iterator {name}"
        """The text that stands for it."""
        self.dtypes, self.shapes = tuple(dtypes), tuple(shapes)
        self._factory = factory
        self._lock = threading.Lock()
        self._streams = Streams()
        self._context: Context | None = None
        self._pipeline: Pipeline | None = None
        self._cursor: Cursor | None = None
        self._saved: bytes | None = None

    def __repr__(self) -> str:
        return f"iterator '{self.name}'"

    def begin(self, pipeline: Pipeline, shared: bool = False) -> None:
        """Goes to the start of a pipeline. shared: whether other iterators share its seeds; see Context."""
        self._check(pipeline)
        with self._lock:
            saved, self._saved = self._saved, None
            self._begin(pipeline, saved, shared)

    def _begin(self, pipeline: Pipeline, saved: bytes | None = None, shared: bool = False) -> None:
        """Goes to the start, or to where another iterator stood."""
        self._end()
        streams = self._streams
        if saved is not None:
            streams.close()  # what was compiled for them has the seeds of this iterator
            streams = self._streams = Streams()
        streams.restart()
        context = self._context = Context(f"iterator {self.name}", streams, shared and saved is None)
        if saved is None:
            self._cursor = pipeline.begin(context, "")
        else:
            try:
                self._go_on(pipeline, context, decode(saved))
            except (AttributeError, LookupError, TypeError, ValueError) as e:  # a program that was changed since
                what = f"{type(e).__name__}: {e}"
                logging.warning("%s: its position is of another dataset (%s); it begins at its start", self, what)
                self._begin(pipeline, None, shared)
        self._pipeline = pipeline

    def _go_on(self, pipeline: Pipeline, context: Context, state: dict[str, Any]) -> None:
        _set_numbers(context, state)
        self._cursor = pipeline.begin(context, "")
        self._cursor.set_position(state["cursor"])
        _set_numbers(context, state)  # what was begun and run meanwhile has drawn some

    def _check(self, pipeline: Pipeline) -> None:
        """InvalidArgumentError where the elements of a pipeline are not those that the iterator was made for."""
        if self.dtypes and pipeline.dtypes != self.dtypes:
            found, wanted = ([d.name for d in x] for x in (pipeline.dtypes, self.dtypes))
            raise InvalidArgumentError(
                f"{self} gives elements of dtypes {wanted}, the dataset has {found}; they must be equal"
            )
        for i, (shape, wanted_shape) in enumerate(zip(pipeline.shapes, self.shapes, strict=False)):
            if not compatible(shape, wanted_shape):
                raise InvalidArgumentError(
                    f"{self} gives elements whose component {i} has shape {format_shape(wanted_shape)}, the dataset's "
                    f"has {format_shape(shape)}; they must be compatible"
                )

    def next(self, cancel: CancelToken) -> tuple[Element | None, bool]:
        """Returns the next element, None at the end; and whether nobody else has its arrays."""
        with self._lock:
            cancel.check()
            cursor = self._cursor
            if cursor is None:
                if self._factory is None:
                    raise FailedPreconditionError(
                        f"GetNext() failed because {self} has not been initialized; "
                        "run its initializer before getting the next element"
                    )
                saved, self._saved = self._saved, None
                self._begin(self._factory(cancel), saved)
                cursor = self._cursor
            assert self._context is not None
            assert cursor is not None
            self._context.cancel = cancel
            try:
                return cursor.next(), cursor.fresh
            finally:
                self._context.cancel = _IDLE  # that of a run that fails refers to the error, and so to its frames

    # Positions

    def position(self) -> dict[str, Any]:
        """Returns where it stands, with the random numbers of the functions that it runs."""
        with self._lock:
            if self._cursor is None or self._context is None:
                return {} if self._saved is None else {"state": self._saved}
            return {"state": encode(self._state())}

    def _state(self) -> dict[str, Any]:
        assert self._context is not None
        assert self._cursor is not None
        self._cursor.pause()
        try:
            cursor = self._cursor.position()
            streams = {name: dict(stream.position()) for name, stream in self._streams.items()}
            return {"cursor": cursor, "streams": streams, "seeds": self._context.seeds()}
        finally:
            self._cursor.resume()

    def set_position(self, position: Mapping[str, Any]) -> None:
        """Goes on from there: at once, or when it is at the start of its dataset."""
        with self._lock:
            if "state" not in position:
                return
            saved = bytes(position["state"])
            if self._pipeline is None:
                self._saved = saved
            else:
                self._begin(self._pipeline, saved)

    def _end(self) -> None:
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            cursor.close()

    def close(self) -> None:
        """Ends its threads, and gives nothing more."""
        with self._lock:
            self._end()
            self._streams.close()


def _set_numbers(context: Context, state: Mapping[str, Any]) -> None:
    """Puts the random numbers of functions, and those that seeds come from, where they were."""
    for name, position in state["streams"].items():
        context.streams.get(name).set_position(position)
    context.set_seeds(state["seeds"])
