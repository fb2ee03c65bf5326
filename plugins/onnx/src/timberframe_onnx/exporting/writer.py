"""A graph of ONNX while it is written: names of values, nodes, constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from timberframe_core.dtypes import DType
from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_onnx.elements import Array, element_of

Exporter = Callable[["Writer", Operation], None]
_TABLE: dict[str, Exporter] = {}
OLDEST_OPSET = 18
"""Reductions take their axes as inputs from it on, and Split the number of its outputs."""


def exports(*ops: str) -> Callable[[Exporter], Exporter]:
    """Enters a function as the exporter of ops: it writes an operation's nodes and names its outputs."""

    def enter(function: Exporter) -> Exporter:
        for op in ops:
            _TABLE[op] = function
        return function

    return enter


def exporter(op: str) -> Exporter | None:
    """Returns the exporter of an op, None where there is none."""
    return _TABLE.get(op)


class NotExportedError(UnimplementedError):
    """Operations that no exporter takes; the message names all of them."""


class Writer:
    """Writes the operations of one graph, or of one body within it.

    names: of the value of each tensor. variables: the value of each variable's operation. opset: of the default domain.
    writing: the name of the operation that is being written, with which the names of its nodes begin; see `written_by`.
    """

    def __init__(self, opset: int, variables: Mapping[Operation, Array], outer: Writer | None = None) -> None:
        self.opset = opset
        self.variables = variables
        self.outer = outer
        self.writing: str = "" if outer is None else outer.writing
        self.names: dict[Tensor, str] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.arrays: dict[str, Array] = {}
        self.failures: list[str] = [] if outer is None else outer.failures
        self.used: set[str] = set() if outer is None else outer.used
        self._constants: dict[tuple[Any, ...], str] = {}

    def fresh(self, name: str) -> str:
        """Returns a name that no value has yet."""
        made, i = name, 0
        while made in self.used:
            i += 1
            made = f"{name}_{i}"
        self.used.add(made)
        return made

    def value(self, tensor: Tensor) -> str:
        """Returns the name of a tensor's value, whose operation has been written."""
        return self.names[tensor]

    def inputs(self, op: Operation) -> list[str]:
        """Returns the names of an operation's inputs."""
        return [self.value(t) for t in op.inputs]

    def add(self, kind: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attributes: Any) -> Any:
        """Adds a node and returns the name of its output, a list where there are several."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        name = self.fresh(f"{self.writing}/{kind}_node" if self.writing else f"{kind}_node")
        self.nodes.append(helper.make_node(kind, list(inputs), names, name, **attributes))
        return names[0] if len(names) == 1 else names

    def give(self, op: Operation, *names: str) -> None:
        """Says which values the outputs of an operation are."""
        for tensor, name in zip(op.outputs, names, strict=False):
            self.names[tensor] = name

    def constant(self, value: Any, dtype: Any = np.int64, name: str = "constant") -> str:
        """Returns the name of a constant; equal small ones are one."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 and array.dtype != object else None
        if key in self._constants:
            return self._constants[key]
        made = self.fresh(name)
        if array.dtype == object:
            texts = [v if isinstance(v, bytes) else str(v).encode() for v in array.ravel()]
            tensor = helper.make_tensor(made, onnx.TensorProto.STRING, array.shape, texts)
        else:
            tensor = numpy_helper.from_array(np.asarray(array, order="C"), made)
        self.initializers.append(tensor)
        self.arrays[made] = array
        if key is not None:
            self._constants[key] = made
        return made

    def known(self, tensor: Tensor) -> Array | None:
        """Returns the value of a tensor that is known without a run, else None."""
        if tensor.op.type == "Const":
            return np.asarray(tensor.op.attrs["value"])
        value = tensor.host_value
        return None if value is None or value.dtype == object else np.asarray(value)

    def known_list(self, tensor: Tensor, op: Operation, what: str) -> list[int]:
        """Returns the elements of a small tensor that must be known."""
        value = self.known(tensor)
        if value is None:
            raise NotExportedError(f"its {what} is not known before it runs")
        return [int(v) for v in value.ravel()]

    def cast(self, name: str, dtype: DType) -> str:
        """Returns the value converted to a dtype."""
        return str(self.add("Cast", [name], to=element_of(dtype)))

    def as_int64(self, tensor: Tensor) -> str:
        """Returns a tensor of integers as ONNX takes shapes and axes."""
        known = self.known(tensor)
        if known is not None:
            return self.constant(known.astype(np.int64))
        name = self.value(tensor)
        return name if tensor.dtype.name == "int64" else str(self.add("Cast", [name], to=onnx.TensorProto.INT64))


def written_by(node: str) -> str:
    """Returns the name of the operation that a node of an exported model stands for, by the node's name."""
    return node.rpartition("/")[0]


def rank_of(tensor: Tensor, op: Operation) -> int:
    """Returns the rank of a tensor, which must be known."""
    if tensor.shape.ndims is None:
        raise NotExportedError(f"the rank of '{tensor.name}' is not known")
    return int(tensor.shape.ndims)
