"""`conformance bench --models --convolutions`: the convolutions of whole networks one by one, beside ONNX Runtime.

Both sides run the whole network, with whatever they fuse and however they lay out images, and report how long each of
its nodes took: we in a trace, ONNX Runtime in the profile of its session. Convolutions of the same sizes are one row.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import timberframe as tf
from timberframe_conformance.bench.models.catalogue import Model
from timberframe_conformance.bench.models.report import aligned
from timberframe_conformance.bench.models.sides import as_onnx
from timberframe_conformance.bench.table import duration

RUNS = 40
"""Traced and profiled runs of a network, in turn, after WARM_UP others."""
WARM_UP = 3
OPS = ("Conv2D", "DepthwiseConv2dNative")
_BEGINS = re.compile(rf"(^|>)({'|'.join(OPS)})(?!Backprop)")
"""The op of an event whose kernel begins with a convolution; one of several nodes has their names after a `>`."""
_ONNX_OPS = ("Conv", "FusedConv")

Sizes = tuple[int, ...]
"""Of a convolution: height and width of what it makes, input channels of a group, output channels, and taps."""


@dataclass(frozen=True)
class Figures:
    """A quantity by the medians of runs, and by their least times, which other work on the machine changes less."""

    median: float
    least: float

    @classmethod
    def of_runs(cls, runs: Sequence[Sequence[float]]) -> Figures:
        """Returns seconds of one convolution, of those of all convolutions of the same sizes in
        each run; NaN for no run.

        The median is of their mean in each run; the least is the mean of each one's least time.
        """
        if not runs:
            return cls(math.nan, math.nan)
        return cls(float(np.median(np.mean(runs, axis=1))), float(np.mean(np.min(runs, axis=0))))


@dataclass(frozen=True)
class Convolution:
    """All convolutions of one network that have the same sizes. image: height and width of what they read.

    count: how many there are. device, onnxruntime: seconds of one of them, with what each side fuses to it.
    """

    model: str
    batch: int
    image: tuple[int, ...]
    stride: int
    sizes: Sizes
    count: int
    device: Figures
    onnxruntime: Figures
    depthwise: bool = False

    @property
    def name(self) -> str:
        """The image, the channels and the taps."""
        depth, outside, *taps = self.sizes[2:]
        channels = f"{outside} depthwise" if self.depthwise else f"{depth}-{outside}"
        size = f"{self.image[0]}x{self.image[1]}, {channels}, {taps[0]}x{taps[1]}"
        return size if self.stride == 1 else f"{size}, stride {self.stride}"

    @property
    def ratios(self) -> Figures:
        """ONNX Runtime's time in ours."""
        return total([self])


class ProfiledPeer:
    """ONNX Runtime with a network; close() gives the times of all its convolutions in each run."""

    def __init__(self, model: Model, threads: int) -> None:
        onnxruntime: Any = importlib.import_module("onnxruntime")  # an optional peer
        self._folder = tempfile.TemporaryDirectory()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(self._folder.name) / "profile")
        self._session = onnxruntime.InferenceSession(as_onnx(model), options, providers=["CPUExecutionProvider"])
        feeds = {t.name: np.ascontiguousarray(v) for t, v in model.feeds.items()}
        self.call = partial(self._session.run, [t.name for t in model.fetches], feeds)

    def close(self) -> dict[Sizes, list[list[float]]]:
        """By sizes the seconds of each convolution, of one run after another."""
        with self._folder:
            events = json.loads(Path(self._session.end_profiling()).read_text())
        runs = sum(e["name"] == "model_run" for e in events)
        found: dict[Sizes, list[float]] = {}
        for event in sorted(events, key=lambda e: e["ts"]):
            if event["name"].endswith("_kernel_time") and event["args"]["op_name"] in _ONNX_OPS:
                found.setdefault(_onnx_sizes(event["args"]), []).append(event["dur"] * 1e-6)
        return {k: [list(v) for v in np.array_split(times, runs)] for k, times in found.items()}


def _onnx_sizes(details: Mapping[str, Any]) -> Sizes:
    """Returns the sizes with images in NCHW and filters in OIHW."""
    filter = next(iter(details["input_type_shape"][1].values()))
    out = next(iter(details["output_type_shape"][0].values()))
    return (out[2], out[3], filter[1], filter[0], filter[2], filter[3])


def traced_convolutions(graph: tf.Graph, call: Callable[..., Any]) -> dict[Sizes, list[float]]:
    """By sizes the seconds of each convolution in a run that is traced."""
    metadata = tf.RunMetadata()
    call(options=tf.RunOptions(trace=True), run_metadata=metadata)
    found: dict[Sizes, list[float]] = {}
    for event in (metadata.trace or {}).get("traceEvents", ()):
        op = event.get("args", {}).get("op", "")
        if event.get("cat") != "prepare" and _BEGINS.search(op):
            found.setdefault(sizes_of(graph.get_operation_by_name(event["name"])), []).append(event["dur"] * 1e-6)
    return found


