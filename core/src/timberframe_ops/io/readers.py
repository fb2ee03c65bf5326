"""Readers, which make records of the files that a queue names: TensorFlow's io_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_STATE = NotDifferentiable("what a reader gives is no function of tensors")
_NAMES = ("container: string = ''", "shared_name: string = ''")

for _name, _doc, _attrs in (
    ("WholeFileReaderV2", "whose records are whole files, their names the keys", ()),
    (
        "TextLineReaderV2",
        "whose records are lines without their ends, keys being `file:line`; it skips skip_header_lines of each file",
        ("skip_header_lines: int = 0",),
    ),
    (
        "FixedLengthRecordReaderV2",
        "whose records have record_bytes each, between a header and a footer, and begin hop_bytes apart (0: one after "
        "the other); keys are `file:record`. encoding: '', or 'ZLIB' of compressed files",
        (
            "header_bytes: int = 0",
            "record_bytes: int",
            "footer_bytes: int = 0",
            "hop_bytes: int = 0",
            "encoding: string = ''",
        ),
    ),
    (
        "TFRecordReaderV2",
        "whose records are those of TFRecord files, keys being `file:byte`. compression_type: '', 'ZLIB' or 'GZIP'",
        ("compression_type: string = ''",),
    ),
    ("IdentityReaderV2", "whose records are what the queue gives, which is the key, too", ()),
):
    define_op(
        _name,
        outputs=["reader_handle: resource"],
        attrs=[*_attrs, *_NAMES],
        doc=f"A reader {_doc}.",
        shape=lambda c: [()],
        gradient=_STATE,
        on_host=True,
        resource="reader",
        stateful=True,
    )


def _pairs(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[2] not in (None, ()):
        raise c.error(f"num_records has shape {format_shape(c.shapes[2])}; it must be a scalar")
    return [(None,), (None,)]


def _state(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[1] not in (None, ()):
        raise c.error(f"state has shape {format_shape(c.shapes[1])}; it must be a scalar")
    return []


def _define(name: str, doc: str, shape: Any, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> None:
    queue = inputs[:1] == ["queue_handle: resource"]
    define_op(
        name,
        inputs=["reader_handle: resource", *inputs],
        outputs=outputs,
        doc=doc,
        shape=shape,
        gradient=_STATE,
        on_host=True,
        kinds={"reader_handle": "reader", "queue_handle": "queue"} if queue else {"reader_handle": "reader"},
        blocks=queue,
        stateful=True,
    )


_QUEUE = "queue_handle: resource"

_define(
    "ReaderReadV2",
    "The next record and its key; takes a file from the queue when it needs one, and waits for it.",
    lambda c: [(), ()],
    [_QUEUE],
    ["key: string", "value: string"],
)
_define(
    "ReaderReadUpToV2",
    "At most num_records records of one file, and their keys; fewer at its end.",
    _pairs,
    [_QUEUE, "num_records: int64"],
    ["keys: string", "values: string"],
)
_define("ReaderNumRecordsProducedV2", "How many records it has given.", lambda c: [()], (), ["records_produced: int64"])
_define(
    "ReaderNumWorkUnitsCompletedV2", "How many files it has finished.", lambda c: [()], (), ["units_completed: int64"]
)
_define("ReaderSerializeStateV2", "What a reader of the same kind goes on from.", lambda c: [()], (), ["state: string"])
_define("ReaderRestoreStateV2", "Goes on from a state.", _state, ["state: string"])
_define("ReaderResetV2", "Makes the reader as it was at first.", lambda c: [])
