"""`tf.contrib.tfprof.tfprof_logger`: logs of operations."""

from timberframe.profiler.counting import TRAINABLE_VARIABLES as TRAINABLE_VARIABLES
from timberframe.profiler.op_log import write_op_log as write_op_log

__all__ = ["TRAINABLE_VARIABLES", "write_op_log"]
