"""`tf.contrib.tfprof`: the profiler of graphs by its older names; `tf.profiler` is the same one."""

from timberframe_contrib.contrib.tfprof import model_analyzer as model_analyzer
from timberframe_contrib.contrib.tfprof import tfprof_logger as tfprof_logger
