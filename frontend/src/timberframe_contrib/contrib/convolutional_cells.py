"""Cells of `tf.contrib.rnn` whose products are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import concat, split
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn_any_rank import convolution
from timberframe.api.unary import sigmoid, tanh
from timberframe.recurrent.base import RNNCell
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape


class ConvLSTMCell(RNNCell):
    """An LSTM whose gates are convolutions of inputs and state (Shi et al. 2015).

    conv_ndims: 1 to 3 spatial dimensions. input_shape: of the inputs without the batch. output_channels, kernel_shape:
    of the filters. skip_connection: the inputs are joined to the outputs. The variables are kernel, and biases with
    use_bias. initializers is TensorFlow's and changes nothing.
    """

    def __init__(
        self, conv_ndims: int, input_shape: Sequence[int], output_channels: int, kernel_shape: Sequence[int],
        use_bias: bool = True, skip_connection: bool = False, forget_bias: float = 1.0, initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise InvalidArgumentError(
                f"ConvLSTMCell: input_shape is {list(input_shape)} for {conv_ndims} dimensions; one more is required"
            )
        self._spatial, self._depth = list(input_shape[:-1]), int(input_shape[-1])
        self._channels, self._kernel_shape = output_channels, list(kernel_shape)
        self._use_bias, self._skip, self._forget_bias = use_bias, skip_connection, forget_bias

    @property
    def state_size(self) -> LSTMStateTuple:
        size = TensorShape([*self._spatial, self._channels])
        return LSTMStateTuple(size, size)

    @property
    def output_size(self) -> TensorShape:
        return TensorShape([*self._spatial, self._channels + (self._depth if self._skip else 0)])

    def build(self, inputs_shape: Any) -> None:
        depth = self._depth + self._channels
        self._kernel = self.add_weight("kernel", [*self._kernel_shape, depth, 4 * self._channels])
        if self._use_bias:
            self._bias = self.add_weight("biases", [4 * self._channels], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        gates: Any = convolution(concat([inputs, h], -1), self._kernel, "SAME")
        parts: Any = split(gates + self._bias if self._use_bias else gates, 4, -1)
        i, new, f, o = parts
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(new)
        output: Any = tanh(c) * sigmoid(o)
        after = LSTMStateTuple(c, output)
        return (concat([output, inputs], -1) if self._skip else output), after


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` along one dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
