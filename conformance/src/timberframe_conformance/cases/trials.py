"""Trials: an op with dtypes, inputs and attrs, chosen from its samples and from shapes common to all ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import LEVELS, Case, Measured, Types, generator, id_of
from timberframe_conformance.cases.layouts import arrange
from timberframe_conformance.cases.pairwise import extend
from timberframe_conformance.cases.shapes import elementwise_shapes
from timberframe_conformance.cases.types import allowed_types, as_attrs, attr_value, type_attrs
from timberframe_conformance.cases.values import make_array, reshaped
from timberframe_conformance.levels.requirement import BREADTH, Requirement, level_of, requirements
from timberframe_core.dtypes import as_dtype, resource
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Accumulation, Bound
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.signature import ArgDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

LAYOUTS = ("dense", "strided", "offset", "readonly", "reversed", "misaligned", "fortran")


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One way to call an op. `number` is the index of its sample among the op's.

    layout: of the feeds. special: whether values include NaN, infinities, limits. known: whether placeholders have
    static shapes. constants: names of inputs that are constants of the graph. asked_by: the level whose networks make
    this call.
    """

    op: OpDef
    types: Types
    sample: Sample
    number: int
    layout: str = "dense"
    special: bool = False
    known: bool = True
    constants: frozenset[str] = frozenset()
    asked_by: str = ""

    @property
    def detail(self) -> str:
        parts = [f"{k}={_show(v)}" for k, v in self.sample.attrs.items()]
        parts.append("_".join(_shape(a) for a in self.sample.inputs) or "none")
        parts += [self.layout] * (self.layout != "dense") + ["special"] * self.special + ["dynamic"] * (not self.known)
        return "-".join(parts) + f"#{self.number}"

    @property
    def level(self) -> str:
        """The lowest level with a network that calls the op in such a way."""
        return self.asked_by or level_of(self.op, self.types, self.sample.attrs)

    def arrays(self, case_id: str) -> list[np.ndarray | list[np.ndarray]]:
        """Returns the inputs; a list input is a list. Their values depend on the id alone."""
        rng = generator(case_id)
        largest = not isinstance(self.op.accuracy, Accumulation | Bound)
        result: list[np.ndarray | list[np.ndarray]] = []
        for arg_def, arg in zip(self.op.inputs, self.sample.inputs, strict=True):
            one = [
                arrange(
                    make_array(a, input_dtype(arg_def, a, self.types), rng, special=self.special, largest=largest),
                    self.layout,
                )
                for a in (arg if isinstance(arg, Sequence) else [arg])
            ]
            result.append(one if isinstance(arg, Sequence) else one[0])
        return result

    def attrs(self, arrays: Sequence[np.ndarray | Sequence[np.ndarray]]) -> dict[str, Any]:
        """Returns every attr of the op: dtypes, what the sample says, list lengths, and defaults."""
        full: dict[str, Any] = {n: a.default for n, a in self.op.attrs.items() if not a.required}
        full.update(as_attrs(self.types))
        for arg_def, x in zip(self.op.inputs, arrays, strict=True):
            if arg_def.number_attr:
                full[arg_def.number_attr] = len(x)
            if arg_def.type_list_attr:
                full[arg_def.type_list_attr] = tuple(as_dtype(a.dtype) for a in x)
        full.update({name: attr_value(self.op.attrs[name].kind, v) for name, v in self.sample.attrs.items()})
        return full


def trial_case(
    suite: str, trial: Trial, run: Callable[[Trial, str, Target], Measured | None], detail: str = "", **fields: Any
) -> Case:
    """Returns a case that runs a trial: ``run(trial, case_id, target)``.

    detail: the trial's own by default. fields: further ones of Case; its level is the trial's by default.
    """
    detail = detail or trial.detail
    bound = functools.partial(run, trial, id_of(suite, trial.op.name, trial.types, detail))
    return Case(suite, trial.op.name, trial.types, detail, bound, **{"level": trial.level, **fields})


def trial_of(case: Case) -> Trial | None:
    """Returns the trial that a case runs, if it is made of one; see `trial_case`."""
    run: Any = case.run
    while isinstance(run, functools.partial):
        found = next((a for a in run.args if isinstance(a, Trial)), None)
        if found is not None:
            return found
        run = run.func
    return None


def input_dtype(arg_def: ArgDef, arg: Arg, types: Types) -> str:
    """Returns the dtype of one input tensor."""
    if arg.dtype is not None:
        return arg.dtype
    if arg_def.dtype is resource:  # the sample's value is that of the variable
        chosen = dict(types)
        return chosen.get("dtype") or chosen.get("T", "float32")
    if arg_def.dtype is not None:
        return arg_def.dtype.name
    return dict(types).get(arg_def.type_attr or "", "float32")


