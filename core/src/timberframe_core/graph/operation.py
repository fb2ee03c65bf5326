"""Operation and Tensor: nodes of a graph and the values that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from traceback import FrameSummary, StackSummary
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.defaults import default_session
from timberframe_core.graph.operator_types import Operators
from timberframe_core.graph.reference import Reference
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.library import user_line
from timberframe_core.shapes import Shape, format_shape

if TYPE_CHECKING:
    from timberframe_core.graph.graph import Graph
    from timberframe_core.ops.definition.opdef import NotDifferentiable, OpDef


class Tensor(Operators):
    """A value that an operation makes when a graph runs. It has no data itself.

    Operators and slicing build further operations; `==` and `!=` compare identity, as in TensorFlow 1.
    """

    __slots__ = ("__dict__", "__weakref__", "_shape", "dtype", "handle", "host_value", "op", "value_index")
    # __dict__ is for attributes that programs give to tensors, as libraries of layers for TensorFlow 1 do.
    __array_priority__ = 100  # so that ndarray + Tensor asks the Tensor
    eager = False
    """Whether it has its value already: see timberframe_core.graph.eager_tensor."""

    def __init__(self, op: Operation, value_index: int, dtype: DType, shape: Shape) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self._shape = shape
        self.handle: tuple[DType | None, Shape] | None = None
        """Of a resource handle: dtype and shape of its variable."""
        self.host_value: np.ndarray | None = None
        """What is known of the value while building: small constants and shape arithmetic (see opdef.UNKNOWN)."""

    @property
    def static_shape(self) -> Shape:
        """The known shape as a plain tuple."""
        return self._shape

    @property
    def shape(self) -> TensorShape:
        """The known shape."""
        return TensorShape(self._shape)

    def get_shape(self) -> TensorShape:
        """Returns the known shape; TensorFlow 1's older spelling."""
        return TensorShape(self._shape)

    def set_shape(self, shape: Any) -> None:
        """Adds knowledge about the shape; raises InvalidArgumentError where it contradicts what is known."""
        self._shape = self.shape.merge_with(shape).as_tuple()

    def forget(self) -> None:
        """Drops what is known of shape and value."""
        self._shape = self.host_value = None

    @property
    def name(self) -> str:
        """The name of its operation, and which of its outputs it is: `name:0`."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        """The graph that it is in."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device that its operation asks for."""
        return self.op.device

    @property
    def ndim(self) -> int | None:
        """The number of dimensions, None where it is not known."""
        return self.shape.ndims

    def ref(self) -> Reference:
        """Returns what stands for the tensor itself in sets and dicts, also where `==` compares values."""
        return Reference(self)

    experimental_ref = ref

    def consumers(self) -> list[Operation]:
        """Returns the operations of the graph that have this tensor as an input."""
        return [op for op in self.graph.get_operations() if self in op.inputs]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Returns the value in `session`, or in the default session."""
        return default_session(session, self.graph).run(self, feed_dict)

    def __bool__(self) -> bool:
        raise InvalidTypeError(
            f"Tensor '{self.name}' is used as a Python bool; while the graph is built it has no value, "
            "use tf.cond, tf.while_loop or Session.run"
        )

    def __len__(self) -> int:
        raise InvalidTypeError(f"Tensor '{self.name}' has no Python length; use tensor.shape or tf.shape(tensor)")

    def __contains__(self, value: object) -> bool:
        raise InvalidTypeError(
            f"Tensor '{self.name}' is used with Python's `in`; while the graph is built it has no value, "
            "use tf.reduce_any(tf.equal(tensor, value))"
        )

    def __iter__(self) -> Any:
        shape = self._shape
        if not shape or shape[0] is None:
            raise InvalidTypeError(
                f"Tensor '{self.name}' of shape {format_shape(shape)} cannot be iterated; its first size must be known"
            )
        return (self[i] for i in range(shape[0]))

    if TYPE_CHECKING:  # it adds nodes, and so comes with timberframe_core.graph.slicing

        def __getitem__(self, key: Any) -> Tensor: ...

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InvalidTypeError(f"Tensor '{self.name}' has no value while the graph is built; fetch it with Session.run")

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={format_shape(self._shape)} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self._shape is None else f", shape={format_shape(self._shape)}"
        device = f", device={self.op.device}" if self.op.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name}{device})'


def open_inputs(op: Operation) -> tuple[Tensor, ...]:
    """Returns the inputs without those that close a loop, the only ones that may be younger than the operation."""
    if op.op_def.role != "merge":
        return op.inputs
    return tuple(t for t in op.inputs if t.op.op_def.role != "next_iteration")


class Operation:
    """A node: an op with its inputs and attrs. `attrs` holds every attr of the op, defaults included."""

    __slots__ = (
        "__weakref__", "_where", "attrs", "colocation", "control_inputs", "device", "gradient", "graph", "id",
        "inputs", "name", "op_def", "outputs", "unsupported",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        op_def: OpDef,
        name: str,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        control_inputs: tuple[Operation, ...],
    ) -> None:
        self.graph = graph
        self.op_def = op_def
        self.name = name
        self.inputs = inputs
        self.attrs = attrs
        self.control_inputs = control_inputs
        self.device = ""
        self.colocation: tuple[str, ...] = ()
        self.outputs: tuple[Tensor, ...] = ()
        self.gradient: Callable[..., Any] | NotDifferentiable | None = op_def.gradient
        """How this operation is differentiated: as its op is, unless somebody says otherwise."""
        self.unsupported: UnimplementedError | None = None
        """What an imported operation needs and no device provides; raised when it is to run."""
        self.id = -1
        """Position in the graph's creation order, which is a topological order but for what closes a loop."""
        self._where = user_line()

    @property
    def type(self) -> str:
        """Name of the op."""
        return self.op_def.name

    @property
    def where(self) -> str:
        """file:line of the user's code that made this operation."""
        return "" if self._where is None else f"{self._where[0]}:{self._where[1]}"

    @property
    def traceback(self) -> StackSummary:
        """The line of the user's code that made this operation, as a stack of one entry; of none for no such code.

        TensorFlow's has the callers, too; to keep them would make the building of graphs slower.
        """
        where = self._where
        return StackSummary.from_list([] if where is None else [FrameSummary(*where)])

    def values(self) -> tuple[Tensor, ...]:
        """Returns its outputs, which messages of TensorFlow 1 list so."""
        return self.outputs

    def colocation_groups(self) -> list[bytes]:
        """Returns the operations on whose device it is to be, itself where there are none: `loc:@<name>`, sorted."""
        return sorted(f"loc:@{name}".encode() for name in self.colocation or (self.name,))

    if TYPE_CHECKING:  # it comes with timberframe_core.graphdef

        @property
        def node_def(self) -> Any: ...

    def get_attr(self, name: str) -> Any:
        """Returns the attr's value; raises InvalidArgumentError for a name that the op does not have."""
        try:
            return self.attrs[name]
        except KeyError:
            raise InvalidArgumentError(
                f"{self.type} '{self.name}': no attr {name!r}; it has {', '.join(sorted(self.attrs)) or 'none'}",
                self.name,
            ) from None

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Runs this operation in `session`, or in the default session."""
        default_session(session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"
