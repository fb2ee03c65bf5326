"""Graphs, operations and tensors.

An import of any of the modules gives tensors their operators and slicing, and lets gradients of ops add nodes.
"""

from timberframe_core.graph import operators as operators
from timberframe_core.graph import slicing as slicing
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.ops.definition.gradients import supplied

supplied.apply_op = apply_op
supplied.convert_to_tensor = convert_to_tensor
supplied.get_default_graph = get_default_graph
supplied.indexed_slices = IndexedSlices
