"""Networks: what makes up the levels. Each way in which their networks call an op, and the networks as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe as tf
from timberframe_conformance import drive
from timberframe_conformance.backward import SLACK
from timberframe_conformance.bench.models.catalogue import Model
from timberframe_conformance.bench.models.measure import TOLERANCE, difference
from timberframe_conformance.case import LEVELS, Case, Measured, UnsupportedError, WrongValuesError
from timberframe_conformance.cases.trials import Trial, calls, trial_case
from timberframe_conformance.hypotheses.upstream import first_wrong_node
from timberframe_conformance.levels.derive import needed_nodes, networks
from timberframe_conformance.levels.requirement import Requirement, requirements
from timberframe_conformance.suites import forward
from timberframe_conformance.truth.graphs import moved_by
from timberframe_conformance.truth.interpreter import Interpreter
from timberframe_conformance.truth.reference import quiet
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "networks"
TIME_LIMITS = 4
"""Time limits of a network as a whole: a device may have to compile some hundred programs for its first run."""
STEPS = 2
"""Of a training network."""
DRAWS = 2
"""Of errors that limits allow, for a network that is off by more than TOLERANCE: each element of all nodes is drawn."""
MOST_OFF = 1e-3
"""A network that is off by more is wrong, whatever its limits add up to."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each requirement of each level, which a device lacks if it has no kernel for it;
    and the levels' networks.
    """
    names = {op.name for op in ops}
    whole: set[str] = set()
    for level in LEVELS[:-1]:
        for requirement in requirements(level):
            if requirement.op in names:
                yield from cases_of(requirement)
        for name, build in networks(level).items():
            if name not in whole:
                run = functools.partial(_whole, build)
                detail = name.replace(" ", "-")
                yield Case(
                    SUITE, "Model", (("T", "float32"),), detail, run, level, asked_by=level, networks=(name,),
                    time_limits=TIME_LIMITS,
                )  # fmt: skip
        whole.update(networks(level))


def cases_of(requirement: Requirement) -> Iterator[Case]:
    """Yields a case for each example of a requirement."""
    for trial in calls(requirement):
        yield trial_case(
            SUITE, trial, _call, asked_by=trial.asked_by, networks=tuple(requirement.networks),
            script=forward.script_of(SUITE, trial),
        )  # fmt: skip


def _call(trial: Trial, case_id: str, target: Target) -> Measured | None:
    why = target.supports(trial.op, trial.types)
    if why is None and not trial.op.update_op:
        why = target.declines(trial.op, trial.types, trial.sample.attrs)
    if why is not None:
        raise UnsupportedError(why)
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    with referring(trial.op) as referred:
        got, dtypes = drive.call(target, trial.op, attrs, arrays, known=trial.known, constants=trial.constants)
        delegated = "the op's reference" if referred else target.lookups.elsewhere().get(trial.op.name, "")
    measured = forward.judge(trial, attrs, arrays, got, dtypes, target)
    return replace(measured or Measured(), fallback=delegated)


@contextmanager
def referring(op: OpDef) -> Iterator[list[bool]]:
    """Notes in the list that is given whether anybody calls the op's reference within the block."""
    calls: list[bool] = []
    own = op.reference
    assert own is not None

    def noted(*arguments: Any) -> Any:
        calls.append(True)
        return own(*arguments)

    before = registry.substitute(replace(op, reference=noted))
    try:
        yield calls
    finally:
        registry.substitute(before)


def _whole(build: Callable[..., Model], target: Target) -> Measured | None:
    """Checks that a network that is built on the device gives what references give in float64.

    UnsupportedError if a node that computes is elsewhere.
    """
    model = build(device=target.spec)
    with target.session(model.graph, allow_soft_placement=True) as session:
        _require_device(model, session, target)
        if model.initialize is not None:
            session.run(model.initialize)
        got = [session.run(model.fetches, model.feeds)]
        for _ in range(STEPS if model.step is not None else 0):
            session.run(model.step, model.feeds)
            got.append(session.run(model.fetches, model.feeds))
    with quiet():
        for i, (results, wanted) in enumerate(zip(got, _truth(model), strict=True)):
            for t, x, y in zip(model.fetches, results, wanted, strict=True):
                off = difference(np.asarray(x, np.float64), np.asarray(y))
                if not off <= TOLERANCE and not (off <= MOST_OFF and off <= _reach(model, i, t)):
                    after = f" after {i} steps" if model.step is not None else ""
                    raise WrongValuesError(
                        f"{t.name}{after} differs from float64 by {off:.3g} of its largest magnitude; at most "
                        f"{TOLERANCE:g} is allowed; {_where(build, i, t.name, target)}"
                    )
    return None


def _reach(model: Model, steps: int, tensor: Any) -> float:
    """Returns how far errors within the ops' limits may move a network's tensor, as `Evaluated` does for gradients."""
    rng, found = np.random.default_rng(0), list[float]()
    for draw in range(DRAWS + 1):
        interpreter = Interpreter(after=moved_by(rng) if draw else None)
        for fetch in ([] if model.initialize is None else [model.initialize]) + [model.step] * steps:
            interpreter.run([fetch], model.feeds)
        value = np.asarray(interpreter.run([tensor], model.feeds)[0])
        if not draw:
            right = value
        else:
            found.append(difference(value, right))
    return SLACK * float(np.sqrt(np.mean(np.square(found))))


def _where(build: Callable[..., Model], steps: int, name: str, target: Target) -> str:
    """At which node the error of a network's tensor begins, after some steps of training."""
    model, interpreter = build(device=target.spec), Interpreter()
    with target.session(model.graph, allow_soft_placement=True) as session:
        for fetch in ([] if model.initialize is None else [model.initialize]) + [model.step] * steps:
            session.run(fetch, model.feeds)
            interpreter.run([fetch], model.feeds)
        return first_wrong_node(
            model.graph.get_tensor_by_name(name),
            lambda t: np.asarray(session.run(t, model.feeds)),
            lambda t: np.asarray(interpreter.run([t], model.feeds)[0]),
            TOLERANCE,
        )


def _require_device(model: Model, session: tf.Session, target: Target) -> None:
    wanted = {node.name for node in needed_nodes(model)}
    fetches = [*model.fetches, *([] if model.step is None else [model.step])]
    placed = session.explain(fetches, dict.fromkeys(model.feeds)).placements
    elsewhere = [p for p in placed if p.node in wanted and p.device != target.spec]
    if elsewhere:
        kinds = ", ".join(dict.fromkeys(p.op for p in elsewhere))
        raise UnsupportedError(f"{len(elsewhere)} nodes run elsewhere: {kinds} ({elsewhere[0].reason})")


def _truth(model: Model) -> Iterator[list[Any]]:
    interpreter = Interpreter()
    if model.initialize is not None:
        interpreter.run([model.initialize], {})
    yield interpreter.run(model.fetches, model.feeds)
    for _ in range(STEPS if model.step is not None else 0):
        interpreter.run([model.step], model.feeds)
        yield interpreter.run(model.fetches, model.feeds)
