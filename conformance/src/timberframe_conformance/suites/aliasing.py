"""Aliasing: one tensor feeding an op twice, tensors with several readers, in-place chains, and later runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe import Graph
from timberframe import device as device_scope
from timberframe_conformance import drive
from timberframe_conformance.case import Case, Measured, NotApplicableError, WrongValuesError
from timberframe_conformance.cases.trials import Trial, input_dtype, trial_case
from timberframe_conformance.cases.types import allowed_types, type_attrs
from timberframe_conformance.suites.choice import chosen, middling_or_small
from timberframe_conformance.twin import Twin
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import NoKernelError, OpError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "aliasing"
CHAIN = 3


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields, for each op in at most three dtypes, the checks that make sense for it, `read-after` once a level."""
    once: set[tuple[str, str]] = set()
    for trial in chosen(target, ops, middling_or_small, dtypes=3):
        for what, run in CHECKS.items():
            if not applies(trial, what) or (what == "read-after" and (trial.op.name, trial.level) in once):
                continue
            if what == "read-after" and not trial.asked_by:
                once.add((trial.op.name, trial.level))
            yield trial_case(SUITE, trial, run, f"{what}-{trial.detail}")


def applies(trial: Trial, what: str) -> bool:
    """Returns whether the op can be called in this way at all."""
    op = trial.op
    if op.stream is not None and what in ("read-again", "read-after", "run-again", "chain"):
        return False  # each run draws new numbers; see the random suite
    data = [a for a in op.inputs if op.input_role(a) == "data"] if op.outputs else []
    if what in ("read-again", "run-again"):
        return bool(data)
    if what == "read-after":
        return makes_results(trial)
    one_type = len({(a.type_attr, a.dtype, a.is_list) for a in data}) == 1
    if what == "same-input":
        shapes = {getattr(a, "shape", None) for a in trial.sample.inputs}
        values = [getattr(a, "values", 0) for a in trial.sample.inputs]
        return (
            len(op.inputs) == 2 and len(data) == 2 and one_type and len(shapes) == 1 and all(v is None for v in values)
        )
    output = op.outputs[0] if len(op.outputs) == 1 else None
    return (
        output is not None
        and output.type_attr is not None
        and output.type_attr == op.inputs[0].type_attr
        and not output.is_list
    )