def sizes_of(node: Any) -> Sizes:
    """Returns the sizes of the convolution that a kernel begins with, of which the last node is given."""
    while node.type not in OPS:
        node = node.inputs[0].op
    filter, out = node.inputs[1].shape.as_list(), node.outputs[0].shape.as_list()
    depth, outside = (1, filter[2] * filter[3]) if node.type != "Conv2D" else filter[2:]
    return (*out[1:3], depth, outside, *filter[:2])


def _found(times: Mapping[Sizes, list[list[float]]], sizes: Sizes) -> list[list[float]]:
    """ONNX Runtime's times; it fills up channels to whole registers, and reports so many."""
    depth, outside = sizes[2:4]
    for block in (1, 8, 16):
        padded = depth if depth == 1 else -(-depth // block) * block, -(-outside // block) * block
        if (key := (*sizes[:2], *padded, *sizes[4:])) in times:
            return times[key]
    return []


def compare(model: Model, call: Callable[..., Any], threads: int) -> tuple[list[Convolution], list[str]]:
    """Returns the convolutions of a network, in the order in which it has them, and the names of
    those that one side lacks.
    """
    peer = ProfiledPeer(model, threads)
    ours: dict[Sizes, list[list[float]]] = {}
    for _ in range(WARM_UP):
        call()
    for _ in range(WARM_UP + RUNS):
        for sizes, times in traced_convolutions(model.graph, call).items():
            ours.setdefault(sizes, []).append(times)
        peer.call()
    theirs = peer.close()
    first: dict[Sizes, Any] = {}
    for op in model.graph.get_operations():
        if op.type in OPS:
            first.setdefault(sizes_of(op), op)
    found, lacking = [], []
    for sizes, op in first.items():
        runs, other = ours.get(sizes, [])[WARM_UP:], _found(theirs, sizes)[WARM_UP:]
        image, stride = tuple(op.inputs[0].shape.as_list()[1:3]), op.get_attr("strides")[1]
        counts = len(runs[0]) if runs else 0, len(other[0]) if other else 0
        figures = Figures.of_runs(runs), Figures.of_runs(other)
        depthwise = op.type != "Conv2D"
        made = Convolution(model.name, model.batch, image, stride, sizes, counts[0], *figures, depthwise)
        if counts[0] and counts[0] == counts[1]:
            found.append(made)
        else:
            lacking.append(f"{made.name} (ours {counts[0]}, ONNX Runtime {counts[1]})")
    return found, lacking


def total(rows: Sequence[Convolution]) -> Figures:
    """ONNX Runtime's time for all of them in ours."""

    def ratio(figure: Callable[[Figures], float]) -> float:
        return sum(r.count * figure(r.onnxruntime) for r in rows) / sum(r.count * figure(r.device) for r in rows)

    return Figures(ratio(lambda f: f.median), ratio(lambda f: f.least))


def to_dict(row: Convolution) -> dict[str, Any]:
    """As JSON holds it; times in seconds."""
    return {"name": row.name, **asdict(row), "ratios": asdict(row.ratios)}


HEADER = [
    "model", "image, channels, taps", "count", "ours", "ORT", "of ORT", "ours, least", "ORT, least", "of ORT, least",
]  # fmt: skip


def cells(row: Convolution) -> list[str]:
    """Returns a line of the table."""
    device, peer, ratios = row.device, row.onnxruntime, row.ratios
    medians = duration(device.median), duration(peer.median), f"{ratios.median:.2f}x"
    least = duration(device.least), duration(peer.least), f"{ratios.least:.2f}x"
    return [f"{row.model} ({row.batch})", row.name, str(row.count), *medians, *least]


def described(ratios: Figures) -> str:
    """Returns a comparison with ONNX Runtime in words."""
    return f"{ratios.median:.2f}x of ONNX Runtime by medians, {ratios.least:.2f}x by least times"


def show(rows: list[Convolution], lacking: list[str], console: Console) -> None:
    """Prints the convolutions of one network, the slowest beside ONNX Runtime by least times first, and their total."""
    if rows:
        lines = [cells(r) for r in sorted(rows, key=lambda r: r.ratios.least)]
        console.print(aligned(HEADER, lines, left=2), highlight=False, markup=False, soft_wrap=True)
        console.print(f"{rows[0].model}: all of them {described(total(rows))}", highlight=False)
    for name in lacking:
        console.print(f"not compared, since the sides have not as many: {name}", highlight=False)


def markdown(rows: list[Convolution]) -> str:
    """Returns the table for documents, in the order of the networks."""
    lines = [HEADER, ["-"] * len(HEADER), *map(cells, rows)]
    return "\n".join("|" + "|".join(line) + "|" for line in lines) + "\n"
