"""Requests that are computed together: when, of what, and what happens to those that are too many or cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import float32
from timberframe_core.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from timberframe_serving.batching import Batcher, BatchingSettings
from timberframe_serving.metrics import Metrics
from timberframe_serving.signatures import Port, Signature
from timberframe_serving.warmup import batch_sizes, try_signature


class Gate:
    """A model that waits until it is let through, and remembers what it was given."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.batches: list[list[float]] = []

    def __call__(self, x: Any) -> Any:
        self.batches.append(x[:, 0].tolist())
        assert self.open.wait(20)
        if (x < 0).any():
            raise InvalidArgumentError("Sqrt 'm': has a negative number")
        return [x * 2]


def signature(call: Callable[..., Any]) -> Signature:
    """Returns a signature of one input and output of rows."""
    return Signature("s", "", (Port("x", float32, (None, None)),), (Port("y", float32, (None, None)),), call, None)


def rows(*values: float, width: int = 1) -> Any:
    """Returns an array with a row for each value."""
    return np.repeat(np.float32(values)[:, None], width, 1)


def run(settings: BatchingSettings, steps: Callable[[Batcher, Signature, Gate], Any], metrics: Any = None) -> Any:
    """Runs steps on an event loop with a batcher."""
    gate = Gate()

    async def main() -> Any:
        with ThreadPoolExecutor(settings.num_batch_threads) as pool:
            try:
                return await steps(Batcher("m", settings, pool, metrics or Metrics()), signature(gate), gate)
            finally:
                gate.open.set()

    return asyncio.run(main())


async def entered(gate: Gate, count: int = 1) -> None:
    """Waits until the model has been called so often."""
    while len(gate.batches) < count:
        await asyncio.sleep(0.001)


def test_requests_that_come_while_the_model_is_busy_go_in_one_batch() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        rest = [batcher.submit(s, [rows(2)], True), batcher.submit(s, [rows(3, 4)], True)]
        assert batcher.waiting == 3
        gate.open.set()
        results = await asyncio.gather(first, *rest)  # type: ignore[arg-type]
        assert gate.batches == [[1], [2, 3, 4]]
        assert [r[0].ravel().tolist() for r in results] == [[2], [4], [6, 8]]

    run(BatchingSettings(), steps)


def test_rows_of_other_shapes_and_signatures_go_by_themselves() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        rest = [batcher.submit(s, [rows(i, width=w)], True) for i, w in ((2, 1), (3, 2), (4, 1), (5, 2))]
        rest.append(batcher.submit(s, [rows(6)], False))
        gate.open.set()
        await asyncio.gather(first, *rest)  # type: ignore[arg-type]
        assert sorted(gate.batches) == [[1], [2, 4], [3, 5], [6]]

    run(BatchingSettings(), steps)


def test_batches_end_at_the_largest_size_and_are_padded_to_an_allowed_one() -> None:
    metrics = Metrics()

    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        rest = [batcher.submit(s, [rows(i)], True) for i in range(2, 9)]
        gate.open.set()
        results = await asyncio.gather(first, *rest)  # type: ignore[arg-type]
        assert gate.batches == [[1], [2, 3, 4, 5], [6, 7, 8, 6]]
        assert [float(r[0][0, 0]) for r in results] == [2, 4, 6, 8, 10, 12, 14, 16]
        assert all(r[0].shape == (1, 1) for r in results)

    run(BatchingSettings(max_batch_size=4, allowed_batch_sizes=(1, 4)), steps, metrics)
    text = metrics.text()
    assert ':tensorflow:serving:batching_session:processed_batch_size_sum{model_name="m"} 8' in text
    assert ':tensorflow:serving:batching_session:padding_size_sum{model_name="m"} 1' in text


def test_a_full_queue_refuses_at_once() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        rest = [batcher.submit(s, [rows(1)], True) for _ in range(4)]
        with pytest.raises(ResourceExhaustedError, match="4 rows wait; at most 4 may"):
            batcher.submit(s, [rows(1)], True)
        with pytest.raises(ResourceExhaustedError, match="4 rows wait"):
            batcher.check_room()
        gate.open.set()
        await asyncio.gather(first, *rest)  # type: ignore[arg-type]

    run(BatchingSettings(max_batch_size=2, max_enqueued_batches=2), steps)


