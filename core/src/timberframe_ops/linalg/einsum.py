"""Einsum: sums of products over named dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, conjugate, constant, shape_of, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, broadcast_dim, format_shape, is_static, merge_dim
from timberframe_ops.math.matmul import finite_complex

ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """An equation with its ellipses spelt out: labels are letters, or numbers -1, -2, ... for ellipsis dimensions.

    The number counts from the last ellipsis dimension, so equal numbers broadcast with each other.
    """

    inputs: tuple[tuple[str | int, ...], ...]
    output: tuple[str | int, ...]


def split_equation(equation: str) -> tuple[list[str], str]:
    """Returns the terms left and right of ``->``; raises ValueError with what is wrong and what is required."""
    text = equation.replace(" ", "")
    if text.count("->") != 1:
        raise ValueError(f"equation {equation!r} has {text.count('->')} '->'; there must be one")
    left, right = text.split("->")
    terms = left.split(",")
    for term in (*terms, right):
        labels = term.replace(ELLIPSIS, "")
        if term.count(ELLIPSIS) > 1 or not all(x.isalpha() for x in labels):
            raise ValueError(f"term {term!r} of equation {equation!r}; it must be letters and at most one ellipsis")
    for label in right.replace(ELLIPSIS, ""):
        if label not in left:
            raise ValueError(f"output label {label!r} of equation {equation!r} is in no input; each must be")
    return terms, right


def parse_equation(equation: str, ranks: Sequence[int]) -> Equation:
    """Returns the equation for inputs of these ranks; raises ValueError with what is wrong and what is required."""
    terms, right = split_equation(equation)
    if len(terms) != len(ranks):
        raise ValueError(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} inputs; each input needs one")
    inputs = tuple(_expand(term, rank, equation) for term, rank in zip(terms, ranks, strict=True))
    widest = max((sum(isinstance(x, int) for x in labels) for labels in inputs), default=0)
    if widest and ELLIPSIS not in right:
        raise ValueError(f"equation {equation!r} has no ellipsis on the right for {widest} dimensions; it needs one")
    before, dots, after = right.partition(ELLIPSIS)
    middle = range(-widest, 0) if dots else ()
    return Equation(inputs, (*before, *middle, *after))


def _expand(term: str, rank: int, equation: str) -> tuple[str | int, ...]:
    named = len(term.replace(ELLIPSIS, ""))
    if rank < named or (ELLIPSIS not in term and rank != named):
        least = "at least " if ELLIPSIS in term else ""
        raise ValueError(f"input of rank {rank} for term {term!r} of {equation!r}; its rank must be {least}{named}")
    before, dots, after = term.partition(ELLIPSIS)
    return (*before, *(range(named - rank, 0) if dots else ()), *after)


def label_sizes(equation: Equation, shapes: Sequence[Shape]) -> dict[str | int, int | None]:
    """Returns the size of each label, None where unknown; raises ValueError where inputs disagree.

    Only ellipses broadcast.
    """
    sizes: dict[str | int, int | None] = {}
    for labels, shape in zip(equation.inputs, shapes, strict=True):
        for label, size in zip(labels, shape or (), strict=True):
            old = sizes.setdefault(label, size)
            try:
                sizes[label] = broadcast_dim(old, size) if isinstance(label, int) else merge_dim(old, size)
            except ValueError:
                name = "an ellipsis dimension" if isinstance(label, int) else f"label {label!r}"
                raise ValueError(f"{name} has sizes {old} and {size}; they must be equal") from None
    return sizes


def _shape(c: InferenceContext) -> list[Shape]:
    try:
        if any(s is None for s in c.shapes):
            split_equation(c.attrs["equation"])
            return [None]
        equation = parse_equation(c.attrs["equation"], [len(s or ()) for s in c.shapes])
        sizes = label_sizes(equation, c.shapes)
    except ValueError as e:
        shown = ", ".join(map(format_shape, c.shapes))
        raise c.error(f"inputs of shapes {shown}: {e}") from None
    if len(c.shapes) > 2:
        raise c.error(f"{len(c.shapes)} inputs; the op takes one or two (tf.einsum splits longer products)")
    return [tuple(sizes[label] for label in equation.output)]


def _einsum(attrs: Attrs, *inputs: Any) -> Any:
    equation = parse_equation(attrs["equation"], [x.ndim for x in inputs])
    numbers: dict[str | int, int] = {}
    for label in (*(x for labels in equation.inputs for x in labels), *equation.output):
        numbers.setdefault(label, len(numbers))
    sizes = label_sizes(equation, [x.shape for x in inputs])
    once = list(dict.fromkeys(equation.output))
    operands: list[Any] = []
    for x, labels in zip(inputs, equation.inputs, strict=True):
        # NumPy broadcasts named dimensions only where they are ellipses: drop those of size one that must grow.
        grows = [isinstance(a, int) and x.shape[i] == 1 and sizes[a] != 1 for i, a in enumerate(labels)]
        kept = x.reshape([d for d, g in zip(x.shape, grows, strict=True) if not g])
        operands += [kept, [numbers[a] for a, g in zip(labels, grows, strict=True) if not g]]
    result = np.asarray(np.einsum(*operands, [numbers[a] for a in once])).astype(inputs[0].dtype)
    if len(once) == len(equation.output):
        return result
    # A label that is repeated on the right: the result lies on that diagonal.
    out = np.zeros([sizes[a] or 0 for a in equation.output], result.dtype)
    indices = np.indices(result.shape)
    out[tuple(indices[once.index(a)] for a in equation.output)] = result
    return out


def summed_terms(equation: Equation, sizes: Mapping[str | int, int | None]) -> int:
    """Returns how many products one output element adds up."""
    summed = {a for labels in equation.inputs for a in labels} - set(equation.output)
    return math.prod(sizes[a] or 0 for a in summed)


def _terms(attrs: Attrs, *inputs: Any) -> int:
    equation = parse_equation(attrs["equation"], [x.ndim for x in inputs])
    # One more for a sum over a label of one operand alone before the product.
    return summed_terms(equation, label_sizes(equation, [x.shape for x in inputs])) + 1


def _gradient(op: Any, grad: Any) -> list[Any]:
    """For each operand the einsum of the gradient with the other operand's conjugate."""
    terms, right = split_equation(op.attrs["equation"])
    result = []
    for i, term in enumerate(terms):
        factors = [(conjugate(x), t) for k, (x, t) in enumerate(zip(op.inputs, terms, strict=True)) if k != i]
        result.append(_operand_gradient(op.inputs[i], term, [(grad, right), *factors]))
    return result


