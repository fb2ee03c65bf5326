"""Ops that sum products, on weights that are constants or variables, by the device's own kernels.

Whatever a kernel keeps of its weights (packed, transposed, uploaded), results are those of the weights of this run.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import Case, Measured, Types, seed
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.cases.weaknesses import input_size, weaknesses
from timberframe_conformance.cluster import one_node
from timberframe_conformance.drive import flatten
from timberframe_conformance.hypotheses.wrong import after_other_inputs
from timberframe_conformance.suites.checks import only_own_variables, tf
from timberframe_conformance.suites.choice import chosen, has_kernel, small_or_middling, trials_in
from timberframe_conformance.suites.forward import judge
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "prepared"
LASTING_RUNS = 20
"""Of a version: a device may take one as it is until it has stayed for some runs."""
LARGEST = 2_000
"""Most elements of a sample whose inputs are shared."""
MOST_PAIRS = 4
"""Pairs of nodes that share a constant, for each op and dtype."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Versions of variables for each call of networks; for each op that sums products, in two dtypes and in the calls
    of networks, also two sessions, a loop, and nodes that share a constant."""
    for trial in chosen(target, ops, small_or_middling, dtypes=2):
        products = sums_products(trial.op)
        checks = CHECKS if products else {"versions": _versions} if trial.asked_by else {}
        for what, run in checks.items():
            yield trial_case(SUITE, trial, run, f"{what}-{trial.detail}", expected=False)
        if not products or trial.asked_by:
            continue
        for one, other in _sharing(trial.op, trial.types):
            detail = f"shared-{one.detail}-and-{other.number}"
            yield trial_case(SUITE, one, functools.partial(_shared, other), detail, expected=False)


def sums_products(op: OpDef) -> bool:
    """Returns whether elements of the op's outputs are sums of products of two inputs, of which one may be weights."""
    return has_kernel(op) and isinstance(op.accuracy, Accumulation) and len(factors(op)) > 1


def factors(op: OpDef) -> list[int]:
    """Returns the inputs that are data, of the dtype of the output."""
    wanted = op.outputs[0].type_attr if op.outputs else None
    data = [i for i, a in enumerate(op.inputs) if op.input_role(a) == "data" and not a.is_list]
    return [i for i in data if op.inputs[i].type_attr == wanted and wanted is not None]


def _sharing(op: OpDef, types: Types) -> Iterator[tuple[Trial, Trial]]:
    """Yields pairs of trials that can read one constant, each pair with other attrs that differ."""
    trials = [t for t in trials_in(op, types) if input_size(t) <= LARGEST and not weaknesses(t)]
    trials.sort(key=input_size, reverse=True)  # small weights look alike in any form
    seen: set[frozenset[str]] = set()
    for i, one in enumerate(trials):
        for other in trials[i + 1 :]:
            mine, its = one.sample.attrs, other.sample.attrs
            names = frozenset(n for n in mine.keys() | its.keys() if mine.get(n) != its.get(n))
            if names and names not in seen and _shared_input(one, other) is not None:
                seen.add(names)
                yield one, other
            if len(seen) == MOST_PAIRS:
                return


def _shared_input(a: Trial, b: Trial) -> int | None:
    """Returns the last of the factors that has one shape in both."""
    shapes = [[getattr(x, "shape", None) for x in t.sample.inputs] for t in (a, b)]
    return next((i for i in reversed(factors(a.op)) if shapes[0][i] and shapes[0][i] == shapes[1][i]), None)


class _Node:
    """A node of the trial's op. Its data are what `factor` makes of their positions among all tensors and of their
    values, all else is constant."""

    def __init__(self, trial: Trial, arrays: Sequence[Any], factor: Any) -> None:
        self.trial, self.arrays = trial, list(arrays)
        self.attrs = trial.attrs(arrays)
        inputs: list[Any] = []
        position = 0
        for arg, value in zip(trial.op.inputs, arrays, strict=True):
            tensors: list[Any] = []
            for x in value if arg.is_list else [value]:
                tensors.append(factor(position, x) if trial.op.input_role(arg) == "data" else tf.constant(x))
                position += 1
            inputs.append(tensors if arg.is_list else tensors[0])
        made = apply_op(trial.op.name, inputs, self.attrs)
        self.outputs = made if isinstance(made, list) else [made]

    def judge(self, got: Sequence[Any], target: Target, arrays: Sequence[Any] | None = None) -> Measured | None:
        """Compares outputs with the truth; arrays: inputs other than those that the node was made with."""
        dtypes = [t.dtype.base_dtype.numpy for t in self.outputs]
        return judge(self.trial, self.attrs, self.arrays if arrays is None else arrays, got, dtypes, target)


