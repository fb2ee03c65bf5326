"""Values that TensorFlow refuses and ONNX takes otherwise, checked before a model runs, where they are inputs of it.

ONNX counts negative indices from the end and cuts slices at the end. Values that the cluster itself computes are not
seen, and mean what ONNX says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.array.gather import INDEX_OUTSIDE
from timberframe_core.ops.base.array.slicing import BEGIN_OUTSIDE
from timberframe_sdk import ClusterFunction, KernelNode


@dataclass(frozen=True)
class IndexCheck:
    """The elements of a parameter must be indices of `size` rows. parameter: its number. head: op and node."""

    parameter: int
    size: int
    head: str

    def check(self, array: np.ndarray) -> None:
        """Raises InvalidArgumentError with the first element that is none."""
        outside = ((array < 0) | (array >= self.size)).ravel()
        if outside.any():
            at = int(np.argmax(outside))
            raise InvalidArgumentError(f"{self.head}: {INDEX_OUTSIDE.format(array.ravel()[at], at, self.size)}")


@dataclass(frozen=True)
class BeginCheck:
    """The elements of a parameter must be where slices begin. most: the last place that each axis has."""

    parameter: int
    most: tuple[int, ...]
    head: str

    def check(self, array: np.ndarray) -> None:
        """Raises InvalidArgumentError with the first axis on which it is none."""
        for axis, (begin, most) in enumerate(zip(array.ravel().tolist(), self.most, strict=True)):
            if not 0 <= begin <= most:
                raise InvalidArgumentError(f"{self.head}: {BEGIN_OUTSIDE.format(axis, begin, most)}")


def value_checks(function: ClusterFunction) -> list[IndexCheck | BeginCheck]:
    """Returns what a cluster's parameters must be for its nodes."""
    numbers = {v.id: i for i, v in enumerate(function.parameters)}
    return [check for node in function.cluster.nodes for check in _of_node(node, numbers)]


def _of_node(node: KernelNode, numbers: Mapping[int, int]) -> Sequence[IndexCheck | BeginCheck]:
    if node.op not in ("Gather", "GatherV2", "Slice"):
        return ()
    data, place = node.inputs[:2]
    number, head = numbers.get(place.id), f"{node.op} '{node.name}'"
    if number is None:
        return ()
    if node.op == "Slice":
        most = tuple(full - taken for full, taken in zip(data.shape, node.outputs[0].shape, strict=True))
        return (BeginCheck(number, most, head),)
    axis = node.const(2) if node.op == "GatherV2" else np.zeros(())
    return () if axis is None else (IndexCheck(number, data.shape[int(axis)], head),)
