"""A kernel that does too little is found by each suite that must find it, whichever op it is of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_conformance.levels.requirement import ops_of
from timberframe_conformance.mutants.lazy import LAZY_KERNELS, TRIES_NO_SINGLE_KERNEL
from timberframe_conformance.mutants.prove_lazy import Finding, prove_lazy
from timberframe_conformance.options import in_share
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry

SHARES = 8
README = Path(__file__).parents[1] / "README.md"


def test_each_suite_has_lazy_kernels_to_find_or_a_reason_for_none() -> None:
    finding = {suite for kernel in LAZY_KERNELS.values() for suite in kernel.suites}
    assert finding | set(TRIES_NO_SINGLE_KERNEL) == set(SUITES)
    assert not finding & set(TRIES_NO_SINGLE_KERNEL)


def test_the_guide_shows_the_table() -> None:
    shown = re.findall(r"^\|`([\w-]+)`\|([^|]+)\|((?:`[\w-]+`(?:, )?)+)\|$", README.read_text(), re.M)
    assert [(name, what, tuple(re.findall(r"`([\w-]+)`", suites))) for name, what, suites in shown] == [
        (k.name, k.what, k.suites) for k in LAZY_KERNELS.values()
    ]


def found_in(target: Target, names: Any, suites: tuple[str, ...] = ()) -> list[Finding]:
    return list(prove_lazy(target, [op for op in registry.all_ops() if op.name in names], suites))


@pytest.mark.slow
def test_no_lazy_kernel_passes_without_a_reason(target: Target) -> None:
    """Of all ops of core, and of the commit's share of the others; `conformance mutants --lazy` tries all ops."""
    of_commit = commit_number(Path(__file__).parent) % SHARES, SHARES
    others = {name for name in ops_of("inference") if in_share(name, of_commit)}
    findings = found_in(target, ops_of("core") | others)
    assert [str(f) for f in findings if f.is_missed] == []


@pytest.mark.parametrize(
    ("op", "suite", "kernel"),
    [
        (
            "OnesLike",
            "aliasing",
            "writes-input",
        ),  # whose results do not depend on its inputs
        ("Equal", "concurrency", "repeat"),  # random numbers are hardly ever equal
        ("InTopK", "aliasing", "repeat"),
        ("Where", "aliasing", "repeat"),  # the results differ in size
        ("Polygamma", "determinism", "order-of-runs"),  # NaN but for whole orders
        ("MaxPoolGradWithArgmax", "prepared", "first-weights"),
        ("Bitcast", "guards", "copy"),  # a copy is right between equal dtypes
        ("Sub", "aliasing", "writes-result"),  # which is no input of the program
    ],
)
def test_ops_whose_samples_hid_a_lazy_kernel_show_it(target: Target, op: str, suite: str, kernel: str) -> None:
    findings = [f for f in found_in(target, {op}, (suite,)) if f.kernel == kernel]
    assert findings
    assert all(f.found for f in findings)


@pytest.mark.parametrize("kernel", ["zeros", "writes-input", "first-weights"])
def test_a_lazy_convolution_does_not_reach_core(target: Target, kernel: str) -> None:
    found = [f for f in prove_lazy(target, [registry.get("Conv2D")], ("guards", "prepared")) if f.level == "core"]
    assert all(f.found for f in found if f.kernel == kernel)
    assert any(f.kernel == kernel for f in found)
