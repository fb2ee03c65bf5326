"""Specialisation: shapes of all values, and host values of shape arithmetic, once the feeds' shapes are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.ir import Node, Output, sets_variable
from timberframe_core.compiler.planned_values import planned_inputs
from timberframe_core.compiler.stages import has_static_shapes
from timberframe_core.compiler.state import uninitialized
from timberframe_core.dtypes import DType, variant
from timberframe_core.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from timberframe_core.graph.inference import element_handle, run_shape_function
from timberframe_core.ops.definition.host_values import infer_values
from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.plugin.contracts import Device
from timberframe_core.shapes import Shape, StaticShape, check_array, format_shape, is_static

_HOST_VALUE_ELEMENTS = 1 << 20  # a longer "shape" is a mistake, and the host must not be asked for gigabytes

VariableShape = Callable[[str], "StaticShape | None"]


class NeedsDriverError(Exception):
    """The shapes of a loop or branch are known only when it runs: the executor must drive it, for the reason `why`."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(f"{node.op.name} '{node.name}': {why}")
        self.node = node
        self.why = why


class Facts:
    """What is known at one point of a run: static shapes, host values, and shapes of variables.

    bounds: shapes that are upper bounds, of outputs whose true size only their kernel knows. lists: of lists of tensors
    the dtype and shape of their elements. opened: the bodies of loops and branches, specialised for these facts.
    driven: loops and branches that the executor drives for these shapes alone, and why.
    """

    def __init__(self, parent: Facts | None = None) -> None:
        self.shapes: dict[Output, StaticShape] = {} if parent is None else dict(parent.shapes)
        self.values: dict[Output, np.ndarray] = {} if parent is None else dict(parent.values)
        self.bounds: dict[Output, StaticShape] = {} if parent is None else dict(parent.bounds)
        self.variables: dict[str, StaticShape] = {} if parent is None else dict(parent.variables)
        self.opened: dict[Node, list[Any]] = {} if parent is None else dict(parent.opened)
        self.driven: dict[Node, str] = {} if parent is None else dict(parent.driven)
        self.lists: dict[Output, tuple[DType | None, Shape]] = {} if parent is None else dict(parent.lists)


ResultShapes = Callable[[Node, Facts, VariableShape], "Sequence[StaticShape]"]
"""Finds the shapes of a loop or branch by inferring what is in its bodies: `Bodies.result_shapes`."""


def infer(nodes: Iterable[Node], facts: Facts, variable_shape: VariableShape, result_shapes: ResultShapes) -> None:
    """Adds shapes and host values of these nodes, which are in topological order, to the facts.

    Here it is decided who drives a loop or branch. NeedsDriverError at one whose shapes only its run gives, and at a
    node on lists of that kind; one that a kernel declines for these shapes is noted in `facts.driven`.
    """
    shapes, values = facts.shapes, facts.values
    for node in nodes:
        if node.op.role == "constant":
            value = node.attrs["value"]
            values[node.outputs[0]] = value
            shapes[node.outputs[0]] = value.shape
            continue
        try:
            _infer_node(node, facts, variable_shape, result_shapes)
        except OpError as e:
            raise located(e, node) from None
        if sets_variable(node.op):
            facts.variables[node.variable or ""] = shapes[node.inputs[1]]


def located(error: OpError, node: Node) -> OpError:
    """Returns the error with the place in the user's program that made the node."""
    text = str(error)
    if not node.where or node.where in text:
        return error
    return type(error)(f"{text}  [{node.where}]", error.node or node.name)


def located_on(error: OpError, nodes: Iterable[Node], device: Device) -> OpError:
    """Returns the error with the device and the place that made the node, where it names one of
    these nodes and has neither.
    """
    node = next((n for n in nodes if n.name == error.node), None)
    text = str(error)
    if node is None or f"[{device.spec}" in text or (node.where and f"{node.where}]" in text):
        return error
    location = f", {node.where}" if node.where else ""
    return type(error)(f"{text}  [{device.spec}{location}]", error.node)


