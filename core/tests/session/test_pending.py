"""What a run waits for on devices, when it may be cancelled meanwhile."""

from __future__ import annotations

import threading

import pytest

from timberframe_core.errors import CancelledError
from timberframe_core.plugin.waiting import CancelToken


class Remote:
    """Work of another process, which can be waited for."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def done(self) -> bool:
        raise AssertionError("wait() is there")

    def wait(self, seconds: float) -> bool:
        return self.over.wait(seconds)

    def result(self) -> int:
        return 7


class Local:
    """Work that can be looked at."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def done(self) -> bool:
        self.looks -= 1
        return self.looks <= 0

    def result(self) -> int:
        return 8


def polling() -> CancelToken:
    token = CancelToken()
    token.poll()
    return token


def test_work_that_can_be_waited_for_is_not_looked_at() -> None:
    remote = Remote()
    threading.Timer(0.05, remote.over.set).start()
    assert polling().wait_all([remote, Local(3)]) == [7, 8]


def test_work_that_is_looked_at_may_end_last() -> None:
    remote = Remote()
    remote.over.set()
    assert polling().wait_all([Local(100), remote]) == [8, 7]


def test_a_run_that_is_cancelled_leaves_work_that_never_ends() -> None:
    token = polling()
    threading.Timer(0.05, token.cancel, [CancelledError("enough")]).start()
    with pytest.raises(CancelledError, match="enough"):
        token.wait(Remote())


def test_the_first_error_ends_the_wait() -> None:
    class Failing(Local):
        def result(self) -> int:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        polling().wait_all([Remote(), Failing(2)])