def fits(op: OpDef, sample: Sample, types: Types) -> bool:
    """Returns whether a sample may be tried in these dtypes."""
    chosen = dict(types)
    if any(t in chosen and chosen[t] not in names for t, names in sample.types.items()):
        return False
    if any(name in chosen and as_dtype(v).name != chosen[name] for name, v in sample.attrs.items() if name in chosen):
        return False
    for arg_def, arg in zip(op.inputs, sample.inputs, strict=True):
        for a in arg if isinstance(arg, Sequence) else [arg]:
            if a.dtype is not None and arg_def.type_attr in chosen and chosen[arg_def.type_attr] != a.dtype:
                return False
    return True


def in_float64(trial: Trial) -> Trial:
    """Returns the trial in float64 and complex128 wherever its op allows them; itself where that changes nothing.

    Of a mathematical question about the op, which the dtypes that a device holds have nothing to do with.
    """
    allowed = {a.name: allowed_types(a) for a in type_attrs(trial.op)}
    types = tuple((n, _WIDER[t] if _WIDER.get(t) in allowed[n] else t) for n, t in trial.types)
    return trial if types == trial.types or not fits(trial.op, trial.sample, types) else replace(trial, types=types)


_WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


@functools.cache
def own_samples(op: OpDef, soak: bool = False) -> Sequence[Sample]:
    """Returns the op's samples; InvalidArgumentError where it gives something else."""
    given = list(op.samples())
    wrong = next((s for s in given if not isinstance(s, Sample)), None)
    if wrong is not None:
        raise InvalidArgumentError(
            f"op {op.name}: samples gives {wrong!r}; each must be a Sample, wrong calls (ErrorSample) go into errors"
        )
    return tuple(s for s in given if (s.level == "soak") == soak)


@functools.cache
def samples_of(op: OpDef, soak: bool = False) -> Sequence[Sample]:
    """Returns the op's samples, followed by those that element by element ops get from the suite."""
    own = own_samples(op, soak)
    if soak:
        return own
    attrs: dict[str, Any] = {n: a.default for n, a in op.attrs.items() if not a.required}
    shapes = elementwise_shapes(op, attrs)
    if not shapes:
        return own
    template = next((s for s in own if _is_template(s)), None)
    args: Sequence[Any] = template.inputs if template else [Arg()] * len(op.inputs)
    types: Mapping[str, Sequence[str]] = template.types if template else {}
    extra = [Sample([reshaped(a, s) for a, s in zip(args, chosen, strict=True)], types=types) for chosen in shapes]
    if sum(_is_template(s) for s in own) >= ENOUGH:
        extra = [s for s in extra if _is_edge(s)]
    present = {tuple(a.shape for a in s.inputs if isinstance(a, Arg)) for s in own if _is_template(s) and not s.attrs}
    return [*own, *(s for s in extra if tuple(a.shape for a in s.inputs if isinstance(a, Arg)) not in present)]


ENOUGH = 12
"""An op with at least this many samples of its own gets only the common sizes that samples tend to lack."""


def _is_edge(sample: Sample) -> bool:
    shapes = [a.shape for a in sample.inputs if isinstance(a, Arg)]
    return len(set(shapes)) == 1 and shapes[0] in ((), (0,), (1031,), (70001,))


def _is_template(sample: Sample) -> bool:
    return not sample.implementation_defined and all(isinstance(a, Arg) and a.values is None for a in sample.inputs)


@functools.cache
def network_calls(op: str) -> Sequence[Sequence[Trial]]:
    """For each way in which networks of the levels call an op, see `requirements`, its examples as trials."""
    return [calls(r) for level in LEVELS for r in requirements(level) if r.op == op]


def calls(requirement: Requirement) -> list[Trial]:
    """Returns the examples of a requirement as trials; inputs that its networks have as constants are constants."""
    op, made = registry.get(requirement.op), []
    for number, (sample, example) in enumerate(zip(requirement.samples(), requirement.inputs, strict=True)):
        constants = frozenset(a.name for a, x in zip(op.inputs, example, strict=True) if "values" in x)
        made.append(Trial(op, requirement.types, sample, number, constants=constants, asked_by=requirement.level))
    return made


def trials(op: OpDef, groups: Mapping[str, Sequence[Types]], soak: bool = False) -> Iterator[Trial]:
    """Trials of an op: every dtype with every sample; layouts, special values and dynamic shapes pairwise."""
    samples = samples_of(op, soak)
    rows: list[tuple[Any, ...]] = []
    for of_networks in (True, False):  # first, so that a device with more dtypes has the same cases of a level
        for i, (key, combinations) in enumerate(groups.items()):
            mine = [types for types in combinations if (level_of(op, types) != BREADTH) == of_networks]
            for k, types in _spread(op, samples, mine, _share(samples, key, i)):
                if not (_is_large(samples[k]) and any(t == "string" for _, t in types)):
                    rows.append((types, k))
    table: list[tuple[Any, ...]] = [(*r, "dense", False, True) for r in rows]
    if not soak:
        table = extend(extend(extend(rows, LAYOUTS), (False, True)), (True, False))
    for types, k, layout, special, known in table:
        sample = samples[k]
        yield Trial(op, types, sample, k, layout, special and _has_special(sample), known)


