"""What devices keep of what they compiled: what was used last, and no more."""

from __future__ import annotations

import threading

import pytest

from timberframe_sdk.execution.last_used import LastUsed


def test_what_was_not_used_for_longest_is_dropped() -> None:
    kept, made = LastUsed[str, str](2), []

    def get(key: str) -> str:
        return kept.get(key, lambda: made.append(key) or key.upper())  # type: ignore[func-returns-value]  # for brevity

    assert [get(key) for key in "abacab"] == ["A", "B", "A", "C", "A", "B"]
    assert made == ["a", "b", "c", "b"]


def test_threads_that_make_the_same_get_the_same() -> None:
    kept, both = LastUsed[str, object](2), threading.Barrier(2)

    def make() -> object:
        both.wait(10)
        return object()

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(kept.get("a", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]


def test_what_could_not_be_made_is_made_the_next_time() -> None:
    kept = LastUsed[str, int](2)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 1) == 1
