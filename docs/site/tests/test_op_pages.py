"""The reference of ops says what OpDefs, kernels and reports say."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import op_devices
import timberframe as tf
from measured import measured, runs
from navigation import ROOT
from op_examples import example, run
from op_pages import Facts, accuracy_page, families, index_page, op_section
from op_written import written
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef, define_op
from timberframe_core.ops.definition.shape_functions import unchanged


@pytest.fixture(scope="module")
def facts() -> Facts:
    return Facts(op_devices.load(), measured(runs(ROOT / "conformance/results")))


def section(name: str, facts: Facts) -> str:
    return op_section(registry.get(name), facts)


@pytest.fixture
def plugin_op() -> Iterator[OpDef]:
    """An op of a package that is not the core."""
    source = "define_op('Acme>Twice', inputs=['x: float'], outputs=['y: float'], doc='x + x.', shape=unchanged)"
    exec(source, {"__name__": "acme.ops", "define_op": define_op, "unchanged": unchanged})
    yield registry.get("Acme>Twice")
    registry.unregister("Acme>Twice")


def test_every_op_is_in_one_family() -> None:
    names = [op.name for ops in families().values() for op in ops]
    assert sorted(names) == sorted(op.name for op in registry.all_ops())


def test_an_op_is_in_the_family_whose_module_defines_it() -> None:
    by_family = {family: {op.name for op in ops} for family, ops in families().items()}
    assert {"Tanh", "MatMul"} <= by_family["math"]
    assert {"Relu", "Conv2D"} <= by_family["nn"]


def test_an_op_of_a_plugin_has_a_page_of_its_package(plugin_op: OpDef, facts: Facts) -> None:
    found = families()
    assert found["acme"] == [plugin_op]
    assert "[Acme>Twice](acme.md#acmetwice)" in index_page(found)
    assert "no kernel" not in section(plugin_op.name, facts)
    assert "Devices: the runtime itself" in section(plugin_op.name, facts)


def test_a_section_has_signature_dtypes_gradient_and_tolerance(facts: Facts) -> None:
    text = section("Tanh", facts)
    assert "Tanh(x: T) -> y: T" in text
    assert "|CPU|T: float16, bfloat16, float32, float64, complex64, complex128|" in text
    assert "|OPENCL|T: float16, bfloat16, float32, float64|" in text
    assert "- **Gradient**: yes" in text
    assert "float32 5 ULP" in text


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("ArgMax", "**Gradient**: none: "),
        ("MatMul", "γₙ"),
        ("Split", "Split(split_dim: int32, value: T) -> output: num_split * T"),
        ("Split", "|`num_split`|int|required|at least 1|"),
        ("Cholesky", "|OPENCL|no kernel|"),
        ("ReadFile", "Devices: the host carries it out"),
        ("Softmax", "|`T`|type|required|float16, bfloat16, float32, float64|"),
    ],
)
def test_a_section_says(op: str, words: str, facts: Facts) -> None:
    assert words in section(op, facts)


def test_measured_accuracies_are_those_of_the_newest_reports(facts: Facts) -> None:
    shown = {run.device["type"]: run for run in runs(ROOT / "conformance/results")}
    results = [r for r in shown["OPENCL"].results if r.id.startswith("forward/Tanh/float32/")]
    worst = max(r.max_ulp for r in results if r.max_ulp is not None)
    (row,) = (m for m in facts.accuracies["Tanh"] if (m.device, m.dtypes) == ("OPENCL", "float32"))
    assert row.ulp >= worst > 0
    assert f"|OPENCL|float32|{row.ulp:.3g}|{row.share:.0%}|" in section("Tanh", facts)
    rows = [x.split("|") for x in accuracy_page(families(), facts.accuracies).splitlines() if x.startswith("|")]
    (line,) = (cells for cells in rows if cells[1].startswith("[Tanh](ops/math.md"))
    assert f"float32 {row.ulp:.3g} ({row.share:.0%})" in line[rows[0].index("OPENCL")]


def test_an_example_is_what_its_program_prints(facts: Facts) -> None:
    program, printed = _example(section("MatMul", facts))
    assert run(program).rstrip() == printed.rstrip()


def _example(text: str) -> tuple[str, str]:
    program, rest = text.split("```python\n")[1].split("```", 1)
    return program, rest.split("```text\n")[1].split("```")[0]


# Ops of packages, which tests of these register in the same process, are on no page.
@pytest.mark.parametrize("family", [name for name, ops in families().items() if not any(">" in op.name for op in ops)])
def test_examples_use_their_ops(family: str) -> None:
    shown = {op.name: example(op) for op in families()[family] if op.name not in written().reasons}
    assert [name for name, found in shown.items() if found is None] == []
    assert [name for name, found in shown.items() if found and name not in _ops_of(found[0])] == []


@cache
def _ops_of(program: str) -> set[str]:
    """Returns the ops in the graph of a program and in its functions."""
    graph = tf.Graph()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        graph.as_default(),
    ):
        exec(program, {"np": np, "tf": tf})
    found = graph.as_graph_def()
    return {node.op for node in found.node} | {n.op for f in found.library.function for n in f.node_def}


def test_an_op_with_a_reason_has_no_example(facts: Facts) -> None:
    reasons = written().reasons
    assert reasons
    assert reasons.keys() & written().programs.keys() == set()
    assert reasons.keys() <= {op.name for op in registry.all_ops()}
    assert "No example: TensorFlow 1.13's name of" in section("ExperimentalScanDataset", facts)
