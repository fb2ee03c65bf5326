"""`tf.contrib.graph_editor`: graphs taken apart, copied in part, and rewired."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.contrib.graph_editor import rerouting as reroute
from timberframe_contrib.contrib.graph_editor import selecting as select
from timberframe_contrib.contrib.graph_editor import transforming as transform
from timberframe_contrib.contrib.graph_editor.rerouting import *  # noqa: F403 - the same names
from timberframe_contrib.contrib.graph_editor.selecting import *  # noqa: F403 - the same names
from timberframe_contrib.contrib.graph_editor.transforming import *  # noqa: F403 - the same names

_guard([_sys.modules[__name__]])

__all__ = ["reroute", "select", "transform", *reroute.__all__, *select.__all__, *transform.__all__]
