"""The frame of Timberframe: ops, graph, gradients, compiler, runtime, and the contracts that devices implement.

Users import `timberframe`, which has TensorFlow's names; plugins import `timberframe_sdk`. Importing this package loads
none of its modules.
"""

__version__ = "0.1.0"
