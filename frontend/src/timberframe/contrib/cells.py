"""Cells of `tf.contrib.rnn` with an arithmetic of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, split
from timberframe.api.dropout import dropout
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.nn import batch_normalization, bias_add, moments
from timberframe.api.unary import relu, sigmoid, tanh
from timberframe.layers.base import InputSpec
from timberframe.recurrent.base import RNNCell, activation_of, input_depth
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_core.graph.apply import apply_op


class LayerNormBasicLSTMCell(RNNCell):
    """`BasicLSTMCell` with normalised gates (Ba et al. 2016) and dropout of what is written (Semeniuta et al. 2016).

    layer_norm: the gates and the next c have mean 0 and deviation 1 over the units, times gamma plus beta, which are
    variables in scopes input, transform, forget, output and state; then there is no bias. norm_gain and norm_shift:
    their first values. dropout_keep_prob: the probability of keeping a value. input_size is TensorFlow's and changes
    nothing.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: int | None = None,
        activation: Callable[[Any], Any] | None = tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._activation = activation_of("LayerNormBasicLSTMCell", activation, tanh)
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [input_depth(self, inputs_shape) + units, 4 * units])
        self._norms: dict[str, tuple[Any, Any]] = {}
        if not self._layer_norm:
            self._bias = self.add_weight("bias", [4 * units])
        for part in ("input", "transform", "forget", "output", "state") if self._layer_norm else ():
            gamma = self.add_weight(f"{part}/gamma", [units], initializer=constant_initializer(self._gain))
            beta = self.add_weight(f"{part}/beta", [units], initializer=constant_initializer(self._shift))
            self._norms[part] = gamma, beta
        self.built = True

    def _normed(self, part: str, x: Any) -> Any:
        if not self._layer_norm:
            return x
        gamma, beta = self._norms[part]
        mean, variance = moments(x, [1], keep_dims=True)
        return batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        joined = apply_op("MatMul", [concat([inputs, h], 1), self._kernel])
        gates: Any = split(joined if self._layer_norm else bias_add(joined, self._bias), 4, 1)
        names = ("input", "transform", "forget", "output")
        i, j, f, o = (self._normed(name, gate) for name, gate in zip(names, gates, strict=True))
        written = self._activation(j)
        if not isinstance(self._keep_prob, int | float) or self._keep_prob < 1:
            written = dropout(written, self._keep_prob, seed=self._seed)
        c = self._normed("state", c * sigmoid(f + self._forget_bias) + sigmoid(i) * written)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


class NASCell(RNNCell):
    """The cell that a search for architectures found (Zoph and Le 2017).

    num_proj: size of the output after the product with projection_weights. The variables are recurrent_kernel, kernel,
    bias with use_bias, and projection_weights.
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units, self._num_proj, self._use_bias = num_units, num_proj, use_bias

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, inputs_shape: Any) -> None:
        depth, size = input_depth(self, inputs_shape), 8 * self._num_units
        self._recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, size])
        self._kernel = self.add_weight("kernel", [depth, size])
        if self._use_bias:
            self._bias = self.add_weight("bias", [size], initializer=zeros_initializer)
        if self._num_proj is not None:
            self._projection = self.add_weight("projection_weights", [self._num_units, self._num_proj])
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, m = state
        recurrent = apply_op("MatMul", [m, self._recurrent_kernel])
        if self._use_bias:
            recurrent = bias_add(recurrent, self._bias)
        given: Any = split(apply_op("MatMul", [inputs, self._kernel]), 8, 1)
        before: Any = split(recurrent, 8, 1)
        x = [a * b if n == 3 else a + b for n, (a, b) in enumerate(zip(given, before, strict=True))]
        first = tanh(sigmoid(x[0]) * relu(x[1]))
        second = tanh(sigmoid(x[2]) + relu(x[3]))
        third = tanh(tanh(x[4]) * sigmoid(x[5]))
        fourth = sigmoid(tanh(x[6]) + sigmoid(x[7]))
        c = tanh(first + c) * second
        m = tanh(c * tanh(third + fourth))
        if self._num_proj is not None:
            m = apply_op("MatMul", [m, self._projection])
        return m, LSTMStateTuple(c, m)


class UGRNNCell(RNNCell):
    """A cell with one gate between its state and its inputs (Collins et al. 2017).

    g, c = [inputs, h] . kernel + bias; output = state = s h + (1 - s) activation(c), s = sigmoid(g + forget_bias).
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Callable[[Any], Any] | None = tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer, self._forget_bias = num_units, initializer, forget_bias
        self._activation = activation_of("UGRNNCell", activation, tanh)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        depth, units = input_depth(self, inputs_shape), self._num_units
        self._kernel = self.add_weight("kernel", [depth + units, 2 * units], initializer=self._initializer)
        self._bias = self.add_weight("bias", [2 * units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        parts: Any = split(bias_add(apply_op("MatMul", [concat([inputs, state], 1), self._kernel]), self._bias), 2, 1)
        g, c = parts
        kept: Any = sigmoid(g + self._forget_bias)
        output = kept * state + (1 - kept) * self._activation(c)
        return output, output
