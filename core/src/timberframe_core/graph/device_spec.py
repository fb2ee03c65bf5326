"""Device strings: ``/job:localhost/replica:0/task:0/device:ACME:1`` and its shorter forms.

Every part may be left out. ``/acme:1`` and ``ACME:1`` stand for ``/device:ACME:1``, a missing or ``*`` number for any
device of the type. Device types are compared in capitals; only the plugins know which exist, so any word may be one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from timberframe_core.graph.operation import Operation

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_FORM = "it must look like '/job:<name>/replica:<n>/task:<n>/device:<TYPE>:<n>' or '/<type>:<n>'"


@dataclass(frozen=True)
class DeviceSpec:
    """A device, fully or partly named; None stands for a part that is left open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __post_init__(self) -> None:
        if self.device_type is not None:
            instance(self.device_type, str, "DeviceSpec: device_type", "a str")
            object.__setattr__(self, "device_type", self.device_type.upper())

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Returns the parts of a device string; raises InvalidArgumentError where it is malformed."""
        return _parse(spec)

    def to_string(self) -> str:
        """Returns the canonical string: the parts in their order, ``*`` for an open number."""
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.replica is None else f"/replica:{self.replica}"
        text += "" if self.task is None else f"/task:{self.task}"
        if self.device_type is not None:
            text += f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        return text

    def make_merged_spec(self, dev: DeviceSpec) -> Self:
        """This spec with every part that `dev` names taken from it."""
        return type(self)(
            self.job if dev.job is None else dev.job,
            self.replica if dev.replica is None else dev.replica,
            self.task if dev.task is None else dev.task,
            self.device_type if dev.device_type is None else dev.device_type,
            self.device_index if dev.device_index is None else dev.device_index,
        )

    def replace(self, **parts: Any) -> Self:
        """Returns a copy with some parts changed."""
        return replace(self, **parts)

    def matches(self, device: DeviceSpec) -> bool:
        """Returns whether `device`, a full name, is one that this spec allows: what it names must be equal."""
        pairs = (
            (self.job, device.job),
            (self.replica, device.replica),
            (self.task, device.task),
            (self.device_type, device.device_type),
            (self.device_index, device.device_index),
        )
        return all(mine is None or mine == theirs for mine, theirs in pairs)

    def of_same_task(self) -> DeviceSpec:
        """Returns the spec of all devices of the job, replica and task that this one names."""
        return DeviceSpec(self.job, self.replica, self.task)

    def __str__(self) -> str:
        return self.to_string()


LOCAL_TASK = DeviceSpec("localhost", 0, 0)
"""Where the devices of this process are, as TensorFlow names it."""


@lru_cache(1024)
def full_name(text: str) -> str:
    """Returns the full name of a device: what its string leaves out of job, replica and task is this process."""
    return LOCAL_TASK.make_merged_spec(_parse(text)).to_string()


@lru_cache(1024)
def _parse(text: str) -> DeviceSpec:
    if not isinstance(text, str):
        raise InvalidTypeError(f"device {text!r} is {type(text).__name__}; a string is required")
    parts: dict[str, Any] = {}
    for piece in text.strip().split("/"):
        if piece:
            for key, value in _parse_piece(piece, text).items():
                if key in parts:
                    raise InvalidArgumentError(f"device '{text}': names its {key} twice; each part may be given once")
                parts[key] = value
    return DeviceSpec(**{key: value for key, value in parts.items() if value is not None})


def _parse_piece(piece: str, text: str) -> dict[str, Any]:
    words = piece.split(":")
    key = words[0].lower()
    if key == "job" and len(words) == 2 and _WORD.match(words[1]):
        return {"job": words[1]}
    if key in ("replica", "task") and len(words) == 2:
        return {key: _number(words[1], text)}
    if key == "device":
        words = words[1:]
    if key not in ("job", "replica", "task") and 1 <= len(words) <= 2 and _WORD.match(words[0]):
        return {"device_type": words[0], "device_index": _number(words[1], text) if len(words) == 2 else None}
    raise InvalidArgumentError(f"device '{text}': part '{piece}' is malformed; {_FORM}")


def _number(word: str, text: str) -> int | None:
    if word == "*":
        return None
    if not (word.isascii() and word.isdigit()):
        raise InvalidArgumentError(f"device '{text}': '{word}' is not a number; {_FORM}")
    return int(word)


@lru_cache(1024)
def canonical_device(text: str) -> str:
    """Returns the canonical form of a device string; raises InvalidArgumentError where it is malformed."""
    return _parse(text).to_string()


@lru_cache(4096)
def merge_device(inner: str, outer: str) -> str:
    """Returns two device strings as nested scopes merge: what `inner` leaves open is taken from `outer`."""
    return _parse(outer).make_merged_spec(_parse(inner)).to_string()


def device_in_scopes(entries: Sequence[Any], op: Operation) -> str:
    """Returns the device that blocks of `Graph.device`, the innermost last, request for an operation."""
    merged = ""
    for entry in reversed(entries):
        if entry is None:
            break
        if callable(entry):
            op.device = merged
            chosen = entry(op)  # replaces what the scopes inside it said; only strings merge
            if chosen is not None:
                merged = canonical_device(chosen if isinstance(chosen, str) else chosen.to_string())
        else:
            merged = merge_device(merged, entry)
    return merged
