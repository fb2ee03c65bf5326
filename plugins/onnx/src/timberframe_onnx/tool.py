"""The tool: what a model has and lacks, runs with random inputs, comparison node by node, newer opsets, export."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter

import timberframe as tf
from timberframe_core.errors import OpError
from timberframe_onnx.comparison import compare
from timberframe_onnx.elements import Array
from timberframe_onnx.errors import UnsupportedModelError
from timberframe_onnx.exporting.export import DEFAULT_OPSET
from timberframe_onnx.files import opsets_of, read
from timberframe_onnx.inputs import random_array
from timberframe_onnx.model import Model, load
from timberframe_onnx.ports import Port
from timberframe_onnx.saved_models import DEFAULT_SIGNATURE, export_saved_model


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns 0, or 1 where a model is refused or results differ."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (OpError, OSError, ValueError) as e:
        print(e, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m timberframe_onnx", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(name: str, function: Any, help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help)
        made.set_defaults(command=function)
        made.add_argument("file", type=Path)
        return made

    def runs(made: argparse.ArgumentParser) -> None:
        made.add_argument("--device", help='where it runs, as "/device:CPU:0"')
        made.add_argument("--size", type=int, default=1, help="of every dimension that the model leaves open")
        made.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="values of an input")
        made.add_argument("--seed", type=int, default=0, help="of the values of all other inputs")

    info = command("info", _info, "inputs, outputs, ops, and what is not supported")
    info.add_argument("--device", help='where it is to run, as "/device:CPU:0"')
    info.add_argument("--where", action="store_true", help="where each operation would run, and why")
    run = command("run", _run, "run with random inputs, or those of files; says the time of a run")
    runs(run)
    other = command("compare", _compare, "run node by node beside ONNX Runtime; says the first that differs")
    runs(other)
    other.add_argument("--vs", choices=["onnxruntime"], default="onnxruntime")
    other.add_argument("--tolerance", type=float, default=1e-4, help="of the largest value of each output")
    convert = command("convert", _convert, "write the model in another opset, by ONNX's converter")
    convert.add_argument("output", type=Path)
    convert.add_argument("--opset", type=int, default=onnx.defs.onnx_opset_version())
    export = command("export", _export, "write a SavedModel as an ONNX model")
    export.add_argument("output", type=Path)
    export.add_argument("--opset", type=int, default=DEFAULT_OPSET)
    export.add_argument("--signature", default=DEFAULT_SIGNATURE)
    return parser


def _info(options: Any) -> int:
    proto, _ = read(options.file)
    print("opsets:", ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in opsets_of(proto).items()))
    counts = Counter(f"{n.domain}:{n.op_type}" if n.domain else n.op_type for n in proto.graph.node)
    print("ops:", ", ".join(f"{op} {count}" for op, count in sorted(counts.items())))
    print(
        "initializers:",
        len(proto.graph.initializer),
        f"of {sum(_elements(t) for t in proto.graph.initializer):,} elements",
    )
    try:
        model = load(options.file, options.device)
    except UnsupportedModelError as e:
        print(e)
        return 1
    print("signature:", model.signature)
    explained = model.explain()
    counts = Counter(str(p.device) for p in explained.placements)
    print("operations:", ", ".join(f"{count} on {device}" for device, count in sorted(counts.items())))
    if options.where:
        print(explained)
    return 0


def _elements(tensor: onnx.TensorProto) -> int:
    count = 1
    for d in tensor.dims:
        count *= d
    return count


def inputs_of(model: Model, options: Any) -> dict[str, Any]:
    """Returns values for all inputs of a model: those of files, random ones for the others."""
    given = dict(text.split("=", 1) for text in options.input)
    rng = np.random.default_rng(options.seed)
    made: dict[str, Any] = {}
    for port in model.inputs:
        value = (
            np.load(given.pop(port.name)) if port.name in given else random_array(port, _shape(port, options.size), rng)
        )
        made[port.name] = [value] if port.is_list else value
    if given:
        raise ValueError(f"the model has no inputs {sorted(given)}; it is {model.signature}")
    return made


def _shape(port: Port, size: int) -> list[int]:
    """Returns the shape of an input, with one size for all dimensions that the model leaves open."""
    return [d if isinstance(d, int) else size for d in port.shape or ()]


def _run(options: Any) -> int:
    model = load(options.file, options.device)
    feeds = inputs_of(model, options)
    results = model.run(feeds)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        model.run(feeds)
        times.append(time.perf_counter() - begin)
    for name, value in results.items():
        if isinstance(value, np.ndarray):
            print(f"{name}: {value.dtype}{list(value.shape)}", *_range(value))
        else:
            print(f"{name}: {type(value).__name__}")
    print(f"least time of 5 runs: {min(times) * 1e3:.3f} ms")
    return 0


def _range(value: Array) -> list[str]:
    if value.size == 0 or value.dtype == object:
        return []
    wide = value.astype(np.float64)
    return [f"from {wide.min():.6g} to {wide.max():.6g}, mean {wide.mean():.6g}"]


def _compare(options: Any) -> int:
    model = load(options.file, options.device)
    return compare(options.file, inputs_of(model, options), options.device, options.tolerance)


def _convert(options: Any) -> int:
    proto, _ = read(options.file)
    onnx.save(onnx.version_converter.convert_version(proto, options.opset), options.output)
    print(f"{options.output}: opset {options.opset}")
    return 0


def _export(options: Any) -> int:
    made = export_saved_model(options.file, options.opset, options.signature)
    onnx.checker.check_model(made)
    onnx.save(made, options.output)
    with tf.Graph().as_default():
        print(f"{options.output}: {load(options.output).signature}")
    return 0
