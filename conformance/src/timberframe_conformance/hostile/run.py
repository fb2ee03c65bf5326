"""Uses many files in child processes, which are replaced when they die."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue

from timberframe_conformance.hostile.child import MARK
from timberframe_conformance.hostile.kinds import Limits
from timberframe_conformance.hostile.verdict import CRASH, TIMEOUT, Verdict
from timberframe_conformance.isolation.journal import cause_of_death

FILES = 300  # that one process uses, so that their side effects do not accumulate
CHILD = ("-m", "timberframe_conformance.hostile.child")


@dataclasses.dataclass(frozen=True)
class Task:
    """A file to use. folder: where it is stored; without one it is made from its id."""

    id: str
    format: str
    folder: str = ""


class Child:
    """A child process that is started when it is needed, and again after it has died. program: what Python runs."""

    def __init__(self, directory: Path, name: str, limits: Limits, program: Sequence[str] = CHILD) -> None:
        self._directory, self._name, self._limits, self._program = directory, name, limits, program
        self._process: subprocess.Popen[str] | None = None
        self._started = self._used = 0

    def use(self, task: Task) -> Verdict:
        """Makes the process use a file; its death is a verdict."""
        if self._used >= FILES:
            self.close()
        process = self._process or self._start()
        self._used += 1
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process has died
            process.stdin.write(
                json.dumps([task.id, task.format, task.folder and str(Path(task.folder).resolve())]) + "\n"
            )
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith(MARK):
                    return Verdict(**json.loads(line.removeprefix(MARK)))
        worker = f"{self._name}-{self._started}"
        self.close()
        verdict, message = cause_of_death(self._directory, worker, task.id)
        location = message.rpartition(" at ")[2].split(";")[0] if " at " in message else ""
        return Verdict(task.id, task.format, TIMEOUT if verdict == "timeout" else CRASH, verdict, location, message)

    def _start(self) -> subprocess.Popen[str]:
        self._started += 1
        self._used = 0
        limits = json.dumps(dataclasses.asdict(self._limits))
        command = [sys.executable, *self._program, str(self._directory), f"{self._name}-{self._started}", limits]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._directory,  # graphs write files whose names may have no folder
        )
        return self._process

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    if stream is not None:
                        stream.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def run_files(
    tasks: Iterable[Task],
    limits: Limits,
    jobs: int = 1,
    seconds: float | None = None,
    done: Callable[[Verdict], None] = lambda _: None,
    program: Sequence[str] = CHILD,
) -> list[Verdict]:
    """Returns the verdicts on files, in no order.

    seconds: after which no further one is begun. done: called with each.
    """
    waiting: Queue[Task] = Queue()
    for task in tasks:
        waiting.put(task)
    end = None if seconds is None else time.monotonic() + seconds
    verdicts: list[Verdict] = []
    lock = threading.Lock()

    def serve(child: Child) -> None:
        try:
            while end is None or time.monotonic() < end:
                verdict = child.use(waiting.get_nowait())
                with lock:
                    verdicts.append(verdict)
                    done(verdict)
        except Empty:
            return
        finally:
            child.close()

    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        children = [Child(Path(directory), f"h{i}", limits, program) for i in range(max(jobs, 1))]
        threads = [threading.Thread(target=serve, args=(child,)) for child in children]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return verdicts


def tasks_of(formats: Sequence[str], seed: int, count: int) -> Iterator[Task]:
    """`count` files, alternating between the formats."""
    for i in range(count):
        name = formats[i % len(formats)]
        yield Task(f"{name}/{seed}/{i // len(formats)}", name)
