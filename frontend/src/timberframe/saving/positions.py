"""Positions of random streams and iterators: a file beside a checkpoint, ``PREFIX.positions``.

It is a TFRecord file with a NameAttrList for each resource: its key, and the parts of its position as tensors. The file
is written before the checkpoint is, so that a checkpoint that is complete has its positions.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from timberframe.records.reading import records_in
from timberframe.records.writing import frame
from timberframe.saving.files import file_errors, remove_leftovers, replace_file
from timberframe.saving.formats import exists
from timberframe_core import logging
from timberframe_core.dtypes import string
from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.apply import to_array
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_array, make_ndarray
from timberframe_core.plugin.state import Position
from timberframe_core.runtime.session import BaseSession

_restored: WeakKeyDictionary[Any, tuple[Path, bytes]] = WeakKeyDictionary()
"""Of sessions that are being made: the file of the positions that they are to begin with, and its content."""

_ended: WeakSet[Any] = WeakSet()
"""Sessions at the end of their input."""

_STREAM = "random stream "
POSITIONS = ".positions"
"""Ends the name of the file."""


def _file(prefix: str, task: str) -> Path:
    """Returns the file beside a checkpoint: of the session that writes that, or of another task's."""
    return Path(f"{prefix}{POSITIONS}-{task}" if task else prefix + POSITIONS)


def has_positions(prefix: str, task: str) -> bool:
    """Returns whether another task has written its positions beside a checkpoint."""
    return _file(prefix, task).exists()


def tasks_with_positions(prefix: str) -> set[str]:
    """Returns the other tasks that have."""
    head = f"{os.path.basename(prefix)}{POSITIONS}-"
    return {p.name.removeprefix(head) for p in Path(prefix).parent.glob("*") if p.name.startswith(head)}


def remove_positions(prefix: str) -> None:
    """Removes those of all tasks beside a checkpoint."""
    for task in ("", *tasks_with_positions(prefix)):
        _file(prefix, task).unlink(missing_ok=True)


def write_positions(session: BaseSession, prefix: str, task: str = "") -> None:
    """Writes the positions of a session's resources beside the checkpoint of this prefix, which is written after.

    At the end of its input only those of random streams. task: whose session it is, where another one's has the
    checkpoint.
    """
    path = _file(prefix, task)
    with file_errors(f"positions '{path}' cannot be written"):
        try:
            data = _restored[session][1] if session in _restored else _encode_all(session)
        except UnimplementedError as e:  # a target of other processes, a dataset that holds what cannot be written
            logging.log_first_n(logging.WARN, "checkpoints are without positions: %s", 1, e)
            path.unlink(missing_ok=True)
        else:
            replace_file(path, data)


def _encode_all(session: BaseSession) -> bytes:
    positions = session.read_positions()
    kept = (key for key in positions if session not in _ended or key.startswith(_STREAM))
    return b"".join(frame(_encode(key, positions[key])) for key in kept)


def note_input(session: BaseSession, ended: bool) -> None:
    """Says whether a session has come to the end of its input, which a training that goes on then begins again."""
    (_ended.add if ended else _ended.discard)(session)


def remove_leftover_positions(save_path: str) -> None:
    """Removes files that killed writers left without a checkpoint. save_path: how the names of checkpoints begin."""
    folder, family = os.path.split(save_path)
    remove_leftovers(Path(folder), family, lambda p: not exists(str(p).rpartition(POSITIONS)[0]), f"{POSITIONS}*")


def read_positions(session: BaseSession, prefix: str, task: str = "") -> None:
    """Reads the positions beside the checkpoint that a session was restored from; nothing without the file.

    They count as those of the session from now on. Its resources take them in `settle_positions`, once initializers
    have run, which take iterators back to their beginning.
    """
    path = _file(prefix, task)
    with suppress(FileNotFoundError):
        _restored[session] = path, path.read_bytes()


def settle_positions(session: BaseSession, goes_on: bool) -> None:
    """Makes the resources of a session go on where they were when its checkpoint was written.

    goes_on: False for a session with an input of its own, which begins at its start.
    """
    restored = _restored.pop(session, None)
    if restored is None or not goes_on:
        return
    path, data = restored
    positions = {m.name: _decode(m) for m in map(_message, records_in(io.BytesIO(data), str(path)))}
    try:
        session.set_positions(positions)
    except UnimplementedError as e:
        logging.warning("the training goes on with other random numbers and elements: %s", e)


def _encode(key: str, position: Position) -> bytes:
    message = messages.NameAttrList(name=key)
    for name, value in position.items():
        array, dtype = to_array(value, string if isinstance(value, bytes) else None)
        message.attr[name].tensor.CopyFrom(encode_array(array, dtype))
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _message(record: bytes) -> Any:
    return messages.as_message(record, messages.NameAttrList, "position")


def _decode(message: Any) -> Position:
    return {name: _part(make_ndarray(value.tensor)) for name, value in message.attr.items()}


def _part(array: np.ndarray) -> np.ndarray | bytes:
    return array.item() if array.dtype.hasobject and not array.ndim else array
