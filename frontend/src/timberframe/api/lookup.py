"""Hash tables: from keys, such as words, to values, such as their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys, group, name_scope
from timberframe_core.dtypes import DType, as_dtype, int32, int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

__all__ = ["initialize_all_tables", "tables_initializer"]

NAMESPACES = {
    "lookup": (
        "HashTable", "IdTableWithHashBuckets", "KeyValueTensorInitializer", "MutableHashTable", "StaticHashTable",
        "index_table_from_file", "index_table_from_tensor", "index_to_string_table_from_file",
        "index_to_string_table_from_tensor",
    )
}  # fmt: skip


class _Table:
    """A table; it lives in a session, as a variable does."""

    def __init__(self, handle: Tensor, key_dtype: DType, value_dtype: DType, default_value: Any) -> None:
        self._handle = handle
        self._key_dtype = key_dtype
        self._value_dtype = value_dtype
        self._default = convert_to_tensor(default_value, value_dtype)

    @property
    def resource_handle(self) -> Tensor:
        """The handle."""
        return self._handle

    @property
    def name(self) -> str:
        """Name of the operation that makes the table."""
        return self._handle.op.name

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    @property
    def default_value(self) -> Tensor:
        """What keys give that are not in the table."""
        return self._default

    def _find(self, keys: Any, default: Any, name: str | None) -> Tensor:
        given = convert_to_tensor(keys, self._key_dtype, name="keys")
        made: Tensor = apply_op(
            "LookupTableFindV2", [self._handle, given, default], None, name or f"{self._label}_Lookup"
        )
        return made

    def size(self, name: str | None = None) -> Tensor:
        """Returns how many keys the table has."""
        made: Tensor = apply_op("LookupTableSizeV2", [self._handle], None, name or f"{self._label}_Size")
        return made

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and their values."""
        types = {"Tkeys": self._key_dtype, "Tvalues": self._value_dtype}
        keys, values = apply_op("LookupTableExportV2", [self._handle], types, name or f"{self._label}_Export")
        return keys, values

    @property
    def _label(self) -> str:
        return self.name.rpartition("/")[2]


class KeyValueTensorInitializer:
    """Keys and values of a table that is filled once: tensors of one dimension and equal lengths."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        with name_scope(name, "key_value_init") as scope:
            self._scope = scope
            self.keys = convert_to_tensor(keys, None if key_dtype is None else as_dtype(key_dtype), name="keys")
            self.values = convert_to_tensor(
                values, None if value_dtype is None else as_dtype(value_dtype), name="values"
            )

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self.keys.dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    def initialize(self, table: _Table) -> Operation:
        """Returns the operation that fills a table; it is among those that `tf.tables_initializer` runs."""
        for what, mine, its in (
            ("keys", self.key_dtype, table.key_dtype),
            ("values", self.value_dtype, table.value_dtype),
        ):
            if mine is not its:
                raise InvalidTypeError(f"table '{table.name}': {what} are {mine.name}; {its.name} is required")
        with name_scope(self._scope):
            made: Operation = apply_op("InitializeTableV2", [table.resource_handle, self.keys, self.values])
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        return made


class StaticHashTable(_Table):
    """A table that is filled once in a session: by `initializer`, which `tf.tables_initializer()` runs with others.

    initializer: a KeyValueTensorInitializer. default_value: what keys give that are not in it.
    Looking something up before raises FailedPreconditionError, as does filling it again with other entries.
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any, name: str | None = None, *,
        shared_name: str | None = None,
    ) -> None:  # fmt: skip
        keys, values = initializer.key_dtype, initializer.value_dtype
        attrs = {"key_dtype": keys, "value_dtype": values, "shared_name": shared_name}
        super().__init__(apply_op("HashTableV2", [], attrs, name or "hash_table"), keys, values, default_value)
        if self._default.static_shape not in (None, ()):
            raise InvalidArgumentError(
                f"table '{self.name}': default_value has shape {self._default.shape}; a scalar is"
            )
        self._initializer = initializer.initialize(self)

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        return self._initializer

    def lookup(self, keys: Any, name: str | None = None) -> Tensor:
        """Returns the value of each key, and the default value for keys that the table lacks."""
        return self._find(keys, self._default, name)


class HashTable(StaticHashTable):
    """`StaticHashTable` by its name and order of arguments in `tf.contrib.lookup`."""

    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any, shared_name: str | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(initializer, default_value, name, shared_name=shared_name)


