"""OpDef: everything that is known about an op without a device.

An op is declared in one block by `define_op`. Inputs, outputs and attrs are written in TensorFlow's own notation
(``"values: N * T"``, ``"T: {float, double} = DT_FLOAT"``), so that it can be held against TensorFlow's at a glance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import EXACT, Accuracy
from timberframe_core.ops.definition.consistency import check_consistency
from timberframe_core.ops.definition.samples import ErrorSample, Sample
from timberframe_core.ops.definition.signature import ArgDef, AttrDef, parse_arg, parse_attr
from timberframe_core.ops.definition.value_checks import RefusedIntegers
from timberframe_core.shapes import MAX_SHAPE_RANK, Shape, StaticShape, format_shape

Attrs = Mapping[str, Any]
Reference = Callable[..., Any]
Role = Literal[
    "constant", "placeholder", "no_op",
    "loop", "branch", "case", "call",
    "variable", "read_variable", "assign_variable", "inspect_variable", "destroy_variable",
    "make_array", "make_gradient_array", "use_array",
    "switch", "merge", "enter", "exit", "next_iteration", "loop_condition", "control_trigger",
    "reference",
]  # fmt: skip
"""What is done with a node that no kernel runs:

constant, placeholder, no_op: the value is in the graph; it is fed; other nodes wait for it.
loop, branch, case, call: functions run as those of While, If, Case and PartitionedCall do.
variable: makes a handle. read_variable, assign_variable: the value of the variable that the first input means.
inspect_variable, destroy_variable: the executor reads the session's entry for that variable, or removes it.
make_array, make_gradient_array, use_array: arrays and stacks of tensors that live as long as a run.
switch ... control_trigger: TensorFlow 1's control flow, which becomes loops and branches before anything is planned.
reference: works on a reference variable of TensorFlow 1, and becomes an op on a variable that has a handle.
"""
GradientNote = Literal[
    "leaves_rounding_out", "of_distribution", "both_triangles", "overwritten_values", "free_phases", "partly_refused",
    "nan_at_zero", "every_tie",
]  # fmt: skip
"""How a gradient is not simply the derivative of what the op computes, each as in TensorFlow:

