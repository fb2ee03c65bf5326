"""The suite of the device contract, on allocators that it must accept and on others that it must not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.mutants.strangers.hosts import HOSTS
from timberframe_conformance.options import Options
from timberframe_conformance.suites import device
from timberframe_sdk import ResourceExhaustedError
from timberframe_sdk.numpy_device import NumpyAllocator


class Keeper(NumpyAllocator):
    """Keeps memory for later runs, and gives it back before it refuses some."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = [self.allocate(1000)]

    def obtain(self, nbytes: int) -> Any:
        try:
            return super().obtain(nbytes)
        except (ResourceExhaustedError, MemoryError):
            while self.idle:
                self.idle.pop().close()
            raise


class Leaker(NumpyAllocator):
    """Loses memory whenever it refuses some."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[Any] = []

    def obtain(self, nbytes: int) -> Any:
        try:
            return super().obtain(nbytes)
        except (ResourceExhaustedError, MemoryError):
            self.lost.append(super().obtain(8))
            raise


def complaint(allocator: NumpyAllocator) -> str:
    """Returns what the suite says of an allocator when its memory is exhausted; nothing if it accepts that."""
    attributes = SimpleNamespace(dtypes=())
    target: Any = SimpleNamespace(
        device=SimpleNamespace(allocator=allocator, attributes=attributes, host_memory=True), url=""
    )
    case = next(case for case in device.collect(target, ()) if case.detail == "allocator-exhaustion")
    try:
        case.run(target)
    except CaseFailedError as e:
        return str(e)
    return ""


def test_allocator_may_give_idle_memory_back_before_it_refuses():
    assert complaint(Keeper()) == ""


def test_allocator_that_loses_memory_when_it_refuses_fails():
    assert "a refused allocation left 8 bytes in use" in complaint(Leaker())


@pytest.mark.parametrize("mutant", ["free-keeps-record", "free-keeps-rest"])
def test_driver_that_loses_a_few_bytes_of_each_block_fails_in_level_core(mutant: str):
    proof = prove(HOSTS["npu"].open(), MUTANTS[mutant], Options("npu"))
    assert proof.ok, proof.problems
    assert proof.first == "device/Device/-/allocator-loses-nothing"
    assert "the largest block that there can be has 268" in proof.message
