"""Cells of recurrent networks: simple, gated, and with long short-term memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from timberframe.api.arrays import concat, split
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.selection import clip_by_value
from timberframe.api.unary import sigmoid, tanh
from timberframe.layers.base import InputSpec
from timberframe.recurrent.base import RNNCell, UnitsCell, activation_of, affine, input_depth
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op


class LSTMStateTuple(NamedTuple):
    """State of an LSTM cell: c, what it remembers, and h, its last output; both [batch, units]."""

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """The dtype of both; InvalidArgumentError where they differ."""
        if self.c.dtype != self.h.dtype:
            raise InvalidArgumentError(
                f"LSTMStateTuple: c is {self.c.dtype.name}, h {self.h.dtype.name}; give one dtype"
            )
        return self.c.dtype  # type: ignore[no-any-return]  # a DType


class BasicRNNCell(UnitsCell):
    """output = state = activation([inputs, state] . kernel + bias). activation: tanh by default."""

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._activation = activation_of("BasicRNNCell", activation, tanh)

    def build(self, inputs_shape: Any) -> None:
        depth = input_depth(self, inputs_shape)
        self._kernel = self.add_weight("kernel", [depth + self._num_units, self._num_units])
        self._bias = self.add_weight("bias", [self._num_units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        output = self._activation(affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(UnitsCell):
    """Gated recurrent unit (Cho et al. 2014), as in TensorFlow: the reset gate is applied before the product.

    r, u = sigmoid([inputs, h] . gates/kernel + gates/bias); c = activation([inputs, r h] . candidate/kernel + bias);
    output = state = u h + (1 - u) c. The gates' bias starts at 1 unless bias_initializer says otherwise.
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._activation = activation_of("GRUCell", activation, tanh)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        depth, units = input_depth(self, inputs_shape) + self._num_units, self._num_units
        kernels, biases = self._kernel_initializer, self._bias_initializer
        self._gate_kernel = self.add_weight("gates/kernel", [depth, 2 * units], initializer=kernels)
        ones = constant_initializer(1.0) if biases is None else biases
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight("candidate/kernel", [depth, units], initializer=kernels)
        start = zeros_initializer if biases is None else biases
        self._candidate_bias = self.add_weight("candidate/bias", [units], initializer=start)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        gates = sigmoid(affine([inputs, state], self._gate_kernel, self._gate_bias))
        parts: Any = split(gates, 2, 1)
        r, u = parts
        candidate = self._activation(affine([inputs, r * state], self._candidate_kernel, self._candidate_bias))
        output = u * state + (1 - u) * candidate
        return output, output


class BasicLSTMCell(RNNCell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; forget gates: Gers et al. 2000).

    i, j, f, o = [inputs, h] . kernel + bias; c' = c sigmoid(f + forget_bias) + sigmoid(i) activation(j);
    output = h' = activation(c') sigmoid(o). state_is_tuple: the state is an `LSTMStateTuple`, else [batch, 2 units],
    c before h.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units, self._forget_bias, self._state_is_tuple = num_units, forget_bias, state_is_tuple
        self._activation = activation_of("BasicLSTMCell", activation, tanh)

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units) if self._state_is_tuple else 2 * self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        depth = input_depth(self, inputs_shape)
        self._kernel = self.add_weight("kernel", [depth + self._num_units, 4 * self._num_units])
        self._bias = self.add_weight("bias", [4 * self._num_units], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state if self._state_is_tuple else split(state, 2, 1)
        gates: Any = split(affine([inputs, h], self._kernel, self._bias), 4, 1)
        i, j, f, o = gates
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


class LSTMCell(RNNCell):
    """`BasicLSTMCell` with peepholes and a projection of its output (Sak et al. 2014).

    use_peepholes: the gates also see c, through the diagonals w_i_diag, w_f_diag and w_o_diag. cell_clip: bound of |c|.
    num_proj: size of the output after the product with projection/kernel; proj_clip: bound of its values.
    initializer: of all kernels. num_unit_shards and num_proj_shards must be None.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        if num_unit_shards is not None or num_proj_shards is not None:
            raise InvalidArgumentError("LSTMCell: num_unit_shards or num_proj_shards is given; both must be None")
        self.input_spec = InputSpec(ndim=2)
        self._num_units, self._num_proj = num_units, num_proj
        self._use_peepholes, self._cell_clip, self._proj_clip = use_peepholes, cell_clip, proj_clip
        self._initializer, self._forget_bias, self._state_is_tuple = initializer, forget_bias, state_is_tuple
        self._activation = activation_of(type(self).__name__, activation, tanh)

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, inputs_shape: Any) -> None:
        depth, units, start = input_depth(self, inputs_shape), self._num_units, self._initializer
        self._kernel = self.add_weight("kernel", [depth + self.output_size, 4 * units], initializer=start)
        self._bias = self.add_weight("bias", [4 * units], initializer=zeros_initializer)
        if self._use_peepholes:
            self._of_f, self._of_i, self._of_o = (
                self.add_weight(f"w_{gate}_diag", [units], initializer=start) for gate in "fio"
            )
        if self._num_proj is not None:
            self._projection = self.add_weight("projection/kernel", [units, self._num_proj], initializer=start)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        before: Any = state if self._state_is_tuple else split(state, [self._num_units, self.output_size], 1)
        c, h = before
        i, j, f, o = self._gates(inputs, h)
        f = f + self._forget_bias
        if self._use_peepholes:
            i, f = i + c * self._of_i, f + c * self._of_f
        c = self._bounded(sigmoid(f) * c + sigmoid(i) * self._activation(j))
        h = sigmoid(o + c * self._of_o if self._use_peepholes else o) * self._activation(c)
        if self._num_proj is not None:
            h = self._projected(h)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)

    def _gates(self, inputs: Any, h: Any) -> Any:
        return split(affine([inputs, h], self._kernel, self._bias), 4, 1)

    def _bounded(self, c: Any) -> Any:
        return clipped(c, self._cell_clip)

    def _projected(self, h: Any) -> Any:
        return clipped(apply_op("MatMul", [h, self._projection]), self._proj_clip)


def clipped(x: Any, bound: float | None) -> Any:
    """x between -bound and bound, or as it is for None."""
    return x if bound is None else clip_by_value(x, -bound, bound)
