"""Weights that change between runs: they are taken as they are where preparing them would cost more than it saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from timberframe_cpu.native import using_isa

if TYPE_CHECKING:
    from timberframe_cpu.preparation import PreparedInput
    from timberframe_cpu.program import CpuExecutable

PATIENCE = 16
"""Runs that read a version as it is. To prepare one takes as long as some ten products of a vector with it."""

_READS = "reads"
"""Among what was derived from a version: how many runs have read it as it is."""


def program_for_versions(executable: CpuExecutable) -> CpuExecutable:
    """The program for the variables' present versions: itself, or its twin that prepares none of them.

    A program prepares the first versions that it meets. One that replaces such a version may soon be replaced again, as
    in training, so it is prepared when some runs have found it.
    """
    young = [d for f in executable.brought if f.given.key not in (d := f.source.constant.derived) and _waits(f, d)]
    for derived in {id(d): d for d in young}.values():
        derived[_READS] = derived.get(_READS, 0) + 1
    return _twin(executable) if young else executable


def _waits(form: PreparedInput, derived: dict[Any, Any]) -> bool:
    return form.was_made and derived.get(_READS, 0) < PATIENCE


def _twin(executable: CpuExecutable) -> CpuExecutable:
    if executable.unprepared is None:
        nodes = {id(form.node) for form in executable.brought}
        cluster = executable.given
        changed = [
            replace(n, inputs=[replace(v, replaced=v.kind == "resource") for v in n.inputs]) if id(n) in nodes else n
            for n in cluster.nodes
        ]
        with using_isa(executable.device.isa):
            executable.unprepared = type(executable)(executable.device, replace(cluster, nodes=changed))
    return executable.unprepared
