"""What conformance fuzz says of nodes that a device declines, and what it takes from a profile."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.fuzz.judge import Verdict, judge
from timberframe_conformance.fuzz.program import Program, Step
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_core.errors import NoKernelError
from timberframe_core.ops.definition import registry
from timberframe_sdk import Cluster, Executable, KernelNode, Support, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice


class PickyDevice(ReferenceDevice):
    """Declines products by an attr, and Tanh when it is too late."""

    type, priority = "PICKY", 0

    def supports(self, node: KernelNode) -> Support:
        return "an operand is transposed" if node.attrs.get("transpose_a") else super().supports(node)

    def compile(self, cluster: Cluster) -> Executable:
        for node in cluster.nodes:
            if node.op == "Tanh":
                raise NoKernelError(f"Tanh '{node.name}': there is no kernel after all", node.name)
        return super().compile(cluster)


@pytest.fixture(scope="module")
def picky() -> Iterator[Target]:
    """A device without others beside it."""
    with loaded_plugin("picky", types.SimpleNamespace(timberframe_devices=hookimpl(lambda config: [PickyDevice()]))):
        target = open_target(Options("picky"))
        target.config["plugins"] = ["picky"]
        yield target


def fuzzed(target: Target, op: str, attrs: dict[str, Any]) -> Verdict:
    """Returns the verdict on a program of one node."""
    feed = Step("feed", value=np.ones((3, 3), np.float32), known=(3, 3))
    step = Step("op", op, ((0, 0),) * len(registry.get(op).inputs), attrs, device="device")
    return judge(Program((feed, step), ((1, 0),)), target, oracles=["truth"])


def test_a_node_that_is_declined_by_an_attr_is_no_failure(picky: Target) -> None:
    verdict = fuzzed(picky, "MatMul", {"transpose_a": True})
    assert verdict.failure is None
    assert "an operand is transposed" in verdict.invalid


def test_a_node_that_is_taken_is_judged(picky: Target) -> None:
    verdict = fuzzed(picky, "MatMul", {})
    assert (verdict.failure, verdict.invalid) == (None, "")
    assert verdict.compared["truth"]


def test_a_kernel_that_the_device_said_it_has_must_be_there(picky: Target) -> None:
    failure = fuzzed(picky, "Tanh", {}).failure
    assert failure is not None
    assert "there is no kernel after all" in failure[1]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "status", "words"), [("", 0, "0 failures"), ("unknown = 1\n", 2, "unknown")])
def test_fuzz_reads_a_profile(text: str, status: int, words: str, command: Any, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text(text)
    fuzz = ("fuzz", "--device=reference", "--programs=1", "--seed=1", "--jobs=1", f"--store={tmp_path}")
    found, output, errors = command(*fuzz, "--oracles=again", f"--profile={profile}")
    assert found == status
    assert words in output + errors
