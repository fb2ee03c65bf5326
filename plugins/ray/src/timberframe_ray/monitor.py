"""The process beside a client that makes its control calls, and by whose end workers notice the client's."""

from __future__ import annotations

import asyncio
from typing import Any

import ray


class Monitor:
    """An actor that ends with its client. Any number of its calls may be under way."""

    async def ask(self, worker: Any, call: str, details: dict[str, Any]) -> Any:
        """Returns what a worker answers to a control call."""
        return await worker.control.options(concurrency_group="io").remote(call, details)

    async def closed(self) -> None:
        """Is never over while the client lives."""
        await asyncio.Event().wait()


def wait_for_end(monitor: Any) -> None:
    """Returns when a monitor has ended, and so its client."""
    over = monitor.closed.remote()
    while not ray.wait([over])[0]:
        pass
