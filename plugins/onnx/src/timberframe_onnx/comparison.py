"""A model node by node beside ONNX Runtime: every value that a node of the outer graph makes is an output of both."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.elements import Array
from timberframe_onnx.files import read
from timberframe_onnx.model import load


def compare(source: str | os.PathLike[str], feeds: Mapping[str, Any], device: str | None, tolerance: float) -> int:
    """Prints how far each node's outputs are apart and returns 1 where any is by more than `tolerance`, else 0.

    tolerance: of the largest absolute value of an output. Raises InvalidArgumentError without ONNX Runtime.
    """
    proto, _ = read(source)
    exposed = exposing_all(proto)
    names = [info.name for info in exposed.graph.output]
    print(f"running ONNX Runtime for {len(names)} values", file=sys.stderr)
    theirs = dict(zip(names, _onnxruntime(exposed, names, feeds), strict=True))
    print("running Timberframe", file=sys.stderr)
    ours = load(exposed, device).run(feeds)
    worst, first = 0.0, ""
    for node in exposed.graph.node:
        for name in node.output:
            if name not in theirs or not isinstance(theirs[name], np.ndarray):
                continue
            apart = distance(ours[name], theirs[name])
            if apart > tolerance and not first:
                first = f"{node.op_type} '{node.name}', output '{name}'"
                print(f"first difference: {first}: {apart:.2e} of the largest value")
            worst = max(worst, apart)
    print(f"largest difference: {worst:.2e} of the largest value; {tolerance:.0e} is allowed")
    return 1 if first else 0


def exposing_all(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with the output of every node of its outer graph as an output, of a type that is inferred."""
    made = onnx.shape_inference.infer_shapes(proto)
    known = {info.name: info for info in made.graph.value_info}
    given = {info.name for info in made.graph.output}
    for node in made.graph.node:
        made.graph.output.extend(known[name] for name in node.output if name in known and name not in given)
    return made


def distance(ours: Any, theirs: Any) -> float:
    """Returns the largest difference of two arrays as a share of the largest value; infinity where shapes differ."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        return float("inf")
    if a.dtype == object or b.size == 0:
        return float(not np.array_equal(a, b))
    x, y = a.astype(np.float64), b.astype(np.float64)
    apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
    return float(np.nan_to_num(apart, nan=np.inf).max() / (largest or 1.0))


def _onnxruntime(proto: onnx.ModelProto, names: list[str], feeds: Mapping[str, Any]) -> list[Array]:
    """Returns the values by ONNX Runtime; as outputs of the model, they are no nodes that it may leave out.

    On x86 without VNNI its products of signed and unsigned bytes saturate between two sums, unless it is asked for
    exact ones, which one of its optimizations makes of them.
    """
    try:
        import onnxruntime
    except ImportError as e:
        raise InvalidArgumentError("a comparison needs ONNX Runtime: pip install timberframe-onnx[compare]") from e
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(names, dict(feeds))
    return found
