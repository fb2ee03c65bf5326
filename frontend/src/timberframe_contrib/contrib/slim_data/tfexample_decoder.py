"""`slim.tfexample_decoder`: serialized Examples as items, each made of some of their features by a handler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.api.arrays import concat, reshape, size, stack, transpose
from timberframe.api.comparison import equal, logical_or
from timberframe.api.control_flow import cond
from timberframe.api.examples import FixedLenFeature, parse_single_example
from timberframe.api.functional import map_fn
from timberframe.api.pictures import decode_image
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_reshape, sparse_tensor_to_dense
from timberframe.api.string_parts import decode_raw
from timberframe_contrib.contrib.slim_data.data_decoder import DataDecoder
from timberframe_core.dtypes import as_dtype, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph import sparse_tensor

Parsed = Mapping[str, Any]
"""The parsed features of an Example, by their keys."""


class ItemHandler(ABC):
    """Makes an item of features; a base class. keys: the keys of the features, or one key."""

    def __init__(self, keys: str | Sequence[str]) -> None:
        self._keys = list(keys) if isinstance(keys, list | tuple) else [str(keys)]

    @property
    def keys(self) -> list[str]:
        """The keys of the features that the item is made of."""
        return self._keys

    @abstractmethod
    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the item, of the parsed features."""


class ItemHandlerCallback(ItemHandler):
    """The item that a function makes of the dict of its features."""

    def __init__(self, keys: str | Sequence[str], func: Callable[[Parsed], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns what the function returns."""
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes of shape (boxes, 4). keys: those of ymin, xmin, ymax and xmax, each after `prefix`."""

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        sides = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(sides) != 4:
            raise InvalidArgumentError(f"BoundingBox: keys are {sides}; four are required")
        super().__init__([prefix + side for side in sides])

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the boxes, one a row."""
        sides = (keys_to_tensors[key] for key in self.keys)
        rows = [side.values if isinstance(side, sparse_tensor.SparseTensor) else side for side in sides]
        return transpose(stack(rows))


class Tensor(ItemHandler):
    """A feature as a tensor. shape: what it is reshaped to; or shape_keys: the key of the feature that has its shape,
    or those of the features that have its sizes. default_value: what a sparse feature lacks.
    """

    def __init__(
        self,
        tensor_key: str,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = 0,
    ) -> None:
        if shape_keys and shape is not None:
            raise InvalidArgumentError(f"Tensor '{tensor_key}': shape_keys and shape are given; only one may be")
        self._tensor_key, self._shape, self._default_value = tensor_key, shape, default_value
        self._shape_keys = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        super().__init__([tensor_key, *self._shape_keys])

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the tensor, dense."""
        tensor, shape = keys_to_tensors[self._tensor_key], self._shape
        if self._shape_keys:
            shape = concat([reshape(cast(_dense(keys_to_tensors[k]), int64), [-1]) for k in self._shape_keys], 0)
        if isinstance(tensor, sparse_tensor.SparseTensor):
            return _dense(tensor if shape is None else sparse_reshape(tensor, shape), self._default_value)
        return tensor if shape is None else reshape(tensor, shape)


class LookupTensor(Tensor):
    """What a table has for a feature; see `Tensor`."""

    def __init__(
        self,
        tensor_key: str,
        table: Any,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = "",
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the tensor of what the table has."""
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of one handler; where that has no elements, that of another one."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for name, given in (("handler", handler), ("backup", backup)):
            if not isinstance(given, ItemHandler):
                raise InvalidTypeError(f"BackupHandler: {name} is {type(given).__name__}; an ItemHandler is required")
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the item of the handler that has one."""
        item = self._handler.tensors_to_item(keys_to_tensors)
        return cond(equal(size(item), 0), lambda: self._backup.tensors_to_item(keys_to_tensors), lambda: item)


class SparseTensor(ItemHandler):
    """A sparse tensor of features with its indices and its values, by default "indices" and "values".

    shape_key: that of the feature with its shape; shape: the shape, else. densify: makes it dense, with default_value
    where there are no indices.
    """

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key, self._values_key = indices_key or "indices", values_key or "values"
        self._shape_key, self._shape = shape_key, shape
        self._densify, self._default_value = densify, default_value
        super().__init__([self._indices_key, self._values_key, *([shape_key] if shape_key else [])])

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the sparse tensor."""
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        shape = self._shape or indices.dense_shape
        if self._shape_key:
            shape = _dense(keys_to_tensors[self._shape_key])
        columns = [indices.indices[:, :-1], reshape(cast(indices.values, int64), [-1, 1])]
        made = sparse_tensor.SparseTensor(concat(columns, 1), values.values, shape)
        return _dense(made, self._default_value) if self._densify else made


class Image(ItemHandler):
    """A picture of a feature with its file and one with its format, by default "image/encoded" and "image/format".

    The format "raw" (or "RAW") is that of the values themselves, in `dtype`; others are found from the file. shape:
    what the picture is reshaped to; raw ones need it. channels: how many it gets. repeated: the feature has several
    pictures. dct_method changes nothing.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = "uint8",
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        self._shape, self._channels, self._dtype, self._repeated = shape, channels, as_dtype(dtype), repeated
        super().__init__([self._image_key, self._format_key])

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """Returns the picture: height, width and channels."""
        file, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return map_fn(lambda each: self._decoded(each, kind), file, dtype=self._dtype)
        return self._decoded(file, kind)

    def _decoded(self, file: Any, kind: Any) -> Any:
        raw = logical_or(equal(kind, "raw"), equal(kind, "RAW"))
        picture = cond(
            reshape(raw, []),
            lambda: decode_raw(file, self._dtype),
            lambda: cast(decode_image(file, self._channels), self._dtype),
        )
        if self._shape is not None:
            return reshape(picture, self._shape)
        picture.set_shape([None, None, self._channels or None])
        return picture


class TFExampleDecoder(DataDecoder):
    """Decodes serialized Examples.

    keys_to_features: what `tf.parse_single_example` takes. items_to_handlers: the handler of each item, by its name.
    """

    def __init__(self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]) -> None:
        self._keys_to_features = keys_to_features
        self._items_to_handlers = items_to_handlers

    def list_items(self) -> list[str]:
        """Returns the names of all items."""
        return list(self._items_to_handlers)

    def decode(self, data: Any, items: Sequence[str] | None = None) -> list[Any]:
        """Returns the items of a serialized Example, by default all."""
        found = parse_single_example(data, self._keys_to_features)
        for key, feature in self._keys_to_features.items():
            if isinstance(feature, FixedLenFeature):
                found[key] = reshape(found[key], feature.shape)
        handlers = [self._items_to_handlers[item] for item in items or self.list_items()]
        return [handler.tensors_to_item({key: found[key] for key in handler.keys}) for handler in handlers]


def _dense(tensor: Any, default_value: Any = 0) -> Any:
    return sparse_tensor_to_dense(tensor, default_value) if isinstance(tensor, sparse_tensor.SparseTensor) else tensor
