"""Which trials of the forward suite other suites use in their own way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from timberframe_conformance.case import Types
from timberframe_conformance.cases.trials import Trial, fits, network_calls, samples_of
from timberframe_conformance.cases.weaknesses import input_shapes, input_size, weaknesses
from timberframe_conformance.cluster import one_node
from timberframe_conformance.drive import flatten
from timberframe_conformance.levels.requirement import BREADTH, level_of
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.target import needs_kernel
from timberframe_core.dtypes import resource
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target


MOST_COMBINATIONS = 3
"""Number of combinations of dtypes of an op that are looked at for trials without weaknesses."""
Preference = Callable[[Sequence[Trial]], list[Trial]]
"""The trials that serve a purpose, the best first."""


def has_kernel(op: OpDef) -> bool:
    """Returns whether a kernel of the device runs when the op does."""
    return is_callable(op) and needs_kernel(op) and not any(a.dtype is resource for a in op.inputs)


def chosen(
    target: Target,
    ops: Sequence[OpDef],
    *preferences: Preference,
    dtypes: int | None = None,
    kernel: Callable[[OpDef], bool] = has_kernel,
) -> Iterator[Trial]:
    """For each op and each group of dtypes (at most `dtypes` groups, spread over them) a trial for each preference; and
    one for each way in which networks of the levels call the op."""
    for op in ops:
        if not kernel(op):
            continue
        groups, _ = supported(op, target)
        keys = list(groups) if dtypes is None else preferred(list(groups), dtypes)
        for i, key in enumerate(keys):
            group, k = groups[key], i % len(groups[key])
            of_networks = [types for types in group if level_of(op, types) != BREADTH]
            yield from _in_one_of(target, op, of_networks[:1] or [*group[k:], *group[:k]], preferences)
        yield from _of_networks(target, op)


def _in_one_of(
    target: Target, op: OpDef, combinations: Sequence[Types], preferences: Sequence[Preference]
) -> list[Trial]:
    """Returns the trials in the first dtypes in which they have no weaknesses: of a Bitcast in two, not a copy."""
    first: list[Trial] | None = None
    for types in combinations[:MOST_COMBINATIONS]:
        found = trials_in(op, types)
        best = strongest([t for t in found if takes(target, t)] or found, *preferences)
        if not any(map(weaknesses, best)):
            return best
        first = best if first is None else first
    return first or []


def _of_networks(target: Target, op: OpDef) -> Iterator[Trial]:
    """Yields a trial for each way in which networks of the levels call the op, as far as the device takes it."""
    for calls in network_calls(op.name):
        types, attrs = calls[0].types, calls[0].sample.attrs
        if target.supports(op, types) is None and target.declines(op, types, attrs) is None:
            yield from strongest([t for t in calls if takes(target, t)], largest)


def trials_in(op: OpDef, types: Types) -> list[Trial]:
    """Returns the trials of an op in these dtypes that have one right result."""
    found = [Trial(op, types, s, k) for k, s in enumerate(samples_of(op)) if fits(op, s, types)]
    return [t for t in found if not t.sample.implementation_defined]


def strongest(trials: Sequence[Trial], *preferences: Preference) -> list[Trial]:
    """For each preference its first trial without weaknesses; see `weaknesses`.

    Where a preference has none, it gets no trial, unless no trial of any has fewer weaknesses than its best.
    """
    best = [_least_weak(found) for found in (preference(trials) for preference in preferences) if found]
    fewest = min(map(_count, best), default=1)
    if fewest:  # those that no preference has may have fewer
        found = [t for t in trials if input_size(t) < LARGE]
        other = _least_weak(found) if found else None
        if other is not None and (not best or _count(other) < fewest):
            return [other]
    return list(dict.fromkeys(t for t in best if _count(t) == fewest))


def _least_weak(trials: Sequence[Trial]) -> Trial:
    """Returns the first without weaknesses, else the one with the fewest, of as many as can be looked at quickly."""
    sizes = itertools.accumulate(map(input_size, trials))
    found = [t for t, size in zip(trials, sizes, strict=True) if size <= LARGEST] or trials[:1]
    return next((t for t in found if not weaknesses(t)), None) or min(found, key=_count)


def _count(trial: Trial) -> int:
    return len(weaknesses(trial))


def takes(target: Target, trial: Trial) -> bool:
    """Returns whether the device takes the node of a trial, its shapes being known; so the case
    says where that is unclear.
    """
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


def preferred(keys: list[str], count: int | None) -> list[str]:
    """At most `count` of the dtypes: float32 first, then of different kinds."""
    if count is not None and len(keys) <= count:
        return keys
    order = ("float32", "int32", "string", "float16", "float64", "bool", "complex64", "uint8", "int64")
    ranked = [k for k in order if k in keys] + [k for k in keys if k not in order]
    return ranked if count is None else ranked[:count]


def largest(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the trials with the most input elements, up to a limit."""
    return sorted((t for t in trials if input_size(t) <= LARGEST), key=input_size, reverse=True)


LARGE = 20_000
"""Input elements of a trial that takes some time."""
LARGEST = 100_000
"""Input elements of a trial that several suites run many times."""


def small(trials: Sequence[Trial]) -> list[Trial]:
    """Returns small ones: first those whose sizes are no multiple of a vector."""
    found = [t for t in reversed(trials) if 2 < input_size(t) < 200 and not _is_short(t)]
    return sorted(found, key=lambda t: input_size(t) % 4 == 0)


def middling(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the trials of middling size."""
    return [t for t in reversed(trials) if 200 <= input_size(t) < LARGE and not _is_short(t)]


def middling_or_small(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the trials of middling size, then the small ones."""
    return middling(trials) + small(trials)


def small_or_middling(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the small trials, then those of middling size."""
    return small(trials) + middling(trials)


def short(trials: Sequence[Trial]) -> list[Trial]:
    """Returns trials with a dimension one element short of whole vectors: a loop that takes one vector too many
    reads a single element too far."""
    return [t for t in reversed(trials) if input_size(t) < LARGE and _is_short(t)]


def _is_short(trial: Trial) -> bool:
    return any(d % 64 == 63 for shape in input_shapes(trial) for d in shape)
