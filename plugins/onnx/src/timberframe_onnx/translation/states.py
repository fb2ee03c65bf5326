"""Values that stay in a session from run to run: variables in the place of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.elements import CODED, NATIVE
from timberframe_onnx.ports import TENSOR, Port
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.values import Tensor


@dataclass(frozen=True)
class Written:
    """A cache [batch, heads, places, size] with some places overwritten by `update`, from `starts` [batch] on.

    `cache` is the value of a variable before the run. Who reads it and `update` apart leaves the variable to be
    overwritten in place, after the last reader; who reads the whole has it copied.
    """

    cache: Tensor
    update: Tensor
    starts: Tensor


@dataclass
class States:
    """The variables of a translation. variables: by the tensor of their values. written: by the tensor that is made."""

    variables: dict[Tensor, Any] = field(default_factory=dict)
    written: dict[Tensor, Written] = field(default_factory=dict)

    def add(self, port: Port) -> Tensor:
        """Returns the value of a new variable of zeros for an input, whose sizes must be known."""
        sizes = port.sizes()
        if port.kind != TENSOR or port.element in CODED or sizes is None or None in sizes:
            raise InvalidArgumentError(f"input {port} is a state; a tensor of known sizes is required")
        name = "".join(c if c.isalnum() else "_" for c in port.name)
        variable = tf.get_variable(
            f"state_{name}", sizes, NATIVE[port.element], tf.zeros_initializer(), use_resource=True, trainable=False
        )
        value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=NATIVE[port.element])
        value.set_shape(sizes)
        self.variables[value] = variable
        return value

    def write(self, cache: Tensor, update: Tensor, starts: Tensor, made: Tensor) -> None:
        """Notes that a tensor is a cache with some places overwritten, where it is the value of a variable."""
        if cache in self.variables:
            self.written[made] = Written(cache, update, starts)

    def update(self, state: Tensor, made: Tensor) -> Any:
        """Returns the op that makes a tensor the value of a state's variable, by some places where that is enough."""
        variable, written = self.variables[state], self.written.get(made)
        if written is None or written.cache is not state:
            return tf.raw_ops.AssignVariableOp(resource=variable.handle, value=made)
        batch, heads, count, _ = (tf.shape(written.update)[i] for i in range(4))
        grid = [
            tf.range(batch)[:, None, None],
            tf.range(heads)[None, :, None],
            tf.cast(written.starts, tf.int32)[:, None, None] + tf.range(count),
        ]
        whole = tf.stack([batch, heads, count])
        indices = tf.stack([tf.broadcast_to(part, whole) for part in grid], -1)
        return tf.raw_ops.ResourceScatterNdUpdate(ref=variable.handle, indices=indices, updates=written.update)


def pairs_of(states: Mapping[str, str], inputs: Mapping[str, Port], outputs: Mapping[str, Port]) -> dict[str, str]:
    """Returns by inputs the outputs that they are in the next run; InvalidArgumentError for unknown names."""
    unknown = sorted({*states} - {*inputs} | {*states.values()} - {*outputs})
    if unknown:
        raise InvalidArgumentError(f"states name {unknown}; inputs are {[*inputs]}, outputs {[*outputs]}")
    return dict(states)
