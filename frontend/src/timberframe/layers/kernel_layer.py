"""What layers of one product have in common: a kernel, a bias and an activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.nn import bias_add
from timberframe.layers.base import Layer
from timberframe.layers.named import activation_function


class KernelLayer(Layer):
    """Base of layers of activation(product of inputs and kernel + bias); the arguments are those of `Dense`."""

    def __init__(
        self,
        activation: Callable[[Any], Any] | None,
        use_bias: bool,
        kernel_initializer: Any,
        bias_initializer: Any,
        kernel_regularizer: Callable[[Any], Any] | None,
        bias_regularizer: Callable[[Any], Any] | None,
        activity_regularizer: Callable[[Any], Any] | None,
        kernel_constraint: Callable[[Any], Any] | None,
        bias_constraint: Callable[[Any], Any] | None,
        trainable: bool,
        name: str | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.activation = activation_function(f"layer '{self._base_name}'", activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint

    def build_kernel(self, shape: list[int]) -> None:
        """Makes the kernel."""
        self.kernel = self.add_weight(
            "kernel", shape, None, self.kernel_initializer, self.kernel_regularizer, constraint=self.kernel_constraint
        )

    def build_bias(self, size: int) -> None:
        """Makes the bias if there is one."""
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [size], None, self.bias_initializer, self.bias_regularizer, constraint=self.bias_constraint
            )

    def finish(self, result: Any, data_format: str = "NHWC") -> Any:
        """Adds the bias and applies the activation."""
        if self.bias is not None:
            result = bias_add(result, self.bias, data_format)
        return result if self.activation is None else self.activation(result)
