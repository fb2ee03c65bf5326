"""Which part of a partitioned variable a variable is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SaveSliceInfo:
    """Which part of a whole a variable is: the whole's name and sizes, where the part begins, and its sizes."""

    full_name: str
    full_shape: Sequence[int]
    var_offset: Sequence[int]
    var_shape: Sequence[int]

    @property
    def spec(self) -> str:
        """The part as ops of checkpoints read it: sizes of the whole, then begin and size of the part for each axis."""
        sizes = "".join(f"{size} " for size in self.full_shape)
        return sizes + ":".join(f"{o},{s}" for o, s in zip(self.var_offset, self.var_shape, strict=True))

    def write(self, proto: Any, prefix: str = "") -> None:
        """Fills a SaveSliceInfoDef; the name is written without `prefix`."""
        proto.full_name = self.full_name.removeprefix(prefix)
        for field in ("full_shape", "var_offset", "var_shape"):
            getattr(proto, field).extend(getattr(self, field))

    @classmethod
    def read(cls, proto: Any, prefix: str = "") -> SaveSliceInfo:
        """That of a SaveSliceInfoDef, whose name gets `prefix`."""
        return cls(prefix + proto.full_name, [*proto.full_shape], [*proto.var_offset], [*proto.var_shape])