def _operand_gradient(x: Any, term: str, factors: list[tuple[Any, str]]) -> Any:
    """Labels of x alone, over which it was summed, repeat the gradient; what its ellipsis was repeated along is summed.

    The ellipsis is brought to the front for that, where shapes broadcast.
    """
    labels = "".join(dict.fromkeys(term.replace(ELLIPSIS, "")))
    present = "".join(t for _, t in factors)
    alone = "".join(a for a in labels if a not in present)
    if alone:
        sizes = apply_op("Pack", [[shape_of(x)[_axis_of(term, a)] for a in alone]])
        factors = [*factors, (apply_op("Fill", [sizes, constant(1, x.dtype)]), alone)]
    if not any(ELLIPSIS in t for _, t in factors):
        return _product(factors, term)
    front = ELLIPSIS + labels
    wide, own = _product(factors, front), _product([(x, term)], front)
    if is_static(wide.static_shape) and wide.static_shape == own.static_shape:
        return _product(factors, term)
    return _product([(sum_to_shape(wide, own), front if ELLIPSIS in term else labels)], term)


def _axis_of(term: str, label: str) -> int:
    """Returns the dimension that has a label, from the end where it follows the ellipsis."""
    before = term.partition(ELLIPSIS)[0]
    return before.index(label) if label in before else term.rindex(label) - len(term)


def _product(factors: list[tuple[Any, str]], right: str) -> Any:
    """Returns the einsum of one to three factors, two at a time."""
    while len(factors) > 2:
        (x, a), (y, b), *rest = factors
        joined = "".join(dict.fromkeys((a + b).replace(ELLIPSIS, "")))
        dots = ELLIPSIS if ELLIPSIS in a + b else ""
        wanted = right + "".join(t for _, t in rest)
        kept = dots + "".join(c for c in joined if c in wanted)
        factors = [(_product([(x, a), (y, b)], kept), kept), *rest]
    equation = ",".join(t for _, t in factors) + "->" + right
    if len(factors) == 1 and factors[0][1] == right:
        return factors[0][0]
    return apply_op("Einsum", [[x for x, _ in factors]], {"equation": equation})


