"""Plugins that are broken in one way each: the suite says what is wrong with them, and with nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target
from timberframe_core.errors import AlreadyExistsError, InternalError, NotFoundError
from timberframe_core.plugin import loader
from timberframe_sdk.testing.loaded import loaded_plugin

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of kernels on extreme values
PLUGINS = Path(__file__).parent / "broken_plugins"

LEFT_OUT = ("unsupported", "not applicable")

Judge = Callable[..., dict[str, Result]]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """``judge("acme", "forward", "Neg")``: the results of the cases of an op, by their ids without suite and op.

    Cases that judged nothing are left out, unless ``left_out=()``. only: a text in the ids of those that are judged.
    """
    monkeypatch.syspath_prepend(PLUGINS)

    def run(plugin: str, suite: str, op: str, left_out: Sequence[str] = LEFT_OUT, only: str = "") -> dict[str, Result]:
        with loaded_plugin(plugin, importlib.import_module(plugin)):
            options = Options(plugin, suites=(suite,), ops=(op,))
            target = open_target(options)
            results = [judge_case(case, target) for case in collect(target, options) if only in case.id]
        return {r.id.split("/", 2)[2]: r for r in results if r.verdict not in left_out}

    yield run
    for path in PLUGINS.glob("*.py"):
        sys.modules.pop(path.stem, None)


def failing(results: dict[str, Result]) -> dict[str, str]:
    """Returns the messages of the failing cases."""
    return {name: r.message for name, r in results.items() if r.verdict == "fail"}


@pytest.mark.parametrize(
    ("plugin", "error", "words"),
    [
        ("wrong_contract", InternalError, r"it is written for version 99\.0 of the contract; this timberframe-sdk has"),
        ("half_registered", NotFoundError, r"op Sqare: not registered; nearest names: Square"),
        (
            "duplicated_kernel",
            AlreadyExistsError,
            r"kernel Neg on DUPLICATED_KERNEL: claimed by broken_device\.kernels",
        ),
    ],
)
def test_a_plugin_that_cannot_be_registered_leaves_nothing(
    judge: Judge, plugin: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words), loaded_plugin(plugin, importlib.import_module(plugin)):
        pass
    assert not [k for k in loader.registry.kernels.kernels() if k.device == plugin.upper()]


DEVICE_FAULTS = {
    "lying_allocator": {
        "-/allocator-sizes": "the allocator gives 16 bytes where 64 are asked for; it must give as many",
    },
    "sharing_allocator": {
        "-/allocator-sizes": "bytes of an allocation are overwritten through others; allocations must have the bytes",
    },
    "races_in_copies": {
        "-/copies-concurrency": "copies of 4 threads at once disturb each other, while those of one thread are right: ",
    },
    "forgets_to_synchronize": {
        "-/synchronize": "of 6 copies that were started before it were not done; it must wait for all pending work",
    },
    "forgets_started_copies": {
        "-/start-copy-out-waits": "start_copy_out does not wait for the work that makes its tensor: for 1000 elements",
    },
    "aliases_host_memory": {
        "-/copy-in-reads-at-once": "copy_in goes on reading the host array after it has returned: 7 of 7 elements are",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("plugin", DEVICE_FAULTS)
def test_a_fault_of_the_device_fails_its_case_alone(judge: Judge, plugin: str) -> None:
    found = failing(judge(plugin, "device", "Device"))
    assert found.keys() == DEVICE_FAULTS[plugin].keys()
    assert all(words in found[case] for case, words in DEVICE_FAULTS[plugin].items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("-/allocator-gives-back", "bytes had been allocated and given back in turn, on a device with 67108864 bytes"),
        ("-/allocator-loses-nothing", "all bytes of a block must be free again when its last reference is dropped"),
    ],
)
def test_memory_that_is_not_given_back_fails_each_case_that_uses_it_up(judge: Judge, case: str, words: str) -> None:
    found = failing(judge("keeps_handles", "device", "Device", only=case))
    assert words in found[case]


@pytest.mark.slow
def test_copies_that_do_not_wait_are_reported_as_such(judge: Judge) -> None:
    found = failing(judge("forgets_to_wait", "device", "Device"))
    assert found["-/copy-out-waits"].startswith("copy_out does not wait for the work that makes its tensor: ")
    assert found["-/copies-concurrency"].startswith(
        "copies that one thread makes one after the other are wrong already"
    )


def test_results_that_are_taken_before_they_are_made_are_reported_as_such(judge: Judge) -> None:
    found = failing(judge("forgets_launches", "guards", "Square"))
    assert found
    assert all(m.startswith("copy_out does not wait for the launches that make its tensor") for m in found.values())


def test_a_kernel_that_is_wrong_for_one_dtype_fails_in_that_alone(judge: Judge) -> None:
    results = judge("wrong_for_one_dtype", "forward", "Square")
    assert {name.partition("/")[0] for name in failing(results)} == {"int32"}
    assert "elements differ; at [" in next(iter(failing(results).values()))
    assert {r.verdict for name, r in results.items() if name.startswith("float32")} == {"pass"}


def test_no_allocation_is_made_to_fail_where_the_run_fails_anyway(judge: Judge) -> None:
    results = judge("wrong_dtype", "faults", "Square", left_out=("unsupported",))
    assert {r.verdict for r in results.values()} == {"not applicable"}
    words = "not run: the run fails without a fault, too: output 0 has dtype float64; "
    assert all(r.message.startswith(words) for r in results.values())


@pytest.mark.parametrize(
    ("plugin", "suite", "words"),
    [
        (
            "writes_past_output",
            "guards",
            "4 bytes after it were written, the first at offset 0; a kernel writes inside",
        ),
        ("writes_device_input", "guards", "input 0 was written to; inputs are borrowed and never changed"),
        ("leaks", "leaks", "4 more runs left 4 live allocations (|bytes); a run must give back what it took"),
        ("wrong_dtype", "forward", "output 0 has dtype float64; it must be "),
        (
            "races",
            "concurrency",
            "threads run the node at once, differs from what the same inputs give alone; runs must share",
        ),
    ],
)
def test_a_fault_of_a_kernel_is_reported_by_its_suite(judge: Judge, plugin: str, suite: str, words: str) -> None:
    results = judge(plugin, suite, "Square")
    assert results
    assert all(part in r.message for r in results.values() for part in words.split("|"))


def test_a_kernel_that_overwrites_what_others_read_on_the_device_fails_read_again(judge: Judge) -> None:
    found = {n: r for n, r in judge("writes_device_input", "aliasing", "Square").items() if "read-again" in n}
    assert found
    assert {r.verdict for r in found.values()} == {"fail"}


@pytest.mark.parametrize("plugin", ["writes_past_output", "leaks", "races"])
def test_a_fault_of_a_kernel_leaves_other_kernels_alone(judge: Judge, plugin: str) -> None:
    for suite in ("forward", "guards", "leaks", "concurrency"):
        assert not failing(judge(plugin, suite, "Neg"))
