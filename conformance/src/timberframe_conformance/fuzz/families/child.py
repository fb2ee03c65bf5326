"""The process that runs programs in one system: ``python child.py SYSTEM [DEVICE]``.

SYSTEM is the name of a module with TensorFlow's surface: timberframe, tensorflow.compat.v1, or a model in plain Python.
It reads a line of JSON for each program, and answers with one: what the program showed, and how it ended. It imports
nothing of the suite, as an environment that has TensorFlow has no other package of ours.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import random
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

for _name, _value in {
    "TF_ENABLE_ONEDNN_OPTS": "0",  # TensorFlow's own kernels
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
}.items():
    os.environ.setdefault(_name, _value)


def encoded(x: np.ndarray) -> list[Any]:
    """Returns an array in what JSON has."""
    if x.dtype.kind in "OSU":
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in x.ravel().tolist()]
        return ["string", list(x.shape), [base64.b64encode(v).decode() for v in flat]]
    return [x.dtype.name, list(x.shape), base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()]


def run(tf: Any, helpers: Any, request: dict[str, Any], device: str) -> dict[str, Any]:
    """Returns what a program shows, and its error, "" if there is none."""
    show = helpers.Shown()
    names = {"tf": tf, "np": np, "show": show, "__name__": "program"}
    names |= {n: getattr(helpers, n) for n in ("elements", "in_session", "derivatives", "in_threads")}
    error = ""
    random.seed(0)
    try:
        with tf.device(device):
            exec(compile(request["source"], "program", "exec"), names)
            if request["call"]:
                names[request["call"]](request["folder"])
    except Exception as e:  # whatever a program raises is its result
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == "program"]
        text = " ".join(str(e).split()) or traceback.extract_tb(e.__traceback__)[-1].line or ""
        if len(text) > 600:  # the reason may be at either end
            text = f"{text[:300]} ... {text[-300:]}"
        error = f"{type(e).__name__}: {text} (line {lines[-1] if lines else 0})"
    return {"shown": [[n, *encoded(v)] for n, v in show.values], "wrong": show.wrong, "error": error}


def main(system: str, device: str = "") -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what systems print goes to stderr
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent))
    helpers = importlib.import_module("helpers")
    tf = importlib.import_module(system)
    if hasattr(tf, "enable_eager_execution"):
        tf.enable_eager_execution()
    if system.startswith("tensorflow"):  # an assertion without a text is known by its line
        tf.debugging.disable_traceback_filtering()
    with np.errstate(all="ignore"):
        for line in sys.stdin:
            answers.write(json.dumps(run(tf, helpers, json.loads(line), device)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
