"""Pipelines that keep their elements, in memory or in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from timberframe.pipelines.base import Block, Context, Cursor, Element, Kept, Pipeline, State, Wrapper
from timberframe.pipelines.positions import decode, encode, pack, unpack
from timberframe_core.errors import AlreadyExistsError, DataLossError
from timberframe_core.plugin.host_ops import HostCall

T = TypeVar("T")


class Cache(Pipeline):
    """The elements, kept when they are gone through the first time. file: how files' names begin; "": memory."""

    def __init__(self, call: HostCall, source: Pipeline, file: str) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        self.source, self.file = source, file
        self._held = Kept()

    def begin(self, context: Context, path: str) -> Cursor:
        return _CacheCursor(self, context, f"{path}/0", context.kept(path, self._held))

    def size(self) -> int:
        return self.source.size()


class _CacheCursor(Cursor):
    """Goes through what was kept; else through the source, whose elements `_made` then holds."""

    def __init__(self, pipeline: Cache, context: Context, path: str, held: Kept) -> None:
        self._pipeline, self._held = pipeline, held
        self._kept: Sequence[Element] | None = self._find()
        self._source: Cursor | None = None if self._kept is not None else pipeline.source.begin(context, path)
        self._made: list[Element] = []
        self._at = 0

    def _find(self) -> Sequence[Element] | None:
        file = self._pipeline.file
        if not file:
            return self._held.elements
        if not os.path.exists(f"{file}.index"):
            return None
        try:
            with open(f"{file}.data", "rb") as data, open(f"{file}.index", "rb") as index:
                sizes = json.loads(index.read())
                return unpack(decode(data.read(size)) for size in sizes)
        except (OSError, ValueError, KeyError) as e:
            raise self._pipeline.error(
                f"the cache '{file}' cannot be read ({e}); remove its files", DataLossError
            ) from e

    def next(self) -> Element | None:
        if self._kept is not None:
            if self._at >= len(self._kept):
                return None
            self._at += 1
            return self._kept[self._at - 1]
        if self._source is None:
            return None
        element = self._source.next()
        if element is None:
            self._keep()
            return None
        self._made.append(element)
        return element

    def block(self, count: int) -> Block | None:
        if self._kept is not None:
            found = self._kept[self._at : self._at + count]
            self._at += len(found)
            return Block(len(found), None, found) if found else None
        return super().block(count)

    def _keep(self) -> None:
        """Keeps what the source gave, now that it has ended."""
        file = self._pipeline.file
        assert self._source is not None
        self._source.close()
        self._source = None
        if not file:
            if self._held.elements is None:  # else another cursor was at the end before
                self._held.elements = self._made
            return
        if os.path.exists(f"{file}.index"):
            raise self._pipeline.error(
                f"the cache '{file}' was written meanwhile by another iterator; one alone may write it",
                AlreadyExistsError,
            )
        packed = [encode(x) for x in pack(self._made)]
        with open(f"{file}.data", "wb") as data:
            data.writelines(packed)
        with open(f"{file}.index.new", "w") as index:
            json.dump([len(x) for x in packed], index)
        os.replace(f"{file}.index.new", f"{file}.index")

    def position(self) -> State:
        if self._kept is not None:
            held = [] if self._pipeline.file else pack(self._kept)
            return {"kept": held, "at": self._at}
        source = None if self._source is None else self._source.position()
        return {"made": pack(self._made), "source": source}

    def set_position(self, state: State) -> None:
        if "kept" in state:
            if not self._pipeline.file:
                self._kept = self._held.elements = unpack(state["kept"])
            self._at = state["at"]
            if self._source is not None:
                self._source.close()
                self._source = None
            return
        self._made = unpack(state["made"])
        if state["source"] is None:
            self._source = None
        elif self._source is not None:
            self._source.set_position(state["source"])

    def pause(self) -> None:
        if self._source is not None:
            self._source.pause()

    def resume(self) -> None:
        if self._source is not None:
            self._source.resume()

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


class IgnoreErrors(Pipeline):
    """The elements that can be made."""

    def __init__(self, call: HostCall, source: Pipeline) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        self.source = source

    def begin(self, context: Context, path: str) -> Cursor:
        return _IgnoringCursor(self.source.begin(context, f"{path}/0"), context)


class _IgnoringCursor(Wrapper):
    def __init__(self, source: Cursor, context: Context) -> None:
        super().__init__(source)
        self._context = context

    def next(self) -> Element | None:
        return self._made(self.source.next)

    def block(self, count: int) -> Block | None:
        return self._made(lambda: self.source.block(count))

    def _made(self, make: Callable[[], T]) -> T:
        while True:
            try:
                return make()
            except Exception:
                self._context.cancel.check()  # that is no error of an element
