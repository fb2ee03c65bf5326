"""Runs whole graphs by the references of their ops: loops, branches, calls, lists and variables included.

It knows nothing of the compiler and the executor. Each needed operation runs once, in the order in which the graph was
made, so that its results judge the framework (pruning, passes, lowering, placement) as references judge kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.truth.lists import LISTS, add, zeros_like
from timberframe_conformance.truth.resources import RESOURCES, draw
from timberframe_core.dtypes import variant
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_sdk.reference import evaluate, widen

After = Callable[[Any, Sequence[Any], tuple[Any, ...]], tuple[Any, ...]]
"""Called with an operation, its inputs and outputs; returns the outputs to go on with."""

MOST_ITERATIONS = 10_000


class NotInterpretedError(Exception):
    """The graph has an operation that no reference computes."""


class Interpreter:
    """One run after the other of graphs; `variables` keeps their values by node name, in float64 for narrower floats.

    after: changes the results of each operation, for instance rounds them to the dtype. Used within `quiet`.
    """

    def __init__(self, after: After | None = None, variables: dict[str, Any] | None = None) -> None:
        self.variables: dict[str, Any] = {} if variables is None else variables
        self.drawn: dict[str, int] = {}
        """How many blocks of random numbers each node has drawn."""
        self.resources: dict[str, Any] = {}
        """Queues and tables by the names of their handles."""
        self._after = after
        self._orders: dict[tuple[int, tuple[Any, ...]], list[Any]] = {}

    def run(self, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> list[Any]:
        """Returns values of the tensors (None for operations); floats are float64 or complex128.

        Whatever a reference raises comes through; NotInterpretedError where there is none.
        """
        return self.run_on(list(fetches), {t: widen(np.asarray(x, _kept(x, t))) for t, x in feeds.items()})

    def run_on(self, fetches: list[Any], known: dict[Any, Any]) -> list[Any]:
        """As `run`, with the values of any tensors, as wide; those that are computed are added to them."""
        for op in self._order(fetches, known):
            inputs = [known[t] for t in op.inputs]
            for t, value in zip(op.outputs, self._outputs(op, inputs), strict=True):
                known.setdefault(t, value)  # what is fed stays
        return [known[f] if hasattr(f, "op") else None for f in fetches]

    def _order(self, fetches: list[Any], known: Mapping[Any, Any]) -> list[Any]:
        needed: dict[Any, None] = {}
        stack = [f.op if hasattr(f, "op") else f for f in fetches if f not in known]
        while stack:
            op = stack.pop()
            if op not in needed:
                needed[op] = None
                stack += [t.op for t in op.inputs if t not in known]
                stack += op.control_inputs
        return sorted((op for op in needed if not op.outputs or any(t not in known for t in op.outputs)), key=_id)

    def _outputs(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        special = SPECIAL.get(op.type)
        if special is not None:
            return special(self, op, inputs)
        if op.type in LISTS:
            return LISTS[op.type](op, *inputs)
        if op.inputs and op.inputs[0].dtype is variant:
            return _of_variants(op, inputs)
        if op.op_def.reads or op.op_def.updates:
            return self._with_state(op, inputs)
        if op.op_def.stream is not None:
            outputs = draw(self, op, inputs)
        elif op.type == "Const":
            outputs = (widen(np.asarray(op.attrs["value"])),)
        elif is_rounding(op):
            outputs = (np.asarray(inputs[0]),)
        elif op.op_def.reference is None:
            raise NotInterpretedError(f"{op.type} '{op.name}': it has no reference")
        else:
            outputs = evaluate(op.op_def, op.attrs, inputs)[: len(op.outputs)]
            outputs = tuple(_whole(widen(x), t) for x, t in zip(outputs, op.outputs, strict=False))
        return outputs if self._after is None else self._after(op, inputs, outputs)

    def _with_state(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        """Calls the reference with the values of variables; it gives the new ones first."""
        handles = dict(zip([a.name for a in op.op_def.inputs], inputs, strict=True))
        values = [self.value(x) if isinstance(x, Handle) else x for x in inputs]
        outputs = tuple(widen(x) for x in evaluate(op.op_def, op.attrs, values))
        if self._after is not None:
            outputs = self._after(op, values, outputs)
        count = len(op.op_def.updates)
        for name, value in zip(op.op_def.updates, outputs, strict=False):
            self.variables[handles[name].name] = value
        return outputs[count:]

    def value(self, handle: Handle) -> Any:
        """Returns the value of a variable."""
        if handle.name not in self.variables:
            raise ValueError(f"variable {handle.name} has no value")
        return self.variables[handle.name]

    def assign(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        value = inputs[1]
        if op.type != "AssignVariableOp":
            old = self.value(inputs[0])
            value = old + value if op.type == "AssignAddVariableOp" else old - value
            if self._after is not None and value.dtype.name in FORMATS:
                (value,) = self._after(op, [old, inputs[1]], (value,))
        self.variables[inputs[0].name] = value
        return ()

    def call(self, op: Any, name: str, inputs: Sequence[Any]) -> list[Any]:
        """Returns what a function of the operation's graph gives."""
        body = op.graph.find_function(name)
        fetches = [*body.outputs, *body.control_outputs]
        return self.run_on(fetches, dict(zip(body.inputs, inputs, strict=True)))[: len(body.outputs)]

    def loop(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        values: Sequence[Any] = inputs
        for _ in range(MOST_ITERATIONS):
            if not np.all(self.call(op, op.attrs["cond"], values)[0]):
                return tuple(values)
            values = self.call(op, op.attrs["body"], values)
        raise NotInterpretedError(f"{op.type} '{op.name}': it goes on after {MOST_ITERATIONS} iterations")

    def branch(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        pred = np.asarray(inputs[0])
        taken = bool(pred) if pred.ndim == 0 else pred.size > 0
        return tuple(self.call(op, op.attrs["then_branch" if taken else "else_branch"], inputs[1:]))

    def case(self, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
        names, index = op.attrs["branches"], int(inputs[0])
        return tuple(self.call(op, names[index if 0 <= index < len(names) else -1], inputs[1:]))


class Handle:
    """The value of a resource tensor: which variable it means."""

    shape: tuple[int, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name


def is_rounding(op: Any) -> bool:
    """Returns whether the op does nothing but round: real to real, or complex to complex."""
    if op.type != "Cast":
        return False
    x, y = op.inputs[0].dtype, op.outputs[0].dtype
    return x.name in FORMATS and y.name in FORMATS and bool(x.is_complex == y.is_complex)


def _whole(x: np.ndarray, tensor: Any) -> np.ndarray:
    """Returns integers where the tensor has such, though a reference that divides gives floats."""
    dtype = tensor.dtype.base_dtype.numpy
    return x.astype(dtype) if x.dtype.kind == "f" and dtype.kind in "iub" else x


def _id(op: Any) -> int:
    return int(op.id)


def _kept(x: Any, tensor: Any) -> Any:
    return getattr(x, "dtype", None) or tensor.dtype.numpy


def _of_variants(op: Any, inputs: list[Any]) -> tuple[Any, ...]:
    if op.type == "ZerosLike":
        return (zeros_like(inputs[0]),)
    if op.type in ("AddN", "AddV2", "Add"):
        return (add(inputs),)
    if op.type in ("Identity", "StopGradient"):
        return (inputs[0],)
    raise NotInterpretedError(f"{op.type} '{op.name}': it is given a list")


def _handle(interpreter: Interpreter, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
    return (Handle(op.attrs["shared_name"] or op.name),)


def _placeholder(interpreter: Interpreter, op: Any, inputs: list[Any]) -> tuple[Any, ...]:
    raise NotInterpretedError(f"{op.type} '{op.name}': it is not fed")


SPECIAL: dict[str, Callable[[Interpreter, Any, list[Any]], tuple[Any, ...]]] = {
    "Placeholder": _placeholder,
    "PlaceholderWithDefault": lambda i, op, inputs: (inputs[0],),
    "NoOp": lambda i, op, inputs: (),
    "VarHandleOp": _handle,
    "FIFOQueueV2": _handle,
    "PaddingFIFOQueueV2": _handle,
    "HashTableV2": _handle,
    **RESOURCES,
    "ReadVariableOp": lambda i, op, inputs: (i.value(inputs[0]),),
    "VarIsInitializedOp": lambda i, op, inputs: (np.array(inputs[0].name in i.variables),),
    "VariableShape": lambda i, op, inputs: (np.array(np.shape(i.value(inputs[0])), op.outputs[0].dtype.numpy),),
    "AssignVariableOp": Interpreter.assign,
    "AssignAddVariableOp": Interpreter.assign,
    "AssignSubVariableOp": Interpreter.assign,
    "While": Interpreter.loop,
    "StatelessWhile": Interpreter.loop,
    "If": Interpreter.branch,
    "StatelessIf": Interpreter.branch,
    "Case": Interpreter.case,
    "StatelessCase": Interpreter.case,
    "PartitionedCall": lambda i, op, inputs: tuple(i.call(op, op.attrs["f"], inputs)),
    "StatefulPartitionedCall": lambda i, op, inputs: tuple(i.call(op, op.attrs["f"], inputs)),
}
