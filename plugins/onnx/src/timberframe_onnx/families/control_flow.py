"""Branches and loops. Graphs inside see the names around them, so that what they use of those becomes their input."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from timberframe_onnx.elements import CODED, NATIVE
from timberframe_onnx.errors import InvalidModelError, Unsupported
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.scope import MISSING
from timberframe_onnx.translation.values import Coded, Optional, Sequence, Tensor, Value, element_type, wrapped

Rebuild = Callable[[list[Tensor]], Value]


def flattened(value: Value) -> tuple[list[Tensor], Rebuild]:
    """Returns the tensors of the graph that a value consists of, and the function that makes the value of such."""
    if isinstance(value, Coded):
        element = value.element
        return [value.codes], lambda t: Coded(t[0], element)
    if isinstance(value, Sequence):
        element = value.element
        return [value.handle], lambda t: Sequence(t[0], element)
    if isinstance(value, Optional):
        inner, rebuild = flattened(value.value)
        return [value.present, *inner], lambda t: Optional(t[0], rebuild(t[1:]))
    return [value], lambda t: t[0]


def all_flattened(values: list[Value]) -> tuple[list[Tensor], Callable[[list[Tensor]], list[Value]]]:
    """Returns that of several values."""
    parts = [flattened(v) for v in values]

    def rebuild(tensors: list[Tensor]) -> list[Value]:
        made, at = [], 0
        for part, one in parts:
            made.append(one(tensors[at : at + len(part)]))
            at += len(part)
        return made

    return [t for part, _ in parts for t in part], rebuild


def _run(node: Node, graph: onnx.GraphProto, inputs: list[Value]) -> list[Value]:
    """Returns the outputs of a graph inside the node; Unsupported where nodes of it are, which have been noted."""
    outputs = node.scope.nested().run_graph(graph, inputs)
    if any(v is MISSING for v in outputs):
        raise Unsupported("")
    return outputs


@translates("If")
def _if(node: Node, condition: Tensor) -> list[Value]:
    known = static(condition)
    if known is not None:
        return _run(node, node.get("then_branch" if known.ravel()[0] else "else_branch"), [])
    rebuilt: list[Callable[[list[Tensor]], list[Value]]] = []
    failed: list[tuple[str, InvalidModelError]] = []

    def branch(name: str) -> Callable[[], list[Tensor]]:
        def run() -> list[Tensor]:
            try:
                tensors, rebuild = all_flattened(_run(node, node.get(name), []))
            except InvalidModelError as e:
                failed.append((name, e))
                raise
            rebuilt.append(rebuild)
            return [tf.identity(t) for t in tensors]

        return run

    condition = tf.reshape(condition, [])
    try:
        made = tf.cond(condition, branch("then_branch"), branch("else_branch"))
    except InvalidModelError:
        return _one_branch(node, condition, *failed[0])
    return rebuilt[0](list(made) if isinstance(made, list | tuple) else [made])


def _one_branch(node: Node, condition: Tensor, name: str, error: InvalidModelError) -> list[Value]:
    """Returns the outputs where one branch does not suit the shapes of the inputs: a run that
    takes it ends with its error.
    """
    if name == "then_branch":
        condition, other = tf.logical_not(condition), "else_branch"
    else:
        other = "then_branch"
    with tf.control_dependencies([tf.Assert(condition, [str(error)])]):
        tensors, rebuild = all_flattened(_run(node, node.get(other), []))
        return rebuild([tf.identity(t) for t in tensors])


def _stacks(node: Node, graph: onnx.GraphProto, first: int, example: Callable[[], list[Value]]) -> list[Sequence]:
    """Returns an empty list for each output of a body, from `first` on, that is gathered over all iterations.

    Where the body does not declare the types, as bodies of functions do not, they are those that it has for an example
    of its inputs; what that adds to the graph is not run.
    """
    types = [output.type.tensor_type.elem_type for output in graph.output[first:]]
    if 0 in types:
        types = [element_type(v) for v in _run(node, graph, example())[first:]]
    return [Sequence.empty(t) for t in types]


def _stacked(sequence: Sequence, shape: list[int | None] | None) -> Value:
    """Returns the elements of a list as rows of one tensor."""
    inside = tf.constant(-1 if shape is None else [-1 if d is None else d for d in shape], tf.int32)
    made = tf.raw_ops.TensorListStack(input_handle=sequence.handle, element_shape=inside, element_dtype=sequence.dtype)
    if shape is not None:
        made.set_shape([None, *shape])
    return wrapped(made, sequence.element)


def _declared(info: onnx.ValueInfoProto) -> list[int | None] | None:
    """Returns the shape that a graph declares for a tensor."""
    if not info.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else None for d in info.type.tensor_type.shape.dim]


@translates("Loop")
def _loop(node: Node, most: Tensor, condition: Tensor, *initial: Value) -> list[Value]:
    body: onnx.GraphProto = node.get("body")
    states = len(initial)
    carried, rebuild = all_flattened([_with_declared_type(v, body.input[i + 2]) for i, v in enumerate(initial)])
    shapes: list[list[int | None] | None] = [_declared(body.output[i]) for i in range(states + 1, len(body.output))]
    limit = None if most is None else tf.cast(tf.reshape(most, []), tf.int64)
    going = tf.constant(True) if condition is None else tf.reshape(condition, [])
    stacks = _stacks(node, body, states + 1, lambda: [tf.constant(0, tf.int64), going, *rebuild(carried)])

    def goes_on(i: Tensor, going: Tensor, *_: Tensor) -> Tensor:
        return going if limit is None else tf.logical_and(i < limit, going)

    def step(i: Tensor, going: Tensor, *tensors: Tensor) -> list[Tensor]:
        values = rebuild(list(tensors[: len(carried)]))
        outputs = _run(node, body, [i, going, *values])
        new = [_with_declared_type(v, body.input[k + 2]) for k, v in enumerate(outputs[1 : states + 1])]
        lists = [Sequence(h, s.element) for h, s in zip(tensors[len(carried) :], stacks, strict=True)]
        for k, value in enumerate(outputs[states + 1 :]):
            tensor = value.codes if isinstance(value, Coded) else value
            if shapes[k] is None and tensor.shape.ndims is not None:
                shapes[k] = sizes(tensor)
        pushed = [s.push(v).handle for s, v in zip(lists, outputs[states + 1 :], strict=True)]
        return [i + 1, tf.reshape(outputs[0], []), *all_flattened(new)[0], *pushed]

    start = [tf.constant(0, tf.int64), going, *carried, *(s.handle for s in stacks)]
    made = _while(goes_on, step, start)
    values = [_plain(v, body.output[k + 1]) for k, v in enumerate(rebuild(made[2 : 2 + len(carried)]))]
    gathered = [Sequence(h, s.element) for h, s in zip(made[2 + len(carried) :], stacks, strict=True)]
    return [*values, *(_stacked(s, shape) for s, shape in zip(gathered, shapes, strict=True))]


def _with_declared_type(value: Value, info: onnx.ValueInfoProto) -> Value:
    """Returns the value as an optional one where the body declares it so."""
    if info.type.HasField("optional_type") and not isinstance(value, Optional):
        if value is None:
            inner = info.type.optional_type.elem_type
            if inner.HasField("sequence_type"):
                return Optional(tf.constant(False), Sequence.empty(inner.sequence_type.elem_type.tensor_type.elem_type))
            element = inner.tensor_type.elem_type
            zeros = tf.zeros([0], tf.uint8 if element in CODED else NATIVE[element])
            return Optional(tf.constant(False), wrapped(zeros, element))
        return Optional(tf.constant(True), value)
    return value


def _plain(value: Value, info: onnx.ValueInfoProto) -> Value:
    """Returns what an optional value has, where the body declares its result as no option."""
    return value.value if isinstance(value, Optional) and not info.type.HasField("optional_type") else value


def _while(goes_on: Callable[..., Tensor], step: Callable[..., list[Tensor]], start: list[Tensor]) -> list[Tensor]:
    """Returns a loop whose tensors may change their shapes from one iteration to the next, where the body says so."""
    try:
        return list(tf.while_loop(goes_on, step, start))
    except (tf.errors.InvalidArgumentError, ValueError):
        free = [tf.TensorShape([]), tf.TensorShape([])]
        for t in start[2:]:
            loose = t.dtype != tf.variant and t.shape.ndims is not None
            free.append(tf.TensorShape([None] * t.shape.ndims) if loose else t.shape)
        return list(tf.while_loop(goes_on, step, start, shape_invariants=free))


@translates("Scan")
def _scan(node: Node, *inputs: Value) -> list[Value]:
    if node.get("batched"):
        return _scan_of_batch(node, *inputs)
    count = node.get("num_scan_inputs")
    states, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    axes = node.get("scan_input_axes", [0] * count)
    backwards = node.get("scan_input_directions", [0] * count)
    return _scanned(node, states, [(s, a, b) for s, a, b in zip(scanned, axes, backwards, strict=True)])


def _scanned(node: Node, states: list[Value], scanned: list[tuple[Value, int, int]]) -> list[Value]:
    body: onnx.GraphProto = node.get("body")
    outputs = len(body.output) - len(states)
    out_axes = node.get("scan_output_axes", [0] * outputs)
    out_backwards = node.get("scan_output_directions", [0] * outputs)
    rows = [_in_front(v, axis) for v, axis, _ in scanned]
    length = tf.shape(rows[0])[0]
    stacks = _stacks(node, body, len(states), lambda: [*states, *(r[0] for r in rows)])
    shapes: list[list[int | None] | None] = [None] * outputs

    def step(i: Tensor, going: Tensor, *tensors: Tensor) -> list[Tensor]:
        at = [length - 1 - i if b else i for _, _, b in scanned]
        made = _run(node, body, [*tensors[: len(states)], *(tf.gather(r, k) for r, k in zip(rows, at, strict=True))])
        for k, value in enumerate(made[len(states) :]):
            shapes[k] = None if value.shape.ndims is None else sizes(value)
        lists = [Sequence(h, s.element) for h, s in zip(tensors[len(states) :], stacks, strict=True)]
        pushed = [s.push(v).handle for s, v in zip(lists, made[len(states) :], strict=True)]
        return [i + 1, going, *made[: len(states)], *pushed]

    start = [tf.constant(0), tf.constant(True), *states, *(s.handle for s in stacks)]
    made = _while(lambda i, *_: i < length, step, start)
    results: list[Value] = list(made[2 : 2 + len(states)])
    for k, handle in enumerate(made[2 + len(states) :]):
        whole = _stacked(Sequence(handle, stacks[k].element), shapes[k])
        whole = tf.reverse(whole, [0]) if out_backwards[k] else whole
        results.append(_moved(whole, 0, out_axes[k]))
    return results


def _in_front(x: Tensor, axis: int) -> Tensor:
    return _moved(x, axis, 0)


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    """Returns the tensor with an axis at another place."""
    if source == target:
        return x
    rank = x.shape.ndims
    order = [i for i in range(rank) if i != source % rank]
    order.insert(target % rank, source % rank)
    return tf.transpose(x, order)


def _scan_of_batch(node: Node, lengths: Tensor, *inputs: Value) -> list[Value]:
    """Returns the form of opset 8: a scan for each element of a batch."""
    node.require(lengths is None, "it has sequence_lens, which only opset 8 had")
    count = node.get("num_scan_inputs")
    states, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    batch = sizes(inputs[0])[0]
    node.require_known(batch is not None, "the size of its batch")
    backwards = node.get("directions", [0] * count)
    each = [
        _scanned(node, [s[i] for s in states], [(v[i], 0, b) for v, b in zip(scanned, backwards, strict=True)])
        for i in range(batch or 0)
    ]
    return [tf.stack(list(parts)) for parts in zip(*each, strict=True)]
