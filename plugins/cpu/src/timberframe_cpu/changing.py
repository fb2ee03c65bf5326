"""Matrices of weights that change between runs: they are taken as they are where packing them would not pay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from timberframe_cpu.native import using_isa
from timberframe_cpu.packing import MatrixKey
from timberframe_sdk import KernelNode

if TYPE_CHECKING:
    from timberframe_cpu.preparation import PreparedInput
    from timberframe_cpu.program import CpuExecutable

_ENOUGH_RUNS = 16
"""Runs with a version that make packing it worth it: it takes as long as some ten products of a vector with it."""

_VERSION = "timberframe_cpu.changing"
"""The Version among what was derived from one."""


class Version:
    """A version of a variable. packed: as its first run decided, for all of them, since the two give different bits."""

    __slots__ = ("packed", "runs")

    def __init__(self, packed: bool) -> None:
        self.packed = packed
        self.runs = 0


def program_for_versions(executable: CpuExecutable) -> CpuExecutable:
    """Returns the program for the variables' present versions: itself, or its twin that packs no matrix of a variable.

    A version is expected to stay for as many runs as the one before it did: those of a loaded model are packed, those
    of one in training are not.
    """
    packed = [_met(form).packed for form in executable.matrices]
    return executable if all(packed) else _twin(executable)


def _met(form: PreparedInput) -> Version:
    derived: dict[Any, Any] = form.source.constant.derived
    version: Version | None = derived.get(_VERSION)
    if version is None:
        before = form.version
        version = derived.setdefault(_VERSION, Version(before is None or before.runs >= _ENOUGH_RUNS))
    version.runs += 1
    form.version = version
    return version


def matrices(forms: list[PreparedInput]) -> list[PreparedInput]:
    """Returns the packed matrices of variables among the inputs that kernels get in another form."""
    return [f for f in forms if f.form is None and isinstance(f.given.key, MatrixKey)]


def _twin(executable: CpuExecutable) -> CpuExecutable:
    if executable.unpacked is None:
        readers = {id(form.node) for form in executable.matrices}
        device, layout = executable.device, executable.prepared.layout
        nodes = [_taking_versions(n) if id(n) in readers else n for n in executable.given.nodes]
        with using_isa(device.isa):
            executable.unpacked = type(executable)(device, replace(executable.given, nodes=nodes), layout)
    return executable.unpacked


def _taking_versions(node: KernelNode) -> KernelNode:
    """Returns the node with variables that kernels take as they are, like those that the cluster changes."""
    return replace(node, inputs=[replace(v, replaced=True) if v.kind == "resource" else v for v in node.inputs])
