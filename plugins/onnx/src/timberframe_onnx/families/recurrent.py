"""Recurrent layers: RNN, GRU and LSTM, in both directions, over sequences of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, sizes
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Sequence, Tensor, element_type

Activation = Callable[[Tensor], Tensor]
Step = Callable[[Tensor, list[Tensor]], list[Tensor]]
"""What a cell does: from its share of the input and its states to new states, the first of which is the output."""


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """Returns the function of a name in ONNX, with its parameters or their defaults."""

    def of(default: float, given: float | None, x: Tensor) -> Tensor:
        return scalar(default if given is None else given, x)

    table: dict[str, Activation] = {
        "tanh": tf.tanh,
        "sigmoid": tf.sigmoid,
        "relu": tf.nn.relu,
        "softplus": tf.nn.softplus,
        "softsign": tf.nn.softsign,
        "elu": lambda x: tf.where_v2(x < scalar(0, x), of(1.0, alpha, x) * tf.math.expm1(x), x),
        "affine": lambda x: of(1.0, alpha, x) * x + of(0.0, beta, x),
        "leakyrelu": lambda x: tf.where_v2(x < scalar(0, x), of(0.01, alpha, x) * x, x),
        "thresholdedrelu": lambda x: tf.where_v2(x > of(1.0, alpha, x), x, tf.zeros_like(x)),
        "scaledtanh": lambda x: of(1.0, alpha, x) * tf.tanh(of(1.0, beta, x) * x),
        "hardsigmoid": lambda x: tf.minimum(
            tf.maximum(of(0.2, alpha, x) * x + of(0.5, beta, x), scalar(0, x)), scalar(1, x)
        ),
    }
    return table[name.lower()]


_TAKES_ALPHA = {"elu", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid"}
_TAKES_BETA = {"affine", "scaledtanh", "hardsigmoid"}


def _activations(node: Node, defaults: list[str], directions: int) -> list[list[Activation]]:
    """Returns the functions of each direction. Parameters are listed for those functions alone that have them."""
    names = node.get("activations", defaults * directions)
    alphas, betas = list(node.get("activation_alpha", [])), list(node.get("activation_beta", []))
    made = []
    for name in names:
        alpha = alphas.pop(0) if name.lower() in _TAKES_ALPHA and alphas else None
        beta = betas.pop(0) if name.lower() in _TAKES_BETA and betas else None
        made.append(_activation(name, alpha, beta))
    count = len(defaults)
    return [made[d * count : (d + 1) * count] for d in range(directions)]


@dataclass(frozen=True)
class _Inputs:
    """Inputs of a layer: x is [time, batch, features]; the others are those of all directions, or None."""

    x: Tensor
    w: Tensor
    r: Tensor
    bias: Tensor | None
    lengths: Tensor | None
    states: list[Tensor | None]
    hidden: int


def _prepared(
    node: Node, gates: int, x: Tensor, w: Tensor, r: Tensor, bias: Any, lengths: Any, states: list[Any]
) -> _Inputs:
    hidden = node.get("hidden_size", sizes(r)[-1])
    node.require_known(hidden is not None, "its hidden size")
    if node.get("layout", 0):
        x = tf.transpose(x, [1, 0, 2])
        states = [None if s is None else tf.transpose(s, [1, 0, 2]) for s in states]
    return _Inputs(x, w, r, bias, lengths, states, int(hidden))


def _layer(node: Node, inputs: _Inputs, cells: list[Callable[..., Step]], columns: int) -> list[Tensor]:
    """Returns the outputs of all directions: [time, directions, batch, hidden], then each last state.

    columns: how many columns of the bias are for the input alone. cells: for each direction the function that makes its
    step of what recurs.
    """
    direction = node.get("direction", "forward")
    outputs, finals = [], []
    for d, cell in enumerate(cells):
        backwards = direction == "reverse" or d == 1
        x = inputs.x
        if backwards:
            x = _turned(x, inputs.lengths)
        parts: list[Any] = shape_parts(x)
        rows = tf.matmul(tf.reshape(x, stacked([-1, parts[2]], tf.int32)), inputs.w[d], transpose_b=True)
        bias = None if inputs.bias is None else inputs.bias[d]
        if bias is not None:
            rows = rows + bias[:columns]
        share = tf.reshape(rows, stacked([parts[0], parts[1], columns], tf.int32))
        start = [
            tf.zeros(stacked([parts[1], inputs.hidden], tf.int32), x.dtype) if s is None else s[d]
            for s in inputs.states
        ]
        recurs = cell(inputs.r[d], None if bias is None else bias[columns:])
        whole, last = _run(share, start, recurs, inputs.lengths, inputs.hidden)
        outputs.append(_turned(whole, inputs.lengths) if backwards else whole)
        finals.append(last)
    made = [tf.stack(outputs, 1), *(tf.stack(list(state), 0) for state in zip(*finals, strict=True))]
    if node.get("layout", 0):
        return [tf.transpose(made[0], [2, 0, 1, 3]), *(tf.transpose(m, [1, 0, 2]) for m in made[1:])]
    return made


def _turned(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Returns the sequence from its end to its beginning; what follows a shorter one stays."""
    return tf.reverse(x, [0]) if lengths is None else tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


