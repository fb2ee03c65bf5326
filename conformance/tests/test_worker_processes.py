"""How many processes judge a device."""

from __future__ import annotations

from timberframe_conformance.commands import cores, worker_processes


def test_a_device_of_this_process_is_judged_by_one_process_a_core() -> None:
    assert worker_processes(None, "") == cores()


def test_a_device_of_a_target_is_judged_by_one_process() -> None:
    assert worker_processes(None, "ray:local") == 1


def test_the_number_that_is_given_holds_for_either() -> None:
    assert [worker_processes(3, url) for url in ("", "ray:local")] == [3, 3]
    assert worker_processes(0, "") == 0
