"""ONNX files for `conformance bench --models FILE.onnx`: as graphs with random inputs, and in ONNX Runtime."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.bench.models.catalogue import Model as Measured
from timberframe_conformance.bench.models.files import FileModel
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.elements import Array
from timberframe_onnx.inputs import random_array
from timberframe_onnx.model import load
from timberframe_onnx.ports import TENSOR, Port

SEED = 0
ONNXRUNTIME = "onnxruntime"


def read(path: Path, device: str, batch: int, sizes: Mapping[str, int]) -> FileModel:
    """Returns a file's model with random inputs on a device, and beside it in ONNX Runtime where that is installed.

    batch: of the first dimension of inputs that the model leaves open there. sizes: of all other open dimensions, by
    name. Raises InvalidArgumentError where one is missing, or where inputs or outputs are no tensors.
    """
    model = load(path, device, tf.SessionConfig(allow_soft_placement=True))
    others = [str(port) for port in (*model.inputs, *model.outputs) if port.kind != TENSOR]
    if others:
        raise InvalidArgumentError(f"{', '.join(others)}: models whose inputs and outputs are tensors alone are timed")
    rng = np.random.default_rng(SEED)
    values = {port.name: random_array(port, _shape(port, batch, sizes), rng) for port in model.inputs}
    graph, feeds, found = model.graph_for(values)
    shown = [port.name for port in model.outputs if port.numpy.kind != "O"]
    fetches = [found[name].tensors[0] for name in shown]
    peers = {}
    if importlib.util.find_spec(ONNXRUNTIME) is not None:
        peers[ONNXRUNTIME] = partial(_onnxruntime, path, shown, values)
    return FileModel(Measured(path.stem, batch, graph, feeds, fetches), peers)


def _shape(port: Port, batch: int, sizes: Mapping[str, int]) -> list[int]:
    """Returns the shape of an input."""
    found = []
    for i, d in enumerate(port.shape or ()):
        if isinstance(d, str) and d in sizes:
            found.append(sizes[d])
        elif isinstance(d, int):
            found.append(d)
        elif i == 0:
            found.append(batch)
        else:
            named = d if isinstance(d, str) else f"{port.name}.{i}"
            if named not in sizes:
                raise InvalidArgumentError(f"input {port}: dimension {i} is open; --sizes {named}=N is required")
            found.append(sizes[named])
    return found


def _onnxruntime(path: Path, outputs: list[str], feeds: Mapping[str, Array], threads: int) -> Callable[[], Any]:
    """Returns a run of a file in ONNX Runtime on so many threads."""
    onnxruntime: Any = importlib.import_module(ONNXRUNTIME)  # an optional peer
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return partial(session.run, outputs, dict(feeds))
