"""What a level requires of a device: what networks need, and no op that it leaves to the host."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance import drive
from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.case import LEVELS, Case, Result, UnsupportedError
from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.levels.derive import asked_attrs, derive, needed_nodes, networks, written
from timberframe_conformance.levels.requirement import data_file, level_of, requirements
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import Run, describe_device, left_to_the_host
from timberframe_conformance.suites.networks import cases_of
from timberframe_conformance.target import Target, open_target
from timberframe_conformance.todo import items
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, Support, hookimpl, reference_launcher
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice

FLOAT = (("T", "float32"),)


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
        ("Conv2D", FLOAT, {"strides": (1, 2, 2, 1), "padding": "VALID"}, "inference"),
        ("Conv2D", FLOAT, {"strides": (1, 3, 3, 1), "padding": "VALID"}, "breadth"),
        ("Conv2D", FLOAT, {"strides": (1, 1, 1, 1), "padding": "SAME", "data_format": "NCHW"}, "breadth"),
        ("Svd", FLOAT, {}, "breadth"),
    ],
)
def test_the_level_of_a_case_follows_from_op_dtypes_and_attrs(op: str, dtypes: Any, attrs: Any, level: str) -> None:
    assert level_of(registry.get(op), dtypes, attrs) == level


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
    assert ops <= {"BiasAdd", "Conv2D", "MatMul", "MaxPool", "Relu", "Reshape", "Device", "Model"}


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
