"""Cells of `tf.contrib.rnn` that vary the LSTM: normalised gates or kernels, coupled gates, groups of units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, split
from timberframe.api.dropout import dropout
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import bias_add, l2_normalize
from timberframe.api.unary import sigmoid, tanh
from timberframe.api.variable_scope import variable_scope
from timberframe.layers.base import known_size
from timberframe.recurrent.base import activation_of, affine, input_depth
from timberframe.recurrent.cells import LSTMCell, LSTMStateTuple, clipped
from timberframe_contrib.contrib.cell_bases import LayerNorms, LSTMStateCell, joined_rows, sharded_weight
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op

_GATES = ("input", "transform", "forget", "output")


class LayerNormBasicLSTMCell(LSTMStateCell):
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
        super().__init__(num_units, _reuse=reuse)
        self._forget_bias = forget_bias
        self._activation = activation_of("LayerNormBasicLSTMCell", activation, tanh)
        self._layer_norm, self._normed = layer_norm, LayerNorms(norm_gain, norm_shift)
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [input_depth(self, inputs_shape) + units, 4 * units])
        if self._layer_norm:
            self._normed.build(self, (*_GATES, "state"), units)
        else:
            self._bias = self.add_weight("bias", [4 * units])
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        joined = apply_op("MatMul", [concat([inputs, h], 1), self._kernel])
        gates: Any = split(joined if self._layer_norm else bias_add(joined, self._bias), 4, 1)
        i, j, f, o = (self._normed(name, gate) for name, gate in zip(_GATES, gates, strict=True))
        written = self._activation(j)
        if not isinstance(self._keep_prob, int | float) or self._keep_prob < 1:
            written = dropout(written, self._keep_prob, seed=self._seed)
        c = self._normed("state", c * sigmoid(f + self._forget_bias) + sigmoid(i) * written)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


class LayerNormLSTMCell(LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell`, with layer_norm also the gates normalised as in `LayerNormBasicLSTMCell`.

    With layer_norm the bias is a variable that changes nothing, as in TensorFlow.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
        activation: Callable[[Any], Any] | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias=forget_bias,
            activation=activation, reuse=reuse,
        )  # fmt: skip
        self._layer_norm, self._normed = layer_norm, LayerNorms(norm_gain, norm_shift)

    def build(self, inputs_shape: Any) -> None:
        if self._layer_norm:
            self._normed.build(self, (*_GATES, "state"), self._num_units)
        super().build(inputs_shape)

    def _gates(self, inputs: Any, h: Any) -> Any:
        if not self._layer_norm:
            return super()._gates(inputs, h)
        joined = apply_op("MatMul", [concat([inputs, h], 1), self._kernel])
        gates: Any = split(joined, 4, 1)
        return [self._normed(name, gate) for name, gate in zip(_GATES, gates, strict=True)]

    def _bounded(self, c: Any) -> Any:
        return super()._bounded(self._normed("state", c))


class WeightNormLSTMCell(LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell` whose kernels have columns of learned lengths (Salimans and Kingma 2016).

    norm: the rows that inputs meet, those that h meets, and the projection are each divided by the lengths of their
    columns and multiplied with the variables norm_0, norm_1 and projection/norm_0; without it this is `LSTMCell`. The
    variables are in scope wn_lstm_cell/wn_lstm_cell.
    """

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1,
        activation: Callable[[Any], Any] | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias=forget_bias,
            activation=activation, reuse=reuse, name="wn_lstm_cell",
        )  # fmt: skip
        self._norm = norm

    def build(self, inputs_shape: Any) -> None:
        with variable_scope("wn_lstm_cell"):
            super().build(inputs_shape)
            if self._norm:
                self._lengths = [self._columns(f"norm_{i}", 4 * self._num_units) for i in range(2)]
                if self._num_proj is not None:
                    self._projection_lengths = self._columns("projection/norm_0", self._num_proj)

    def _columns(self, name: str, count: int) -> Any:
        return self.add_weight(name, [count], initializer=self._initializer)

    def _gates(self, inputs: Any, h: Any) -> Any:
        if not self._norm:
            return super()._gates(inputs, h)
        parts: Any = split(self._kernel, [known_size(self.name, x.shape, 1) for x in (inputs, h)], 0)
        kernel = concat([l2_normalize(part, 0) * n for part, n in zip(parts, self._lengths, strict=True)], 0)
        return split(affine([inputs, h], kernel, self._bias), 4, 1)

    def _projected(self, h: Any) -> Any:
        if not self._norm:
            return super()._projected(h)
        kernel = l2_normalize(self._projection, 0) * self._projection_lengths
        return clipped(apply_op("MatMul", [h, kernel]), self._proj_clip)