def _infer_node(node: Node, facts: Facts, variable_shape: VariableShape, result_shapes: ResultShapes) -> None:
    op, shapes = node.op, facts.shapes
    planned = set(planned_inputs(node)) if op.shape_inputs or op.planned else ()
    wants_values = node.host_value or bool(op.launch_inputs)
    values = [facts.values.get(x) if wants_values or x in planned else None for x in node.inputs]
    context = InferenceContext(
        op,
        node.name,
        node.attrs,
        [shapes.get(x) for x in node.inputs],
        values,
        [x.dtype for x in node.inputs],
        [_handle(node, x, facts, variable_shape) for x in node.inputs],
    )
    result = run_shape_function(context, len(node.outputs))
    if op.bound is not None:
        for x, bound in zip(node.outputs, op.bound(context), strict=True):
            facts.bounds[x] = _checked(context, bound, x.dtype)
        return
    if node.host_driven:
        if has_static_shapes(node):
            shapes.update((x, _checked(context, x.static_shape, x.dtype)) for x in node.outputs)
        return
    if node.host_value:
        _check_host_size(node, result)
        for x, value in zip(node.outputs, infer_values(context, [x.dtype for x in node.outputs]), strict=True):
            if value is None:
                raise context.error(_why_unknown(context))
            facts.values[x] = value
    if node.on_lists:
        _infer_lists(node, context, result, facts)
        return
    if node.bodies:
        result = result_shapes(node, facts, variable_shape)
    for x, shape in zip(node.outputs, result, strict=True):
        if shape is None or None in shape:
            raise context.error(
                f"its shape is {format_shape(shape)} though all inputs are known; the shape function must be complete"
            )
        shapes[x] = _checked(context, shape, x.dtype)


def _checked(context: InferenceContext, shape: Shape, dtype: DType) -> StaticShape:
    """Returns a shape without unknown sizes, which an array can have: no kernel, allocator
    or driver gets another one.
    """
    try:
        sizes: Any = shape  # the caller has made sure that it is static
        return check_array(sizes, dtype.numpy.itemsize)
    except InvalidArgumentError as e:
        raise context.error(str(e)) from None
    except ResourceExhaustedError as e:
        raise ResourceExhaustedError(f"{context.op.name} '{context.name}': {e}", context.name) from None


def _why_unknown(c: InferenceContext) -> str:
    """Returns why the value of a node that the host computes while planning is not there."""
    operand = c.value(len(c.values) - 1) if c.op.refused is not None else None
    why = "" if c.op.refused is None or operand is None else c.op.refused.fault(operand)
    return why or "its value is needed to plan the run; it must follow from shapes, constants and feeds"


def _infer_lists(node: Node, context: InferenceContext, result: Iterable[Shape], facts: Facts) -> None:
    """Infers what is known of lists, and shapes of tensors taken out of them; where one is
    not known, the node is late.
    """
    known = (s if is_static(s) else x.static_shape for x, s in zip(node.outputs, result, strict=True))
    shapes = dict(zip(node.outputs, known, strict=True))
    if node.late:
        return
    if not all(is_static(shape) for shape in shapes.values()):
        raise NeedsDriverError(node, "an element's shape is known only when it is taken out of its list")
    for i, (x, shape) in enumerate(shapes.items()):
        facts.shapes[x] = _checked(context, shape, x.dtype)
        if x.dtype is variant:
            facts.lists[x] = element_handle(context, i) or (None, None)


def _check_host_size(node: Node, result: Iterable[Shape]) -> None:
    for shape in result:
        if is_static(shape) and math.prod(d or 0 for d in shape or ()) > _HOST_VALUE_ELEMENTS:
            raise InvalidArgumentError(
                f"{node.op.name} '{node.name}': a value of shape {format_shape(shape)} is used to plan shapes; "
                f"at most {_HOST_VALUE_ELEMENTS} elements may be",
                node.name,
            )


def _handle(node: Node, x: Output, facts: Facts, variable_shape: VariableShape) -> tuple[DType | None, Shape] | None:
    """Dtype and shape of a handle's variable as this node sees it, or of a list's elements."""
    if x.dtype is variant:
        return facts.lists.get(x)
    name = x.node.variable
    if x.dtype.name != "resource" or name is None:
        return None
    own = x.node.op.role == "variable"
    declared = x.node.attrs["shape"] if own else None
    dtype = x.node.attrs["dtype"] if own else None
    if sets_variable(node.op):
        return dtype, declared
    known = facts.variables[name] if name in facts.variables else variable_shape(name)
    needed = node.op.role == "read_variable" or node.op.update_op or node.op.reads or node.op.updates
    if known is None and needed and not is_static(declared):
        raise uninitialized(node, x)
    return dtype, declared if known is None else known
