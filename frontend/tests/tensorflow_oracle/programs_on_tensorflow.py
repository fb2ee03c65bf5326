"""Runs programs of examples/programs with TensorFlow in Timberframe's place: `programs_on_tensorflow.py PROGRAM ...`.

Prints a JSON object: for each program's name what it printed, or the error. It is a process of its own, since programs
of TensorFlow 1 switch TensorFlow 2's behaviour off for the whole process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
import types
from pathlib import Path
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


def output_of(program: str) -> str:
    """What a program prints; the traceback where it fails."""
    v1.reset_default_graph()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(program, run_name="__main__")
    except BaseException:
        return printed.getvalue() + traceback.format_exc()
    return printed.getvalue()


if __name__ == "__main__":
    if "--eager" not in sys.argv:
        v1.disable_v2_behavior()
    v1.logging.set_verbosity(v1.logging.ERROR)
    sys.modules["timberframe"] = tensorflow_1()
    sys.stdout.flush()
    print(json.dumps({Path(p).stem: output_of(p) for p in sys.argv[1:] if p != "--eager"}))
