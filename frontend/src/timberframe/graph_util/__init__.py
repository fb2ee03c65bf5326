"""`tf.graph_util`: GraphDefs taken apart, and their variables turned into constants."""

import sys

from timberframe.boundary import guard
from timberframe.graph_util.extracting import extract_sub_graph as extract_sub_graph
from timberframe.graph_util.extracting import must_run_on_cpu as must_run_on_cpu
from timberframe.graph_util.extracting import remove_training_nodes as remove_training_nodes
from timberframe.graph_util.extracting import tensor_shape_from_node_def_name as tensor_shape_from_node_def_name
from timberframe.graph_util.freezing import convert_variables_to_constants as convert_variables_to_constants

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "must_run_on_cpu", "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]  # fmt: skip

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
