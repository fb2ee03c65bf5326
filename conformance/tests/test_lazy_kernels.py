"""A kernel that does too little is found by each suite that must find it, whichever op it is of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_conformance.levels.requirement import ops_of
from timberframe_conformance.mutants.lazy import LAZY_KERNELS, TRIES_NO_SINGLE_KERNEL
from timberframe_conformance.mutants.prove_lazy import WITHOUT_EXCEPTION, Finding, differs_from_list, listed, prove_lazy
from timberframe_conformance.options import in_share
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry

SHARES, SHARES_OF_ALL = 8, 64
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
@pytest.mark.timeout(1200)  # 13 kernels of some twenty ops
def test_no_lazy_kernel_passes_but_those_that_are_listed_with_a_reason(target: Target) -> None:
    """Tries all ops of core and the commit's shares of inference and of all; `conformance mutants --lazy` tries all."""
    number = commit_number(Path(__file__).parent)
    names = ops_of("core") | {op for op in ops_of("inference") if in_share(op, (number % SHARES, SHARES))}
    names |= {op.name for op in registry.all_ops() if in_share(op.name, (number % SHARES_OF_ALL, SHARES_OF_ALL))}
    findings = found_in(target, names)
    assert [str(f) for f in findings if f.is_missed] == []
    assert list(differs_from_list(findings, names)) == []


def test_an_exception_that_is_not_listed_is_named_and_so_is_one_that_is_none_any_more() -> None:
    name, reason = next(iter(listed().items()))
    kernel, op = name.split(",")[0].split(" of ")
    new = Finding("past-end", "guards", op, "breadth", excuse=reason)
    texts = list(differs_from_list([new], {op}))
    assert any("not in data" in t and f"past-end of {op}, by guards in breadth" in t for t in texts)
    assert any("no exception any more" in t and f"{kernel} of {op}" in t for t in texts)


def test_nothing_is_excused_in_the_levels_without_exception() -> None:
    assert [name for name in listed() if name.endswith(tuple(f"in {level}" for level in WITHOUT_EXCEPTION))] == []


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
