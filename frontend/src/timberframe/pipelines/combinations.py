"""Pipelines of several: one after the other, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.pipelines.base import (
    INFINITE,
    UNKNOWN,
    Block,
    Context,
    Cursor,
    Element,
    Pipeline,
    State,
    Wrapper,
)
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import in_common


class Concatenate(Pipeline):
    """The elements of one and then of another."""

    def __init__(self, call: HostCall, parts: Sequence[Pipeline]) -> None:
        first, second = parts
        if first.dtypes != second.dtypes:
            found = [[d.name for d in p.dtypes] for p in parts]
            raise call.error(f"the datasets have components of dtypes {found[0]} and {found[1]}; they must be equal")
        shapes = [in_common(s) for s in zip(first.shapes, second.shapes, strict=True)]
        super().__init__(call, first.dtypes, shapes)
        self.parts = list(parts)

    def begin(self, context: Context, path: str) -> Cursor:
        return _ConcatenateCursor(self, context, path)

    def size(self) -> int:
        sizes = [p.size() for p in self.parts]
        return INFINITE if INFINITE in sizes else UNKNOWN if UNKNOWN in sizes else sum(sizes)


class _ConcatenateCursor(Wrapper):
    def __init__(self, pipeline: Concatenate, context: Context, path: str) -> None:
        self._pipeline, self._context, self._path = pipeline, context, path
        self._part = -1
        self._advance()

    def _advance(self) -> bool:
        if self._part + 1 >= len(self._pipeline.parts):
            return False
        self._part += 1
        if self._part:
            self.source.close()
        super().__init__(self._pipeline.parts[self._part].begin(self._context, f"{self._path}/{self._part}"))
        self.fresh = False
        return True

    def next(self) -> Element | None:
        while True:
            element = self.source.next()
            if element is not None or not self._advance():
                return element

    def block(self, count: int) -> Block | None:
        while True:
            block = self.source.block(count)
            if block is not None or not self._advance():
                return block

    def position(self) -> State:
        return {"part": self._part, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        while self._part < state["part"]:
            self._advance()
        self.source.set_position(state["source"])


class Zip(Pipeline):
    """Elements made of one of each, until one has no more."""

    def __init__(self, call: HostCall, parts: Sequence[Pipeline]) -> None:
        super().__init__(call, [d for p in parts for d in p.dtypes], [s for p in parts for s in p.shapes])
        self.parts = list(parts)

    def begin(self, context: Context, path: str) -> Cursor:
        return _ZipCursor([p.begin(context, f"{path}/{i}") for i, p in enumerate(self.parts)], context)

    def size(self) -> int:
        sizes = [p.size() for p in self.parts]
        known = [s for s in sizes if s >= 0]
        return UNKNOWN if UNKNOWN in sizes else min(known) if known else INFINITE


class _ZipCursor(Cursor):
    def __init__(self, parts: Sequence[Cursor], context: Context) -> None:
        self._parts = [_Ahead(p) for p in parts]
        self._context = context
        self.fresh = all(p.fresh for p in parts)
        self._ended = False

    def next(self) -> Element | None:
        block = self.block(1)
        return None if block is None else block.elements()[0]

    def block(self, count: int) -> Block | None:
        if self._ended:
            return None
        ready = []
        error: Exception | None = None
        for part in self._parts:
            try:
                ready.append(part.ready(count))
            except Exception as e:
                error = error or e
        if 0 in ready and not (error is not None and self._context.cancelled):
            self._ended = True
            return None
        if error is not None:
            for part in () if self._context.cancelled else self._parts:  # so that they stay together
                part.take(1)
            raise error
        least = min(ready)
        blocks = [part.take(least) for part in self._parts]
        if all(b.has_columns for b in blocks):
            return Block(least, lambda: [c for b in blocks for c in b.columns()])
        rows = zip(*(b.elements() for b in blocks), strict=True)
        return Block(least, None, [tuple([x for element in row for x in element]) for row in rows])

    def position(self) -> State:
        return {"ended": self._ended, "parts": [p.position() for p in self._parts]}

    def set_position(self, state: State) -> None:
        self._ended = state["ended"]
        for part, inner in zip(self._parts, state["parts"], strict=True):
            part.set_position(inner)

    def pause(self) -> None:
        for part in self._parts:
            part.pause()

    def resume(self) -> None:
        for part in self._parts:
            part.resume()

    def close(self) -> None:
        for part in self._parts:
            part.close()


class _Ahead(Wrapper):
    """A cursor whose elements are taken as a block and given in parts."""

    _block: Block | None = None
    _at = 0

    def ready(self, count: int) -> int:
        """Returns how many elements can be taken, up to `count`; 0 at the end."""
        if self._block is None:
            self._block, self._at = self.source.block(count), 0
        return 0 if self._block is None else min(count, self._block.count - self._at)

    def take(self, count: int) -> Block:
        """So many of those that are ready; none where an error came in their place."""
        block, at = self._block, self._at
        if block is None:
            return Block(0, None, ())
        self._at = end = at + count
        if end == block.count:
            self._block = None
        return block if (at, end) == (0, block.count) else block.part(at, end)

    def next(self) -> Element | None:
        return self.take(1).elements()[0] if self.ready(1) else None

    def position(self) -> State:
        held = () if self._block is None else self._block.elements()[self._at :]
        return {"held": pack(held), "source": self.source.position()}

    def set_position(self, state: State) -> None:
        held = unpack(state["held"])
        self._block, self._at = Block(len(held), None, held) if held else None, 0
        self.source.set_position(state["source"])
