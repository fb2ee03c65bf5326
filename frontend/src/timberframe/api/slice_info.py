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

    def write(self, proto: Any, prefix: str = "") -> None:
        """Fills a SaveSliceInfoDef; the name is written without `prefix`."""
        proto.full_name = self.full_name.removeprefix(prefix)
        for field in ("full_shape", "var_offset", "var_shape"):
            getattr(proto, field).extend(getattr(self, field))

    @classmethod
    def read(cls, proto: Any, prefix: str = "") -> SaveSliceInfo:
        """That of a SaveSliceInfoDef, whose name gets `prefix`."""
        return cls(prefix + proto.full_name, [*proto.full_shape], [*proto.var_offset], [*proto.var_shape])
