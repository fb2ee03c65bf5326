"""Providers with known bugs: each alters the model between its export and the session, as a wrong provider reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

Alter = Callable[[onnx.GraphProto, onnx.NodeProto], None]


@dataclass(frozen=True)
class Mutant:
    """A bug of a provider. node: the op of ONNX that it gets wrong. op: Timberframe's that shows it.

    says: a pattern of what the message of a failure must say, so that the cause is plain.
    """

    name: str
    node: str
    op: str
    alter: Alter
    says: str


def without(*names: str) -> Alter:
    """Returns a provider that does not look at attributes, and takes their defaults."""

    def alter(_: onnx.GraphProto, node: onnx.NodeProto) -> None:
        kept = [a for a in node.attribute if a.name not in names]
        del node.attribute[:]
        node.attribute.extend(kept)

    return alter


def setting(**values: object) -> Alter:
    """Returns a provider that takes other values for attributes."""

    def alter(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
        without(*values)(graph, node)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())

    return alter


def swapped_pads(_: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """Pads of the end are taken for those of the beginning."""
    for attribute in node.attribute:
        if attribute.name == "pads":
            half = len(attribute.ints) // 2
            attribute.ints[:] = [*attribute.ints[half:], *attribute.ints[:half]]


def first_inputs(count: int) -> Alter:
    """Returns a provider that reads this many inputs and drops the others."""

    def alter(_: onnx.GraphProto, node: onnx.NodeProto) -> None:
        del node.input[count:]

    return alter


def exchanged_inputs(_: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """The second input is taken for the first."""
    node.input[0], node.input[1] = node.input[1], node.input[0]


def zeros_for(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """The value of ConstantOfShape is not looked at."""
    without("value")(graph, node)


def other_constant(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """The last input, a constant, is read one too large."""
    for tensor in graph.initializer:
        if tensor.name == node.input[-1] and tensor.data_type == onnx.TensorProto.INT64:
            array = np.asarray(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(np.where(array > 1, array - 1, array), tensor.name))


MUTANTS = (
    Mutant("sum-drops-third", "Sum", "AddN", first_inputs(2), "without input 2"),
    Mutant("clip-without-upper", "Clip", "Relu6", first_inputs(2), "equals input 0"),
    Mutant(
        "conv-ignores-dilations",
        "Conv",
        "Conv2D",
        without("dilations"),
        r"with dilations=\(1, 1, 1, 1\) it would have this shape",
    ),
    Mutant(
        "conv-ignores-strides",
        "Conv",
        "Conv2D",
        without("strides"),
        r"with strides=\(1, 1, 1, 1\) it would have this shape",
    ),
    Mutant("conv-swaps-pads", "Conv", "Conv2D", swapped_pads, "odd pixel on the other side"),
    Mutant("pool-swaps-pads", "MaxPool", "MaxPool", swapped_pads, "odd pixel on the other side"),
    Mutant(
        "average-counts-padding", "AveragePool", "AvgPool", setting(count_include_pad=1), "padding that counts as zeros"
    ),
    Mutant("softmax-first-axis", "Softmax", "Softmax", setting(axis=0), "along dimension 0 in place of 1"),
    Mutant("batch-norm-own-epsilon", "BatchNormalization", "FusedBatchNormV3", without("epsilon"), "epsilon"),
    Mutant("gemm-ignores-transpose", "Gemm", "MatMul", without("transB"), r"Op \(Gemm\) .*Dimension mismatch"),
    Mutant("transpose-reversed", "Transpose", "Transpose", without("perm"), "shape|perm"),
    Mutant("sub-exchanged", "Sub", "Sub", exchanged_inputs, "inputs 0 and 1 exchanged"),
    Mutant("div-exchanged", "Div", "RealDiv", exchanged_inputs, "inputs 0 and 1 exchanged"),
    Mutant("ones-are-zeros", "ConstantOfShape", "OnesLike", zeros_for, "got .*0"),
    Mutant("gather-first-axis", "Gather", "GatherV2", setting(axis=0), "Gather node.*out of data bounds"),
)


def altered(mutant: Mutant, proto: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a model as a provider with the bug reads it."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for node in made.graph.node:
        if node.op_type == mutant.node:
            mutant.alter(made.graph, node)
    return made
