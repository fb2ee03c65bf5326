"""Derivatives of graphs."""

from timberframe.api.hessians import hessians
from timberframe_core.gradients.custom import custom_gradient
from timberframe_core.gradients.reverse import AggregationMethod, UnconnectedGradients, gradients

__all__ = ["AggregationMethod", "UnconnectedGradients", "custom_gradient", "gradients", "hessians"]
