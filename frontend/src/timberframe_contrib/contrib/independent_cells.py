"""Cells of `tf.contrib.rnn` whose units see no state but their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, split, tile
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.nn import bias_add
from timberframe.api.random_initializers import random_uniform_initializer
from timberframe.api.unary import sigmoid, tanh
from timberframe.layers.base import InputSpec
from timberframe.recurrent.base import UnitsCell, activation_of, input_depth
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_contrib.contrib.cell_bases import LSTMStateCell
from timberframe_core.graph.apply import apply_op


def _recurrent(cell: Any, name: str, size: int) -> Any:
    """Returns the factors of a state's units, which begin between -1 and 1."""
    return cell.add_weight(name, [1, size], initializer=random_uniform_initializer(-1, 1))


def _gates(count: int, inputs: Any, state: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    """inputs . kernel + state * recurrent + bias, the state once for each of `count` gates."""
    repeated: Any = state if count == 1 else tile(state, [1, count])
    product: Any = apply_op("MatMul", [inputs, kernel])
    return bias_add(product + repeated * recurrent, bias)


class IndRNNCell(UnitsCell):
    """output = state = activation(inputs . kernel_w + state * kernel_u + bias) (Li et al. 2018)."""

    def __init__(
        self, num_units: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._activation = activation_of("IndRNNCell", activation, tanh)

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel_w", [input_depth(self, inputs_shape), units])
        self._recurrent = _recurrent(self, "kernel_u", units)
        self._bias = self.add_weight("bias", [units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        output = self._activation(_gates(1, inputs, state, self._kernel, self._recurrent, self._bias))
        return output, output


class IndyGRUCell(UnitsCell):
    """`tf.nn.rnn_cell.GRUCell` whose products with the state are by unit (Li et al. 2018; Gonnet and Deselaers 2019).

    The variables are gates/kernel_w, gates/kernel_u, gates/bias, candidate/kernel, candidate/kernel_u, candidate/bias.
    """

    def __init__(
        self, num_units: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._activation = activation_of("IndyGRUCell", activation, tanh)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        depth, units = input_depth(self, inputs_shape), self._num_units
        kernels, biases = self._kernel_initializer, self._bias_initializer
        self._gate_weights = (
            self.add_weight("gates/kernel_w", [depth, 2 * units], initializer=kernels),
            _recurrent(self, "gates/kernel_u", 2 * units),
            self.add_weight("gates/bias", [2 * units], initializer=biases or constant_initializer(1.0)),
        )
        self._candidate_weights = (
            self.add_weight("candidate/kernel", [depth, units], initializer=kernels),
            _recurrent(self, "candidate/kernel_u", units),
            self.add_weight("candidate/bias", [units], initializer=biases or zeros_initializer),
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        parts: Any = split(sigmoid(_gates(2, inputs, state, *self._gate_weights)), 2, 1)
        r, u = parts
        candidate = self._activation(_gates(1, inputs, r * state, *self._candidate_weights))
        output = u * state + (1 - u) * candidate
        return output, output


class IndyLSTMCell(LSTMStateCell):
    """`tf.nn.rnn_cell.BasicLSTMCell` whose products with h are by unit (Gonnet and Deselaers 2019).

    The variables are kernel_w, kernel_u and bias.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, activation: Callable[[Any], Any] | None = None,
        reuse: Any = None, kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._forget_bias = forget_bias
        self._activation = activation_of("IndyLSTMCell", activation, tanh)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        depth, size = input_depth(self, inputs_shape), 4 * self._num_units
        self._kernel = self.add_weight("kernel_w", [depth, size], initializer=self._kernel_initializer)
        self._recurrent = _recurrent(self, "kernel_u", size)
        self._bias = self.add_weight("bias", [size], initializer=self._bias_initializer or zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        parts: Any = split(_gates(4, inputs, h, self._kernel, self._recurrent, self._bias), 4, 1)
        i, j, f, o = parts
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


class SRUCell(UnitsCell):
    """Simple recurrent unit, whose gates do not see the state (Lei et al. 2017).

    new, f, r, past = inputs . kernel, f and r with the bias; c' = s(f) c + (1 - s(f)) new;
    output = s(r) activation(c') + (1 - s(r)) past, s being the sigmoid. The state is c.
    """

    def __init__(
        self, num_units: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse, name=name, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._activation = activation_of("SRUCell", activation, tanh)

    def build(self, inputs_shape: Any) -> None:
        self._kernel = self.add_weight("kernel", [input_depth(self, inputs_shape), 4 * self._num_units])
        self._bias = self.add_weight("bias", [2 * self._num_units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        parts: Any = split(apply_op("MatMul", [inputs, self._kernel]), 4, 1)
        new, f, r, past = parts
        gates: Any = split(sigmoid(bias_add(concat([f, r], 1), self._bias)), 2, 1)
        f, r = gates
        c = f * state + (1 - f) * new
        return r * self._activation(c) + (1 - r) * past, c
