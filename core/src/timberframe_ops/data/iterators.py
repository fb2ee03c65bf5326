"""Iterators: positions in datasets, which a session keeps."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import ShapeFunction
from timberframe_ops.data.signatures import ELEMENTS, component_shapes, define

_OPTIONAL_ELEMENTS = ("output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []")
_KIND = "iterator"


def _define_iterator(
    name: str, doc: str, attrs: Sequence[str], inputs: Sequence[str] = (), output: str = "handle"
) -> None:
    define(
        name,
        inputs=inputs,
        outputs=[f"{output}: resource"],
        attrs=attrs,
        doc=doc,
        shape=lambda c: [()],
        on_host=True,
        resource=_KIND,
        stateful=True,
    )


def _define_use(
    name: str, doc: str, handle: str, outputs: Sequence[str], attrs: Sequence[str], shape: ShapeFunction
) -> None:
    define(
        name,
        inputs=[f"{handle}: resource"],
        outputs=outputs,
        attrs=attrs,
        doc=doc,
        shape=shape,
        on_host=True,
        kinds={handle: _KIND},
        stateful=True,
    )


for _name in ("Iterator", "IteratorV2"):
    _define_iterator(
        _name,
        "An iterator, which MakeIterator puts at the start of a dataset.",
        ["shared_name: string", "container: string", *ELEMENTS],
    )
_define_iterator(
    "OneShotIterator",
    "An iterator at the start of the dataset that `dataset_factory` makes.",
    ["dataset_factory: func", *ELEMENTS, "container: string = ''", "shared_name: string = ''"],
)
for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    _define_iterator(
        _name,
        "The iterator that a string stands for, which IteratorToStringHandle gave.",
        _OPTIONAL_ELEMENTS,
        ["string_handle: string"],
        "resource_handle",
    )
define(
    "MakeIterator",
    inputs=["dataset: variant", "iterator: resource"],
    doc="Puts an iterator at the start of a dataset.",
    shape=lambda c: [],
    on_host=True,
    kinds={"iterator": _KIND},
    stateful=True,
)
for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    _define_use(
        _name,
        "The next element; OutOfRangeError where there is none.",
        "iterator",
        ["components: output_types"],
        ELEMENTS,
        component_shapes,
    )
_define_use(
    "IteratorGetNextAsOptional",
    "The next element, or a missing value where there is none.",
    "iterator",
    ["optional: variant"],
    ELEMENTS,
    lambda c: [()],
)
_define_use(
    "IteratorToStringHandle",
    "A string that stands for the iterator in this session.",
    "resource_handle",
    ["string_handle: string"],
    (),
    lambda c: [()],
)
