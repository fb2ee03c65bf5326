"""Pipelines of pipelines: flat_map, interleave, window, group_by_window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import Block, Captured, Context, Cursor, Element, Pipeline, State, Wrapper
from timberframe.pipelines.held import Elements
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.dtypes import DType, variant
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import Shape


class Interleave(Pipeline):
    """The elements of the pipelines that a function makes: `block` of each of `cycle`, in rotation."""

    def __init__(
        self,
        call: HostCall,
        source: Pipeline,
        function: Captured,
        cycle: int,
        block: int,
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(call, dtypes, shapes)
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value < 1:
                raise call.error(f"{name} is {value}; it must be greater than zero")
        self.source, self.function, self.cycle, self.block = source, function, cycle, block

    def begin(self, context: Context, path: str) -> Cursor:
        return _InterleaveCursor(self, context, path)

    def made(self, results: Sequence[Any]) -> Pipeline:
        """Returns the pipeline that the function has made."""
        (found,) = results
        if not isinstance(found, Pipeline):
            raise self.error(f"the function gives a {type(found).__name__}; a dataset is required")
        return found


class _Opened:
    """A pipeline that is gone through, with what the function made it of."""

    def __init__(self, element: Element, pipeline: Pipeline, context: Context, path: str) -> None:
        self.element, self._context = element, context.nested()
        self.cursor = pipeline.begin(self._context, path)

    def position(self) -> list[Any]:
        """Returns the element, and where the cursor stands."""
        return [pack([self.element]), self.cursor.position(), self._context.seeds()]

    def set_position(self, state: list[Any]) -> None:
        """Goes on from where another one of the same element stood."""
        self.cursor.set_position(state[1])
        self._context.set_seeds(state[2])


class _InterleaveCursor(Wrapper):
    """`_opened` has a place for each of the cycle; `_at` is the one whose turn it is, which has given `_given`."""

    def __init__(self, pipeline: Interleave, context: Context, path: str) -> None:
        super().__init__(pipeline.source.begin(context, f"{path}/0"))
        self.fresh = False
        self._pipeline, self._context, self._path = pipeline, context, f"{path}/1"
        self._function = pipeline.function.prepare(context)
        self._opened: list[_Opened | None] = [None] * pipeline.cycle
        self._at = self._given = 0
        self._ended = False

    def _open(self, element: Element) -> _Opened:
        pipeline = self._pipeline.made(self._function(element))
        return _Opened(element, pipeline, self._context, self._path)

    def _current(self) -> Cursor | None:
        """Returns the cursor whose turn it is; None where all have ended."""
        for _ in range(len(self._opened) + 1):
            opened = self._opened[self._at]
            if opened is not None:
                return opened.cursor
            if not self._ended:
                element = self.source.next()
                if element is not None:
                    opened = self._opened[self._at] = self._open(element)
                    return opened.cursor
                self._ended = True
            self._advance()
        return None

    def _advance(self) -> None:
        self._at, self._given = (self._at + 1) % len(self._opened), 0

    def _gave(self, count: int) -> None:
        self._given += count
        if self._given >= self._pipeline.block:
            self._advance()

    def _drop(self) -> None:
        """Ends the one whose turn it is: another begins in its place, in the next turn where there are several."""
        opened, self._opened[self._at] = self._opened[self._at], None
        if opened is not None:
            opened.cursor.close()
        self._advance()

    def next(self) -> Element | None:
        while (cursor := self._current()) is not None:
            element = cursor.next()
            if element is not None:
                self._gave(1)
                return element
            self._drop()
            self._context.cancel.check()
        return None

    def block(self, count: int) -> Block | None:
        one = len(self._opened) == 1
        while (cursor := self._current()) is not None:
            block = cursor.block(count if one else min(count, self._pipeline.block - self._given))
            if block is not None:
                self._gave(0 if one else block.count)
                return block
            self._drop()
            self._context.cancel.check()
        return None

    def position(self) -> State:
        opened = [None if o is None else o.position() for o in self._opened]
        return {
            "source": self.source.position(), "opened": opened, "at": self._at, "given": self._given,
            "ended": self._ended,
        }  # fmt: skip

    def set_position(self, state: State) -> None:
        self.source.set_position(state["source"])
        self._at, self._given, self._ended = state["at"], state["given"], state["ended"]
        for i, saved in enumerate(state["opened"]):
            if saved is not None:
                (element,) = unpack(saved[0])
                opened = self._opened[i] = self._open(element)
                opened.set_position(saved)

    def pause(self) -> None:
        super().pause()
        for opened in self._opened:
            if opened is not None:
                opened.cursor.pause()

    def resume(self) -> None:
        for opened in self._opened:
            if opened is not None:
                opened.cursor.resume()
        super().resume()

    def close(self) -> None:
        for opened in self._opened:
            if opened is not None:
                opened.cursor.close()
        super().close()


class Window(Pipeline):
    """Elements whose components are pipelines of `size` elements each, `stride` apart, which begin `shift` apart."""

    def __init__(self, call: HostCall, source: Pipeline, size: int, shift: int, stride: int, drop: bool) -> None:
        super().__init__(call, [variant] * len(source.dtypes), [()] * len(source.dtypes))
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value < 1:
                raise call.error(f"{name} is {value}; it must be greater than zero")
        self.source, self.width, self.shift, self.stride, self.drop = source, size, shift, stride, drop

    def begin(self, context: Context, path: str) -> Cursor:
        return _WindowCursor(self, self.source.begin(context, f"{path}/0"))

    def windows(self, elements: Sequence[Element]) -> Element:
        """For each component a pipeline of the window's."""
        source = self.source
        return tuple(
            Elements([(e[i],) for e in elements], [d], [s])
            for i, (d, s) in enumerate(zip(source.dtypes, source.shapes, strict=True))
        )


