"""Graphs, operations and tensors. Whoever imports one of the modules gets tensors with their operators and slicing."""

from timberframe_core.graph import operators as operators
from timberframe_core.graph import slicing as slicing