def test_a_cancelled_request_is_not_computed_and_leaves_its_place() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        kept, gone = (batcher.submit(s, [rows(i)], True) for i in (3, 2))
        assert isinstance(gone, asyncio.Future)
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        gate.open.set()
        await asyncio.gather(first, kept)  # type: ignore[arg-type]
        assert gate.batches == [[1], [3]]

    run(BatchingSettings(), steps)


def test_a_signature_with_cancelled_requests_keeps_its_turn() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        for _ in range(3):
            gone = batcher.submit(s, [rows(0)], True)
            assert isinstance(gone, asyncio.Future)
            gone.cancel()
            await asyncio.sleep(0)
        rest = [batcher.submit(s, [rows(i, width=w)], True) for i, w in ((2, 1), (3, 1), (4, 2))]
        gate.open.set()
        await asyncio.gather(first, *rest)  # type: ignore[arg-type]
        assert gate.batches == [[1], [2], [4], [3]]

    run(BatchingSettings(max_batch_size=1), steps)


def test_whatever_a_model_raises_ends_its_requests() -> None:
    def call(x: Any) -> Any:
        raise StopIteration

    async def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            found = Batcher("m", BatchingSettings(), pool, Metrics()).submit(signature(call), [rows(1)], True)
            with pytest.raises(InternalError, match="StopIteration while answering"):
                await asyncio.wait_for(found, 5)  # type: ignore[arg-type]

    asyncio.run(main())


def test_one_wrong_request_fails_alone() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        first = batcher.submit(s, [rows(1)], True)
        await entered(gate)
        rest = [batcher.submit(s, [rows(i)], True) for i in (2, -3, 4)]
        gate.open.set()
        results = await asyncio.gather(first, *rest, return_exceptions=True)  # type: ignore[arg-type]
        assert isinstance(results[2], InvalidArgumentError)
        assert [float(results[i][0][0, 0]) for i in (0, 1, 3)] == [2, 4, 8]  # type: ignore[index]

    run(BatchingSettings(), steps)


def test_a_batch_waits_for_its_timeout_where_there_is_one() -> None:
    async def steps(batcher: Batcher, s: Signature, gate: Gate) -> None:
        gate.open.set()
        waiting = [batcher.submit(s, [rows(i)], True) for i in (1, 2)]
        await asyncio.sleep(0.02)
        assert gate.batches == []
        await asyncio.gather(*waiting)  # type: ignore[arg-type]
        assert gate.batches == [[1, 2]]
        full = [batcher.submit(s, [rows(i)], True) for i in range(4)]
        await asyncio.wait_for(asyncio.gather(*full), 0.2)  # type: ignore[arg-type]
        assert gate.batches[1:] == [[0, 1, 2, 3]]

    run(BatchingSettings(max_batch_size=4, batch_timeout=0.3), steps)


def test_a_quick_model_runs_on_the_event_loop_and_a_slow_one_in_a_thread() -> None:
    threads: list[str] = []

    def call(x: Any) -> Any:
        threads.append(threading.current_thread().name)
        return [x]

    async def main() -> None:
        with ThreadPoolExecutor(1, "pool") as pool:
            batcher = Batcher("m", BatchingSettings(), pool, Metrics())
            s = signature(call)
            await batcher.submit(s, [rows(1)], True)  # type: ignore[misc]
            for _ in range(50):
                found = batcher.submit(s, [rows(1)], True)
                if isinstance(found, asyncio.Future):
                    await found

    asyncio.run(main())
    assert threads[0].startswith("pool"), "nobody knows yet how long it takes"
    assert threads[-1] == "MainThread"


@pytest.mark.parametrize(
    ("call", "together"),
    [
        (lambda x: [x * 2], True),
        (lambda x: [x - x.mean(0)], False),
        (lambda x: [x.sum()], False),
        (lambda x: [np.random.default_rng().uniform(size=x.shape)], False),
    ],
)
def test_rows_that_depend_on_each_other_are_not_put_together(call: Any, together: bool) -> None:
    assert try_signature(signature(call), [1, 2])[0] == together


def test_every_allowed_size_is_warmed_up() -> None:
    sizes: list[int] = []
    try_signature(signature(lambda x: (sizes.append(len(x)), [x])[1]), batch_sizes(BatchingSettings(max_batch_size=8)))
    assert set(sizes) == {1, 2, 4, 8}


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="max_batch_size is 0"):
        BatchingSettings(max_batch_size=0)
    with pytest.raises(InvalidArgumentError, match="the last is max_batch_size, 8"):
        BatchingSettings(max_batch_size=8, allowed_batch_sizes=(2, 4))