leaves_rounding_out: it is that of the op without its rounding to steps (Bengio et al. 2013).
of_distribution: it is that of numbers with the op's distribution, not that of the way in which they are drawn.
both_triangles: the op reads one triangle of a matrix; the gradient covers both, right for self-adjoint matrices.
overwritten_values: it reaches values, too, that a later one at the same index replaces.
free_phases: complex vectors are unique up to a factor of modulus one, the choice of which has no derivative.
partly_refused: for some inputs, attrs and shapes, in first or second order, it is an UnimplementedError.
nan_at_zero: it is NaN at zeros where a factor of its formula is infinite, although there is a slope on either side.
every_tie: of elements that tie for the largest of a window each gets the whole gradient, not a share or one of them.
"""
Reduction = Literal["sum", "mean", "product", "max", "min", "all", "any"]


class Unknown:
    """An element of a host value that is not known yet; arithmetic with it is again unknown.

    Host values are ndarrays; one with unknown elements has dtype object, so that NumPy code serves known and partly
    known values alike.
    """

    def _same(self, *_: object) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _same
    __mod__ = __rmod__ = __neg__ = __truediv__ = __rtruediv__ = _same

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown()


def is_known(value: np.ndarray | None) -> bool:
    """Returns whether a host value is there with all its elements."""
    return value is not None and (value.dtype != object or not any(x is UNKNOWN for x in value.flat))


@dataclass(frozen=True)
class NotDifferentiable:
    """Stands in the gradient slot of an op that has no gradient, with the reason.

    constant: the outputs are constant almost everywhere, so that the gradient of 0 that users get is the derivative.
    """

    reason: str
    constant: bool = False


@dataclass(frozen=True)
class MissingGradient:
    """Stands in the gradient slot of an op that has a derivative, which is declared neither here nor by TensorFlow.

    A gradient that would have to pass the op raises NotFoundError, which is a LookupError, and gives the reason: a sum
    of which one part is left out would be wrong. tf.RegisterGradient can register one.
    """

    reason: str = ""

    def __call__(self, op: Any, *grads: Any) -> list[Any]:
        """Raises NotFoundError."""
        reason = f" ({self.reason})" if self.reason else ""
        raise NotFoundError(
            f"{op.type} '{op.name}': no gradient is declared for this op{reason}; a path to the sources passes it "
            "(define_op takes gradient=, tf.RegisterGradient registers one, and tf.stop_gradient cuts a path)",
            op.name,
        )


@dataclass(frozen=True)
class RandomDraw:
    """How a stateful op draws from its stream of Philox blocks (four 32-bit numbers each).

    blocks: ``f(attrs, input shapes, output shape) -> int``, how many a launch reserves. sample: ``f(attrs, philox,
    *inputs) -> array`` in NumPy, `philox` being the generator at the first of them.
    """

    blocks: Callable[[Attrs, Sequence[StaticShape], StaticShape], int]
    sample: Callable[..., Any]


class InferenceContext:
    """What a shape function sees: the attrs, and shapes, dtypes and (where known) values of the flat list of inputs."""

    __slots__ = ("attrs", "dtypes", "handles", "name", "op", "output_handles", "shapes", "values")

    def __init__(
        self,
        op: OpDef,
        name: str,
        attrs: Attrs,
        shapes: Sequence[Shape],
        values: Sequence[np.ndarray | None],
        dtypes: Sequence[DType],
        handles: Sequence[tuple[DType | None, Shape] | None] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.attrs = attrs
        self.shapes = shapes
        self.values = values
        self.dtypes = dtypes
        self.handles = handles
        """For each input that is a resource handle: dtype and shape of its variable."""
        self.output_handles: dict[int, tuple[DType | None, Shape]] = {}

    def value(self, i: int) -> np.ndarray | None:
        """Input i's host value when every element is known, else None."""
        v = self.values[i]
        return v if is_known(v) else None

    def shape_value(self, i: int) -> Shape:
        """Input i read as a shape: -1 and unknown elements give None, as do all without a value."""
        v = self.values[i]
        if v is None:
            length = self.shapes[i]
            return self.unknown_sizes(length[0] if length else None)
        return tuple(None if d is UNKNOWN or d < 0 else int(d) for d in np.ravel(v))

    def unknown_sizes(self, rank: int | None) -> Shape:
        """Returns the shape of which at most the rank is known, such as one that a vector of this length will say."""
        if rank is not None and rank > MAX_SHAPE_RANK:
            raise self.late_error(f"a shape has {rank} dimensions; it has at most {MAX_SHAPE_RANK}")
        return None if rank is None else (None,) * rank

    def rank(self, i: int) -> int | None:
        shape = self.shapes[i]
        return None if shape is None else len(shape)

    def require_rank(self, i: int, rank: int) -> tuple[int | None, ...]:
        """Input i's shape, which must have this rank; an unknown rank gives that many unknown sizes."""
        shape = self.shapes[i]
        if shape is None:
            return (None,) * rank
        if len(shape) != rank:
            raise self.error(f"input {i} has shape {format_shape(shape)}; it must have rank {rank}")
        return shape

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """`axis` counted from the front; outside [-rank, rank) is an error."""
        if not -rank <= axis < rank:
            raise self.error(f"{what} {axis} is outside the input's rank {rank}; it must lie in [{-rank}, {rank})")
        return axis % rank

    def error(self, message: str) -> InvalidArgumentError:
        """Returns an error to raise, `message` being ``<fact with the actual values>; <what is required>``."""
        return InvalidArgumentError(f"{self.op.name} '{self.name}': {message}", self.name)

    def late_error(self, message: str) -> InvalidArgumentError:
        """Like `error`, for what TensorFlow finds only when the node runs: an imported graph may hold such a node."""
        error = self.error(message)
        error.late = True
        return error


ShapeFunction = Callable[[InferenceContext], Sequence[Shape]]
ValueFunction = Callable[[InferenceContext], Sequence[np.ndarray | None]]
BoundFunction = Callable[[InferenceContext], Sequence[StaticShape]]
PlannedFunction = Callable[[Attrs, Sequence[np.ndarray | None]], tuple[str, ...]]
RowForm = Callable[[Any, Sequence[Any], Sequence[bool]], Sequence[Any] | None]


