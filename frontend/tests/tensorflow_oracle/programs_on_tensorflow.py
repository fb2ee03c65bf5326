"""Runs a program of examples/programs with TensorFlow in Timberframe's place.

    programs_on_tensorflow.py [--eager] PROGRAM

It is a process of its own, since programs of TensorFlow 1 switch TensorFlow 2's behaviour off for the whole process.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as v1  # after the setting that it reads


class Substitute(types.ModuleType):
    """A module with some names of its own, and the rest of another one."""

    def __init__(self, name: str, rest: Any, **own: Any) -> None:
        super().__init__(name)
        self._rest = rest
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)


def tensorflow_1() -> types.ModuleType:
    """compat.v1 with the layers and cells that it no longer offers with Keras 3, but still has."""
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl
    from tensorflow.python.layers import layers

    return Substitute("timberframe", v1, layers=layers, nn=Substitute("nn", v1.nn, rnn_cell=rnn_cell_impl))


if __name__ == "__main__":
    if "--eager" not in sys.argv:
        v1.disable_v2_behavior()
    v1.logging.set_verbosity(v1.logging.ERROR)
    sys.modules["timberframe"] = tensorflow_1()
    runpy.run_path(sys.argv[-1], run_name="__main__")