class MutableHashTable(_Table):
    """A table that operations change. Its entries are not part of checkpoints.

    default_value: what keys give that are not in it; its shape is that of each value.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
    ) -> None:
        keys, values = as_dtype(key_dtype), as_dtype(value_dtype)
        default = convert_to_tensor(default_value, values)
        attrs: dict[str, Any] = {"key_dtype": keys, "value_dtype": values, "shared_name": shared_name}
        op = "MutableHashTableV2"
        if default.static_shape != ():
            op, attrs = "MutableHashTableOfTensorsV2", {**attrs, "value_shape": default.static_shape}
        super().__init__(apply_op(op, [], attrs, name), keys, values, default)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Tensor:
        """Returns the value of each key.

        dynamic_default_values: for keys that the table lacks, one for each or one for all.
        """
        default = self._default if dynamic_default_values is None else dynamic_default_values
        return self._find(keys, convert_to_tensor(default, self._value_dtype), name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Sets the values of keys; of a key that is given twice the last one."""
        made: Operation = apply_op(
            "LookupTableInsertV2", [self._handle, *self._pairs(keys, values)], None, name or f"{self._label}_insert"
        )
        return made

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Removes keys, where they are."""
        given = convert_to_tensor(keys, self._key_dtype, name="keys")
        made: Operation = apply_op("LookupTableRemoveV2", [self._handle, given], None, name or f"{self._label}_remove")
        return made

    def _pairs(self, keys: Any, values: Any) -> tuple[Tensor, Tensor]:
        return convert_to_tensor(keys, self._key_dtype), convert_to_tensor(values, self._value_dtype)


def _dtype(given: Any) -> DType | None:
    return None if given is None else as_dtype(given)


class IdTableWithHashBuckets:
    """A table of words in which those that are not listed have numbers, too: the first after the table's, by a hash.

    table: a StaticHashTable of strings whose values are 0, 1, ... num_oov_buckets: how many further numbers there are.
    """

    def __init__(self, table: StaticHashTable, num_oov_buckets: int, name: str | None = None) -> None:
        if table.key_dtype is not string:
            raise UnimplementedError(
                f"table '{table.name}': num_oov_buckets is {num_oov_buckets} for keys of dtype {table.key_dtype.name}; "
                "only strings have hashes"
            )
        self._table = table
        self._buckets = num_oov_buckets
        self._name = name or f"{table.name.rpartition('/')[2]}_buckets"

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        return self._table.initializer

    def size(self, name: str | None = None) -> Tensor:
        """Returns how many numbers there are, those of the buckets included."""
        made: Tensor = apply_op(
            "AddV2", [self._table.size(), np.int64(self._buckets)], None, name or f"{self._name}_Size"
        )
        return made

    def lookup(self, keys: Any, name: str | None = None) -> Tensor:
        """Returns the number of each word."""
        with name_scope(name, f"{self._name}_Lookup"):
            words = convert_to_tensor(keys, string, name="keys")
            numbers = self._table.lookup(words)
            hashed = apply_op("StringToHashBucketFast", [words], {"num_buckets": self._buckets})
            listed = apply_op("NotEqual", [numbers, self._table.default_value])
            made: Tensor = apply_op("SelectV2", [listed, numbers, apply_op("AddV2", [hashed, self._table.size()])])
            return made


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = string,
    name: str | None = None,
) -> StaticHashTable | IdTableWithHashBuckets:
    """Returns a table from words (or integers) to their numbers in `mapping`, a list of them; default_value for others.

    num_oov_buckets: with some, words that are not listed get a number of one of so many buckets, by TensorFlow's hash
    for them; only words can. hasher_spec: another hash raises UnimplementedError.
    """
    if hasher_spec is not None:
        raise UnimplementedError(
            "index_table_from_tensor: hasher_spec is given; only TensorFlow's default is implemented"
        )
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(mapping, as_dtype(dtype))
        table = StaticHashTable(KeyValueTensorInitializer(keys, numbers(keys)), default_value)
        return IdTableWithHashBuckets(table, num_oov_buckets) if num_oov_buckets else table


def numbers(x: Tensor) -> Tensor:
    """0, 1, ... for the elements of a vector."""
    made: Tensor = apply_op("Cast", [apply_op("Range", [0, apply_op("Size", [x]), 1])], {"DstT": int64})
    return made


def index_to_string_table_from_tensor(
    mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """Returns a table from numbers to the words in `mapping`, a list of them; default_value for other numbers."""
    with name_scope(name, "index_to_string"):
        values = convert_to_tensor(mapping, string)
        return StaticHashTable(KeyValueTensorInitializer(numbers(values), values), default_value)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    key_dtype: Any = string,
    name: str | None = None,
) -> StaticHashTable | IdTableWithHashBuckets:
    """Returns a table from the lines of a file to their numbers, which are read when the table is initialized.

    vocab_size: how many lines, by default all. See `index_table_from_tensor` for the other arguments.
    """
    with name_scope(name, "string_to_index"):
        lines = file_lines(vocabulary_file, vocab_size)
        if as_dtype(key_dtype) is not string:
            lines = apply_op("StringToNumber", [lines], {"out_type": as_dtype(key_dtype)})
        return index_table_from_tensor(lines, num_oov_buckets, default_value, hasher_spec, key_dtype)


def index_to_string_table_from_file(
    vocabulary_file: Any, vocab_size: int | None = None, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """Returns a table from numbers to the lines of a file; see `index_table_from_file`."""
    with name_scope(name, "index_to_string"):
        return index_to_string_table_from_tensor(file_lines(vocabulary_file, vocab_size), default_value)


def file_lines(path: Any, count: int | None) -> Tensor:
    """Returns the lines of a file without their ends, or so many of them."""
    if not path:
        raise InvalidArgumentError("a table of a vocabulary file: no file is named; vocabulary_file is required")
    text = apply_op("ReduceJoin", [_split(apply_op("ReadFile", [path]), "\r"), 0])
    parts: Any = _split(text, "\n")
    whole = parts[
        : apply_op("Size", [parts]) - apply_op("Cast", [apply_op("Equal", [parts[-1], ""])], {"DstT": int32})
    ]  # nothing follows the last end
    made: Tensor = whole if count is None else whole[:count]
    return made


def _split(text: Any, separator: str) -> Tensor:
    """Returns the parts of one string."""
    made: Tensor = apply_op("StringSplitV2", [apply_op("Reshape", [text, [1]]), separator])[1]
    return made


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Returns the operation that fills all tables of the default graph that are filled once."""
    made: Operation = group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)
    return made


initialize_all_tables = tables_initializer