_CASES: tuple[tuple[Any, ...], ...] = (
    ("->", ()), ("i->", (7,)), ("i->i", (7,)), ("ij->ji", (3, 5)), ("ijk->kij", (2, 3, 5)), ("ij->i", (3, 5)),
    ("ij->", (3, 5)), ("ii->", (4, 4)), ("ii->i", (4, 4)), ("i->ii", (3,)), ("ij->iji", (2, 3)),
    ("iij->j", (3, 3, 2)), ("...->...", (2, 3)), ("...ij->...ji", (2, 3, 4)), ("...ii->...i", (2, 3, 3)),
    ("i...->...", (2, 3, 4)), ("...->", ()), ("ab...c->c...ba", (2, 3, 4, 5)), ("i->", (0,)), ("ij->j", (0, 3)),
    ("ij,jk->ik", (3, 5), (5, 2)), ("ij,kj->ki", (3, 5), (2, 5)), ("ji,kj->ik", (5, 3), (2, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("i,i->", (7,), (7,)),
    ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)), ("ij,ij->ij", (3, 4), (3, 4)), ("ij,ij->", (3, 4), (3, 4)),
    ("ij,j->i", (3, 4), (4,)), (",->", (), ()), ("i,->i", (5,), ()), ("abc,cde->abde", (2, 3, 4), (4, 5, 2)),
    ("abcd,cd->ab", (2, 3, 4, 5), (4, 5)), ("abc,bad->acd", (2, 3, 4), (3, 2, 5)), ("ij,jk->", (3, 4), (4, 2)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)), ("ij,jj->i", (3, 4), (4, 4)), ("ij,kl->j", (2, 3), (4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 5)),
    ("...ij,jk->...ik", (2, 3, 4), (4, 5)), ("...i,...i->...", (3, 1, 4), (2, 4)),
    ("i...,j...->ij...", (2, 3), (4, 3)), ("ij,jk->ikk", (2, 3), (3, 2)), ("b...d,bd->...b", (2, 3, 4), (2, 4)),
    ("ij,jk->ik", (3, 0), (0, 2)), ("ij,jk->ik", (65, 130), (130, 67)),
    ("bij,bjk->bik", (65_537, 1, 2), (65_537, 2, 1)), ("aA,Ab->aAb", (2, 3), (3, 2)), ("ij,jk->ik", (0, 3), (3, 2)),
)  # fmt: skip


def _samples() -> Iterable[Sample]:
    for equation, *shapes in _CASES:
        # A factor summed by itself first turns inf - inf into inf times a sum, so those equations get finite values.
        special = equation not in ("ij,kl->j", "ij,jk->")
        yield Sample([[Arg(tuple(s), special=special) for s in shapes]], {"equation": equation})


def _errors() -> Iterable[ErrorSample]:
    for equation, match, *shapes in (
        ("ij,jk->ik", r"label 'j' has sizes 3 and 4", (2, 3), (4, 5)),
        ("ij,jk->ik", r"input of rank 1 for term 'ij'", (2,), (3, 5)),
        ("ij,jk", r"has 0 '->'", (2, 3), (3, 5)),
        ("ij->ik", r"output label 'k'", (2, 3)),
        ("ij->i", r"1 terms for 2 inputs", (2, 3), (2, 3)),
        ("i1->i", r"term 'i1'", (2, 3)),
        ("i...->i", r"no ellipsis on the right", (2, 3)),
        ("i......->i...", r"at most one ellipsis", (2, 3)),
        ("...,...->...", r"an ellipsis dimension has sizes 2 and 3", (2,), (3,)),
        ("i,i,i->i", r"3 inputs; the op takes one or two", (2,), (2,), (2,)),
    ):
        yield ErrorSample([[Arg(tuple(s)) for s in shapes]], match, {"equation": equation})


einsum = define_op(
    "Einsum",
    inputs=["inputs: N * T"],
    outputs=["output: T"],
    attrs=["equation: string", "N: int >= 1", "T: type"],
    doc="The sum of products that an equation such as ``ij,jk->ik`` describes: labels absent on the right are summed, "
    "a label twice in a term is its diagonal, an ellipsis stands for further dimensions and broadcasts.",
    shape=_shape,
    reference=_einsum,
    accuracy=Accumulation(_terms),
    gradient=_gradient,
    samples=lambda: finite_complex(_samples()),
    errors=_errors,
)
