"""Kernels that run several nodes as one are judged against their parts."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.fuzz.draw import draw_program
from timberframe_conformance.fuzz.pool import Pool
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, Part, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin

DENSE = (
    Part("product", "MatMul", ("x", "w")),
    Part("sum", "BiasAdd", ("product", "bias")),
    Part("out", "Relu", ("sum",)),
)
REASON = "an operand is transposed"


def plain(node: KernelNode) -> str | None:
    attrs = node.inner[0].nodes[0].attrs
    return REASON if attrs["transpose_a"] or attrs["transpose_b"] else None


def verdicts(build: Callable[[KernelNode], Any]) -> dict[str, list[str]]:
    """Returns the messages of the suite's cases for a kernel of the reference device, by verdict."""
    kernel = KernelDef("Acme>Dense", "REFERENCE", build, {"T": ("float32",)}, covers=DENSE, suits=plain)
    found: dict[str, list[str]] = {}
    with loaded_plugin("dense", types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [kernel]))):
        target = open_target(Options("reference"))
        for case in SUITES["patterns"](target, [registry.get("Relu")]):
            result = judge_case(case, target)
            found.setdefault(result.verdict, []).append(result.message)
    return found


def test_a_correct_kernel_passes_and_its_reasons_are_reported() -> None:
    found = verdicts(lambda node: lambda x, w, b, out: np.maximum(x @ w + b, 0, out=out))
    assert len(found["pass"]) >= 3
    assert not {"fail", "crash"} & found.keys()
    assert any(REASON in message for message in found["unsupported"])


def test_a_wrong_kernel_fails() -> None:
    assert verdicts(lambda node: lambda x, w, b, out: np.maximum(x @ w, 0, out=out))["fail"]


@pytest.mark.slow
def test_a_mutant_that_runs_two_nodes_is_noticed(target: Target) -> None:
    proof = prove(target, MUTANTS["relu-before-bias"], Options("reference"))
    assert proof.caught
    assert proof.ok, proof.problems


@pytest.mark.slow
def test_fuzzing_draws_nodes_that_a_kernel_covers() -> None:
    kernel = KernelDef("Acme>Dense", "REFERENCE", lambda node: None, {"T": ("float32",)}, covers=DENSE, suits=plain)
    with loaded_plugin("dense", types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [kernel]))):
        pool = Pool(open_target(Options("reference")))
        drawn = [[step.op for step in draw_program(pool, 1, n).steps] for n in range(30)]
    assert any({"MatMul", "BiasAdd", "Relu"} <= set(names) for names in drawn)
