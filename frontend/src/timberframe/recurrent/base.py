"""RNNCell: one step of a recurrent network, from inputs and state to output and next state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.constants import zeros
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.nn import bias_add
from timberframe.layers.base import Layer
from timberframe.layers.named import activation_function
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape


class RNNCell(Layer):
    """Base of cells: ``output, state = cell(inputs, state)``.

    inputs: [batch, ...]. The state is a tensor [batch, *state_size], or a structure of such tensors, as `state_size`
    is. A cell of the user's own says `state_size` and `output_size` and has a method `call(inputs, state)`.
    """

    @property
    def state_size(self) -> Any:
        """Sizes of the state: an integer, a TensorShape, or a structure of them."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Size of the output: an integer or a TensorShape."""
        raise NotImplementedError

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Returns the output and the next state. scope: the variable scope, by default one of the cell's name."""
        return super().__call__(inputs, state, *args, scope=scope, **kwargs)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns a state of zeros. batch_size: an integer or a scalar tensor."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            return zero_states(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """`zero_state` for the batch and the dtype of inputs, or for those given."""
        if inputs is not None:
            first = convert_to_tensor(inputs)
            batch_size, dtype = apply_op("GatherV2", [apply_op("Shape", [first]), 0, 0]), first.dtype
        if batch_size is None or dtype is None:
            raise InvalidArgumentError(
                f"{type(self).__name__}.get_initial_state: batch_size or dtype is None; give both, or inputs"
            )
        return self.zero_state(batch_size, dtype)


class UnitsCell(RNNCell):
    """Base of cells whose state and output are [batch, num_units]."""

    def __init__(self, num_units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._num_units = num_units

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


def zero_states(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """States of zeros: [batch_size, *size] for each size of a structure of sizes."""
    return nest.map_structure(lambda size: zeros_for(batch_size, size, dtype), state_size)


def zeros_for(batch_size: Any, size: Any, dtype: Any) -> Tensor:
    """Returns zeros of shape [batch_size, *size]."""
    sizes = TensorShape(size).as_list() if not isinstance(size, int) else [size]
    batch_size = batch_size.value if isinstance(batch_size, Dimension) else batch_size
    known = batch_size if isinstance(batch_size, int) else None
    result: Tensor = zeros([batch_size, *sizes], dtype)
    result.set_shape([known, *sizes])
    return result


def input_depth(cell: RNNCell, inputs_shape: Any) -> int:
    """Returns the size of the inputs' last axis, InvalidArgumentError where it is unknown."""
    sizes = TensorShape(inputs_shape).as_tuple()
    if sizes is None or not sizes or sizes[-1] is None:
        raise InvalidArgumentError(
            f"cell '{cell.name}': inputs have shape {format_shape(sizes)}; the size of their last axis must be known"
        )
    return sizes[-1]


def affine(parts: list[Any], kernel: Any, bias: Any) -> Any:
    """concat(parts, 1) . kernel + bias."""
    joined = parts[0] if len(parts) == 1 else concat(parts, 1)
    return bias_add(apply_op("MatMul", [joined, kernel]), bias)


def activation_of(cell: str, given: Any, default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the function that was given, itself or by a name, or the default for None."""
    return activation_function(cell, given) or default
