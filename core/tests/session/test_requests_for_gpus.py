"""`/gpu:0` under soft placement: the first accelerator, of whatever type it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timberframe_core.compiler.place import Devices


def device(kind: str, number: int = 0, host: bool = False, is_cpu: bool = False) -> Any:
    spec = f"/device:{kind}:{number}"
    name = f"/job:localhost/replica:0/task:0{spec}"
    return SimpleNamespace(type=kind, spec=spec, name=name, host_memory=host, is_cpu=is_cpu)


CPU, FAST, SECOND = device("CPU", host=True), device("ACME"), device("OTHER", 1)


@pytest.mark.parametrize(
    ("request_", "order"),
    [
        ("/gpu:0", [FAST, SECOND, CPU]), ("/gpu:1", [SECOND, FAST, CPU]), ("/gpu:7", [FAST, SECOND, CPU]),
        ("/device:GPU:*", [FAST, SECOND, CPU]), ("/cpu:1", [CPU, FAST, SECOND]),
    ],
)  # fmt: skip
def test_a_gpu_is_an_accelerator_of_any_type(request_: str, order: list[Any]) -> None:
    assert Devices([CPU, FAST, SECOND], kernels=None).nearest(request_) == order  # type: ignore[arg-type]  # not used


def test_a_driver_for_the_cpu_is_no_gpu() -> None:
    driver = device("ACME", is_cpu=True)
    assert Devices([CPU, driver], kernels=None).nearest("/gpu:0") == [CPU, driver]  # type: ignore[arg-type]  # not used


def test_a_device_of_that_type_is_meant_alone() -> None:
    own = device("GPU")
    assert Devices([CPU, FAST, own], kernels=None).matching("/gpu:0") == [own]  # type: ignore[arg-type]  # not used
