"""Derivatives of graphs."""

from timberframe.gradients.custom import custom_gradient
from timberframe.gradients.hessians import hessians
from timberframe.gradients.reverse import AggregationMethod, UnconnectedGradients, gradients

__all__ = ["AggregationMethod", "UnconnectedGradients", "custom_gradient", "gradients", "hessians"]