class _WindowCursor(Wrapper):
    """`_held` has the elements from the start of the next window; `_skip` are to be left out before that."""

    def __init__(self, pipeline: Window, source: Cursor) -> None:
        super().__init__(source)
        self.fresh = False
        self._pipeline = pipeline
        self._held: list[Element] = []
        self._skip = 0
        self._ended = False

    def next(self) -> Element | None:
        pipeline = self._pipeline
        span = (pipeline.width - 1) * pipeline.stride + 1
        while not self._ended and (self._skip or len(self._held) < span):
            element = self.source.next()
            if element is None:
                self._ended = True
            elif self._skip:
                self._skip -= 1
            else:
                self._held.append(element)
        if not self._held or (pipeline.drop and len(self._held) < span):
            return None
        window = self._held[: span : pipeline.stride]
        self._skip = max(0, pipeline.shift - len(self._held))
        del self._held[: pipeline.shift]
        return pipeline.windows(window)

    def position(self) -> State:
        return {
            "held": pack(self._held), "skip": self._skip, "ended": self._ended, "source": self.source.position(),
        }  # fmt: skip

    def set_position(self, state: State) -> None:
        self._held, self._skip, self._ended = unpack(state["held"]), state["skip"], state["ended"]
        self.source.set_position(state["source"])


