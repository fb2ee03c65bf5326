"""Derivatives of graphs."""

from timberframe.api.hessians import hessians
from timberframe_core.gradients.custom import custom_gradient
from timberframe_core.gradients.reverse import AggregationMethod, UnconnectedGradients, gradients
from timberframe_core.ops.definition.registered_gradients import RegisterGradient
from timberframe_core.ops.definition.registered_gradients import not_differentiable as NotDifferentiable  # noqa: N812 - TensorFlow's name

NoGradient = NotDifferentiable

__all__ = [
    "AggregationMethod", "NoGradient", "NotDifferentiable", "RegisterGradient", "UnconnectedGradients",
    "custom_gradient", "gradients", "hessians",
]  # fmt: skip