class _OfVariables:
    """A graph whose one node multiplies variables, which `feeds` sets."""

    def __init__(self, trial: Trial, case_id: str, arrays: Sequence[Any], target: Target) -> None:
        self.graph = tf.Graph()
        self.values: dict[int, Any] = {}  # placeholders, by the number of the input
        self.updates: list[Any] = []
        self._name = f"factor-{seed(case_id)}"  # of its own, as variables of a target outlive sessions
        with self.graph.as_default(), tf.device(target.spec):
            self.node = _Node(trial, arrays, self._variable)

    def _variable(self, i: int, x: np.ndarray) -> Any:
        self.values[i] = tf.placeholder(tf.as_dtype(x.dtype), x.shape)
        v = tf.Variable(self.values[i], name=f"{self._name}-{i}", use_resource=True)
        self.updates.append(v.initializer)
        return v.read_value()

    def feeds(self, arrays: Sequence[Any]) -> Mapping[Any, Any]:
        flat = drive.flatten(arrays)
        return {t: flat[i] for i, t in self.values.items()}


def _versions(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Checks that each version of variables gives its own results, in later runs too, and the
    first ones again at the end.

    One of them begins as the version before it: what is kept must not be known by its first elements.
    """
    first, second = trial.arrays(case_id), trial.arrays(case_id + "/other")
    third = _with_ends_of(trial.arrays(case_id + "/third"), second)
    made, measured, before = _OfVariables(trial, case_id, first, target), None, second
    with target.session(made.graph) as session:
        for arrays, runs in ((first, 1), (second, LASTING_RUNS), (third, LASTING_RUNS), (first, 1)):
            session.run(made.updates, made.feeds(arrays))
            with after_other_inputs({"the variable's version before": flatten(before)}):
                made.node.judge(session.run(made.node.outputs), target, arrays)
                for _ in range(runs):
                    session.run(made.node.outputs)
                measured = made.node.judge(session.run(made.node.outputs), target, arrays)
            before = arrays
    return _noted(measured, trial, first, target) if sums_products(trial.op) else measured


def _with_ends_of(others: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Returns arrays whose second halves are those of others."""
    made: list[Any] = []
    for other, x in zip(others, arrays, strict=True):
        if isinstance(x, np.ndarray):
            changed = x.copy()
            changed.reshape(-1)[x.size // 2 :] = other.reshape(-1)[x.size // 2 :]
            made.append(changed)
        else:
            made.append(_with_ends_of(other, x))
    return made


def _sessions(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Returns two sessions with values of their own for the same variables, run by turns."""
    values = trial.arrays(case_id), trial.arrays(case_id + "/other")
    only_own_variables(target)
    made, measured = _OfVariables(trial, case_id, values[0], target), None
    with target.session(made.graph) as one, target.session(made.graph) as other:
        for session, arrays in zip((one, other), values, strict=True):
            session.run(made.updates, made.feeds(arrays))
        for _ in range(2):
            for session, arrays in zip((one, other), values, strict=True):
                others = values[1] if arrays is values[0] else values[0]
                with after_other_inputs({"the other session's variables": flatten(others)}):
                    measured = made.node.judge(session.run(made.node.outputs), target, arrays)
    return measured


def _loop(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """In the body of a loop, by constants from outside."""
    arrays, graph, nodes = trial.arrays(case_id), tf.Graph(), []
    with graph.as_default(), tf.device(target.spec):
        constants = [tf.constant(x) for x in drive.flatten(arrays)]
        start = _Node(trial, arrays, lambda i, x: constants[i]).outputs

        def body(i: Any, *_: Any) -> list[Any]:
            nodes.append(_Node(trial, arrays, lambda k, x: constants[k]))
            return [i + 1, *nodes[-1].outputs]

        made = tf.while_loop(lambda i, *_: i < 2, body, [tf.constant(0), *map(tf.zeros_like, start)])[1:]
    measured = None
    with target.session(graph) as session:
        for _ in range(2):
            measured = nodes[0].judge(session.run(list(made)), target)
    return measured


def _shared(other: Trial, trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Returns two nodes with different attrs read one constant: what is kept for one does not serve the other."""
    arrays, others = trial.arrays(case_id), list(other.arrays(case_id + "/other"))
    i = _shared_input(trial, other)
    assert i is not None
    others[i] = arrays[i]
    graph = tf.Graph()
    kept: dict[int, Any] = {}

    def constant(_: int, x: np.ndarray) -> Any:
        return kept.setdefault(id(x), tf.constant(x))

    with graph.as_default(), tf.device(target.spec):
        nodes = [_Node(t, x, constant) for t, x in ((trial, arrays), (other, others))]
    measured = None
    with target.session(graph) as session:
        for _ in range(2):
            got = session.run([n.outputs for n in nodes])
            for node, values in zip(nodes, got, strict=True):
                measured = node.judge(values, target)
    return measured


CHECKS = {"versions": _versions, "sessions": _sessions, "loop": _loop}


def _noted(measured: Measured | None, trial: Trial, arrays: Sequence[Any], target: Target) -> Measured:
    """With a note that says whether the device's kernel prepares an input that is constant."""
    found = measured or Measured()
    op, attrs = trial.op, trial.attrs(arrays)
    cluster, _ = one_node(target.device, op, attrs, list(map(np.asarray, arrays)))
    for i, value in enumerate(cluster.nodes[0].inputs):
        value.kind, value.constant = "const", np.asarray(arrays[i])
    cluster.inputs.clear()
    target.device.compile(cluster)
    names = [op.inputs[p.input].name for p in cluster.nodes[0].preparations]
    found.note = f"the kernel prepares {', '.join(names)}" if names else "no kernel prepares an input"
    return found