@dataclass(frozen=True, eq=False)
class OpDef:
    """One op, made by `define_op`.

    doc: what the op computes, in a line or a few.
    shape: called while a graph is built (sizes may be unknown) and again for each specialisation (all sizes known, and
        all values of `shape_inputs`); then the result must be fully known unless `bound` is given.
    reference: ``f(attrs, *inputs) -> array or tuple`` in NumPy; the arrays have the op's dtypes, or float64/complex128
        when conformance needs more precision, so it must not assume one. List inputs arrive flat.
    gradient: ``f(op, *output_gradients) -> list of tensors or None``, NotDifferentiable(reason),
        or MissingGradient(reason).
    gradient_takes_slices: the gradients of the outputs may arrive as IndexedSlices; else they are made dense before.
    constant_inputs, constant_outputs: inputs that the gradient treats as constants although the outputs depend on them,
        and outputs that it treats as constants although they depend on the inputs; conformance expects no derivative.
    gradient_notes: how the gradient is not simply the derivative; see `GradientNote`. Conformance allows for it.
    defined_for: where the signature allows dtypes for which the op has no meaning: those that it has one for, by type
        attr as in `KernelDef.types`. One of several must fit. The reference is asked for no others.
    value: host value of the outputs from the host values of the inputs (elements may be UNKNOWN), for the ops that
        shape arithmetic is made of; `from_reference` makes one of the reference.
    refused: of an elementwise op, integers that its last operand must not hold. The reference then refuses them, too.
    bound: for ops whose output shape only the kernel knows: the largest shapes it may have.
    shape_inputs: inputs whose value must be on the host to plan; each new value is a new specialisation.
    launch_inputs: inputs whose value is read on the host at each launch, and never respecialises.
    planned: for launch inputs that an output's shape depends on in some nodes (the begin of a slice up to the end):
        ``f(attrs, constants) -> names`` of those that are needed to plan this node, as shape inputs are; constants
        has the value of each flat input that is a Const, else None. Launchers get them all the same.
    reads: resource inputs for which the kernel gets the current values of the variables that the handles name.
    updates: resource inputs that get new values: the kernel gets the current ones instead, and its first outputs are
        the new ones, in this order and of the same shapes. So does the reference. A kernel that may work in place must
        have checked its inputs before it writes, so that an error leaves the variables unchanged.
    on_host: the executor runs it by the host op that is registered for it or else by its reference; no device needs a
        kernel. For files, rare string ops, and what works on resources of the session.
    resource: of an op with on_host whose one output is a handle, the kind of the resource that it makes: "queue". The
        resource is named by the attrs `container` and `shared_name` where it has them, else by the node.
    kinds: of an op with on_host, the kind of resource that inputs which are handles must mean, by the inputs' names; a
        handle of another is an error before anything runs.
    blocks: of an op with on_host, that it may wait for what another node of the same run does with its resource: nodes
        of one resource then run at the same time.
    stateful: never folded, never merged with another node, never dropped once it is needed.
    stream: for stateful ops that draw random numbers: how they do; their kernel nodes get a `stream` of the Session.
    role: what the compiler or the executor does instead of a device; None where a kernel runs. See `Role`.
    update_op: with the role `assign_variable`, the pure op whose result, of the old value and the second input, is the
        new value; without one that is the second input.
    resource_op: with the role `reference`, the op that does the same to a variable with a handle.
    elementwise: element i of the one output depends on element i of each input, which broadcast; no input is a list.
        A device may compute a chain of such nodes at once.
    reduction: how the op combines the elements of its first input along the axes that its second input lists. A
        device may compute it at the end of a chain of elementwise nodes.
    passes_through: output i is input i. What reads such a node reads its input, and the node is dropped.
    shape_only: the outputs say something about the shapes of the inputs, or the sizes of lists, and need no elements.
        With `value` the host computes them; gradients of loops keep them in place of the input.
    total_value: `value` gives the outputs of all inputs that a kernel would take. The host computes such a node while
        it plans where it knows the inputs anyway, and the integers are few.
    sized_by_values: values of the inputs say how many elements the output has, however few the inputs have. A kernel
        computes such a node, and what follows from it, unless the size is known beforehand. One whose inputs are all
        constants is a constant itself: the host has it where the requested device has no kernel.
    reports_to_host: the op is there for what it reports to the host, such as an error: where the requested device has
        no kernel the host runs it, even without soft placement.
    commutative: the two inputs may be swapped.
    alias: (output, input) pairs that may share memory because the bytes are the same (Reshape, Identity).
    accuracy: how far a kernel may be off; see `timberframe_core.ops.definition.accuracy`.
    samples, errors: functions that give conformance its cases; see `timberframe_core.ops.definition.samples`.
    python_names: names that TensorFlow's Python functions (`tf.raw_ops`) have for inputs and attrs, where they differ
        by more than the underscore after a keyword of Python.
    on_rows: `f(op, inputs, are_rows)` adds nodes to the current graph that do for each row of inputs what the operation
        `op` does for one value, and gives their outputs; None where there is no way. inputs: those marked in are_rows
        have one more dimension in front, as the outputs do. An elementwise op needs none.
    """

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: Mapping[str, AttrDef]
    doc: str
    shape: ShapeFunction
    reference: Reference | None = None
    gradient: Callable[..., Any] | NotDifferentiable | None = None
    gradient_takes_slices: bool = False
    constant_inputs: tuple[str, ...] = ()
    constant_outputs: tuple[str, ...] = ()
    defined_for: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    value: ValueFunction | None = None
    refused: RefusedIntegers | None = None
    bound: BoundFunction | None = None
    shape_inputs: tuple[str, ...] = ()
    launch_inputs: tuple[str, ...] = ()
    planned: PlannedFunction | None = None
    reads: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    on_host: bool = False
    resource: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    blocks: bool = False
    stateful: bool = False
    stream: RandomDraw | None = None
    role: Role | None = None
    update_op: str = ""
    resource_op: str = ""
    elementwise: bool = False
    reduction: Reduction | None = None
    passes_through: bool = False
    shape_only: bool = False
    total_value: bool = False
    reports_to_host: bool = False
    commutative: bool = False
    alias: tuple[tuple[int, int], ...] = ()
    accuracy: Accuracy = EXACT
    samples: Callable[[], Iterable[Sample]] = field(default=tuple)
    errors: Callable[[], Iterable[ErrorSample]] = field(default=tuple)
    python_names: Mapping[str, str] = field(default_factory=dict)
    on_rows: RowForm | None = None
    gradient_notes: tuple[GradientNote, ...] = ()
    sized_by_values: bool = False

    def signature(self) -> tuple[Any, ...]:
        """Returns what two definitions must agree in to count as the same op."""
        return self.name, self.inputs, self.outputs, tuple(sorted(self.attrs.items())), self.stateful

    def planned_inputs(self, attrs: Attrs, constants: Sequence[np.ndarray | None]) -> tuple[str, ...]:
        """Returns names of the inputs whose value a node with these attrs and constants needs
        before it can be planned.
        """
        return self.shape_inputs if self.planned is None else (*self.shape_inputs, *self.planned(attrs, constants))

    @cached_property
    def function_attrs(self) -> tuple[str, ...]:
        """Names of the attrs that name functions of the graph."""
        return tuple(a.name for a in self.attrs.values() if a.kind in ("func", "list(func)"))

    @cached_property
    def number_attrs(self) -> tuple[str, ...]:
        """Names of the attrs that say how many tensors a list of inputs or outputs has."""
        found = dict.fromkeys(arg.number_attr for arg in (*self.inputs, *self.outputs))
        return tuple(name for name in found if name is not None)

    def functions(self, attrs: Attrs) -> list[str]:
        """Returns names of the functions that a node with these attrs runs, in the order of the attrs."""
        names: list[str] = []
        for attr in self.function_attrs:
            value = attrs[attr]
            names.extend([value] if isinstance(value, str) else value)
        return names

    def bind_functions(self, attrs: Attrs, functions: Sequence[Any]) -> dict[str, Any]:
        """Returns the attrs that name functions, with others (names, or the functions) in place of those in `attrs`."""
        given = iter(functions)
        bound: dict[str, Any] = {}
        for attr in self.function_attrs:
            old = attrs[attr]
            bound[attr] = next(given) if isinstance(old, str) else [next(given) for _ in old]
        return bound

    def input_role(self, arg: ArgDef) -> str:
        """`shape`, `launch` or `data`: when the executor needs the host value of this input."""
        return "shape" if arg.name in self.shape_inputs else "launch" if arg.name in self.launch_inputs else "data"


