"""`tf.contrib.tfprof`: the profiler of graphs by its older names; `tf.profiler` is the same one."""

from timberframe.contrib.tfprof import model_analyzer as model_analyzer
from timberframe.contrib.tfprof import tfprof_logger as tfprof_logger
