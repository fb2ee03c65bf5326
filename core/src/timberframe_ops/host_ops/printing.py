"""Print and PrintV2: texts on the standard error or output."""

from __future__ import annotations

import sys
import threading
from typing import Any

from timberframe_core import logging
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_ops.array.checks import summary


class _Count:
    """How often a node has printed in a session."""

    def __init__(self) -> None:
        self._printed = 0
        self._lock = threading.Lock()

    def below(self, limit: int) -> bool:
        """Returns whether it may print once more."""
        with self._lock:
            self._printed += 1
            return self._printed <= limit


@host_op("Print", located=["input"])
def _print(call: HostCall) -> list[Any]:
    given, *data = call.inputs
    first = call.attrs["first_n"]
    if first < 0 or call.resources.get_or_make(f"print count {call.path}", _Count).below(first):
        shown = "".join(summary(x, call.attrs["summarize"]) for x in data)
        sys.stderr.write(f"{call.attrs['message']}{shown}\n")
        sys.stderr.flush()
    return [given]


@host_op("PrintV2")
def _print_text(call: HostCall) -> list[Any]:
    text = call.inputs[0].item().decode(errors="backslashreplace")
    stream, text = call.attrs["output_stream"], text + call.attrs["end"]
    if stream in ("stderr", "stdout"):
        out = getattr(sys, stream)
        out.write(text)
        out.flush()
    elif stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a") as file:
            file.write(text)
    elif stream in ("log(info)", "log(warning)", "log(error)"):
        getattr(logging, stream[4:-1])("%s", text.removesuffix("\n"))
    else:
        raise call.error(
            f"output_stream is {stream!r}; it must be stderr, stdout, log(info), log(warning), log(error) or file://path"
        )
    return []
