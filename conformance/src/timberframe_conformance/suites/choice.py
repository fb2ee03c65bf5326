"""Which trials of the forward suite other suites use in their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.case import Types
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cluster import one_node
from timberframe_conformance.drive import flatten
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.target import needs_kernel
from timberframe_core.dtypes import resource
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg

if TYPE_CHECKING:
    from timberframe_conformance.target import Target


def input_size(trial: Trial) -> int:
    """Number of elements of all inputs."""
    return sum(_size(a) for arg in trial.sample.inputs for a in (arg if isinstance(arg, Sequence) else [arg]))


def _shapes(trial: Trial) -> Iterator[tuple[int, ...]]:
    for arg in trial.sample.inputs:
        for a in arg if isinstance(arg, Sequence) else [arg]:
            yield np.shape(a.values) if a.values is not None else tuple(a.shape)


def _size(arg: Arg) -> int:
    shape = np.shape(arg.values) if arg.values is not None else arg.shape
    return int(np.prod(shape, dtype=np.int64))


def has_kernel(op: OpDef) -> bool:
    """Whether a kernel of the device runs when the op does."""
    return is_callable(op) and needs_kernel(op) and not any(a.dtype is resource for a in op.inputs)


def chosen(
    target: Target,
    ops: Sequence[OpDef],
    pick: Callable[[list[Trial]], list[Trial]],
    dtypes: int | None = None,
    kernel: Callable[[OpDef], bool] = has_kernel,
) -> Iterator[Trial]:
    """For each op and each group of dtypes (at most `dtypes` groups, spread over them) the trials that `pick` takes."""
    for op in ops:
        if not kernel(op):
            continue
        groups, _ = supported(op, target)
        keys = list(groups) if dtypes is None else preferred(list(groups), dtypes)
        samples = samples_of(op)
        for i, key in enumerate(keys):
            types: Types = groups[key][i % len(groups[key])]
            found = [Trial(op, types, s, k) for k, s in enumerate(samples) if fits(op, s, types)]
            found = [t for t in found if not t.sample.implementation_defined]
            yield from pick([t for t in found if takes(target, t)] or found)


def takes(target: Target, trial: Trial) -> bool:
    """Whether the device takes the node of a trial, its shapes being known; so the case says where that is unclear."""
    device = target.device
    closer = not device.supports_by_dtype or device.kernels.looks_closer(trial.op.name)
    if not closer or target.url or input_size(trial) > LARGE:
        return True
    try:
        arrays = trial.arrays("")
        cluster, _ = one_node(device, trial.op, trial.attrs(arrays), flatten(arrays))
        with target.asked(trial.op, trial.types):
            return not isinstance(device.supports(cluster.nodes[0]), str)
    except Exception:  # whatever is wrong, the case says it
        return True


LARGE = 20_000
"""Trials with more input elements are not looked at closely before they run."""


def preferred(keys: list[str], count: int | None) -> list[str]:
    """At most `count` of the dtypes: float32 first, then of different kinds."""
    if count is not None and len(keys) <= count:
        return keys
    order = ("float32", "int32", "string", "float16", "float64", "bool", "complex64", "uint8", "int64")
    ranked = [k for k in order if k in keys] + [k for k in keys if k not in order]
    return ranked if count is None else ranked[:count]


def largest(trials: list[Trial], limit: int = 100_000) -> list[Trial]:
    """The trial with the most input elements, up to a limit."""
    return sorted((t for t in trials if input_size(t) <= limit), key=input_size)[-1:]


def odd_sized(trials: list[Trial]) -> list[Trial]:
    """One small trial whose sizes are no multiple of a vector, and one of middling size."""
    small = [t for t in trials if 2 < input_size(t) < 200 and not _is_short(t)]
    middling = [t for t in trials if 200 <= input_size(t) < 20_000 and not _is_short(t)]
    odd = [t for t in small if input_size(t) % 4] or small or trials[:1]
    return odd[-1:] + middling[-1:]


def one_short(trials: list[Trial]) -> list[Trial]:
    """Those `odd_sized`, and one with a dimension that lacks one element of whole vectors: a loop that takes one more
    vector than there are reads a single element too far."""
    short = [t for t in trials if input_size(t) < 20_000 and _is_short(t)]
    return list(dict.fromkeys([*odd_sized(trials), *short[-1:]]))


def _is_short(trial: Trial) -> bool:
    return any(d % 64 == 63 for shape in _shapes(trial) for d in shape)
