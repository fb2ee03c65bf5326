"""`tf.contrib.metrics`: the best F1 score; the other metrics are in `tf.metrics`."""

import sys

from timberframe.boundary import guard
from timberframe.metrics.thresholds import f1_score as f1_score

__all__ = ["f1_score"]

guard([sys.modules[__name__]], "tf.contrib.metrics")
