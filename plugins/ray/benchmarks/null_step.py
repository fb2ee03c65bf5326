"""A step of one worker and one parameter server that computes nothing: its calls, bytes, copies and time; prints JSON.

``python plugins/ray/benchmarks/null_step.py --bytes 4 1000000 --tensorflow .venv-peers/bin/python``. ray: as many
calls of plain actors of the same settings, with the same arrays; tensorflow: its servers over loopback. All take turns
in blocks of steps; milliseconds, the quickest and the median. moved: bytes of the arguments and results of one step as
Ray writes them, results that go through the client counted on both ways; bound: the variable and its gradient once.
copies: of each tensor that crosses by Ray's store, counted in the workers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
from all_reduce import free_address
from parameter_step import program, seconds

import timberframe as tf
import timberframe_ray as tfr
from timberframe_ray import engine
from timberframe_ray.wire import INLINE_BYTES, unpack
from timberframe_ray.worker import Call

WARM = 20
"""Steps before those that count."""


class Plain:
    """An actor that does the same work, and nothing else."""

    def __init__(self, count: int) -> None:
        self.v = np.ones(count, np.float32)

    def read(self) -> np.ndarray:
        return self.v

    def gradient(self, v: np.ndarray) -> np.ndarray:
        found: np.ndarray = v * np.float32(0)
        return found

    def update(self, gradient: np.ndarray) -> int:
        self.v = self.v - gradient
        return 0


class PlainStep:
    """Has `run`, as a session."""

    def __init__(self, count: int) -> None:
        actor = ray.remote(**engine.ORDERED)(Plain).options(num_cpus=0)
        self.server, self.worker = actor.remote(count), actor.remote(count)

    def run(self, _: Any) -> None:
        """Read, gradient and update: three calls, of which each waits for the one before."""
        ray.get(self.server.update.remote(self.worker.gradient.remote(self.server.read.remote())))


class Counted:
    """The calls of workers while it is entered. refs: of their results; left, came: worker, and device and number."""

    def __init__(self) -> None:
        self.calls, self.sent = 0, 0
        self.refs: list[Any] = []
        self.left: list[tuple[Any, tuple[int, int]]] = []
        self.came: list[tuple[Any, tuple[int, int]]] = []

    def __enter__(self) -> Counted:
        self._submit, self._control = engine.submit, engine.control
        engine.submit, engine.control = self.submit, self.control
        return self

    def __exit__(self, *_: object) -> None:
        engine.submit, engine.control = self._submit, self._control

    def submit(self, worker: Any, count: int, *arguments: Any, group: str = "compute") -> Any:
        for call in map(Call._make, unpack(arguments[0])[3]):
            self.left += [(worker, returned) for returned in call.returns]
            if call.name == "place":
                self.came.append((worker, (call.details["device"], call.details["number"])))
        found = self._submit(worker, count, *arguments, group=group)
        self._count(arguments)
        self.refs += found
        return found

    def control(self, worker: Any, call: str, **details: Any) -> Any:
        found = self._control(worker, call, **details)
        self._count((call, details))
        self.refs.append(found)
        return found

    def _count(self, arguments: Any) -> None:
        self.calls += 1
        for given in arguments:
            if isinstance(given, ray.ObjectRef):
                size = written(ray.get(given))
                self.sent += size if size <= INLINE_BYTES else len(given.binary())
            else:
                self.sent += written(given)

    def moved(self) -> int:
        """Returns bytes of all arguments and results."""
        return self.sent + sum(written(ray.get(ref)) for ref in self.refs)

    def copies(self) -> list[int]:
        """Of each tensor that crossed: the one into Ray's store, and others where it left and where it came."""
        left = [ray.get(worker.__ray_call__.remote(_copied_before, *x)) for worker, x in self.left]
        came = [ray.get(worker.__ray_call__.remote(_copied_after, *x)) for worker, x in self.came]
        return [1 + before + after for before, after in zip(left, came, strict=True)]


def written(value: Any) -> int:
    """Returns the bytes in which Ray sends a value."""
    found: int = ray._private.worker.global_worker.get_serialization_context().serialize(value).total_bytes
    return found


def _copied_before(worker: Any, device: int, number: int) -> bool:
    """In a worker: whether what it hands to Ray is a copy of its tensor."""
    (session,) = worker._sessions.values()
    return not np.shares_memory(session.kept[number], session._returned(device, number))


def _copied_after(worker: Any, device: int, number: int) -> bool:
    """In a worker: whether its tensor is a copy of what is in Ray's store."""
    (session,) = worker._sessions.values()
    address = session.kept[number].__array_interface__["data"][0]
    with open("/proc/self/maps") as lines:
        for line in lines:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if begin <= address < end:
                return "plasma" not in line
    return True


@contextmanager
def tensorflow(python: str, count: int) -> Iterator[Callable[[int], list[float]]]:
    """Seconds of so many steps with TensorFlow's servers; python: of an environment that has it."""
    script = str(Path(__file__).with_name("parameter_step.py"))
    command = [python, script, str(count), free_address(), free_address()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, results = process.stdin, process.stdout

        def run(steps: int) -> list[float]:
            print(steps, file=given, flush=True)
            found: list[float] = json.loads(results.readline())
            return found

        yield run
        given.close()


def measure(cluster: tfr.Cluster, nbytes: int, given: Any) -> dict[str, Any]:
    """Returns what one size takes; the ways take turns."""
    count = nbytes // 4
    config = tf.SessionConfig(plugins=["cpu"])
    with ExitStack() as stack:
        stack.enter_context(tf.Graph().as_default())
        v, step = program(tf, count)
        session = stack.enter_context(tf.Session(cluster.target, config=config))
        session.run(v.initializer)
        plain = PlainStep(count)
        ways = {"ours": partial(seconds, session, step), "ray": partial(seconds, plain, None)}
        if given.tensorflow:
            ways["tensorflow"] = stack.enter_context(tensorflow(given.tensorflow, count))
        for way in ways.values():
            way(WARM)
        with Counted() as counted:
            session.run(step)
        line = {"bytes": nbytes, "calls": counted.calls, "moved": counted.moved(), "bound": 2 * nbytes}
        line["copies"] = counted.copies() if nbytes > INLINE_BYTES else None
        del counted
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.blocks):
            for name, way in ways.items():
                times[name] += way(given.steps)
    tf.Session.reset(cluster.target)
    for name, found in times.items():
        line[name] = {"min": round(1e3 * min(found), 2), "median": round(1e3 * statistics.median(found), 2)}
    line["ratio"] = {key: round(line["ours"][key] / line["ray"][key], 2) for key in ("min", "median")}
    return line


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bytes", type=int, nargs="+", default=[4, 1_000_000])
    options.add_argument("--steps", type=int, default=20, help="of a block")
    options.add_argument("--blocks", type=int, default=10)
    options.add_argument("--tensorflow", help="a Python that has it; without, it is not measured")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tf-ray-") as folder, tfr.local_cluster(1, 1, folder) as cluster:
        for nbytes in given.bytes:
            print(json.dumps(measure(cluster, nbytes, given)), flush=True)


if __name__ == "__main__":
    main()
