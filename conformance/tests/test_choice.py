"""Which samples are tried: a device that takes one layout alone is judged by samples in that layout."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import LEVELS
from timberframe_conformance.cases.trials import Trial, network_calls, samples_of, trial_of, trials
from timberframe_conformance.cases.weaknesses import (
    COPIES,
    EQUAL_OUTPUT,
    NO_SECOND,
    NOT_TRIED,
    SAME_OUTPUTS,
    ZEROS,
    input_shapes,
    input_size,
    weaknesses,
)
from timberframe_conformance.commit import commit_number
from timberframe_conformance.judge import judge_case
from timberframe_conformance.levels.requirement import ops_of
from timberframe_conformance.options import Options, in_share
from timberframe_conformance.suites import SUITES
from timberframe_conformance.suites.choice import trials_in
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_sdk import KernelDef, KernelNode, Launcher, Support, hookimpl, reference_launcher
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice

OPS = ("MaxPool", "AvgPool", "Conv2D", "FusedBatchNormV3")


def wrong(node: KernelNode) -> Launcher:
    launch = reference_launcher(node)

    def changed(*arrays: np.ndarray) -> Any:
        made = launch(*arrays)
        arrays[-1][...] += 1
        return made

    return changed


def takes_only(layout: str) -> Callable[[KernelNode], Support]:
    return lambda node: None if node.attrs["data_format"] == layout else f"{layout} is required"


class OneLayoutDevice(ReferenceDevice):
    type, by_reference, priority = "ONE_LAYOUT", False, 0


@pytest.fixture(params=["NHWC", "NCHW"])
def one_layout(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Its MaxPool takes one dtype and one layout, and is wrong."""
    kernels = [KernelDef("MaxPool", "ONE_LAYOUT", wrong, {"T": ("float16",)}, suits=takes_only(request.param))]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [OneLayoutDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("one_layout", plugin):
        yield open_target(Options("one_layout"))


def verdicts(target: Target, suite: str) -> set[str]:
    return {judge_case(c, target).verdict for c in SUITES[suite](target, [registry.get("MaxPool")])}


def test_a_wrong_kernel_for_one_layout_of_one_dtype_fails(one_layout: Target) -> None:
    assert "fail" in verdicts(one_layout, "forward")


def test_guards_judges_samples_that_the_device_takes(one_layout: Target) -> None:
    assert verdicts(one_layout, "guards") == {"fail"}


@pytest.mark.parametrize("name", OPS)
def test_each_dtype_is_tried_in_each_layout(name: str) -> None:
    op = registry.get(name)
    layouts = {s.attrs["data_format"] for s in samples_of(op) if "data_format" in s.attrs}
    by_dtype = {t: [(("T", t), *((("U", "float32"),) if "U" in op.attrs else ()))] for t in ("float16", "bfloat16")}
    found: dict[str, set[str]] = {}
    for trial in trials(op, by_dtype):
        found.setdefault(trial.types[0][1], set()).add(trial.sample.attrs.get("data_format", "NHWC"))
    assert [layouts <= found.get(dtype, set()) for dtype in by_dtype] == [True, True]


EXHAUSTIVE = frozenset({"forward", "errors", "shapes", "gradient", "networks", "patterns"})
"""Suites that try all samples, calls of networks, or wrong calls; all others choose few trials for an op."""


def some_ops() -> list[OpDef]:
    """Returns the ops of the levels' networks, and the commit's share of all others."""
    of_levels = frozenset().union(*map(ops_of, LEVELS[:-1]))
    share = commit_number(Path(__file__).parent) % OP_SHARES, OP_SHARES
    return [op for op in registry.all_ops() if op.name in of_levels or in_share(op.name, share)]


OP_SHARES = 16


@pytest.mark.parametrize("suite", [name for name in SUITES if name not in EXHAUSTIVE])
def test_no_suite_chooses_a_trial_that_shows_less_than_the_op_has(target: Target, suite: str) -> None:
    weaker: list[str] = []
    for case in SUITES[suite](target, some_ops()):
        trial = trial_of(case)
        if trial is not None and weaknesses(trial):
            fewest = min(len(weaknesses(t)) for t in alternatives(trial))
            weaker += [f"{case.id}: {weaknesses(trial)}"] * (len(weaknesses(trial)) > fewest)
    assert weaker == []


@pytest.mark.parametrize("suite", ["guards", "aliasing", "concurrency", "determinism", "faults", "leaks", "prepared"])
def test_no_convolution_is_tried_on_empty_tensors(target: Target, suite: str) -> None:
    found = [trial for case in SUITES[suite](target, [registry.get("Conv2D")]) if (trial := trial_of(case))]
    assert found
    assert all(0 not in shape for trial in found for shape in input_shapes(trial))


@pytest.mark.parametrize(
    ("op", "inputs", "weakness"),
    [
        ("Relu", [Arg((0, 3))], "all elements of input features are equal"),
        ("Relu", [Arg(values=[1.0, 2.0])], COPIES),
        ("Relu", [Arg(values=[-1.0, -2.0])], EQUAL_OUTPUT),
        ("Relu", [Arg((9,), low=-4, high=-1)], ZEROS),
        ("Log", [Arg((9,), low=-4, high=-1)], EQUAL_OUTPUT),  # NaN everywhere
        ("Equal", [Arg((7,)), Arg((7,))], SAME_OUTPUTS),
        ("Relu", [Arg((1, 9))], NO_SECOND),
        ("Relu", [Arg(values=[[-1.0, 2.0], [2.0, 1.0]])], NOT_TRIED),
    ],
)
def test_a_trial_on_which_a_wrong_kernel_is_right_has_a_weakness(op: str, inputs: Any, weakness: str) -> None:
    assert weakness in weaknesses(Trial(registry.get(op), (("T", "float32"),), Sample(inputs), 0))


def test_a_trial_that_shows_every_wrong_kernel_has_no_weakness() -> None:
    assert weaknesses(Trial(registry.get("Relu"), (("T", "float32"),), Sample([Arg((3, 5))]), 0)) == ()


def alternatives(trial: Trial) -> list[Trial]:
    """Returns the trials that a suite could have chosen: of the calls of networks those with the same attrs."""
    if not trial.asked_by:
        return [t for t in trials_in(trial.op, trial.types) if input_size(t) < 2_000]
    return next(calls for calls in network_calls(trial.op.name) if trial in calls)
