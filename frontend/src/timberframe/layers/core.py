"""Layers of one product, dropout, and flattening."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import reshape, shape
from timberframe.api.contraction import tensordot
from timberframe.api.dropout import dropout as nn_dropout
from timberframe.api.initializers import zeros_initializer
from timberframe.layers.base import InputSpec, Layer, known_size
from timberframe.layers.functions import layer_function
from timberframe.layers.kernel_layer import KernelLayer
from timberframe.layers.switch import smart_cond
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class Dense(KernelLayer):
    """activation(inputs . kernel + bias), along the last axis; kernel: [size of that axis, units].

    units: size of the output's last axis. activation: a function, None for none. Regularizers are functions of the
    variable, or for activity of the output, whose results are losses. Constraints change a variable after each update.
    All of them, and initializers, may also be given by Keras's names, such as "relu", "he_normal" or "l2".
    """

    def __init__(
        self,
        units: int,
        activation: Callable[[Any], Any] | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer,
        kernel_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        kernel_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip
        if isinstance(units, bool | str) or int(units) != units:
            raise InvalidTypeError(f"layer '{self._base_name}': units is {units!r}; an integer is required")
        self.units = int(units)
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        self.require_numbers()
        size = known_size(self.name, input_shape, -1)
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.build_kernel([size, self.units])
        self.build_bias(self.units)
        self.built = True

    def call(self, inputs: Tensor) -> Any:
        rank = inputs.shape.ndims
        if rank is None or rank == 2:
            result = apply_op("MatMul", [inputs, self.kernel])
        else:
            result = tensordot(inputs, self.kernel, [[rank - 1], [0]])
            result.set_shape(self.compute_output_shape(inputs.shape).as_tuple())
        return self.finish(result)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape([*TensorShape(input_shape).as_list()[:-1], self.units])


class Dropout(Layer):
    """Sets elements to zero at random while training, and scales the others so that the expected sum stays.

    rate: probability of a zero. noise_shape: broadcasts against the inputs; along its sizes of 1 elements are kept or
    dropped together. `training`, an argument of the call: a bool or a scalar tensor.
    """

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Tensor, training: Any = False) -> Any:
        def dropped() -> Tensor:
            return nn_dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

        return smart_cond(training, dropped, lambda: apply_op("Identity", [inputs]))

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape(input_shape)


class Flatten(Layer):
    """All axes but the first as one. data_format: with "channels_first" the channels become the fastest axis."""

    def __init__(self, data_format: str = "channels_last", name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = data_format
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, inputs: Tensor) -> Any:
        rank = inputs.shape.ndims
        if self.data_format == "channels_first" and rank is not None and rank > 2:
            inputs = apply_op("Transpose", [inputs, [0, *range(2, rank), 1]])
        sizes = self.compute_output_shape(inputs.shape)
        first = sizes.as_list()[0]
        result = reshape(inputs, [shape(inputs)[0] if first is None else first, -1])
        result.set_shape(sizes.as_tuple())
        return result

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        sizes = TensorShape(input_shape)
        if sizes.ndims is None:
            return TensorShape([None, None])
        return TensorShape([sizes.as_list()[0], TensorShape(sizes.as_list()[1:]).num_elements()])


dense = layer_function(Dense, "dense")
flatten = layer_function(Flatten, "flatten")


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """Returns a `Dropout` layer, made and called on `inputs`. training: a bool or a scalar tensor."""
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)