ALL_SAMPLES = frozenset({"", "float32", "float64", "int32"})
"""Dtypes that are tried with every sample; others share the samples of an op that has more than MOST_SAMPLES."""
MOST_SAMPLES = 24


def _share(samples: Sequence[Sample], key: str, group: int) -> Sequence[int]:
    """Returns the samples that a group of dtypes is tried with: those made for some dtypes only,
    and its share of the others.

    Consecutive groups take different shares. Each has samples of each kind, since a device may decline all but one.
    """
    common = [k for k, s in enumerate(samples) if not s.types]
    step = -(-len(common) // MOST_SAMPLES) if key not in ALL_SAMPLES and common else 1
    kinds: dict[Any, list[int]] = {}
    for k in common:
        kinds.setdefault(_kind(samples[k]), []).append(k)
    share = {k for of_kind in kinds.values() for k in of_kind[group % min(step, len(of_kind)) :: step]}
    return [k for k, s in enumerate(samples) if s.types or k in share]


def _kind(sample: Sample) -> frozenset[tuple[str, str]]:
    """Returns what kernels differ in: attrs that name a layout, a padding, a method."""
    return frozenset((name, v) for name, v in sample.attrs.items() if isinstance(v, str))


def _spread(
    op: OpDef, samples: Sequence[Sample], combinations: Sequence[Types], chosen: Sequence[int]
) -> Iterator[tuple[int, Types]]:
    """Yields pairs of sample and dtypes that use every sample and every dtype combination at least
    once; as few as possible.

    Combinations in which networks of the levels call the op are tried with every sample.
    """
    left = list(combinations)
    given: dict[Types, list[int]] = {}
    used = 0
    for k in chosen:
        fitting = [t for t in combinations if fits(op, samples[k], t)]
        if fitting:
            fresh = next((t for t in left if t in fitting), None)
            types = fresh or fitting[used % len(fitting)]
            used += 1
            if fresh:
                left.remove(fresh)
            given.setdefault(types, []).append(k)
            yield k, types
    for types in left + _almost_empty(samples, given):
        found = [
            k for k, s in enumerate(samples) if fits(op, s, types) and SUBSTANTIAL[0] <= _size(s) <= SUBSTANTIAL[1]
        ]
        found = found or [k for k, s in enumerate(samples) if fits(op, s, types)]
        if found:
            k = found[used % len(found)]
            given.setdefault(types, []).append(k)
            yield k, types
            used += 1
    for types in combinations:
        if level_of(op, types) != LEVELS[-1]:
            left_out = [k for k in chosen if k not in given.get(types, ()) and fits(op, samples[k], types)]
            yield from ((k, types) for k in left_out)


SUBSTANTIAL = 5, 20_000
"""Least and greatest number of elements of a sample that can test a combination of dtypes by itself."""


def _almost_empty(samples: Sequence[Sample], given: Mapping[Types, Sequence[int]]) -> list[Types]:
    """Combinations that got samples with hardly any elements only."""
    return [t for t, numbers in given.items() if all(_size(samples[k]) < SUBSTANTIAL[0] for k in numbers)]


def _size(sample: Sample) -> int:
    args = [a for arg in sample.inputs for a in (arg if isinstance(arg, Sequence) else [arg])]
    return sum(int(np.prod(np.shape(a.values) if a.values is not None else a.shape)) for a in args)


def _has_special(sample: Sample) -> bool:
    return any(
        a.special and a.values is None for arg in sample.inputs for a in (arg if isinstance(arg, Sequence) else [arg])
    )


def _is_large(sample: Sample) -> bool:
    return any(
        np.prod(a.shape) > 20_000 for arg in sample.inputs for a in (arg if isinstance(arg, Sequence) else [arg])
    )


def _shape(arg: Arg | Sequence[Arg]) -> str:
    if isinstance(arg, Sequence):
        return "[" + ",".join(_shape(a) for a in arg[:4]) + (",..." if len(arg) > 4 else "") + "]"
    shape = np.shape(arg.values) if arg.values is not None else arg.shape
    return "x".join(map(str, shape)) or "scalar"


def _show(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "(" + ",".join(_show(v) for v in value[:12]) + (",..." if len(value) > 12 else "") + ")"
    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}".replace(" ", "")
    text = value if isinstance(value, str) else str(value)
    return "".join(c if c.isalnum() or c in "._=+,>" or (c == "-") else "~" for c in text)[:40]
