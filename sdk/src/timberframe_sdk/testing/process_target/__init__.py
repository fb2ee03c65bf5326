"""A target for tests, and an example: devices in other processes of this machine.

``tf.Session("process:2")`` has the devices of two workers, /job:worker/replica:0/task:0/device:CPU:0 and of task 1, and
those of its own process after them. Workers start with the first session that needs them and end with the client; one
that has died or does not answer is started again for the next session. Variables live in the workers, by container and
name.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from timberframe_core.errors import InvalidArgumentError, UnavailableError
from timberframe_sdk.remote.device import RemoteDevice
from timberframe_sdk.remote.target import RemoteTarget, SessionConfig, settings_of
from timberframe_sdk.testing.process_target.link import Link, connect
from timberframe_sdk.testing.process_target.messages import KEY

START_SECONDS = 120


class Workers:
    """The processes of one target. A socket's path stays the same, whichever process listens there."""

    def __init__(self, count: int) -> None:
        self._owner = os.getpid()
        self.folder = Path(tempfile.mkdtemp(prefix="timberframe-"))
        self.authkey = secrets.token_bytes(16)
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts those that do not run, ends and starts again those that do not answer, and waits until they listen."""
        with self._lock:
            self.folder.mkdir(mode=0o700, exist_ok=True)  # `close` has removed it
            fresh = [i for i in range(len(self.processes)) if not self._answers(i)]
            for task in fresh:
                self._end(task)
                Path(self.address(task)).unlink(missing_ok=True)
                command = [sys.executable, "-m", f"{__name__}.worker", self.address(task), str(task)]
                environment = {**os.environ, KEY: self.authkey.hex()}
                self.processes[task] = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
            for task in fresh:
                self._wait_for(task)

    def _answers(self, task: int) -> bool:
        """Returns whether a worker runs and answers."""
        process = self.processes[task]
        if process is None or process.poll() is not None:
            return False
        try:
            connect(self.address(task), self.authkey).close()
        except (EOFError, OSError):
            return False
        return True

    def _end(self, task: int) -> None:
        process = self.processes[task]
        if process is not None:
            process.kill()
            process.communicate()
            self.processes[task] = None

    def _wait_for(self, task: int) -> None:
        process, end = self.processes[task], time.monotonic() + START_SECONDS
        assert process is not None
        while True:
            try:
                connect(self.address(task), self.authkey).close()
                return
            except (EOFError, OSError):  # it does not listen yet
                pass
            if process.poll() is not None:
                raise UnavailableError(f"/job:worker/task:{task}: its process ended with code {process.poll()}")
            if time.monotonic() > end:
                raise UnavailableError(f"/job:worker/task:{task}: its process does not listen after {START_SECONDS} s")
            time.sleep(0.01)

    def address(self, task: int) -> str:
        return str(self.folder / str(task))

    def close(self) -> None:
        """Ends the processes, which `start` starts again. A process forked from theirs does nothing."""
        if os.getpid() != self._owner:
            return
        for task in range(len(self.processes)):
            self._end(task)
        shutil.rmtree(self.folder, ignore_errors=True)


_running: dict[tuple[int, int], Workers] = {}
"""By the process that has them, for a forked one needs its own, and how many there are."""

_lock = threading.Lock()


def workers_of(address: str) -> Workers:
    """Returns the workers of a target, not all of which may run; address: how many there are."""
    if not (address.isascii() and address.isdigit() and int(address)):
        raise InvalidArgumentError(f"session target 'process:{address}': a number of processes is required")
    with _lock:
        key = os.getpid(), int(address)
        if key not in _running:
            import atexit

            _running[key] = workers = Workers(int(address))
            atexit.register(workers.close)
        return _running[key]


def url_of(workers: Workers) -> str:
    """Returns the session target that these workers are."""
    return f"process:{len(workers.processes)}"


def open(address: str, config: SessionConfig) -> RemoteTarget:
    """Returns the target for a new session; starts the processes that do not run."""
    workers = workers_of(address)
    workers.start()
    target, settings, url = RemoteTarget(config, RemoteDevice), settings_of(config), url_of(workers)
    addresses = [workers.address(task) for task in range(len(workers.processes))]
    target.connect([partial(Link, address, workers.authkey, settings, url) for address in addresses])
    return target


def reset(address: str, containers: Sequence[str]) -> None:
    """Drops the variables in these containers of the processes that run, or all."""
    workers = workers_of(address)
    for task, process in enumerate(workers.processes):
        if process is not None and process.poll() is None:
            link = Link(workers.address(task), workers.authkey, {}, url_of(workers))
            try:
                link.call(f"/job:worker/task:{task}", "reset", containers=list(containers))
            finally:
                link.close()
