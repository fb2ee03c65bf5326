"""`tf.contrib.slim.nets`: networks by the names, scopes and variables that TensorFlow 1 gave them.

A checkpoint of such a network fits: the names and shapes of variables are those of TensorFlow's.
"""

from timberframe.lazy import lazy_names as _lazy_names

_MODULES = ("alexnet", "inception", "inception_v3", "resnet_utils", "resnet_v1", "resnet_v2", "vgg")
__all__ = sorted(_MODULES)
__getattr__ = _lazy_names(__name__, {name: f"{__name__}.{name}" for name in _MODULES})
