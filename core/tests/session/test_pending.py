"""What a run waits for on devices, when it may be cancelled meanwhile."""

from __future__ import annotations

import threading

import pytest

from timberframe_core.errors import CancelledError
from timberframe_core.plugin.waiting import CancelToken, LateErrors, check_all


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


class Counted(Remote):
    """Work that counts how often somebody waits for it. error: what it raises at its end."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.waits, self.error = 0, error

    def done(self) -> bool:
        return self.over.is_set()

    def wait(self, seconds: float) -> bool:
        self.waits += not self.over.is_set()
        return super().wait(seconds)

    def result(self) -> int:
        if self.error is not None:
            raise self.error
        return super().result()


def late(*works: Counted) -> LateErrors:
    errors = LateErrors()
    for work in works:
        errors.add(None, work, lambda _: None)
    return errors


def test_of_works_that_end_together_only_the_last_is_waited_for() -> None:
    works = [Counted(), Counted(), Counted()]
    threading.Timer(0.05, lambda: [work.over.set() for work in works]).start()
    check_all(late(*works).of(), polling())
    assert [work.waits for work in works[:2]] == [0, 0]
    assert works[2].waits > 0


def test_an_error_shows_while_later_work_goes_on() -> None:
    failed = Counted(ValueError("first"))
    failed.over.set()
    with pytest.raises(ValueError, match="first"):
        check_all(late(failed, Counted()).of(), polling())


def test_the_first_of_several_errors_is_raised() -> None:
    works = [Counted(ValueError("first")), Counted(ValueError("second"))]
    for work in works:
        work.over.set()
    with pytest.raises(ValueError, match="first"):
        check_all(late(*works).of(), polling())
