"""Systems that run programs: Timberframe, TensorFlow or a model, each in a process of its own."""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_core.dtypes import BY_NAME

OURS, THEIRS = "timberframe", "tensorflow.compat.v1"
STARTING = 120.0
"""Seconds that a process may take until its first answer, beyond those of the program."""


@dataclass(frozen=True)
class Run:
    """Values that a program showed by name, and how it ended: error is "" where nothing was raised.

    wrong: what the program found out itself, such as slopes that differences contradict.
    """

    shown: dict[str, np.ndarray]
    wrong: tuple[str, ...] = ()
    error: str = ""


class System:
    """A process that runs programs. module: with TensorFlow's surface. python: the interpreter of its environment."""

    def __init__(self, module: str, python: str = sys.executable, device: str = "", timeout: float = 60.0) -> None:
        self.module = module
        self.timeout = timeout
        self._command = [python, str(Path(__file__).with_name("child.py")), module, device]
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it

    def run(self, source: str, call: str = "", folder: str = "") -> Run:
        """Runs a program, and then its function `call` with a folder; a process that ends or hangs is an error."""
        process, wait = self._process, self.timeout
        if process is None or process.poll() is not None:
            process = self._start()
            wait += STARTING
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"source": source, "call": call, "folder": folder}) + "\n")
            process.stdin.flush()
            answer = self._answers.get(timeout=wait)
        except queue.Empty:
            self._end()
            return Run({}, error=f"timeout: the program did not end in {self.timeout:.0f} s")
        except OSError:
            answer = ""
        if not answer:
            status = process.wait()
            return Run({}, error=f"crash: the process ended with status {status}: {self._last_error()}")
        data = json.loads(answer)
        return Run({n: _decoded(*x) for n, *x in data["shown"]}, tuple(data["wrong"]), data["error"])

    def close(self) -> None:
        """Ends the process."""
        self._end()
        self._errors.close()

    def _start(self) -> subprocess.Popen[str]:
        self._end()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=self._errors, text=True, env=environment
        )
        self._process = process
        answers: queue.Queue[str] = queue.Queue()
        self._answers = answers

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                answers.put(line)
            answers.put("")

        threading.Thread(target=read, daemon=True).start()
        return process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1][:300] if lines else ""


def _decoded(dtype: str, shape: list[int], data: Any) -> np.ndarray:
    if dtype == "string":
        array = np.empty(len(data), object)
        array[:] = [base64.b64decode(v) for v in data]
        return array.reshape(shape)
    return np.frombuffer(bytearray(base64.b64decode(data)), BY_NAME[dtype].numpy).reshape(shape)
