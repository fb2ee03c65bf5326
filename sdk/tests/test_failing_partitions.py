"""Graphs over two devices, one of which fails while the other is busy for longer than anybody wants to wait."""

from __future__ import annotations

import _thread
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import UnknownError
from timberframe_sdk import ResourceExhaustedError

CPU, ASYNC = "/device:CPU:0", "/device:ASYNC:0"
LONG = 40_000  # elements: large enough for the CPU to count the memory


class World:
    """A part with a variable on each device, both fed by the same host arrays; and a loop that only an error ends."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.rows = {spec: tf.placeholder(tf.int32, [None]) for spec in (CPU, ASYNC)}
            self.spin = tf.placeholder(tf.float32, [], name="spin")
            self.parts = {spec: self._part(spec) for spec in (CPU, ASYNC)}
            crossing = [self.parts[spec][1] for spec in (CPU, ASYNC)]
            with tf.device(CPU):
                self.cpu_total = tf.reduce_sum(crossing[1] * 2.0, name="cpu_total")
                loop = tf.while_loop(lambda a: a < 2.0, lambda a: (a * 1.0,), [self.spin])
            with tf.device(ASYNC):
                self.async_total = tf.reduce_sum(crossing[0] * 2.0, name="async_total")
            self.everything = [self.cpu_total, self.async_total, loop, *(part[2] for part in self.parts.values())]
        self.variables = [part[0] for part in self.parts.values()]
        self.session = tf.Session(graph=self.graph)
        self.devices: dict[str, Any] = {d.spec: d for d in self.session.list_devices()}
        self.session.run([v.initializer for v in self.variables])
        self.runs = 0
        for _ in range(3):
            self.run()
            self.session.run(self.variables)
        self.before = self.memory()

    def _part(self, spec: str) -> tuple[tf.Variable, tf.Tensor, tf.Tensor]:
        """Returns a variable; rows of a table; an update that waits for nothing of the other device."""
        kind = spec.split(":")[1].lower()
        with tf.device(spec):
            v = tf.Variable(np.zeros(LONG, np.float32), name=f"v_{kind}")
            table = tf.placeholder_with_default(np.ones((4, LONG), np.float32), [4, LONG])
            taken = tf.gather(table, self.rows[spec], name=f"take_{kind}")
            return v, taken, v.assign_add(tf.ones([LONG]))

    def run(self, bad: str = "", spin: float = 5.0, options: Any = None) -> Any:
        """Returns one run; bad: the device whose row is out of range, spin: 1.0 has the CPU's loop go on for ever."""
        feeds: dict[Any, Any] = {row: [9 if spec == bad else 1] for spec, row in self.rows.items()}
        found = self.session.run(self.everything, {**feeds, self.spin: spin}, options)
        self.runs += 1
        return found

    def memory(self) -> dict[str, tuple[int, int]]:
        gc.collect()
        for device in self.devices.values():
            device.synchronize()
        gc.collect()
        found = {spec: self.devices[spec].allocator.statistics() for spec in (CPU, ASYNC)}
        return {spec: (s.used, s.live) for spec, s in found.items()}

    def check(self) -> None:
        """Variables hold whole values, the next run works, and no memory is gone."""
        values = self.session.run(self.variables)
        assert all(len(set(v.tolist())) == 1 and v[0] in (self.runs, self.runs + 1) for v in values)
        found = self.run()
        assert found[:2] == [2 * LONG, 2 * LONG]
        assert [f[0] for f in found[3:]] == [v[0] + 1 for v in values]
        del values, found
        assert self.memory() == self.before


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.check()
    world.session.close()


@contextmanager
def stuck(world: World) -> Iterator[None]:
    """The asynchronous device's queue works on something else, which ends only when the block does."""
    gate = threading.Event()
    world.devices[ASYNC].queue.enqueue(lambda: gate.wait(60))
    try:
        yield
        assert not gate.is_set()
    finally:
        gate.set()


@pytest.mark.slow
def test_error_of_the_cpu_ends_a_run_that_waits_for_a_long_queue(world: World) -> None:
    with stuck(world), pytest.raises(tf.errors.InvalidArgumentError, match=r"'take_cpu': .*9.*device:CPU:0"):
        world.run(bad=CPU)


@pytest.mark.slow
def test_late_error_of_an_asynchronous_device_ends_a_loop_of_the_cpu(world: World) -> None:
    with pytest.raises(tf.errors.OpError, match=r"'take_async'.*device:ASYNC:0") as caught:
        world.run(bad=ASYNC, spin=1.0)
    assert caught.value.node == "take_async"


@pytest.mark.slow
def test_late_error_is_reported_by_a_run_that_fetches_nothing(world: World) -> None:
    taken = world.parts[ASYNC][1].op
    with pytest.raises(tf.errors.OpError, match=r"'take_async'.*device:ASYNC:0"):
        world.session.run(taken, {world.rows[ASYNC]: [9]})


def refuse(world: World, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = world.devices[spec].allocator
    if spec == CPU:
        allocator.reclaim()  # else it would give memory that it keeps

    def no_memory(nbytes: int) -> Any:
        raise ResourceExhaustedError(f"allocation of {nbytes} bytes was refused by an injected fault")

    for name in ("allocate", "obtain", "reserve"):
        monkeypatch.setattr(allocator, name, no_memory)


@pytest.mark.slow
def test_allocation_that_fails_on_the_cpu_ends_a_run_that_waits_for_a_long_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stuck(world), monkeypatch.context() as patched:
        refuse(world, CPU, patched)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="injected fault"):
            world.run()


@pytest.mark.slow
def test_allocation_that_fails_on_the_asynchronous_device_ends_a_loop_of_the_cpu(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        refuse(world, ASYNC, patched)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="injected fault"):
            world.run(spin=1.0)


def fail() -> Any:
    raise RuntimeError("the cable is out")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["copy_in", "start_copy_out"])
def test_copy_that_fails_ends_a_loop_of_the_cpu(world: World, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = world.devices[ASYNC]
    late: Callable[..., Any] = lambda a: type(device.marker())(device.queue, fail)  # noqa: E731  # one of two functions
    with monkeypatch.context() as patched:
        patched.setattr(device, how, late if how == "start_copy_out" else lambda x: fail())
        with pytest.raises(UnknownError, match=r"device /device:ASYNC:0 failed: RuntimeError: the cable is out"):
            world.run(spin=1.0)


@pytest.mark.slow
def test_time_limit_ends_a_run_that_waits_for_a_long_queue(world: World) -> None:
    with stuck(world), pytest.raises(tf.errors.DeadlineExceededError):
        world.run(options=tf.RunOptions(timeout_in_ms=100))


@pytest.mark.slow
def test_ctrl_c_ends_a_run_that_waits_for_a_long_queue(world: World) -> None:
    threading.Timer(0.2, _thread.interrupt_main).start()
    with stuck(world), pytest.raises(KeyboardInterrupt):
        world.run()
