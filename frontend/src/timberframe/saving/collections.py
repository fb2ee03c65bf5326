"""How collections of programs' own objects are written with graphs: as messages, by functions that they register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError


class _Functions(NamedTuple):
    proto_type: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_FUNCTIONS: dict[str, _Functions] = {}


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Says how the items of a collection become messages of a MetaGraphDef, and items again.

    proto_type: the class of the messages. to_proto: called with an item and `export_scope`; None leaves the item out.
    from_proto: called with a message and `import_scope`. A name can be registered once.
    """
    for label, function in (("to_proto", to_proto), ("from_proto", from_proto)):
        if function is not None and not callable(function):
            raise InvalidTypeError(f"register_proto_function: {label} is {function!r}; a function is required")
    if collection_name in _FUNCTIONS:
        raise InvalidArgumentError(
            f"register_proto_function: collection '{collection_name}' has functions already; register them once"
        )
    _FUNCTIONS[collection_name] = _Functions(proto_type, to_proto, from_proto)


def get_collection_proto_type(collection_name: str) -> Any:
    """Returns the class of the collection's messages, None where none is registered."""
    found = _FUNCTIONS.get(collection_name)
    return found and found.proto_type


def get_to_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """Returns the function that makes messages of the collection's items, None where none is registered."""
    found = _FUNCTIONS.get(collection_name)
    return found and found.to_proto


def get_from_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """Returns the function that makes items of the collection's messages, None where none is registered."""
    found = _FUNCTIONS.get(collection_name)
    return found and found.from_proto
