"""`slim.utils`: named outputs in collections, sizes of shapes, conditions that are known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.api.framework import add_to_collections, get_collection, get_static_value
from timberframe.api.framework import is_tensor as _is_tensor
from timberframe_contrib.contrib.framework import smart_cond as smart_cond
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape

__all__ = [
    "append_tensor_alias", "channel_dimension", "collect_named_outputs", "constant_value",
    "convert_collection_to_dict", "first_dimension", "gather_tensors_aliases", "get_tensor_aliases",
    "get_variable_collections", "last_dimension", "n_positive_integers", "smart_cond", "static_cond",
    "two_element_tuple",
]  # fmt: skip


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """outputs, added to collections under the name alias; without collections nothing is done."""
    if collections:
        append_tensor_alias(outputs, alias)
        add_to_collections([collections] if isinstance(collections, str) else list(collections), outputs)
    return outputs


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Returns a tensor, with one more name for `convert_collection_to_dict`. A slash at the end of it is left out."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """Returns the names that `append_tensor_alias` gave a tensor, or else its operation's name."""
    return list(getattr(tensor, "aliases", ())) or [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Sequence[Any]) -> list[str]:
    """Returns the names of several tensors, one after the other."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """Returns the tensors of a collection by their names. clear_collection: whether it is empty afterwards."""
    from timberframe_core.graph.graph import get_default_graph

    found = OrderedDict((alias, t) for t in get_collection(collection) for alias in get_tensor_aliases(t))
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return found


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """Returns the collections for the variable of this name: all of a list, or those that a
    mapping has for the name.
    """
    if isinstance(variables_collections, Mapping):
        return variables_collections.get(name)
    return variables_collections


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """Returns a value that is known now, None for tensors that are not. dtype: what a value must be an instance of."""
    if value_or_tensor_or_var is None:
        raise InvalidArgumentError("constant_value: the value is None; a value, a tensor or a variable is required")
    if not _is_tensor(value_or_tensor_or_var):
        if dtype is not None and not isinstance(value_or_tensor_or_var, dtype):
            found = type(value_or_tensor_or_var).__name__
            raise InvalidArgumentError(
                f"constant_value: {value_or_tensor_or_var!r} is of type {found}; {dtype.__name__} is required"
            )
        return value_or_tensor_or_var
    return get_static_value(value_or_tensor_or_var)


def static_cond(pred: Any, fn1: Any, fn2: Any) -> Any:
    """Returns what fn1 returns where a Python bool is true, and fn2 otherwise."""
    if not callable(fn1) or not callable(fn2):
        raise InvalidArgumentError("static_cond: fn1 or fn2 is not callable; both must be functions")
    return fn1() if pred else fn2()


def first_dimension(shape: Any, min_rank: int = 1) -> int | None:
    """Returns the size of the first axis; min_rank: how many axes there must be at least."""
    return _size(shape, 0, min_rank)


def last_dimension(shape: Any, min_rank: int = 1) -> int | None:
    """Returns the size of the last axis; min_rank: how many axes there must be at least."""
    return _size(shape, -1, min_rank)


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int | None:
    """Returns the number of channels: of axis 1 where data_format begins with NC, otherwise of the last one."""
    return _size(shape, 1 if data_format.startswith("NC") else -1, min_rank)


def _size(shape: Any, axis: int, min_rank: int) -> int | None:
    sizes = TensorShape(shape)
    if sizes.ndims is None or sizes.ndims < min_rank:
        raise InvalidArgumentError(f"the shape is {sizes}; {min_rank} axes at least are required")
    return sizes.as_list()[axis]


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Height and width of an integer, which is both, or of a pair."""
    first, second = n_positive_integers(2, int_or_tuple)
    return first, second


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """n integers: one for all, or one each."""
    values = [value] * n if isinstance(value, int) else [int(v) for v in value]
    if len(values) != n or min(values, default=0) < 1:
        raise InvalidArgumentError(f"{value!r} is given; {n} positive integers, or one for all, are required")
    return tuple(values)
