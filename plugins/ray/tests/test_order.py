"""What the plugin rests on: one caller's calls of an actor run in the order given, whatever they wait for.

Out of order, or with more than one call at a time in a group, a step that is ready would run before an earlier one
whose tensors are still on their way, and its tensors would not be there.
"""

from __future__ import annotations

import time

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")
import ray

from timberframe_ray import Cluster, engine
from timberframe_ray.wire import pack


class Noting:
    """An actor that notes the order of its calls."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def step(self, number: int, *tensors: object) -> int:
        self.seen.append(number)
        return number

    def control(self, *_: object) -> list[int]:
        return self.seen


def late(seconds: float) -> bytes:
    time.sleep(seconds)
    return pack(seconds)


@pytest.mark.slow
def test_calls_run_in_the_order_in_which_they_were_made(cluster: Cluster) -> None:
    actor = ray.remote(**engine.ORDERED)(Noting).options(num_cpus=0).remote()
    waited_for = ray.remote(late).options(num_cpus=0)
    for i in range(30):
        argument = waited_for.remote(0.2) if i % 10 == 3 else i
        engine.submit(actor, 1, i, argument)
        actor.control.options(concurrency_group="io").remote()
    assert engine.get(engine.submit(actor, 1, 30)[0]) == 30
    assert ray.get(actor.control.options(concurrency_group="io").remote()) == list(range(31))


@pytest.mark.slow
def test_a_control_call_passes_by_a_step_that_waits_for_its_tensors(cluster: Cluster) -> None:
    worker = engine.find_worker(cluster.name, "worker", 0)
    pending = ray.remote(late).options(num_cpus=0).remote(1.5)
    start = time.monotonic()
    step = engine.submit(worker, 1, pack((0, 0, [], [])), pending)[0]
    engine.get(engine.control(worker, "describe"), 10)
    assert not engine.ready(step)
    assert time.monotonic() - start < 1.5
    engine.get(step)
