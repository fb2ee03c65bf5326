"""The ops on readers."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.host_ops import reader_state
from timberframe.host_ops.handles import resource_of
from timberframe.host_ops.queue_state import Queue
from timberframe.host_ops.reader_state import Reader, Records
from timberframe_core.dtypes import string
from timberframe_core.plugin.host_ops import HostCall, host_op

_SIZES = ("header", "record", "footer", "hop")


def _make(call: HostCall, records: Records, whole: bool = False) -> list[Any]:
    name, kind = call.made.partition(" ")[2], call.op.removesuffix("V2")
    reader = call.resources.get_or_make(call.made, lambda: Reader(name, kind, records, whole))
    if reader.kind != kind:
        raise call.error(f"{reader} is a {reader.kind}; a {kind} is asked for under the same name")
    return []


@host_op("WholeFileReaderV2")
def _make_whole_file(call: HostCall) -> list[Any]:
    return _make(call, reader_state.whole_files, whole=True)


@host_op("IdentityReaderV2")
def _make_identity(call: HostCall) -> list[Any]:
    return _make(call, reader_state.identities, whole=True)


@host_op("TextLineReaderV2")
def _make_text_line(call: HostCall) -> list[Any]:
    return _make(call, reader_state.text_lines(_at_least(call, "skip_header_lines", 0)))


@host_op("TFRecordReaderV2")
def _make_tf_record(call: HostCall) -> list[Any]:
    compression = call.attrs["compression_type"]
    if compression not in ("", "ZLIB", "GZIP"):
        raise call.error(f"compression_type is {compression!r}; '', 'ZLIB' or 'GZIP' is required")
    return _make(call, reader_state.tf_records(compression))


@host_op("FixedLengthRecordReaderV2")
def _make_fixed_length(call: HostCall) -> list[Any]:
    encoding = call.attrs["encoding"]
    if encoding not in ("", "ZLIB"):
        raise call.error(f"encoding is {encoding!r}; '' or 'ZLIB' is required")
    header, size, footer, hop = (_at_least(call, f"{n}_bytes", n == "record") for n in _SIZES)
    return _make(call, reader_state.fixed_lengths(header, size, footer, hop, encoding))


def _at_least(call: HostCall, name: str, least: int) -> int:
    given: int = call.attrs[name]
    if given < least:
        raise call.error(f"{name} is {given}; it must be {least} or more")
    return given


@host_op("ReaderReadV2")
def _read(call: HostCall) -> list[Any]:
    key, value = resource_of(call, Reader).read(1, _queue(call), call.cancel)[0]
    return [np.array(key, object), np.array(value, object)]


@host_op("ReaderReadUpToV2")
def _read_up_to(call: HostCall) -> list[Any]:
    count = int(call.inputs[0])
    if count < 0:
        raise call.error(f"num_records is {count}; it must not be negative")
    found = resource_of(call, Reader).read(count, _queue(call), call.cancel)
    keys, values = np.empty(len(found), object), np.empty(len(found), object)
    for i, (key, value) in enumerate(found):
        keys[i], values[i] = key, value
    return [keys, values]


def _queue(call: HostCall) -> Queue:
    """Returns the queue of the second handle, whose elements must be names of files."""
    queue = resource_of(call, Queue, 1)
    if queue.dtypes != [string]:
        held = [d.name for d in queue.dtypes]
        raise call.error(f"{queue} has components of dtypes {held}; one string, the name of a file, is required")
    return queue


@host_op("ReaderNumRecordsProducedV2")
def _produced(call: HostCall) -> list[Any]:
    return [np.array(resource_of(call, Reader).produced, np.int64)]


@host_op("ReaderNumWorkUnitsCompletedV2")
def _completed(call: HostCall) -> list[Any]:
    return [np.array(resource_of(call, Reader).finished, np.int64)]


@host_op("ReaderSerializeStateV2")
def _serialize(call: HostCall) -> list[Any]:
    reader = resource_of(call, Reader)
    with reader.alone(call.cancel):
        return [np.array(reader.state(), object)]


@host_op("ReaderRestoreStateV2")
def _restore(call: HostCall) -> list[Any]:
    reader = resource_of(call, Reader)
    with reader.alone(call.cancel):
        reader.restore(bytes(call.inputs[0].item()))
    return []


@host_op("ReaderResetV2")
def _reset(call: HostCall) -> list[Any]:
    reader = resource_of(call, Reader)
    with reader.alone(call.cancel):
        reader.reset()
    return []
