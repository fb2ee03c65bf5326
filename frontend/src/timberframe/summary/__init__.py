"""`tf.summary`: numbers, histograms, images, sounds and texts for TensorBoard, and the files that it reads."""

import sys

from timberframe.boundary import guard
from timberframe.lazy import lazy_names as _lazy_names
from timberframe.summary.functions import audio as audio
from timberframe.summary.functions import histogram as histogram
from timberframe.summary.functions import image as image
from timberframe.summary.functions import merge as merge
from timberframe.summary.functions import merge_all as merge_all
from timberframe.summary.functions import scalar as scalar
from timberframe.summary.functions import tensor_summary as tensor_summary
from timberframe.summary.functions import text as text
from timberframe.summary.writer import FileWriter as FileWriter
from timberframe.summary.writer import FileWriterCache as FileWriterCache

_MESSAGES = ("Event", "HistogramProto", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata")
__getattr__ = _lazy_names(__name__, {name: f"timberframe_core.graphdef.messages:{name}" for name in _MESSAGES})

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
