"""`slim.data_provider`: tensors of the items of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from timberframe_core.errors import InvalidArgumentError


class DataProvider:
    """Gives tensors by the names of their items. num_samples: how many samples the data set has."""

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int | None) -> None:
        self._items_to_tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: Iterable[str]) -> list[Any]:
        """Returns the tensors of these items; InvalidArgumentError for one that is not there."""
        wanted = list(items)
        unknown = [item for item in wanted if item not in self._items_to_tensors]
        if unknown:
            raise InvalidArgumentError(
                f"DataProvider.get: there is no item {unknown[0]!r}; it must be one of {', '.join(self.list_items())}"
            )
        return [self._items_to_tensors[item] for item in wanted]

    def list_items(self) -> list[str]:
        """Returns the names of all items."""
        return list(self._items_to_tensors)

    def num_samples(self) -> int | None:
        """Returns how many samples the data set has."""
        return self._num_samples
