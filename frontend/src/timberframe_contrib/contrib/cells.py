"""Cells of `tf.contrib.rnn` with an arithmetic of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arithmetic import floormod
from timberframe.api.arrays import concat, split, stop_gradient
from timberframe.api.framework import convert_to_tensor
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.nn import bias_add
from timberframe.api.random_initializers import random_uniform_initializer
from timberframe.api.selection import cast, where
from timberframe.api.unary import exp, log, relu, sigmoid, tanh
from timberframe.layers.base import InputSpec
from timberframe.recurrent.base import UnitsCell, activation_of, affine, input_depth
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_contrib.contrib.cell_bases import LSTMStateCell
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op


class NASCell(LSTMStateCell):
    """The cell that a search for architectures found (Zoph and Le 2017).

    num_proj: size of the output after the product with projection_weights. The variables are recurrent_kernel, kernel,
    bias with use_bias, and projection_weights.
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(num_units, num_proj, _reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._use_bias = use_bias

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


class UGRNNCell(UnitsCell):
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
        super().__init__(num_units, _reuse=reuse)
        self._initializer, self._forget_bias = initializer, forget_bias
        self._activation = activation_of("UGRNNCell", activation, tanh)

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


class IntersectionRNNCell(UnitsCell):
    """A cell with a gate between state and inputs, and one between inputs and outputs (Collins et al. 2017).

    a, h, b, y = [inputs, state] . kernel + bias; state' = s(a + forget_bias) state + (1 - s(a + forget_bias)) tanh(h);
    output = s(b + forget_bias) inputs + (1 - s(b + forget_bias)) y_activation(y), s being the sigmoid. num_in_proj: for
    inputs of another size than num_units, which are then replaced with inputs . in_projection/kernel + bias.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Callable[[Any], Any] | None = relu,
        reuse: Any = None,
    ) -> None:
        super().__init__(num_units, _reuse=reuse)
        self._num_in_proj, self._initializer, self._forget_bias = num_in_proj, initializer, forget_bias
        self._activation = activation_of("IntersectionRNNCell", y_activation, relu)

    def build(self, inputs_shape: Any) -> None:
        depth, units, start = input_depth(self, inputs_shape), self._num_units, self._initializer
        self._projects = depth != units
        if self._projects:
            if not self._num_in_proj:
                raise InvalidArgumentError(
                    f"cell '{self.name}': inputs have size {depth} and there are {units} units; as many are required, "
                    f"or num_in_proj={units}"
                )
            self._projection = self.add_weight("in_projection/kernel", [depth, units], initializer=start)
            self._projection_bias = self.add_weight("in_projection/bias", [units], initializer=zeros_initializer)
        self._kernel = self.add_weight("kernel", [2 * units, 4 * units], initializer=start)
        self._bias = self.add_weight("bias", [4 * units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        if self._projects:
            inputs = affine([inputs], self._projection, self._projection_bias)
        parts: Any = split(affine([inputs, state], self._kernel, self._bias), 4, 1)
        along, h, across, y = parts
        kept: Any = sigmoid(along + self._forget_bias)
        passed: Any = sigmoid(across + self._forget_bias)
        return passed * inputs + (1 - passed) * self._activation(y), kept * state + (1 - kept) * tanh(h)


class PhasedLSTMCell(LSTMStateCell):
    """An LSTM whose units open periodically in time (Neil et al. 2016), called with (times, features) as its inputs.

    times: [batch, 1] of float32 or float64; features: [batch, size] of float32. A unit is open for the part ratio_on of
    its period; while it is closed, it passes leak of the changes. use_peepholes: the gates see c. The periods begin
    between period_init_min and period_init_max, in equal numbers for equal ratios; phases within a period.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: Any = 0.001,
        ratio_on: Any = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: Any = 1.0,
        period_init_max: Any = 1000.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(num_units, dtype=float32, _reuse=reuse)
        self._use_peepholes, self._leak, self._ratio_on = use_peepholes, leak, ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._period_bounds = period_init_min, period_init_max

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        rows = input_depth(self, inputs_shape[1]) + units
        seen = rows + units if self._use_peepholes else rows
        self._weights = {
            scope: (
                self.add_weight(f"{scope}/kernel", [depth, size]),
                self.add_weight(f"{scope}/bias", [size], initializer=zeros_initializer),
            )
            for scope, depth, size in (
                ("mask_gates", seen, 2 * units), ("new_input", rows, units), ("output_gate", seen, units)
            )
        }  # fmt: skip
        self._period = self.add_weight("period", [units], initializer=self._first_periods)
        phases = random_uniform_initializer(0.0, self._period.initial_value)
        self._phase = self.add_weight("phase", [units], initializer=phases)
        self._ratio = self.add_weight(
            "ratio_on", [units], initializer=constant_initializer(self._ratio_on), trainable=self._trainable_ratio_on
        )
        self.built = True

    def _first_periods(self, shape: Any, dtype: Any = float32, partition_info: Any = None) -> Any:
        least, most = (log(convert_to_tensor(bound, dtype)) for bound in self._period_bounds)
        return exp(random_uniform_initializer(least, most)(shape, dtype))

    def call(self, inputs: Any, state: Any) -> Any:
        times, x = inputs
        c_before, h_before = state
        gates: Any = split(sigmoid(self._affine("mask_gates", x, h_before, c_before)), 2, 1)
        i, f = gates
        c = c_before * f + i * tanh(affine([x, h_before], *self._weights["new_input"]))
        h: Any = tanh(c) * sigmoid(self._affine("output_gate", x, h_before, c))
        open_: Any = self._openness(times)
        c, h = open_ * c + (1 - open_) * c_before, open_ * h + (1 - open_) * h_before
        return h, LSTMStateTuple(c, h)

    def _affine(self, scope: str, x: Any, h: Any, c: Any) -> Any:
        return affine([x, h, c] if self._use_peepholes else [x, h], *self._weights[scope])

    def _openness(self, times: Any) -> Any:
        """Returns how far each unit is open, in [0, 1]; its gradient with respect to the
        times is that within a period.
        """
        phase, period = cast(self._phase, times.dtype), cast(self._period, times.dtype)
        shifted = times - phase
        within = stop_gradient(floormod(shifted, period) - shifted) + shifted
        ratio: Any = cast(within / period, float32)
        on: Any = self._ratio
        rising = 2 * ratio / on
        opened: Any = where(ratio < on, 2 - rising, self._leak * ratio)
        return where(ratio < 0.5 * on, rising, opened)
