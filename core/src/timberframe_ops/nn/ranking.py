"""The largest elements of rows, and what is among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.gradients import apply_op, constant, indicator, reshape_like, size_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.nn.windows import widen

_REALS = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"


def _scalar(c: InferenceContext, i: int, what: str) -> int | None:
    """Returns the value of input i, which must be a scalar, where it is known."""
    if c.shapes[i] not in (None, ()):
        raise c.late_error(f"{what} has shape {format_shape(c.shapes[i])}; it must be a scalar")
    value = c.value(i)
    return None if value is None else int(value)


def _top_k_shape(c: InferenceContext) -> Sequence[Shape]:
    k = c.attrs["k"] if "k" in c.attrs else _scalar(c, 1, "k")
    if k is not None and k < 0:
        raise c.error(f"k is {k}; it must not be negative")
    x = c.shapes[0]
    if x is None:
        return [None, None]
    if not x:
        raise c.error("input has rank 0; it must have rank 1 or more")
    if k is not None and x[-1] is not None and k > x[-1]:
        raise c.error(f"k is {k} for rows of {x[-1]}; it must not be above their size")
    kind = c.attrs.get("index_type")
    if kind is not None and kind.name == "int16" and x[-1] is not None and x[-1] > 32767:
        raise c.error(f"rows have {x[-1]} elements with int16 indices; they must have at most 32767")
    return [x[:-1] + (k,)] * 2


def _top_k(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns values and positions of the k largest, descending; the lower position first
    among equals, NaN before all.
    """
    # a stable ascending sort of the reversed row, reversed again, keeps equal elements in order
    order = x.shape[-1] - 1 - np.argsort(widen(x)[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = order[..., :k]
    return np.take_along_axis(x, order, axis=-1), order


def _top_k_reference(attrs: Attrs, input: np.ndarray, *k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, order = _top_k(input, int(k[0]) if k else attrs["k"])
    kind = attrs["index_type"].numpy if "index_type" in attrs else np.int32
    return values, order.astype(kind)


_TOP_K_SHAPES = (
    ((1,), 1),
    ((7,), 3),
    ((5,), 5),
    ((4,), 0),
    ((3, 11), 2),
    ((2, 3, 17), 9),
    ((0, 3), 2),
    ((0,), 0),
    ((2, 0), 0),
)


def _top_k_samples() -> Iterator[tuple[Arg, int]]:
    for shape, k in _TOP_K_SHAPES:
        yield Arg(shape), k
    yield Arg((131,), low=0, high=3, special=False), 40  # ties
    yield Arg((5, 1009)), 1
    yield Arg((3, 1009)), 1000


def _top_k_v2_samples() -> Iterator[Sample]:
    for arg, k in _top_k_samples():
        yield Sample((arg, Arg(values=k, dtype="int32")))
    for kind in ("int16", "int32", "int64"):
        yield Sample((Arg((2, 9)), Arg(values=4, dtype=kind)), {"index_type": kind, "Tk": kind})
    yield Sample((Arg((2, 9)), Arg(values=9, dtype="int32")), {"sorted": False})
    yield Sample((Arg((70001,)), Arg(values=3, dtype="int32")), {"index_type": "int32"})


def _top_k_errors() -> Iterator[ErrorSample]:
    def k(n: int) -> Arg:
        return Arg(values=n, dtype="int32")

    yield ErrorSample((Arg((3,)), k(4)), "k is 4 for rows of 3")
    yield ErrorSample((Arg((3,)), k(-1)), "k is -1; it must not be negative")
    yield ErrorSample((Arg(()), k(1)), "rank 1 or more")
    yield ErrorSample((Arg((3,)), Arg(values=[1], dtype="int32")), "must be a scalar")
    yield ErrorSample((Arg((70000,)), k(1)), "at most 32767", {"index_type": "int16"}, types={"T": ("float32",)})


_TOP_K_DOC = (
    "The k largest elements along the last dimension, descending, and their positions. Among equals the lower position "
    "comes first; NaN comes before all numbers. With sorted=false they may come in any order."
)


def _top_k_gradient(op: Any, grad: Any) -> Any:
    """Returns the gradients of the values at the positions where these were, and zeros elsewhere."""
    x, positions = op.inputs[0], op.outputs[1]
    rows, width, k = size_of(x, 0, -1), size_of(x, -1, None), size_of(positions, -1, None)
    first = apply_op("Range", [constant(0, int32), constant(rows, int32), constant(1, int32)]) * width
    indices = apply_op("Reshape", [positions, constant([rows, k], int32)])
    indices = apply_op("Cast", [indices], {"DstT": int32}) + apply_op("ExpandDims", [first, constant(1, int32)])
    indices = apply_op("Reshape", [indices, constant([-1, 1], int32)])
    flat = apply_op("Reshape", [grad, constant([-1], int32)])
    return reshape_like(apply_op("ScatterNd", [indices, flat, constant([rows * width], int32)]), x)


define_op(
    "TopKV2",
    inputs=("input: T", "k: Tk"),
    outputs=("values: T", "indices: index_type"),
    attrs=(
        "sorted: bool = true",
        _REALS,
        "Tk: {int16, int32, int64} = DT_INT32",
        "index_type: {int16, int32, int64} = DT_INT32",
    ),
    doc=_TOP_K_DOC,
    shape=_top_k_shape,
    reference=_top_k_reference,
    gradient=lambda op, grad, _: [_top_k_gradient(op, grad), None],
    shape_inputs=("k",),
    samples=_top_k_v2_samples,
    errors=_top_k_errors,
)

define_op(
    "TopK",
    inputs=("input: T",),
    outputs=("values: T", "indices: int32"),
    attrs=("k: int >= 0", "sorted: bool = true", _REALS),
    doc=_TOP_K_DOC,
    shape=_top_k_shape,
    reference=_top_k_reference,
    gradient=lambda op, grad, _: [_top_k_gradient(op, grad)],
    samples=lambda: (Sample((arg,), {"k": k}) for arg, k in _top_k_samples()),
    errors=lambda: [
        ErrorSample((Arg((3,)),), "k is 4 for rows of 3", {"k": 4}),
        ErrorSample((Arg(()),), "rank 1 or more", {"k": 1}),
    ],
)


def _in_top_k_shape(c: InferenceContext) -> Sequence[Shape]:
    rows, _ = c.require_rank(0, 2)
    (count,) = c.require_rank(1, 1)
    if rows is not None and count is not None and rows != count:
        raise c.error(f"predictions has {rows} rows and targets {count} elements; they must agree")
    if len(c.shapes) == 3 and c.shapes[2] not in (None, ()):
        raise c.late_error(f"k has shape {format_shape(c.shapes[2])}; it must be a scalar")
    return [(count if rows is None else rows,)]


def _in_top_k_reference(attrs: Attrs, predictions: np.ndarray, targets: np.ndarray, *k: np.ndarray) -> np.ndarray:
    classes = predictions.shape[1]
    inside = (targets >= 0) & (targets < classes)
    if not classes:
        return np.zeros(len(targets), bool)
    chosen = np.take_along_axis(predictions, np.where(inside, targets, 0)[:, None].astype(np.int64), axis=1)
    above = (predictions > chosen).sum(axis=1)
    found: np.ndarray = inside & np.isfinite(predictions).all(axis=1) & (above < (int(k[0]) if k else attrs["k"]))
    return found


def _in_top_k_samples(with_input: bool) -> Iterator[Sample]:
    rows = [
        [0.1, 0.3, 0.3, 0.2],
        [1.0, 2.0, 3.0, 4.0],
        [4.0, 4.0, 4.0, 4.0],
        [np.nan, 1.0, 2.0, 0.5],
        [np.inf, 1.0, 2.0, 0.5],
    ]
    cases = [(Arg(values=rows), [t, 3 - t, 0, 1, 2]) for t in range(4)]
    cases += [(Arg((3, 131), distinct=True, special=False), [0, 130, 64]), (Arg(values=rows[:2]), [-1, 4])]
    for predictions, targets in cases:
        for k in (-1, 0, 1, 2, 4, 99):
            inputs = (predictions, Arg(values=targets))
            yield Sample((*inputs, Arg(values=k)) if with_input else inputs, {} if with_input else {"k": k})
    many = Arg((131, 6), low=0, high=4, whole=True, special=False), Arg((131,), low=0, high=5)
    yield Sample((*many, Arg(values=3)) if with_input else many, {} if with_input else {"k": 3})
    empty = (Arg((0, 3)), Arg(values=np.zeros(0, np.int32)))
    yield Sample((*empty, Arg(values=1)) if with_input else empty, {} if with_input else {"k": 1})


def _in_top_k_errors(with_input: bool) -> Iterator[ErrorSample]:
    attrs = {} if with_input else {"k": 1}
    k = (Arg(values=1),) if with_input else ()
    yield ErrorSample((Arg((2, 3)), Arg(values=[1]), *k), "they must agree", attrs)
    yield ErrorSample((Arg((3,)), Arg(values=[1]), *k), "must have rank 2", attrs)
    if with_input:
        yield ErrorSample((Arg((1, 3)), Arg(values=[1]), Arg(values=[1])), "must be a scalar")


_IN_TOP_K_DOC = (
    "Whether each row's target is among its k largest predictions: fewer than k are above it, so ties at the border "
    "count as inside. False for a target out of range, and for a row that holds anything not finite."
)
_NO_GRADIENT = NotDifferentiable("the output is bool")

define_op(
    "InTopKV2",
    inputs=("predictions: float", "targets: T", "k: T"),
    outputs=("precision: bool",),
    attrs=("T: {int32, int64} = DT_INT32",),
    doc=_IN_TOP_K_DOC,
    shape=_in_top_k_shape,
    reference=_in_top_k_reference,
    samples=lambda: _in_top_k_samples(True),
    errors=lambda: _in_top_k_errors(True),
    gradient=_NO_GRADIENT,
)

define_op(
    "InTopK",
    inputs=("predictions: float", "targets: T"),
    outputs=("precision: bool",),
    attrs=("k: int", "T: {int32, int64} = DT_INT32"),
    doc=_IN_TOP_K_DOC,
    shape=_in_top_k_shape,
    reference=_in_top_k_reference,
    samples=lambda: _in_top_k_samples(False),
    errors=lambda: _in_top_k_errors(False),
    gradient=_NO_GRADIENT,
)


def _nth_element_shape(c: InferenceContext) -> Sequence[Shape]:
    n = _scalar(c, 1, "n")
    x = c.shapes[0]
    if n is not None and n < 0:
        raise c.error(f"n is {n}; it must not be negative")
    if x is None:
        return [None]
    if not x:
        raise c.error("input has rank 0; it must have rank 1 or more")
    if n is not None and x[-1] is not None and n >= x[-1]:
        raise c.error(f"n is {n} for rows of {x[-1]}; it must be below their size")
    return [x[:-1]]


def _nth_element_reference(attrs: Attrs, input: np.ndarray, n: np.ndarray) -> np.ndarray:
    order = np.argsort(widen(input), axis=-1, kind="stable")
    at = input.shape[-1] - 1 - int(n) if attrs["reverse"] else int(n)
    return np.take_along_axis(input, order[..., at : at + 1], axis=-1)[..., 0]


def _nth_element_samples() -> Iterator[Sample]:
    for shape in ((1,), (7,), (3, 5), (2, 2, 131), (0, 3)):
        for n in sorted({0, shape[-1] // 2, shape[-1] - 1}):
            for reverse in (False, True):
                yield Sample((Arg(shape, special=False), Arg(values=n, dtype="int32")), {"reverse": reverse})


def _nth_element_errors() -> Iterator[ErrorSample]:
    for n, shape, match in (
        (3, (3,), "n is 3 for rows of 3"),
        (-1, (3,), "must not be negative"),
        (0, (), "rank 1 or more"),
    ):
        yield ErrorSample((Arg(shape), Arg(values=n, dtype="int32")), match)
    yield ErrorSample((Arg((3,)), Arg(values=[0], dtype="int32")), "must be a scalar")


def _nth_element_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient: elements that equal the one found share its gradient."""
    last = constant(-1, int32)
    found = apply_op("ExpandDims", [op.outputs[0], last])
    equal = indicator(apply_op("Equal", [found, op.inputs[0]]), grad.dtype)
    count = apply_op("Sum", [equal, last], {"keep_dims": True})
    return [apply_op("RealDiv", [equal, count]) * apply_op("ExpandDims", [grad, last]), None]


define_op(
    "NthElement",
    inputs=("input: T", "n: int32"),
    outputs=("values: T",),
    attrs=("reverse: bool = false", _REALS),
    doc="The element that would be at position n if each row were sorted, descending with reverse.",
    shape=_nth_element_shape,
    reference=_nth_element_reference,
    gradient=_nth_element_gradient,
    shape_inputs=("n",),
    samples=_nth_element_samples,
    errors=_nth_element_errors,
)
