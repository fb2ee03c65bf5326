"""A node of a model as its translator sees it: attributes, opset, and what it may ask of the model around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import onnx

from timberframe_onnx.elements import Array
from timberframe_onnx.errors import UnknownBeforeRun, Unsupported
from timberframe_onnx.translation.folding import static as static
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.values import Tensor, Value

if TYPE_CHECKING:
    from timberframe_onnx.translation.scope import Scope


class Node:
    """A node of a model.

    op, domain, opset, name: its own; domain "" is ONNX's default. outputs: the names of its outputs, "" for one that is
    not wanted. attributes: by name; texts are str, tensors TensorProto, graphs GraphProto. scope: where it stands.
    """

    def __init__(
        self,
        scope: Scope,
        op: str,
        attributes: Mapping[str, Any],
        outputs: list[str],
        name: str = "",
        domain: str = "",
        opset: int = 1,
        proto: onnx.NodeProto | None = None,
    ) -> None:
        self.scope = scope
        self.op = op
        self.domain = domain
        self.opset = opset
        self.name = name
        self.outputs = outputs
        self.attributes = dict(attributes)
        self.proto = proto

    def __str__(self) -> str:
        domain = self.domain or "ai.onnx"
        return f"{domain}:{self.op} (opset {self.opset}) '{self.name or ', '.join(self.outputs)}'"

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute, or `default` where it is left out."""
        return self.attributes.get(name, default)

    def wants(self, output: int) -> bool:
        """Returns whether an output is used or asked for."""
        return output < len(self.outputs) and bool(self.outputs[output])

    def require(self, holds: bool, reason: str) -> None:
        """Raises Unsupported with the reason unless `holds`."""
        if not holds:
            raise Unsupported(reason)

    def require_known(self, known: bool, what: str) -> None:
        """Raises UnknownBeforeRun unless `known`; what: as "the size of its batch"."""
        if not known:
            raise UnknownBeforeRun(what)

    def refuse(self, reason: str) -> Any:
        """Raises Unsupported with the reason."""
        raise Unsupported(reason)

    def rank(self, tensor: Tensor, what: str = "input") -> int:
        """Returns the rank of a tensor, which must be known before the model runs."""
        rank = tensor.shape.ndims
        if rank is None:
            raise UnknownBeforeRun(f"the rank of its {what}")
        return int(rank)

    def constant(self, value: Value, what: str = "input") -> Array:
        """Returns the value of an input that must be known before the model runs."""
        known = static(value)
        if known is None:
            raise UnknownBeforeRun(f"the value of its {what}")
        return known


def sizes(tensor: Tensor) -> list[int | None]:
    """Returns the sizes of a tensor, None for those that are known only when the model runs.

    Raises UnknownBeforeRun where the rank is not known.
    """
    if tensor.shape.ndims is None:
        raise UnknownBeforeRun("the rank of an input")
    found: list[int | None] = tensor.shape.as_list()
    return found


def shape_parts(tensor: Tensor, out_type: Any = None) -> list[Any]:
    """Returns the sizes of a tensor of known rank: numbers where they are known, else scalars of the graph (int32)."""
    known = sizes(tensor)
    if None not in known:
        return known
    dynamic = tf.shape(tensor, out_type=out_type or tf.int32)
    return [dynamic[i] if size is None else size for i, size in enumerate(known)]
