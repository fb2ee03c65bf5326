"""`tf.contrib.learn`: the modes that its programs name, and words as numbers; tf.estimator has the estimators."""

from __future__ import annotations

from timberframe.lazy import lazy_names

__all__ = ["ModeKeys"]


class ModeKeys:
    """What a graph is made for; these are the values of tf.estimator.ModeKeys, but for that of predictions."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


__getattr__ = lazy_names(__name__, {"preprocessing": "timberframe.contrib.preprocessing"})