class GroupByWindow(Pipeline):
    """The elements of the pipelines that `reduce` makes of a key and a window of elements that have it."""

    def __init__(
        self,
        call: HostCall,
        source: Pipeline,
        functions: tuple[Captured, Captured, Captured],
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(call, dtypes, shapes)
        self.source = source
        self.key, self.reduce, self.width = functions

    def begin(self, context: Context, path: str) -> Cursor:
        return _GroupCursor(self, context, path)


class _GroupCursor(Wrapper):
    """`_groups` has the elements of each key that are no window yet, `_current` the key and window that are given."""

    def __init__(self, pipeline: GroupByWindow, context: Context, path: str) -> None:
        super().__init__(pipeline.source.begin(context, f"{path}/0"))
        self.fresh = False
        self._pipeline, self._context, self._path = pipeline, context, f"{path}/1"
        self._key, self._reduce = pipeline.key.prepare(context), pipeline.reduce.prepare(context)
        self._width = pipeline.width.prepare(context)
        self._groups: dict[int, list[Element]] = {}
        self._current: tuple[int, list[Element], _Opened] | None = None
        self._ended = False

    def next(self) -> Element | None:
        while True:
            if self._current is not None:
                element = self._current[2].cursor.next()
                if element is not None:
                    return element
                self._current[2].cursor.close()
                self._current = None
            if not self._ended:
                self._collect()
            elif self._groups:
                key = min(self._groups)
                self._give(key, self._groups.pop(key))
            else:
                return None
            self._context.cancel.check()

    def _collect(self) -> None:
        """Takes elements until a window is complete."""
        element = self.source.next()
        if element is None:
            self._ended = True
            return
        key = int(np.asarray(self._key(element)[0]))
        width = int(np.asarray(self._width((np.array(key, np.int64),))[0]))
        if width < 1:
            raise self._pipeline.error(f"window_size_func gives {width} for key {key}; it must be greater than zero")
        group = self._groups.setdefault(key, [])
        group.append(element)
        if len(group) >= width:
            self._give(key, self._groups.pop(key))

    def _give(self, key: int, window: list[Element]) -> None:
        source = self._pipeline.source
        held = Elements(window, source.dtypes, source.shapes)
        (made,) = self._reduce((np.array(key, np.int64), held))
        if not isinstance(made, Pipeline):
            raise self._pipeline.error(f"reduce_func gives a {type(made).__name__}; a dataset is required")
        self._current = key, window, _Opened((), made, self._context, self._path)

    def position(self) -> State:
        groups = [[k, pack(v)] for k, v in sorted(self._groups.items())]
        current = self._current
        given = None if current is None else [current[0], pack(current[1]), current[2].position()]
        return {"groups": groups, "current": given, "ended": self._ended, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self.source.set_position(state["source"])
        self._groups = {k: unpack(v) for k, v in state["groups"]}
        self._ended = state["ended"]
        if state["current"] is not None:
            key, window, position = state["current"]
            self._give(key, unpack(window))
            assert self._current is not None
            self._current[2].set_position(position)

    def pause(self) -> None:
        super().pause()
        if self._current is not None:
            self._current[2].cursor.pause()

    def resume(self) -> None:
        if self._current is not None:
            self._current[2].cursor.resume()
        super().resume()

    def close(self) -> None:
        if self._current is not None:
            self._current[2].cursor.close()
        super().close()


class DirectedInterleave(Pipeline):
    """The next element of the pipeline whose number the selector gives."""

    def __init__(self, call: HostCall, selector: Pipeline, parts: Sequence[Pipeline], stop: bool) -> None:
        super().__init__(call, parts[0].dtypes, parts[0].shapes)
        self.selector, self.parts, self.stop = selector, list(parts), stop

    def begin(self, context: Context, path: str) -> Cursor:
        parts = [p.begin(context, f"{path}/{i + 1}") for i, p in enumerate(self.parts)]
        return _DirectedCursor(self, self.selector.begin(context, f"{path}/0"), parts)


class _DirectedCursor(Wrapper):
    def __init__(self, pipeline: DirectedInterleave, selector: Cursor, parts: Sequence[Cursor]) -> None:
        super().__init__(selector)
        self.fresh = False
        self._pipeline, self._parts = pipeline, parts
        self._left = set(range(len(parts)))

    def next(self) -> Element | None:
        while self._left:
            chosen = self.source.next()
            if chosen is None:
                return None
            number = int(np.asarray(chosen[0]))
            if not 0 <= number < len(self._parts):
                raise self._pipeline.error(f"the selector gives {number}; it must lie in [0, {len(self._parts)})")
            if number not in self._left:
                continue
            element = self._parts[number].next()
            if element is not None:
                return element
            self._left = set() if self._pipeline.stop else self._left - {number}
        return None

    def position(self) -> State:
        parts = [p.position() for p in self._parts]
        return {"left": sorted(self._left), "parts": parts, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self.source.set_position(state["source"])
        self._left = set(state["left"])
        for part, inner in zip(self._parts, state["parts"], strict=True):
            part.set_position(inner)

    def pause(self) -> None:
        super().pause()
        for part in self._parts:
            part.pause()

    def resume(self) -> None:
        for part in self._parts:
            part.resume()
        super().resume()

    def close(self) -> None:
        for part in self._parts:
            part.close()
        super().close()
