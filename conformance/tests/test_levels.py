"""What a level requires of a device: what networks need, and no op that it leaves to the host."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance import drive
from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.case import LEVELS, Case, Result, UnsupportedError
from timberframe_conformance.cases.trials import Trial, network_calls, trial_of
from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.levels.derive import asked_attrs, derive, needed_nodes, networks, written
from timberframe_conformance.levels.requirement import data_file, level_of, ops_of, requirements
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import Run, describe_device, left_to_the_host
from timberframe_conformance.suites import SUITES
from timberframe_conformance.suites.choice import has_kernel
from timberframe_conformance.suites.networks import cases_of
from timberframe_conformance.target import Target, open_target
from timberframe_conformance.todo import items
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, Support, hookimpl, reference_launcher
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice

FLOAT = (("T", "float32"),)
TRIED_ON_NETWORK_CALLS = ("guards", "aliasing", "concurrency", "determinism", "faults", "leaks", "prepared")


def lacking(target: Target) -> Any:
    raise UnsupportedError("no kernel")


def run_of(target: Target, op: str, level: str = LEVELS[0]) -> Run:
    results = [judge_case(Case("networks", op, (), "whole", lacking, level, asked_by=level), target)]
    return Run(describe_device(target.device), {}, results, 0.0)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_the_data_files_are_what_the_command_makes_of_the_networks(level: str) -> None:
    assert data_file(level).read_text() == written(derive(level))


def calls(models: Iterable[catalogue.Model]) -> set[str]:
    nodes = [node for model in models for node in needed_nodes(model)]
    return {f"{n.type} {[(a, str(n.attrs[a])) for a in asked_attrs(n.op_def)]}" for n in nodes}


@pytest.mark.slow
def test_small_networks_call_ops_as_the_published_ones_do() -> None:
    small = calls(build() for build in networks("inference").values())
    assert small == calls(catalogue.build(name) for name in catalogue.names())


def test_core_asks_for_the_ops_of_an_mlp_and_lenet() -> None:
    assert {r.op for r in requirements("core")} == {"BiasAdd", "Conv2D", "MatMul", "MaxPool", "Relu", "Reshape"}


def test_no_level_of_networks_asks_for_arithmetic_of_integers() -> None:
    """Positions and counters stay on the host; an op on floating numbers may take indices."""
    found = {dtype for level in LEVELS[:-1] for r in requirements(level) for name, dtype in r.types if name == "T"}
    assert found == {"float32"}


@pytest.mark.parametrize(
    ("op", "dtypes", "attrs", "level"),
    [
        ("MatMul", FLOAT, {}, "core"),
        ("MatMul", FLOAT, {"transpose_b": True}, "training"),
        ("MatMul", (("T", "float64"),), {}, "breadth"),
        ("Conv2D", FLOAT, {"strides": (1, 2, 2, 1), "padding": "VALID"}, "core"),
        ("Conv2D", FLOAT, {"strides": (1, 3, 3, 1), "padding": "VALID"}, "core"),
        ("AvgPool", FLOAT, {"ksize": (1, 2, 2, 1), "strides": (1, 3, 3, 1), "padding": "SAME"}, "inference"),
        ("Conv2D", FLOAT, {"strides": (1, 1, 1, 1), "padding": "SAME", "data_format": "NCHW"}, "breadth"),
        ("Svd", FLOAT, {}, "breadth"),
    ],
)
def test_the_level_of_a_case_follows_from_op_dtypes_and_attrs(op: str, dtypes: Any, attrs: Any, level: str) -> None:
    assert level_of(registry.get(op), dtypes, attrs) == level


@pytest.mark.parametrize("suite", TRIED_ON_NETWORK_CALLS)
def test_each_call_of_networks_has_cases_of_its_level(target: Target, suite: str) -> None:
    """Of each suite that tries single ops, unless the op cannot be tried so: random streams, updates of variables."""
    ops = [registry.get(name) for name in sorted(ops_of("training"))]
    found = {(c.op, c.types, str(t.sample.attrs), c.level) for c in SUITES[suite](target, ops) if (t := trial_of(c))}
    asked = [calls for op in ops if has_kernel(op) for calls in network_calls(op.name)]
    asked = [calls for calls in asked if suite != "concurrency" or calls[0].op.stream is None]
    missing = [
        c[0].detail for c in asked if (c[0].op.name, c[0].types, str(c[0].sample.attrs), c[0].asked_by) not in found
    ]
    assert missing == []


@pytest.mark.slow
def test_a_device_that_holds_more_dtypes_has_every_case_of_a_level(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = tuple(s for s in SUITES if s not in ("device", "models"))

    def ids() -> set[tuple[str, str]]:
        target.forget()
        options = Options("reference", "training", suites=suites)
        return {(c.level, c.id) for c in collect(target, options) if c.op in ops_of("training")}

    everything = ids()
    held = ("float32", "int32", "int64", "bool")
    monkeypatch.setattr(target.device, "attributes", replace(target.device.attributes, dtypes=held))
    fewer = ids()
    target.forget()
    assert fewer - everything == set()


@pytest.mark.parametrize("op", ["Conv2D", "MaxPool"])
def test_core_has_windows_of_every_kind(target: Target, op: str) -> None:
    found = [t for c in SUITES["forward"](target, [registry.get(op)]) if c.level == "core" and (t := trial_of(c))]
    assert any(even_window_with_same(t) for t in found)
    assert any(strides_past_the_window(t) for t in found)
    batches = [t.sample.inputs[0].shape[0] for t in found]
    channels = [t.sample.inputs[0].shape[3] for t in found]
    assert max(batches) > 1
    assert any(n > 16 and n % 16 for n in channels)


def window_of(trial: Trial) -> Sequence[int]:
    return trial.sample.attrs.get("ksize", (0, 0, 0, 0))[1:3] if trial.op.name == "MaxPool" else filter_of(trial)


def filter_of(trial: Trial) -> Sequence[int]:
    return trial.sample.inputs[1].shape[:2]


def even_window_with_same(trial: Trial) -> bool:
    """Padding has one pixel more at the end."""
    attrs = trial.sample.attrs
    return attrs["padding"] == "SAME" and attrs["strides"] == (1, 1, 1, 1) and all(n % 2 == 0 for n in window_of(trial))


def strides_past_the_window(trial: Trial) -> bool:
    strides = trial.sample.attrs["strides"][1:3]
    return all(s > n > 1 for s, n in zip(strides, window_of(trial), strict=True))


@pytest.mark.parametrize("op", ["MatMul", "Conv2D", "BiasAdd"])
def test_core_changes_the_weights_of_its_networks_between_runs(target: Target, op: str) -> None:
    found = [c for c in SUITES["prepared"](target, [registry.get(op)]) if c.level == "core"]
    assert any(c.detail.startswith("versions") for c in found)


def test_core_has_the_checks_of_prepared_products(target: Target) -> None:
    found = [c for c in SUITES["prepared"](target, [registry.get("MatMul")]) if c.types == ()]
    assert len(found) == 10
    assert {c.level for c in found} == {"core"}


def test_an_op_that_is_left_to_the_host_keeps_its_level_from_being_reached(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {"MatMul": "the host is good at it"}
    monkeypatch.setattr(target.device, "attributes", replace(target.device.attributes, unsupported_ops=left))
    run = run_of(target, "MatMul")
    assert not run.reaches("core")
    assert left_to_the_host(run) == {"the host is good at it": ["MatMul"]}


def test_what_no_kernel_is_there_for_counts_for_the_level_that_asks_for_it(target: Target) -> None:
    case = Case("forward", "MatMul", FLOAT, "odd", lacking, "core")
    assert judge_case(case, target).level == "breadth"
    assert run_of(target, "MatMul", "inference").results[0].level == "inference"


def test_everything_that_is_missing_is_in_the_report(target: Target) -> None:
    case = Case("networks", "MatMul", FLOAT, "x", lacking, "core", asked_by="core")
    results = [replace(judge_case(case, target), id=f"networks/MatMul/float32/{i}") for i in range(80)]
    assert len(Run({}, {}, results, 0.0).levels()["core"]["missing"]) == 80


def test_levels_above_the_one_that_was_run_are_not_judged() -> None:
    assert list(Run({}, {}, [], 0.0, level="inference").levels()) == ["core", "inference"]


def test_a_level_asks_only_for_dtypes_that_the_device_declares(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target.device, "attributes", replace(target.device.attributes, dtypes=("float32", "int32")))
    gather = registry.get("GatherV2")
    types = (("Tparams", "float32"), ("Tindices", "int32"), ("Taxis", "int64"))
    assert target.holds(gather, types)  # the axis stays on the host
    assert not target.holds(gather, (("Tparams", "complex64"), *types[1:]))


class NhwcDevice(ReferenceDevice):
    type, by_reference, priority = "NHWC", False, 0


def small_images(node: KernelNode) -> Support:
    return "takes no images" if node.attrs.get("padding") == "VALID" else None


@pytest.fixture(scope="module")
def nhwc(plugin_path: Path) -> Iterator[Target]:
    ops = ("MatMul", "BiasAdd", "Relu", "Reshape", "MaxPool", "Conv2D")
    kernels = [KernelDef(op, "NHWC", reference_launcher, suits=small_images) for op in ops]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [NhwcDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("nhwc", plugin):
        yield open_target(Options("nhwc"))


def judged(target: Target, level: str) -> list[Result]:
    return [judge_case(case, target) for r in requirements(level) for case in cases_of(r)]


def test_attrs_that_a_kernel_declines_are_missing_with_the_networks_that_need_them(nhwc: Target) -> None:
    missing = [r for r in judged(nhwc, "core") if r.verdict == "unsupported"]
    assert [(i.what.split()[0], list(i.networks)) for i in items(missing)] == [("MaxPool", ["LeNet"])]
    assert "takes no images" in items(missing)[0].why


@pytest.mark.slow
def test_a_run_of_a_level_has_cases_of_its_ops_alone(nhwc: Target) -> None:
    ops = {case.op for case in collect(nhwc, Options("nhwc", "core"))}
    assert ops <= {"BiasAdd", "Conv2D", "MatMul", "MaxPool", "Relu", "Reshape", "Device", "Graph", "Model"}


@pytest.mark.slow
def test_a_level_feeds_no_input_that_its_networks_have_as_a_constant(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NASNet's slices have constant bounds, and hardware may fix them when it compiles."""
    built, execute = list[drive.Built](), drive.execute
    monkeypatch.setattr(drive, "execute", lambda graph, session: built.append(graph) or execute(graph, session))
    slices = [r for r in requirements("inference") if r.op == "StridedSlice"]
    results = [judge_case(case, target) for r in slices for case in cases_of(r)]
    assert {r.verdict for r in results} == {"pass"}
    assert [len(b.feeds) for b in built] == [1] * len(built)
    assert built


def test_a_device_that_leaves_every_op_to_the_host_reaches_nothing(nhwc: Target) -> None:
    left = {op.name: "the host does it" for op in registry.all_ops()}
    nhwc.device.attributes = replace(nhwc.device.attributes, unsupported_ops=left)
    results = [judge_case(case, nhwc) for case in collect(nhwc, Options("nhwc", "training", suites=("networks",)))]
    run = Run(describe_device(nhwc.device), {}, results, 0.0)
    assert not any(level["reached"] for level in run.levels().values())
