"""Pipelines that give elements of another again: some of them, or all of them more often."""

from __future__ import annotations

import numpy as np

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
from timberframe_core.plugin.host_ops import HostCall


class _Counted(Pipeline):
    """Base of pipelines that a number makes of another."""

    def __init__(self, call: HostCall, source: Pipeline, count: int) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        self.source, self.count = source, count
        self.table = source.table


class Repeat(_Counted):
    """The elements `count` times; a negative count means without an end."""

    def begin(self, context: Context, path: str) -> Cursor:
        fused = self.source.begin_repeated(context, f"{path}/0", self.count)
        return fused or _RepeatCursor(self, context, f"{path}/0")

    def draw(self, context: Context, path: str) -> None:
        """Draws the seeds of a further repetition, as TensorFlow does after the last one where it is not fused."""
        if self.count > 1:
            self.source.begin(context.drawing(), path).close()

    def size(self) -> int:
        size = self.source.size()
        if self.count == 0 or size == 0:
            return 0
        if self.count < 0:
            return INFINITE
        return size if size < 0 else size * self.count


class _RepeatCursor(Wrapper):
    def __init__(self, pipeline: Repeat, context: Context, path: str) -> None:
        self._pipeline, self._context, self._path = pipeline, context, path
        super().__init__(pipeline.source.begin(context, path))
        self.table = self.source.table
        self._round = 0
        self._any = self._drew = False

    def _again(self) -> bool:
        """Begins the next repetition; False where there is none."""
        count = self._pipeline.count
        if count < 0 and not self._any:
            return False
        if 0 <= count <= self._round + 1:
            if not self._drew:
                self._drew = True
                self._pipeline.draw(self._context, self._path)
            return False
        self._round += 1
        self._any = False
        self.source.close()
        self.source = self._pipeline.source.begin(self._context, self._path)
        return True

    def next(self) -> Element | None:
        if not self._pipeline.count:
            return None
        while True:
            element = self.source.next()
            if element is not None:
                self._any = True
                return element
            if not self._again():
                return None

    def block(self, count: int) -> Block | None:
        if not self._pipeline.count:
            return None
        while True:
            block = self.source.block(count)
            if block is not None:
                self._any = True
                return block
            if not self._again():
                return None

    def rows(self, count: int) -> np.ndarray | None:
        if not self._pipeline.count:
            return None
        while True:
            rows = self.source.rows(count)
            if rows is not None:
                self._any = True
                return rows
            if not self._again():
                return None

    def position(self) -> State:
        return {"round": self._round, "any": self._any, "drew": self._drew, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._round, self._any, self._drew = state["round"], state["any"], state["drew"]
        self.source.set_position(state["source"])


class Take(_Counted):
    """The first `count` elements; a negative count means all."""

    def begin(self, context: Context, path: str) -> Cursor:
        source = self.source.begin(context, f"{path}/0")
        return source if self.count < 0 else _TakeCursor(source, self.count)

    def size(self) -> int:
        size = self.source.size()
        if self.count < 0:
            return size
        return self.count if size == INFINITE else UNKNOWN if size == UNKNOWN else min(size, self.count)


class _TakeCursor(Wrapper):
    def __init__(self, source: Cursor, count: int) -> None:
        super().__init__(source)
        self.table = source.table
        self._left = count

    def next(self) -> Element | None:
        element = self.source.next() if self._left else None
        self._left = 0 if element is None else self._left - 1
        return element

    def block(self, count: int) -> Block | None:
        block = self.source.block(min(count, self._left)) if self._left else None
        self._left = 0 if block is None else self._left - block.count
        return block

    def rows(self, count: int) -> np.ndarray | None:
        rows = self.source.rows(min(count, self._left)) if self._left else None
        self._left = 0 if rows is None else self._left - len(rows)
        return rows

    def position(self) -> State:
        return {"left": self._left, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._left = state["left"]
        self.source.set_position(state["source"])


_AT_ONCE = 1 << 16  # elements that are skipped before it is seen whether the call was stopped


class Skip(_Counted):
    """The elements after the first `count`; a negative count means none of them."""

    def begin(self, context: Context, path: str) -> Cursor:
        return _SkipCursor(self.source.begin(context, f"{path}/0"), context, self.count)

    def size(self) -> int:
        size = self.source.size()
        return 0 if self.count < 0 else size if size < 0 else max(0, size - self.count)


class _SkipCursor(Wrapper):
    """Skips before the first element; where an error comes meanwhile, it begins to count again, as TensorFlow does."""

    def __init__(self, source: Cursor, context: Context, count: int) -> None:
        super().__init__(source)
        self.table = source.table
        self._context = context
        self._left = count

    def _skip(self) -> bool:
        if self._left < 0:
            return False
        left = self._left
        while left:
            try:
                self._context.cancel.check()
                count = self._skip_some(min(left, _AT_ONCE))
            except Exception:
                if self._context.cancelled:
                    self._left = left
                raise
            if not count:
                self._left = -1
                return False
            left -= count
        self._left = 0
        return True

    def _skip_some(self, most: int) -> int:
        """Skips elements, and returns how many; 0 at the end."""
        if self.table is None:
            return 0 if self.source.next() is None else 1
        rows = self.source.rows(most)
        return 0 if rows is None else len(rows)

    def next(self) -> Element | None:
        return self.source.next() if not self._left or self._skip() else None

    def block(self, count: int) -> Block | None:
        return self.source.block(count) if not self._left or self._skip() else None

    def rows(self, count: int) -> np.ndarray | None:
        return self.source.rows(count) if not self._left or self._skip() else None

    def position(self) -> State:
        return {"left": self._left, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._left = state["left"]
        self.source.set_position(state["source"])


class Shard(Pipeline):
    """Every `count`-th element, from the one with the number `index`."""

    def __init__(self, call: HostCall, source: Pipeline, count: int, index: int) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        if count < 1:
            raise call.error(f"num_shards is {count}; it must be greater than zero")
        if not 0 <= index < count:
            raise call.error(f"index is {index} of {count} shards; it must lie in [0, {count})")
        self.source, self.count, self.index = source, count, index

    def begin(self, context: Context, path: str) -> Cursor:
        return _ShardCursor(self.source.begin(context, f"{path}/0"), self.count, self.index)

    def size(self) -> int:
        size = self.source.size()
        return size if size < 0 else size // self.count + (self.index < size % self.count)


class _ShardCursor(Wrapper):
    def __init__(self, source: Cursor, count: int, index: int) -> None:
        super().__init__(source)
        self._count, self._index = count, index
        self._at = 0

    def next(self) -> Element | None:
        while True:
            element = self.source.next()
            if element is None:
                return None
            mine = self._at == self._index
            self._at = (self._at + 1) % self._count
            if mine:
                return element

    def position(self) -> State:
        return {"at": self._at, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._at = state["at"]
        self.source.set_position(state["source"])
