"""Collections: lists of a graph by names."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from timberframe_core.arguments import instance


class Collections:
    """The part of a graph that keeps them."""

    _collections: dict[Any, list[Any]]

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends a value to a collection."""
        self._collections.setdefault(_key(name), []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends a value to each of these collections, once."""
        for name in dict.fromkeys((names,) if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Returns a copy of the collection, with `scope` only the items whose name matches
        it as a regular expression.
        """
        items = self._collections.get(_key(name), [])
        if scope is None:
            return list(items)
        pattern = instance(scope, str, "scope", "a str")
        return [x for x in items if re.match(pattern, getattr(x, "name", ""))]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """Returns the collection itself."""
        return self._collections.setdefault(_key(name), [])

    def get_all_collection_keys(self) -> list[Any]:
        """Returns the names of all collections."""
        return [k for k in self._collections if isinstance(k, str)]

    @property
    def collections(self) -> list[Any]:
        """The names of all collections; see also `get_all_collection_keys`."""
        return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        """Drops a collection."""
        self._collections.pop(_key(name), None)


def _key(name: Any) -> Any:
    """Returns the name of a collection, which may be anything that can be the key of a dict."""
    return instance(name, Hashable, "name of a collection", "a str or another key")
