"""Accumulators: gradients that several runs add, and one takes when there are enough."""

from __future__ import annotations

from typing import Any

from timberframe.api.selection import cast
from timberframe_core.dtypes import DType, as_dtype, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape

__all__ = ["ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator"]


class ConditionalAccumulatorBase:
    """Adds up gradients that were computed for its step, and drops those of earlier ones.

    dtype, shape: of the gradients; shape None is any. accumulator_ref: the handle, which a subclass makes.
    """

    _PREFIX = ""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = TensorShape(as_shape(shape))
        self._accumulator_ref = accumulator_ref
        self._name: str = accumulator_ref.op.name.rpartition("/")[2]

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The last part of the name of the operation that makes it."""
        return self._name

    @property
    def dtype(self) -> DType:
        """Dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Returns how many gradients were added since the last were taken, an int32."""
        made: Tensor = apply_op(
            f"{self._PREFIX}AccumulatorNumAccumulated",
            [self._accumulator_ref],
            name=name or f"{self._name}_NumAccumulated",
        )
        return made

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Sets the step; what was added stays."""
        step = cast(convert_to_tensor(new_global_step), int64)
        made: Operation = apply_op(f"{self._PREFIX}AccumulatorSetGlobalStep", [self._accumulator_ref, step], name=name)
        return made


def _accumulator(op: str, dtype: Any, shape: Any, shared_name: str | None, name: str, reduction_type: str) -> Tensor:
    attrs = {
        "dtype": as_dtype(dtype),
        "shape": TensorShape(as_shape(shape)),
        "shared_name": shared_name,
        "reduction_type": reduction_type,
    }
    made: Tensor = apply_op(op, [], attrs, name)
    return made


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of dense gradients. See `ConditionalAccumulatorBase`.

    shared_name: by which sessions of several processes know one accumulator on a worker of a cluster. reduction_type:
    of what is taken, "MEAN" or "SUM".
    """

    _PREFIX = "Resource"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        made = _accumulator("ResourceConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, made)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient, unless local_step is less than the accumulator's step.

        Raises InvalidArgumentError where its shape does not suit.
        """
        grad = convert_to_tensor(grad, self._dtype)
        if not grad.get_shape().is_compatible_with(self._shape):
            raise InvalidArgumentError(
                f"accumulator '{self._name}': the gradient has shape {grad.get_shape()}; {self._shape} is required"
            )
        step = cast(convert_to_tensor(local_step), int64)
        made: Operation = apply_op("ResourceAccumulatorApplyGradient", [self._accumulator_ref, step, grad], name=name)
        return made

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Returns the mean or sum of what was added, as soon as there are num_required; then it is
        empty, its step one more.
        """
        made: Tensor = apply_op(
            "ResourceAccumulatorTakeGradient",
            [self._accumulator_ref, convert_to_tensor(num_required, int32)],
            {"dtype": self._dtype},
            name,
        )
        made.set_shape(self._shape)
        return made


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of some rows. See `ConditionalAccumulator`.

    Rows that a gradient names several times are added up and count once in the mean, which TensorFlow leaves open.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        made = _accumulator("SparseConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, made)

    def apply_indexed_slices_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds IndexedSlices, unless local_step is less than the accumulator's step."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Adds a gradient, unless local_step is less than the accumulator's step.

        grad_indices: a vector of numbers of rows; grad_values: these rows; grad_shape: of the whole, if it is known.
        """
        shape = convert_to_tensor([], int64) if grad_shape is None else cast(convert_to_tensor(grad_shape), int64)
        inputs = [
            self._accumulator_ref,
            cast(convert_to_tensor(local_step), int64),
            cast(convert_to_tensor(grad_indices), int64),
            convert_to_tensor(grad_values, self._dtype),
            shape,
        ]
        made: Operation = apply_op(
            "SparseAccumulatorApplyGradient", inputs, {"has_known_shape": grad_shape is not None}, name
        )
        return made

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Indices, values and shape of the mean or sum, as soon as num_required gradients were added.

        A size that is not known is -1 in the shape.
        """
        inputs = [self._accumulator_ref, convert_to_tensor(num_required, int32)]
        return apply_op("SparseAccumulatorTakeGradient", inputs, {"dtype": self._dtype}, name)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """Returns the same as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
