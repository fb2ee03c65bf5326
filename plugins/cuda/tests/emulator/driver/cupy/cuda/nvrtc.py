"""NVRTC, which here is the system's C++ compiler."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence

from cuda_on_cpu.program import FLAGS, HEADER, compiled

_numbers = itertools.count(1)
_sources: dict[int, str] = {}
_logs: dict[int, str] = {}
_made: dict[int, bytes] = {}
_targets: dict[int, str] = {}


class NVRTCError(RuntimeError): ...


def getVersion() -> tuple[int, int]:
    """As what was compiled with another header or other flags is out of date, their checksum."""
    return 0, zlib.crc32(" ".join((HEADER.read_text(), *FLAGS)).encode())


def getSupportedArchs() -> tuple[int, ...]:
    return 75, 80, 90


def createProgram(src: str, name: str, headers: Sequence[bytes], include_names: Sequence[bytes]) -> int:
    number = next(_numbers)
    _sources[number], _logs[number] = src, ""
    return number


def compileProgram(prog: int, options: Sequence[str]) -> None:
    (target,) = [o.removeprefix("-arch=") for o in options if o.startswith("-arch=")]
    assert target == "sm_80" or (target.startswith("compute_") and int(target[8:]) < 80), target
    _targets[prog] = target
    try:
        _made[prog] = compiled(_sources[prog]).read_bytes()
    except RuntimeError as e:
        _logs[prog] = str(e)
        raise NVRTCError("NVRTC_ERROR_COMPILATION (6)") from e


def getProgramLog(prog: int) -> str:
    return _logs[prog]


def getCUBIN(prog: int) -> bytes:
    assert _targets[prog].startswith("sm_")  # for others there is none
    return _made[prog]


def getPTX(prog: int) -> bytes:
    return _made[prog]


def destroyProgram(prog: int) -> None:
    for table in (_sources, _logs, _made, _targets):
        table.pop(prog, None)