def define_op(
    name: str,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    attrs: Sequence[str] = (),
    doc: str,
    shape: ShapeFunction,
    **rest: Any,
) -> OpDef:
    """Declares an op and puts it into the registry. The docstring of `OpDef` explains each field.

    inputs, outputs, attrs: in TensorFlow's notation. A single output that is a list may be ``"output: num * T"``.
    """
    attr_defs = {a.name: a for a in map(parse_attr, attrs)}
    if rest.get("refused") and rest.get("reference"):
        rest["reference"] = rest["refused"].checking(rest["reference"])
    op = OpDef(
        name=name,
        inputs=tuple(parse_arg(s, attr_defs) for s in inputs),
        outputs=tuple(parse_arg(s, attr_defs) for s in outputs),
        attrs=attr_defs,
        doc=doc,
        shape=shape,
        **rest,
    )
    check_consistency(op, rest)
    registry.register(op)
    return op


def from_reference(c: InferenceContext) -> list[np.ndarray | None]:
    """Returns a value function that applies the op's reference; for ops whose reference also serves object arrays."""
    if any(v is None for v in c.values):
        return [None] * len(c.op.outputs)
    return list(evaluate(c.op, c.attrs, c.values))


def evaluate(op: OpDef, attrs: Attrs, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
    """Returns what the op's reference gives for these inputs, in the dtypes that it computes
    in, each output as an array.
    """
    assert op.reference is not None, f"op {op.name} has no reference"
    return as_arrays(op.reference(attrs, *inputs))


def as_arrays(result: Any) -> tuple[np.ndarray, ...]:
    """Returns what a reference returned, one output or several, as arrays."""
    outputs = result if isinstance(result, tuple | list) else (result,)
    return tuple(x if isinstance(x, np.ndarray) else np.asarray(x) for x in outputs)