class CoupledInputForgetGateLSTMCell(LSTMStateCell):
    """An LSTM that writes as much as it forgets (Greff et al. 2015): c' = s(f) c + (1 - s(f)) activation(j).

    The arguments are those of `tf.nn.rnn_cell.LSTMCell`, and layer_norm, norm_gain and norm_shift those of
    `LayerNormBasicLSTMCell`. The kernels are in num_unit_shards variables W_0, W_1, ... and num_proj_shards variables
    W_P_0, ...; the others are B, W_F_diag and W_O_diag.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | None = tanh,
        reuse: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(num_units, num_proj, _reuse=reuse)
        self._use_peepholes, self._initializer, self._proj_clip = use_peepholes, initializer, proj_clip
        self._shards, self._projection_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = activation_of("CoupledInputForgetGateLSTMCell", activation, tanh)
        self._layer_norm, self._normed = layer_norm, LayerNorms(norm_gain, norm_shift)

    @property
    def state_size(self) -> Any:
        sizes = super().state_size
        return sizes if self._state_is_tuple else sum(sizes)

    def build(self, inputs_shape: Any) -> None:
        units, start = self._num_units, self._initializer
        rows = input_depth(self, inputs_shape) + self.output_size
        self._kernel = sharded_weight(self, "W", [rows, 3 * units], self._shards, start)
        self._bias = self.add_weight("B", [3 * units], initializer=zeros_initializer)
        if self._layer_norm:
            self._normed.build(self, (*_GATES[1:], "state"), units)
        if self._use_peepholes:
            self._of_f, self._of_o = (self.add_weight(f"W_{gate}_diag", [units], initializer=start) for gate in "FO")
        if self._num_proj is not None:
            self._projection = sharded_weight(self, "W_P", [units, self._num_proj], self._projection_shards, start)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        before: Any = state if self._state_is_tuple else split(state, [self._num_units, self.output_size], 1)
        c, h = before
        joined = apply_op("MatMul", [concat([inputs, h], 1), joined_rows(self._kernel)])
        gates: Any = split(joined if self._layer_norm else bias_add(joined, self._bias), 3, 1)
        j, f, o = (self._normed(name, gate) for name, gate in zip(_GATES[1:], gates, strict=True))
        kept: Any = sigmoid(f + self._forget_bias + (c * self._of_f if self._use_peepholes else 0))
        c = self._normed("state", kept * c + (1 - kept) * self._activation(j))
        h = sigmoid(o + c * self._of_o if self._use_peepholes else o) * self._activation(c)
        if self._num_proj is not None:
            h = clipped(apply_op("MatMul", [h, joined_rows(self._projection)]), self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


class GLSTMCell(LSTMStateCell):
    """An LSTM in groups, each of some inputs and some of h for some of the units (Kuchaiev and Ginsburg 2017).

    number_of_groups: divides num_units, num_proj and the size of the inputs. The variables are group0/kernel,
    group1/kernel, ..., bias_i, bias_j, bias_f, bias_o and projection/kernel. What is written is tanh(j) for every
    activation, as in TensorFlow.
    """

    def __init__(
        self, num_units: int, initializer: Any = None, num_proj: int | None = None, number_of_groups: int = 1,
        forget_bias: float = 1.0, activation: Callable[[Any], Any] | None = tanh, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, num_proj, _reuse=reuse)
        self._initializer, self._groups, self._forget_bias = initializer, number_of_groups, forget_bias
        self._activation = activation_of("GLSTMCell", activation, tanh)
        self._check_groups("num_units", num_units)
        self._check_groups("num_proj", self.output_size)

    def _check_groups(self, what: str, size: int) -> None:
        if self._groups < 1 or size % self._groups:
            raise InvalidArgumentError(
                f"GLSTMCell: {what} is {size} for {self._groups} groups; it must be divisible by their number"
            )

    def build(self, inputs_shape: Any) -> None:
        depth, units, start = input_depth(self, inputs_shape), self._num_units, self._initializer
        self._check_groups("the size of the inputs", depth)
        shape = [(depth + self.output_size) // self._groups, 4 * units // self._groups]
        self._kernels = [self.add_weight(f"group{i}/kernel", shape, initializer=start) for i in range(self._groups)]
        self._biases = [self.add_weight(f"bias_{gate}", [units], initializer=zeros_initializer) for gate in "ijfo"]
        if self._num_proj is not None:
            self._projection = self.add_weight("projection/kernel", [units, self._num_proj], initializer=start)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        of_inputs: Any = split(inputs, self._groups, 1)
        of_h: Any = split(h, self._groups, 1)
        made: list[Any] = [
            split(apply_op("MatMul", [concat([x, own], 1), kernel]), 4, 1)
            for x, own, kernel in zip(of_inputs, of_h, self._kernels, strict=True)
        ]
        gates = [concat(list(parts), 1) for parts in zip(*made, strict=True)]
        parts: Any = [bias_add(gate, bias) for gate, bias in zip(gates, self._biases, strict=True)]
        i, j, f, o = parts
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        h = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            h = apply_op("MatMul", [h, self._projection])
        return h, LSTMStateTuple(c, h)
