"""Builds a graph and evaluates it by the ops' references at the same time, in float64 and in the graph's own dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe import Graph
from timberframe import device as device_scope
from timberframe_conformance.case import CaseFailedError, Measured, WrongValuesError
from timberframe_conformance.hypotheses.wrong import Wrong
from timberframe_conformance.tolerance.compare import raise_explained
from timberframe_conformance.tolerance.declared import floor
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.dtypes import as_dtype
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target


MOST_NODES = 12
"""Of a graph of which a failure is compared with the results without each of its nodes."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor, with its value in float64 (`wide`) and in its own dtype (`narrow`)."""

    tensor: Any
    wide: np.ndarray
    narrow: np.ndarray


class Twin:
    """A graph under construction whose values are known."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.graph = Graph()
        self.feeds: dict[Any, np.ndarray] = {}
        self._nodes: list[tuple[Any, list[Value]]] = []  # with their inputs, in the order in which they were added

    def feed(self, x: np.ndarray) -> Value:
        """Returns a placeholder that is fed x."""
        with self.graph.as_default(), device_scope(self.target.spec):
            tensor = apply_op("Placeholder", (), {"dtype": as_dtype(x.dtype), "shape": x.shape})
        self.feeds[tensor] = x
        return Value(tensor, widen(x), x)

    def constant(self, x: Any, dtype: str = "int32") -> Value:
        """Returns a constant."""
        array = np.asarray(x, as_dtype(dtype).numpy)
        with self.graph.as_default(), device_scope(self.target.spec):
            tensor = apply_op("Const", (), {"value": array, "dtype": as_dtype(dtype)})
        return Value(tensor, widen(array), array)

    def op(
        self,
        name: str,
        inputs: Sequence[Value | Sequence[Value]],
        attrs: Mapping[str, Any] | None = None,
        spec: str = "",
    ) -> Value:
        """Returns a node; returns its first output. spec: another device."""
        return self.outputs(name, inputs, attrs, spec)[0]

    def outputs(
        self,
        name: str,
        inputs: Sequence[Value | Sequence[Value]],
        attrs: Mapping[str, Any] | None = None,
        spec: str = "",
    ) -> list[Value]:
        """Returns a node; returns all its outputs."""
        given = [[v.tensor for v in x] if isinstance(x, Sequence) else x.tensor for x in inputs]
        flat = [v for x in inputs for v in (x if isinstance(x, Sequence) else [x])]
        with self.graph.as_default(), device_scope(spec or self.target.spec):
            made = apply_op(name, given, attrs or {})
        tensors = made if isinstance(made, list) else [made]
        node = tensors[0].op
        wide = evaluate(node.op_def, node.attrs, [v.wide for v in flat])
        narrow = evaluate(node.op_def, node.attrs, [v.narrow for v in flat])
        self._nodes.append((node, flat))
        return [Value(t, w, np.asarray(n).astype(t.dtype.numpy)) for t, w, n in zip(tensors, wide, narrow, strict=True)]

    def check(self, outputs: Sequence[Value], runs: int = 1, **config: Any) -> Measured:
        """Runs the graph on the device and compares the outputs with the truth. config: of the session.

        Non-floating outputs must be equal. For floating ones the difference of the evaluations in float64 and in the
        graph's dtypes shows how rounding propagates through this graph; a device may be off by eight times the largest
        of it (other orders of summation and other functions round differently), and by 8 ULP of the largest value.
        """
        measured = Measured()
        with self.target.session(self.graph, **config) as session:
            for _ in range(runs):
                got = session.run([v.tensor for v in outputs], self.feeds)
                for i, (g, v) in enumerate(zip(got, outputs, strict=True)):
                    try:
                        _compare(i, np.asarray(g), v, measured, lambda v=v: self._without_a_node(v))  # type: ignore[misc]  # mypy knows no type of a default
                    except CaseFailedError as e:
                        raise_explained(e)
        return measured

    def _without_a_node(self, output: Value) -> Iterator[tuple[str, np.ndarray]]:
        """Returns an output as it would be if a node handed on its first input, by the words for that."""
        nodes = self._nodes if len(self._nodes) <= MOST_NODES else []
        for skipped, inputs in nodes:
            if not inputs or (skipped is output.tensor.op and len(skipped.outputs) > 1):
                continue
            known: dict[Any, np.ndarray] = {}
            try:
                for node, given in nodes:
                    wide = [known.get(v.tensor, v.wide) for v in given]
                    made = wide[:1] if node is skipped else evaluate(node.op_def, node.attrs, wide)
                    known.update(zip(node.outputs, made, strict=False))
            except Exception:  # a reference may raise anything for shapes that do not fit then
                continue
            yield f"the result without {skipped.type} '{skipped.name}'", known[output.tensor]


Candidates = Callable[[], Iterator[tuple[str, np.ndarray]]]


def _compare(i: int, got: np.ndarray, value: Value, measured: Measured, candidates: Candidates) -> None:
    def wrong(mask: np.ndarray, allowed: np.ndarray | None) -> Wrong:
        node, right = value.tensor.op, value.wide if got.dtype.name in FORMATS else value.narrow
        return Wrong(node.op_def, node.attrs, (), 0, got, right, got.dtype, mask, allowed, candidates)

    if got.dtype != value.narrow.dtype or got.shape != value.narrow.shape:
        raise CaseFailedError(
            f"output {i} is {got.dtype}{list(got.shape)}; it must be {value.narrow.dtype}{list(value.narrow.shape)}"
        )
    if got.dtype.name not in FORMATS:
        if not np.array_equal(got, value.narrow):
            at = int(np.flatnonzero((got != value.narrow).ravel())[0])
            text = f"output {i} element {at} is {got.flat[at]!r}; it must be {value.narrow.flat[at]!r}"
            raise WrongValuesError(text, wrong=wrong(np.asarray(got != value.narrow), None))
        return
    if not got.size:
        return
    form = FORMATS[got.dtype.name]
    same = (got == value.narrow) | (np.isnan(got) & np.isnan(value.narrow))  # infinities and NaN among them
    finite = np.isfinite(value.narrow)
    with np.errstate(all="ignore"):
        rounding = float(np.max(np.abs(value.narrow.astype(value.wide.dtype) - value.wide), initial=0, where=finite))
        unit = float(np.max(np.abs(value.wide), initial=0, where=finite)) * 2.0 ** (1 - form.precision)
        allowed = 8 * max(rounding, unit, floor(form))
        error = np.where(same & ~finite, 0, np.abs(got.astype(value.wide.dtype) - value.wide))
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    if not error.flat[worst] <= allowed:
        raise WrongValuesError(
            f"output {i} element {worst} is {got.flat[worst]!r}, expected {value.wide.flat[worst]!r}: off by "
            f"{error.flat[worst]:.3g}, allowed {allowed:.3g}",
            wrong=wrong(~(error <= allowed), np.full(got.shape, allowed)),
        )
    if unit:
        measured.max_ulp, measured.limit = float(error.flat[worst] / unit), allowed / unit
