"""Hash tables: TensorFlow's lookup_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

_STATE = NotDifferentiable("what a table holds is no function of tensors")
_NAMES = ("container: string = ''", "shared_name: string = ''", "use_node_name_sharing: bool = false")
_HELD = ("key_dtype: type", "value_dtype: type")


def _handle_shape(c: InferenceContext) -> list[Shape]:
    c.output_handles[0] = c.attrs["value_dtype"], c.attrs.get("value_shape", ())
    return [()]


for _name, _doc, _more in (
    ("HashTableV2", "A table from keys to values, which is filled once.", ()),
    ("MutableHashTableV2", "A table from keys to values that may be changed.", ()),
    ("MutableHashTableOfTensorsV2", "A table from keys to tensors of one shape.", ("value_shape: shape = []",)),
):
    define_op(
        _name,
        outputs=["table_handle: resource"],
        attrs=[*_NAMES, *_HELD, *_more],
        doc=_doc,
        shape=_handle_shape,
        gradient=_STATE,
        on_host=True,
        resource="table",
        stateful=True,
    )


def _found_shape(c: InferenceContext) -> list[Shape]:
    held, keys = c.handles[0] if c.handles else None, c.shapes[1]
    if held is None or held[0] is None or held[1] is None or keys is None:
        return [None]
    return [(*keys, *held[1])]


def _exported_shapes(c: InferenceContext) -> list[Shape]:
    held = c.handles[0] if c.handles else None
    known = held is not None and held[0] is not None and held[1] is not None
    return [(None,), (None, *(held[1] or ())) if held is not None and known else None]


def _define(
    name: str, doc: str, shape: Any, inputs: Sequence[str] = (), outputs: Sequence[str] = (), attrs: Sequence[str] = ()
) -> None:
    define_op(
        name,
        inputs=["table_handle: resource", *inputs],
        outputs=outputs,
        attrs=attrs,
        doc=doc,
        shape=shape,
        gradient=_STATE,
        on_host=True,
        kinds={"table_handle": "table"},
        stateful=True,
    )


_PAIRS, _TYPES = ("keys: Tin", "values: Tout"), ("Tin: type", "Tout: type")

_define(
    "InitializeTableV2",
    "Fills a table that is filled once; doing so again with the same keys and values changes nothing.",
    lambda c: [],
    ("keys: Tkey", "values: Tval"),
    (),
    ("Tkey: type", "Tval: type"),
)
_define(
    "LookupTableFindV2",
    "The value of each key, and the default value for those that the table lacks.",
    _found_shape,
    ("keys: Tin", "default_value: Tout"),
    ("values: Tout",),
    _TYPES,
)
_define("LookupTableInsertV2", "Sets the values of keys.", lambda c: [], _PAIRS, (), _TYPES)
_define("LookupTableRemoveV2", "Removes keys.", lambda c: [], ("keys: Tin",), (), ("Tin: type",))
_define("LookupTableSizeV2", "How many keys the table has.", lambda c: [()], (), ("size: int64",))
_define(
    "LookupTableExportV2",
    "All keys and their values, in one order.",
    _exported_shapes,
    (),
    ("keys: Tkeys", "values: Tvalues"),
    ("Tkeys: type", "Tvalues: type"),
)
_define(
    "LookupTableImportV2",
    "Replaces all that the table has by these keys and values; fills a table that is filled once.",
    lambda c: [],
    _PAIRS,
    (),
    _TYPES,
)
