"""`tf.profiler`: parameters and floating operations of a graph, and times of its runs, by the scopes of names."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.lazy import lazy_names as _lazy_names
from timberframe.profiler.nodes import GraphNodeProto as GraphNodeProto
from timberframe.profiler.op_log import write_op_log as write_op_log
from timberframe.profiler.options import ProfileOptionBuilder as ProfileOptionBuilder
from timberframe.profiler.profiling import Profiler as Profiler
from timberframe.profiler.profiling import profile as profile

__getattr__ = _lazy_names(__name__, {"OpLogProto": "timberframe_core.graphdef.messages:OpLogProto"})

_guard([_sys.modules[__name__]])