def _run(
    share: Tensor, start: list[Tensor], step: Step, lengths: Tensor | None, hidden: int
) -> tuple[Tensor, list[Tensor]]:
    """Returns the outputs of all steps and the last states. Beyond a sequence's end outputs are 0 and states stay."""
    count = tf.shape(share)[0]
    ends = None if lengths is None else tf.cast(lengths, tf.int32)
    stack = Sequence.empty(element_type(share) if share.dtype != tf.float32 else TensorProto.FLOAT)

    def body(i: Tensor, handle: Tensor, *states: Tensor) -> list[Tensor]:
        new = step(share[i], list(states))
        output = new[0]
        if ends is not None:
            alive = (i < ends)[:, None]
            new = [tf.where_v2(alive, n, s) for n, s in zip(new, states, strict=True)]
            output = tf.where_v2(alive, output, tf.zeros_like(output))
        return [i + 1, Sequence(handle, stack.element).push(output).handle, *new]

    batch = sizes(share)[1]
    free = [tf.TensorShape([]), stack.handle.shape, *(tf.TensorShape([batch, hidden]) for _ in start)]
    made = tf.while_loop(lambda i, *_: i < count, body, [tf.constant(0), stack.handle, *start], shape_invariants=free)
    shape = tf.constant([-1 if batch is None else batch, hidden])
    whole = tf.raw_ops.TensorListStack(input_handle=made[1], element_shape=shape, element_dtype=share.dtype)
    whole.set_shape([sizes(share)[0], batch, hidden])
    return whole, list(made[2:])


def _clipped(node: Node, x: Tensor) -> Tensor:
    limit = node.get("clip")
    return x if not limit else tf.minimum(tf.maximum(x, scalar(-limit, x)), scalar(limit, x))


@translates("RNN")
def _rnn(node: Node, x: Tensor, w: Tensor, r: Tensor, bias: Any = None, lengths: Any = None, h: Any = None) -> Any:
    inputs = _prepared(node, 1, x, w, r, bias, lengths, [h])
    functions = _activations(node, ["Tanh"], sizes(w)[0] or 1)

    def cell(activation: list[Activation]) -> Callable[..., Step]:
        def recurring(recurrent: Tensor, bias: Tensor | None) -> Step:
            def step(share: Tensor, states: list[Tensor]) -> list[Tensor]:
                total = share + tf.matmul(states[0], recurrent, transpose_b=True)
                return [activation[0](_clipped(node, total if bias is None else total + bias))]

            return step

        return recurring

    return _layer(node, inputs, [cell(f) for f in functions], inputs.hidden)


@translates("GRU")
def _gru(node: Node, x: Tensor, w: Tensor, r: Tensor, bias: Any = None, lengths: Any = None, h: Any = None) -> Any:
    """Gates in ONNX's order: update (z), reset (r), hidden (h)."""
    inputs = _prepared(node, 3, x, w, r, bias, lengths, [h])
    n = inputs.hidden
    functions = _activations(node, ["Sigmoid", "Tanh"], sizes(w)[0] or 1)

    def cell(activation: list[Activation]) -> Callable[..., Step]:
        def recurring(recurrent: Tensor, bias: Tensor | None) -> Step:
            def step(share: Tensor, states: list[Tensor]) -> list[Tensor]:
                h = states[0]
                gates = share[:, : 2 * n] + tf.matmul(h, recurrent[: 2 * n], transpose_b=True)
                gates = gates if bias is None else gates + bias[: 2 * n]
                both = activation[0](_clipped(node, gates))
                z, reset = both[:, :n], both[:, n:]
                if node.get("linear_before_reset", 0):
                    inner = tf.matmul(h, recurrent[2 * n :], transpose_b=True)
                    inner = reset * (inner if bias is None else inner + bias[2 * n :])
                else:
                    inner = tf.matmul(reset * h, recurrent[2 * n :], transpose_b=True)
                    inner = inner if bias is None else inner + bias[2 * n :]
                new = activation[1](_clipped(node, share[:, 2 * n :] + inner))
                return [(scalar(1, z) - z) * new + z * h]

            return step

        return recurring

    return _layer(node, inputs, [cell(f) for f in functions], 3 * n)


@translates("LSTM")
def lstm(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    peephole: Any = None,
    rounded: Activation = tf.identity,
) -> Any:
    """Returns all outputs, the last output and the last cell.

    Gates are in ONNX's order: input, output, forget, cell; peepholes are those of input, output, forget. rounded: what
    is done to a factor of weights before each product, where these are quantized.
    """
    inputs = _prepared(node, 4, rounded(x), w, r, bias, lengths, [h, c])
    n = inputs.hidden
    functions = _activations(node, ["Sigmoid", "Tanh", "Tanh"], sizes(w)[0] or 1)

    def cell(d: int, activation: list[Activation]) -> Callable[..., Step]:
        look = None if peephole is None else tf.split(peephole[d], 3)

        def recurring(recurrent: Tensor, bias: Tensor | None) -> Step:
            def step(share: Tensor, states: list[Tensor]) -> list[Tensor]:
                h, c = states
                total = share + tf.matmul(rounded(h), recurrent, transpose_b=True)
                total = total if bias is None else total + bias
                i, o, f, g = (total[:, k * n : (k + 1) * n] for k in range(4))
                if look is not None:
                    i, f = i + look[0] * c, f + look[2] * c
                i = activation[0](_clipped(node, i))
                f = scalar(1, i) - i if node.get("input_forget", 0) else activation[0](_clipped(node, f))
                new = f * c + i * activation[1](_clipped(node, g))
                if look is not None:
                    o = o + look[1] * new
                return [activation[0](_clipped(node, o)) * activation[2](new), new]

            return step

        return recurring

    return _layer(node, inputs, [cell(d, f) for d, f in enumerate(functions)], 4 * n)
