"""`slim.data_decoder`: the base of decoders of records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class DataDecoder(ABC):
    """Decodes records to named items; a base class."""

    @abstractmethod
    def decode(self, data: Any, items: Sequence[str]) -> list[Any]:
        """Returns the tensors of these items, of a record."""

    @abstractmethod
    def list_items(self) -> list[str]:
        """Returns the names of all items."""
