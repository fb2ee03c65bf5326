"""Cells of `tf.contrib.rnn` around other cells: attention to their own past, projections, embeddings, highways."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, expand_dims, reshape, split
from timberframe.api.composites import embedding_lookup
from timberframe.api.framework import convert_to_tensor
from timberframe.api.initializers import constant_initializer
from timberframe.api.nn import conv2d
from timberframe.api.random_initializers import random_uniform_initializer
from timberframe.api.reduction import reduce_sum
from timberframe.api.softmax import softmax
from timberframe.api.unary import sigmoid, tanh
from timberframe.api.variable_scope import get_variable, get_variable_scope, variable_scope
from timberframe.recurrent.base import RNNCell, affine
from timberframe.recurrent.steps import check_cell
from timberframe.recurrent.wrappers import CellWrapper
from timberframe_contrib.contrib.linear import linear
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError


class AttentionCellWrapper(RNNCell):
    """Attention of a cell to its own last outputs (Bahdanau et al. 2015).

    attn_length: the number of outputs that it sees. attn_size: their size, that of the cell's outputs by default;
    attn_vec_size: of the hidden layer of the scores, attn_size by default. input_size: of what the cell gets, that of
    the inputs by default. The state is (that of the cell, last attention, last outputs).
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        check_cell("AttentionCellWrapper", cell, "tf.contrib.rnn")
        if attn_length <= 0:
            raise InvalidArgumentError(f"AttentionCellWrapper: attn_length is {attn_length}; it must be above zero")
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise InvalidArgumentError(
                "AttentionCellWrapper: state_is_tuple is False and the cell's state is a tuple; it needs it True"
            )
        self._cell, self._length, self._state_is_tuple = cell, attn_length, state_is_tuple
        self._size = attn_size or cell.output_size
        self._hidden_size = attn_vec_size or self._size
        self._input_size = input_size

    @property
    def state_size(self) -> Any:
        return self._sizes() if self._state_is_tuple else sum(self._sizes())

    @property
    def output_size(self) -> int:
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        before: Any = state if self._state_is_tuple else split(state, [int(s) for s in self._sizes()], 1)
        cell_state, attention, past = before
        past = reshape(past, [-1, self._length, self._size])
        size = self._input_size or inputs.shape.as_list()[1]
        output, cell_state = self._cell(linear([inputs, attention], size), cell_state)
        query = concat(nest.flatten(cell_state), 1) if nest.is_nested(cell_state) else cell_state
        attention = self._attention(query, past)
        with variable_scope("attn_output_projection"):
            output = linear([output, attention], self._size)
        past = reshape(concat([past[:, 1:], expand_dims(output, 1)], 1), [-1, self._size * self._length])
        after = (cell_state, attention, past)
        return output, after if self._state_is_tuple else concat(list(after), 1)

    def _sizes(self) -> tuple[Any, int, int]:
        return (self._cell.state_size, self._size, self._size * self._length)

    def _attention(self, query: Any, past: Any) -> Any:
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, self._size, self._hidden_size], query.dtype)
            direction = get_variable("attn_v", [self._hidden_size], query.dtype)
            steps: Any = reshape(past, [-1, self._length, 1, self._size])
            hidden: Any = conv2d(steps, kernel, [1, 1, 1, 1], "SAME")
            wanted: Any = reshape(linear([query], self._hidden_size), [-1, 1, 1, self._hidden_size])
            weights: Any = softmax(reduce_sum(direction * tanh(hidden + wanted), [2, 3]))
            seen = reduce_sum(reshape(weights, [-1, self._length, 1, 1]) * steps, [1, 2])
            return reshape(seen, [-1, self._size])


class _Around(RNNCell):
    """Base of cells around another one, whose state they have."""

    def __init__(self, cell: Any, reuse: Any) -> None:
        super().__init__(_reuse=reuse)
        check_cell(type(self).__name__, cell, "tf.contrib.rnn")
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_Around):
    """A cell whose inputs are activation(inputs . kernel + bias), of size num_proj."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Callable[[Any], Any] | None = None, input_size: int | None = None,
        reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> Any:
        projected = linear([inputs], self._num_proj)
        return self._cell(projected if self._activation is None else self._activation(projected), state)


class OutputProjectionWrapper(_Around):
    """A cell whose outputs are activation(outputs . kernel + bias), of size output_size."""

    def __init__(
        self, cell: Any, output_size: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise InvalidArgumentError(f"OutputProjectionWrapper: output_size is {output_size}; it must be above zero")
        self._output_size, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        output, after = self._cell(inputs, state)
        projected = linear([output], self._output_size)
        return (projected if self._activation is None else self._activation(projected)), after


class EmbeddingWrapper(_Around):
    """A cell whose inputs are the rows of the variable `embedding` that the given numbers name."""

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise InvalidArgumentError(
                f"EmbeddingWrapper: {embedding_classes} classes of size {embedding_size}; both must be above zero"
            )
        self._shape, self._initializer = [embedding_classes, embedding_size], initializer

    def call(self, inputs: Any, state: Any) -> Any:
        bound = math.sqrt(3)
        initializer = self._initializer or get_variable_scope().initializer or random_uniform_initializer(-bound, bound)
        table = get_variable("embedding", self._shape, nest.flatten(state)[0].dtype, initializer)
        return self._cell(embedding_lookup(table, reshape(inputs, [-1])), state)


class HighwayWrapper(CellWrapper):
    """A cell whose outputs are gate * inputs + (1 - gate) * outputs, gate = sigmoid(inputs . carry_w + carry_b).

    The inputs must have the shapes of the outputs (Srivastava et al. 2015). couple_carry_transform_gates: without it
    the outputs have a gate of their own, of transform_w and transform_b. carry_bias_init: first value of carry_b; that
    of transform_b is its negative. The variables are in the scope around the cell.
    """

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._coupled, self._carry_bias = couple_carry_transform_gates, carry_bias_init

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        outputs, after = self._cell(inputs, state, scope)
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(self._highway, inputs, outputs), after

    def _highway(self, inputs: Any, outputs: Any) -> Any:
        inputs = convert_to_tensor(inputs)
        inputs.shape.assert_is_compatible_with(outputs.shape)
        carried: Any = _gate("carry", inputs, self._carry_bias)
        passed: Any = 1 - carried if self._coupled else _gate("transform", inputs, -self._carry_bias)
        return inputs * carried + outputs * passed


def _gate(name: str, inputs: Any, bias: float) -> Any:
    size = inputs.shape.as_list()[1]
    kernel = get_variable(f"{name}_w", [size, size], inputs.dtype)
    shift = get_variable(f"{name}_b", [size], inputs.dtype, constant_initializer(bias))
    return sigmoid(affine([inputs], kernel, shift))


class CompiledWrapper(CellWrapper):
    """A cell as it is: devices compile all that they run. compile_stateful is TensorFlow's and changes nothing."""

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__(cell)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._cell(inputs, state, scope)
