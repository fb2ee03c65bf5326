"""Which exceptions of a case mean that the device has no kernel, and which that it failed."""

from __future__ import annotations

from typing import Any

import pytest

from timberframe_conformance.case import Case
from timberframe_conformance.judge import judge_case
from timberframe_conformance.target import Target
from timberframe_core.errors import NoKernelError, UnimplementedError


def verdict(target: Target, error: Exception) -> str:
    def run(target: Any) -> None:
        raise error

    return judge_case(Case("forward", "Neg", (), "", run), target).verdict


def test_no_kernel_is_unsupported(target: Target) -> None:
    assert verdict(target, NoKernelError("Neg 'x': declined")) == "unsupported"


@pytest.mark.parametrize("text", ["no kernel", "half of it"])
def test_what_a_kernel_does_not_support_is_a_failure_whatever_its_message(target: Target, text: str) -> None:
    assert verdict(target, UnimplementedError(f"Neg 'x': {text}")) == "fail"
