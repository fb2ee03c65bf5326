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


def compileProgram(program: int, options: Sequence[str]) -> None:
    (target,) = [o.removeprefix("-arch=") for o in options if o.startswith("-arch=")]
    assert target == "sm_80" or (target.startswith("compute_") and int(target[8:]) < 80), target
    _targets[program] = target
    try:
        _made[program] = compiled(_sources[program]).read_bytes()
    except RuntimeError as e:
        _logs[program] = str(e)
        raise NVRTCError("NVRTC_ERROR_COMPILATION (6)") from e


def getProgramLog(program: int) -> str:
    return _logs[program]


def getCUBIN(program: int) -> bytes:
    assert _targets[program].startswith("sm_")  # for others there is none
    return _made[program]


def getPTX(program: int) -> bytes:
    return _made[program]


def destroyProgram(program: int) -> None:
    for table in (_sources, _logs, _made, _targets):
        table.pop(program, None)
