"""Runs one op through the public API: a graph with placeholders, a node, and a session on the device under test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe import Graph
from timberframe import device as device_scope
from timberframe_conformance.case import WrongShapeError
from timberframe_conformance.hypotheses.arguments import shape_explained
from timberframe_core.dtypes import DType, as_dtype, resource
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.shapes import compatible, format_shape

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

Input = np.ndarray | Sequence[np.ndarray]


@dataclass
class Built:
    """A graph around one node. setup: operations to run first; reads: fetched after a run of a node without outputs.

    inputs: the node's flat inputs.
    """

    graph: Any
    fetches: list[Any]
    feeds: dict[Any, np.ndarray]
    setup: list[Any] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)
    dtypes: list[np.dtype] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)


def build(
    op: OpDef,
    attrs: Mapping[str, Any],
    arrays: Sequence[Input],
    spec: str,
    *,
    known: bool = True,
    fed: bool = True,
    constants: Collection[str] = (),
) -> Built:
    """Returns the graph of one node on the device `spec`.

    known: placeholders have static shapes. fed: inputs are placeholders; else, for inputs whose value shapes the result
    unless shapes are unknown, and for those named in `constants`, they are constants.
    """
    graph = Graph()
    built = Built(graph, [], {})
    with graph.as_default(), device_scope(spec):
        inputs: list[Any] = []
        for arg, value in zip(op.inputs, arrays, strict=True):
            if arg.dtype is resource:
                inputs.append(variable(built, value, f"variable_{arg.name}"))
                if arg.name in op.updates or not (op.updates or op.name == "DestroyResourceOp"):
                    kept = as_dtype(np.asarray(value).dtype)
                    built.reads.append(apply_op("ReadVariableOp", [inputs[-1]], {"dtype": kept}))
                continue
            constant = not fed or arg.name in constants or (known and arg.name in op.shape_inputs)
            values: list[Any] = list(value) if arg.is_list else [value]
            made = [input_tensor(built, x, constant, known, attrs.get(arg.type_attr or "")) for x in values]
            inputs.append(made if arg.is_list else made[0])
        built.inputs = [t for x in inputs for t in (x if isinstance(x, list) else [x])]
        result = apply_op(op.name, inputs, attrs, name="case")
    outputs = list(result) if isinstance(result, list) else [result]
    if op.outputs:
        built.fetches = [*_after(outputs[0].op, built.reads), *outputs] if op.updates else outputs
        built.dtypes = [t.dtype.base_dtype.numpy for t in built.fetches]
    else:
        built.setup.append(outputs[0])
        built.fetches, built.dtypes = built.reads, [x.dtype.base_dtype.numpy for x in built.reads]
    return built


def _after(node: Any, reads: list[Any]) -> list[Any]:
    """Returns the same reads of variables, made once more after a node that changes them."""
    with node.graph.as_default(), node.graph.control_dependencies([node]):
        return [apply_op("ReadVariableOp", [r.op.inputs[0]], {"dtype": r.dtype}) for r in reads]


def input_tensor(built: Built, x: np.ndarray, constant: bool, known: bool, declared: Any) -> Any:
    """Returns a tensor of a graph with these values: a constant, or a placeholder with its feed.

    known: it has a static shape. declared: the dtype of the op's attr, which alone distinguishes quantized integers
    from others.
    """
    dtype = _dtype(x, declared)
    if constant:
        return apply_op("Const", (), {"value": np.ascontiguousarray(x).reshape(x.shape), "dtype": dtype})
    tensor = apply_op(
        "Placeholder", (), {"dtype": dtype, "shape": x.shape if known else None}, name=f"feed{len(built.feeds)}"
    )
    built.feeds[tensor] = x
    return tensor


def _dtype(x: np.ndarray, declared: Any) -> DType:
    return declared if isinstance(declared, DType) and declared.numpy == x.dtype else as_dtype(x.dtype)


def variable(built: Built, value: Any, name: str, declared: Any = None) -> Any:
    """Returns the handle of a variable that the setup of `built` gives this value. declared: see `input_tensor`."""
    dtype = _dtype(value, declared)
    handle = apply_op("VarHandleOp", (), {"dtype": dtype, "shape": value.shape, "shared_name": name})
    start = apply_op("Placeholder", (), {"dtype": dtype, "shape": value.shape}, name="start")
    built.feeds[start] = value
    built.setup.append(apply_op("AssignVariableOp", [handle, start], {"dtype": dtype}))
    return handle


def execute(built: Built, session: Any) -> list[Any]:
    """Runs what was built and returns the outputs, whose shapes must suit what the graph promised."""
    for operation in built.setup:
        wanted = {t: x for t, x in built.feeds.items() if operation.graph is t.graph}
        session.run(operation, wanted)
    if not built.fetches:
        return []
    got = list(session.run(built.fetches, built.feeds))
    for i, (tensor, value) in enumerate(zip(built.fetches, got, strict=True)):
        if not compatible(tensor.static_shape, np.shape(value)):
            promised = format_shape(tensor.static_shape)
            raise WrongShapeError(
                f"{tensor.name} has shape {np.shape(value)}; the graph promised {promised}", i, np.shape(value)
            )
    return got


def call(
    target: Target,
    op: OpDef,
    attrs: Mapping[str, Any],
    arrays: Sequence[Input],
    *,
    known: bool = True,
    fed: bool = True,
    constants: Collection[str] = (),
) -> tuple[list[Any], list[np.dtype]]:
    """Outputs of one op on the device, and the dtypes that the graph promised."""
    built = build(op, attrs, arrays, target.spec, known=known, fed=fed, constants=constants)
    with target.session(built.graph) as session:
        try:
            return execute(built, session), built.dtypes
        except WrongShapeError as e:
            raise (e if op.updates else shape_explained(e, op, attrs, flatten(arrays))) from None


def flatten(arrays: Sequence[Input]) -> list[np.ndarray]:
    """Returns the inputs as references take them: list inputs flat."""
    return [x for value in arrays for x in ([value] if isinstance(value, np.ndarray) else value)]