def _same_input(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """op(x, x) is what op(x, copy of x) is."""
    _, x = drive.flatten(trial.arrays(case_id))  # the second may have the narrower domain, such as divisors
    attrs = trial.attrs([x, x])
    apart, _ = drive.call(target, trial.op, attrs, [x.copy(), x.copy()])  # a kernel may write to them
    graph = Graph()
    with graph.as_default(), device_scope(target.spec):
        fed = apply_op("Placeholder", (), {"dtype": as_dtype(x.dtype), "shape": x.shape})
        result = apply_op(trial.op.name, [fed, fed], attrs)
    with target.session(graph) as session:
        got = session.run(result, {fed: x})
    equal(got, apart[0] if not isinstance(got, list) else apart, "called with one tensor for both inputs")
    return None


def _read_again(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Inputs of the op that live on the device, and that others read too, keep their values."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    plain, _ = drive.call(target, trial.op, attrs, trial.arrays(case_id))  # a kernel may write to these
    built = drive.Built(Graph(), [], {})
    copies: list[Any] = []
    with built.graph.as_default(), device_scope(target.spec):
        inputs = _inputs(trial, arrays, attrs, lambda x, declared: _read(built, copies, x, declared))
        result = apply_op(trial.op.name, inputs, attrs)
        after = [apply_op("Identity", [c]) for c in copies]
    with target.session(built.graph) as session:
        session.run(built.setup, built.feeds)
        got, read, copied = session.run([result, after, copies])
        later = session.run(copies)
    if plain:  # an op without outputs gives None
        equal(got, plain if isinstance(got, list) else plain[0], "on inputs that others read")
    for feed, x, y, z in zip(built.feeds.values(), read, copied, later, strict=True):
        equal(x, feed, "read after the op ran, its input")
        equal(y, feed, "fetched, its input")
        equal(z, feed, "fetched in the next run, its input")
    return None


def _inputs(
    trial: Trial, arrays: Sequence[Any], attrs: Mapping[str, Any], tensor: Callable[[np.ndarray, Any], Any]
) -> list[Any]:
    """Returns the inputs of a call of the op, those whose value shapes the result as they are.

    tensor: makes one of an array and the dtype of the op's attr.
    """
    inputs: list[Any] = []
    for arg, value in zip(trial.op.inputs, arrays, strict=True):
        if arg.name in trial.op.shape_inputs:
            inputs.append(value)
            continue
        tensors = [tensor(x, attrs.get(arg.type_attr or "")) for x in (value if arg.is_list else [value])]
        inputs.append(tensors if arg.is_list else tensors[0])
    return inputs


def _read(built: drive.Built, copies: list[Any], x: np.ndarray, declared: Any) -> Any:
    """Returns the value of a variable of its own, which `copies` gets. declared: the dtype of the op's attr."""
    handle = drive.variable(built, x, f"input{len(built.setup)}", declared)
    copies.append(apply_op("ReadVariableOp", [handle], {"dtype": built.setup[-1].inputs[1].dtype}))
    return copies[-1]


def _chain(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Applying the op to its own result, in one program, is what separate runs give."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    current = [a.copy() if isinstance(a, np.ndarray) else list(a) for a in arrays]
    steps: list[Any] = []
    try:
        for _ in range(CHAIN):
            result, _ = drive.call(target, trial.op, attrs, current)
            if not isinstance(current[0], np.ndarray) or np.shape(result[0]) != current[0].shape:
                raise NotApplicableError("the result has another shape; no chain")
            steps.append(result[0])
            current[0] = result[0]
    except NoKernelError:
        raise
    except OpError:
        raise NotApplicableError("the op does not take its own result; no chain") from None
    if not target.profile.keeps_bits:
        return _chain_of_known_values(trial, arrays, attrs, target)
    built = drive.build(trial.op, attrs, arrays, target.spec)
    with built.graph.as_default(), device_scope(target.spec):
        node = built.fetches[0].op
        last = built.fetches[0]
        for _ in range(CHAIN - 1):
            last = apply_op(trial.op.name, [last, *regroup(trial, node.inputs[1:], arrays[1:])], attrs)
    with target.session(built.graph) as session:
        got = session.run(last, built.feeds)
    equal(got, steps[-1], f"applied {CHAIN} times in one program")
    return None


def _chain_of_known_values(
    trial: Trial, arrays: Sequence[Any], attrs: Mapping[str, Any], target: Target
) -> Measured | None:
    """Returns the chain in one program, held to the truth instead of the bits of separate runs."""
    twin = Twin(target)
    inputs: list[Any] = []
    for arg, value in zip(trial.op.inputs, arrays, strict=True):
        made = [
            twin.constant(x, x.dtype.name) if arg.name in trial.op.shape_inputs else twin.feed(x)
            for x in (value if arg.is_list else [value])
        ]
        inputs.append(made if arg.is_list else made[0])
    for _ in range(CHAIN):
        inputs[0] = twin.op(trial.op.name, inputs, attrs)
    return twin.check([inputs[0]])


def _run_again(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Later runs of one session do not depend on earlier ones, with other values, and leave earlier results alone."""
    seeds = case_id, case_id + "/other"
    first, second = map(trial.arrays, seeds)
    attrs = trial.attrs(first)
    wanted = [drive.call(target, trial.op, attrs, trial.arrays(seed), fed=True)[0] for seed in seeds]
    built = drive.build(trial.op, attrs, first, target.spec, known=False)
    given = 0, 1, 0
    results = []
    with target.session(built.graph) as session:
        for run, k in enumerate(given):
            feeds = dict(zip(built.feeds, drive.flatten((first, second)[k]), strict=True))
            results.append(session.run(built.fetches, feeds))
            equal(results[-1], wanted[k], f"in run {run + 1} of one session")
    for run, (k, got) in enumerate(zip(given, results, strict=True)):
        equal(got, wanted[k], f"of run {run + 1}, looked at again after run {len(given)}")
    return None


MAKERS = ("BiasAdd", "AddV2", "LogicalOr")
"""Ops that give what their first input is where the second has nothing but zeros. Few devices lack all of them."""


def makes_results(trial: Trial) -> bool:
    """Returns whether results of other nodes can be inputs of the op: none of MAKERS gives strings."""
    data = [
        input_dtype(arg, x, trial.types)
        for arg, given in zip(trial.op.inputs, trial.sample.inputs, strict=True)
        for x in (given if isinstance(given, Sequence) else [given])
        if trial.op.input_role(arg) == "data"
    ]
    return bool(trial.op.outputs) and any(dtype != "string" for dtype in data)


def _read_after(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Checks that inputs which nodes of the program make, and which others read after the op ran, keep their values."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    built = drive.Built(Graph(), [], {})
    made: list[_Made] = []
    with built.graph.as_default(), device_scope(target.spec):
        inputs = _inputs(trial, arrays, attrs, lambda x, declared: _result(built, made, x, declared, target))
        if not made:
            raise NotApplicableError(f"the device has none of {', '.join(MAKERS)} for the op's inputs")
        result = apply_op(trial.op.name, inputs, attrs)
        with built.graph.control_dependencies([(result[0] if isinstance(result, list) else result).op]):
            after = [apply_op(m.maker, [m.tensor, m.zeros]) for m in made]
    with target.session(built.graph) as session:
        known = session.run([m.tensor for m in made], built.feeds)
        _, read = session.run([result, after], built.feeds)
    for x, y in zip(read, known, strict=True):
        equal(x, y, "read after the op ran, the result of another node that was its input")
    return None


@dataclass(frozen=True)
class _Made:
    """The result of a node of the op `maker`, and the zeros that it got."""

    maker: str
    tensor: Any
    zeros: Any


def _result(built: drive.Built, made: list[_Made], x: np.ndarray, declared: Any, target: Target) -> Any:
    """Returns a tensor with the values of x: the result of a node where the device has an op for it.

    made: gets that result. declared: the dtype of the op's attr.
    """
    fed = drive.input_tensor(built, x, False, True, declared)
    for maker in MAKERS:
        shape = x.shape[-1:] if maker == "BiasAdd" else x.shape
        if (maker != "BiasAdd" or x.ndim > 1) and _gives(maker, fed.dtype.name, target):
            zeros = drive.input_tensor(built, np.zeros(shape, x.dtype), False, True, declared)
            made.append(_Made(maker, apply_op(maker, [fed, zeros]), zeros))
            return made[-1].tensor
    return fed


def _gives(maker: str, dtype: str, target: Target) -> bool:
    """Returns whether the device has a kernel of one of MAKERS in a dtype."""
    op = registry.get(maker)
    attrs, fixed = type_attrs(op), op.inputs[0].dtype
    known = fixed.name == dtype if fixed is not None else dtype in allowed_types(attrs[0])
    return known and target.supports(op, tuple((a.name, dtype) for a in attrs)) is None


CHECKS = {
    "same-input": _same_input, "read-again": _read_again, "read-after": _read_after, "chain": _chain,
    "run-again": _run_again,
}  # fmt: skip


def regroup(trial: Trial, tensors: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Flat tensors in the structure of the op's inputs after the first."""
    left = list(tensors)
    result: list[Any] = []
    for arg, value in zip(trial.op.inputs[1:], arrays, strict=True):
        count = len(value) if arg.is_list else 1
        result.append(left[:count] if arg.is_list else left[0])
        del left[:count]
    return result


def equal(got: Any, wanted: Any, what: str) -> None:
    """Raises WrongValuesError unless both are equal bit for bit."""
    pairs = zip(got, wanted, strict=True) if isinstance(got, list) else [(got, wanted)]
    for a, b in pairs:
        y = np.asarray(b)
        x = np.asarray(a, object) if y.dtype == object else np.asarray(a)  # a string scalar is a bytes object
        same = (
            np.array_equal(x, y)
            if x.dtype == object
            else x.shape == y.shape and x.tobytes() == np.ascontiguousarray(y).tobytes()
        )
        if not same:
            raise WrongValuesError(f"{what}, the op gives another result: {_first(x, y)}")


def _first(x: np.ndarray, y: np.ndarray) -> str:
    if x.shape != y.shape:
        return f"shape {x.shape} instead of {y.shape}"
    differs = np.flatnonzero((x != y).ravel())
    at = int(differs[0]) if differs.size else 0
    return f"element {at} is {x.flat[at]!r} instead of {y.flat[at]!r}"
