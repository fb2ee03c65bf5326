"""The suites by name: each yields the cases that it has for a device and some ops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from timberframe_conformance.case import Case
from timberframe_conformance.suites import (
    aliasing,
    collectives,
    concurrency,
    dags,
    determinism,
    device,
    devices,
    errors,
    failures,
    faults,
    flow,
    forward,
    gradient,
    gradient_flow,
    guards,
    host_ops,
    kernels,
    leaks,
    models,
    networks,
    passes,
    patterns,
    prepared,
    programs,
    random,
    resources,
    shapes,
    soak,
    targets,
    traces,
    variants,
)
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

Collector = Callable[["Target", Sequence[OpDef]], Iterable[Case]]


def _graphs(target: Target, ops: Sequence[OpDef]) -> Iterable[Case]:
    return itertools.chain(flow.collect(target, ops), devices.collect(target, ops), dags.collect(target, ops))


def _gradients(target: Target, ops: Sequence[OpDef]) -> Iterable[Case]:
    return itertools.chain(gradient.collect(target, ops), gradient_flow.collect(target, ops))


SUITES: Mapping[str, Collector] = {
    "device": device.collect,
    "shapes": shapes.collect,
    "forward": forward.collect,
    "errors": errors.collect,
    "guards": guards.collect,
    "aliasing": aliasing.collect,
    "determinism": determinism.collect,
    "concurrency": concurrency.collect,
    "variants": variants.collect,
    "gradient": _gradients,
    "random": random.collect,
    "faults": faults.collect,
    "failures": failures.collect,
    "leaks": leaks.collect,
    "graphs": _graphs,
    "patterns": patterns.collect,
    "prepared": prepared.collect,
    "programs": programs.collect,
    "kernels": kernels.collect,
    "networks": networks.collect,
    "passes": passes.collect,
    "host-ops": host_ops.collect,
    "resources": resources.collect,
    "targets": targets.collect,
    "collectives": collectives.collect,
    "traces": traces.collect,
    "models": models.collect,
    "soak": soak.collect,
}
"""In the order of a run: basic suites first."""
