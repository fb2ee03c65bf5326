"""Derivatives of graphs."""

from timberframe.gradients.reverse import AggregationMethod, UnconnectedGradients, gradients

__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients"]
