"""Groups of these tests: what their processes run, and threads in the place of processes."""

from __future__ import annotations

import importlib
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from timberframe_ray import Group


@pytest.fixture
def programs() -> Any:
    """The module, which started processes import by the same name."""
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("programs")


@pytest.fixture
def together() -> Callable[..., list[Any]]:
    """A function: what `do` gives, or raises, for each rank of a group of so many threads."""
    from timberframe_ray.collectives.group import connect  # here, since without Ray the tests are skipped

    def run(size: int, do: Callable[[Group], Any], memory: bool = True, seconds: float = 20.0) -> list[Any]:
        with socket.create_server(("127.0.0.1", 0)) as found:
            address = f"127.0.0.1:{found.getsockname()[1]}"
        results: list[Any] = [None] * size

        def work(rank: int) -> None:
            try:
                group = connect(rank, size, address, "test", seconds, memory)
                try:
                    results[rank] = do(group)
                finally:
                    group.leave()
            except Exception as e:
                results[rank] = e

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return results

    return run
