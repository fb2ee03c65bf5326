"""`tf.contrib`: where TensorFlow 1 had what is elsewhere here, and what programs used most of the rest."""

from timberframe.lazy import lazy_names as _lazy_names

_MODULES = (
    "crf", "data", "distributions", "eager", "estimator", "factorization", "feature_column", "framework",
    "graph_editor", "layers", "learn", "legacy_seq2seq", "losses", "metrics", "nn", "opt", "predictor", "rnn",
    "seq2seq", "slim", "staging", "tensorboard", "tfprof", "tpu", "training",
)  # fmt: skip
_ALIASES = ("lookup", "signal")
_LATER = {
    **{name: f"timberframe.{name}" for name in _ALIASES},
    **{name: f"timberframe_contrib.contrib.{name}" for name in _MODULES},
}
__getattr__ = _lazy_names(__name__, _LATER)
