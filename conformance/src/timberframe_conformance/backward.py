"""Graphs of gradients: built around one op, run on a device, and compared with references and differences.

A gradient that a device computes may differ by eight times the larger of two sizes: the unit of its largest element,
and what the declared accuracies of all nodes that it depends on add up to (`Evaluated`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe import device as device_scope
from timberframe_conformance import drive
from timberframe_conformance.case import CaseFailedError, Measured, WrongValuesError, generator
from timberframe_conformance.cases.smooth import NoSmoothPointError, ordinary, smooth_arrays
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.tolerance.compare import compare
from timberframe_conformance.tolerance.declared import floor
from timberframe_conformance.truth.differences import STEP, Slope, directions, slope
from timberframe_conformance.truth.graphs import NARROWER, Evaluator
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.dtypes import resource
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import ArgDef
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

tf: Any = timberframe

SLACK = 8.0
"""How often what `Evaluated` finds is allowed."""
DRAWS, FEW = 64, 8
"""Draws of random signs: to judge a result, and where the size of errors is all that is wanted."""

DIRECTIONS = 4
"""Directions for each input along which differences are taken; together they touch every element."""
STEPS = (STEP, STEP / 256)
DETERMINED = 1e-4
"""A difference is used if its error bound is below this fraction of the derivative, or of the function's size."""
NOTHING = 1e-30
"""Smaller values count as zero: functions that are zero everywhere have no size to compare with."""


@dataclass
class Setting:
    """A graph of one op and the gradients of its floating outputs.

    xs: the floating inputs that are fed; positions, names: their indices among the flat inputs (`flat`) and their names
    in messages. first: the gradients, zeros where there is none. seeds: what the outputs are weighted with; given: the
    tensors that are fed with these. values: of all that is fed, and of variables by their handles. setup: operations to
    run first.
    """

    graph: Any
    xs: list[Any]
    positions: list[int]
    first: list[Any]
    seeds: list[np.ndarray | None]
    values: dict[Any, np.ndarray]
    flat: list[np.ndarray]
    attrs: Mapping[str, Any]
    op: OpDef
    names: list[str]
    setup: list[Any]
    outputs: list[Any]
    given: list[Any]

    @property
    def feeds(self) -> dict[Any, np.ndarray]:
        """What a session is fed."""
        return {t: x for t, x in self.values.items() if t.dtype is not resource}


def make_setting(
    trial: Trial, case_id: str, target: Target, arrays: Sequence[np.ndarray | list[np.ndarray]] | None = None
) -> Setting:
    """Returns the graph for these arrays, by default some at which the function is smooth.

    Raises CaseFailedError if the function has no values of ordinary size.
    """
    rng = generator(case_id)
    try:
        arrays = smooth_arrays(trial, rng) if arrays is None else arrays
    except NoSmoothPointError:
        raise CaseFailedError("no values were found at which the function is finite; the sample needs some") from None
    attrs, flat = trial.attrs(arrays), drive.flatten(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec, known=trial.known)
    values = dict(built.feeds)
    values.update((t, x) for t, x in zip(built.inputs, flat, strict=True) if t.dtype is resource)
    positions = [i for i, t in enumerate(built.inputs) if t in values and flat[i].dtype.name in FORMATS]
    outputs = evaluate(trial.op, attrs, [widen(x) for x in flat])
    constant = positions_of(trial.op.constant_outputs, trial.op.outputs, attrs)
    ys = [i for i, t in enumerate(built.fetches) if t.dtype.name in FORMATS and i not in constant]
    seeds: list[np.ndarray | None] = [None] * len(built.fetches)
    with built.graph.as_default(), device_scope(target.spec):
        given = []
        for i in ys:
            t = built.fetches[i]
            seeds[i] = random_weights(outputs[i], t.dtype.numpy, rng)
            given.append(placeholder(t.dtype, outputs[i].shape, t.static_shape == outputs[i].shape))
            values[given[-1]] = seeds[i]
        xs = [built.inputs[i] for i in positions]
        first = dense_gradients([built.fetches[i] for i in ys], xs, given)
    names = [f"input {i}" for i in positions]
    rest = trial.op, names, built.setup, built.fetches, given
    return Setting(built.graph, xs, positions, first, seeds, values, flat, attrs, *rest)


def positions_of(names: Sequence[str], args: Sequence[ArgDef], attrs: Mapping[str, Any]) -> set[int]:
    """Returns the flat positions of some of an op's inputs or outputs."""
    ranges = arg_ranges(args, attrs)
    return {i for name in names for i in ranges[name]}


def placeholder(dtype: Any, shape: tuple[int, ...], known: bool = True) -> Any:
    """Returns a placeholder for an array of this shape; `known` makes the shape static."""
    return apply_op("Placeholder", (), {"dtype": dtype, "shape": shape if known else None})


def random_weights(y: np.ndarray, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Returns random numbers of modulus 1/2 to 1, 0 where the function is infinite or large.

    They are real if the function's values are, like those of a modulus.
    """
    size = np.where(ordinary(y), rng.uniform(0.5, 1.0, y.shape), 0)
    if dtype.kind == "c" and (y.size == 0 or np.max(np.abs(np.imag(y))) > 2.0**-40 * np.max(np.abs(y))):
        return np.asarray(size * np.exp(2j * np.pi * rng.random(y.shape))).astype(dtype)
    return np.asarray(size * rng.choice((-1, 1), y.shape)).astype(dtype)


def dense_gradients(ys: Sequence[Any], xs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    """Dense gradients, with zeros for those that are None."""
    made = tf.gradients(list(ys), list(xs), grad_ys=list(seeds))
    return [_zeros(x) if g is None else convert_to_tensor(g) for g, x in zip(made, xs, strict=True)]


def _zeros(x: Any) -> Any:
    value = apply_op("ReadVariableOp", [x], {"dtype": x.handle[0]}) if x.dtype is resource else x
    return apply_op("ZerosLike", [value])


def weighted(values: Sequence[np.ndarray], weights: Sequence[np.ndarray | None]) -> float:
    """Re(sum(conj(u) f)) over all that has a weight."""
    total = 0.0
    for y, u in zip(values, weights, strict=True):
        if u is not None:
            total += float(np.sum((np.conj(widen(u)) * np.where(u == 0, 0, widen(y))).real))
    return total


def is_no_derivative(op: OpDef, flat: Sequence[np.ndarray]) -> bool:
    """Returns whether TensorFlow's gradient is not the derivative for these inputs, or there is no derivative."""
    if "leaves_rounding_out" in op.gradient_notes or has_free_phases(op, flat):
        return True
    indices = [x for x in flat if x.dtype.kind in "iu"]
    if "overwritten_values" not in op.gradient_notes or not indices:
        return False
    rows: list[tuple[int, ...]] = []
    for x in indices:
        leading = x.shape[:-1] if op.name == "TensorScatterUpdate" else x.shape
        rows.extend(tuple(x[k].ravel().tolist()) for k in np.ndindex(*leading))
    return len(set(rows)) < len(rows)


def has_free_phases(op: OpDef, flat: Sequence[np.ndarray]) -> bool:
    """Returns whether results are unique up to phases only, which have no derivative."""
    return "free_phases" in op.gradient_notes and any(x.dtype.kind == "c" for x in flat)


class Evaluated:
    """Tensors evaluated in float64 by references, and how far the errors that all nodes may have move them.

    Let e_k be the error that the declared accuracy allows for element k of all nodes' results, and c_k e_k what it
    moves an element of a tensor by, to first order. R^2 is the sum of (c_k e_k)^2. Real errors are at most e_k.

    - If they are independent and without bias, the element moves by more than L R with a probability of at most
      2 exp(-L^2 / 2) (Hoeffding): 3e-14 for the 8 of SLACK.
    - However they depend on each other, the element moves by at most the sum of |c_k e_k|, which is at most 8 R for 64
      errors (Cauchy-Schwarz), and for more where few of them have weight.

    R^2 is also the mean square of what errors of full size and random signs move the element by, so that draws of
    signs estimate it without derivatives. With R from m draws, the probability is at most 2 (1 + L^2 / m)^(-m / 2) for
    sums of many errors (the mean of 2 exp(-L^2 X / 2m), X being distributed as chi-squared with m degrees of freedom):
    5e-10 for the 64 of DRAWS, 3e-4 for the 8 of FEW. Errors of float64 are taken from float32, and scaled by 2^-29, the
    ratio of the unit roundoffs. An element that a draw makes infinite or NaN counts as not moved by it.
    """

    def __init__(self, tensors: Sequence[Any], values: Mapping[Any, np.ndarray]) -> None:
        """values: of all tensors that are not computed."""
        self._tensors = tensors
        self._values = list(values.values())
        self.evaluator = Evaluator(tensors, list(values))
        self.wide = self.evaluator.wide(self._values)

    def units(self) -> list[float]:
        """Returns the unit of each tensor's largest element, in unit roundoffs of its dtype."""
        return [2 * float(np.max(np.abs(w), initial=0.0)) for w in self.wide]

    def moves(self, draws: int) -> list[float]:
        """Returns the largest R of each tensor's elements, in unit roundoffs of its dtype; at least its `units`."""
        _, moved = self.evaluator.perturbed(self._values, np.random.default_rng(0), draws)
        squares = [np.zeros(w.shape) for w in self.wide]
        for found in moved:
            for square, y, w in zip(squares, found, self.wide, strict=True):
                move = np.abs(y - w)
                square += np.where(np.isfinite(move), move, 0.0) ** 2 / draws
        result = []
        for t, square, unit in zip(self._tensors, squares, self.units(), strict=True):
            form = FORMATS[NARROWER.get(t.dtype.name, t.dtype.numpy).name]
            result.append(max(float(np.sqrt(np.max(square, initial=0.0))) / form.unit_roundoff, unit))
        return result


def run_setting(setting: Setting, tensors: Sequence[Any], target: Target) -> tuple[Measured, list[np.ndarray]]:
    """Runs gradients on the device and compares them with their evaluation by references, which it returns.

    Results that are not unique, such as eigenvectors, are taken from the device, because gradients depend on the
    choice.
    """
    free = setting.outputs if isinstance(setting.op.accuracy, Residual) else []
    with target.session(setting.graph) as session:
        for operation in setting.setup:
            session.run(operation, setting.feeds)
        got, *own = session.run([list(tensors), *free], setting.feeds)
    pure = Evaluated(tensors, setting.values)
    evaluated = Evaluated(tensors, {**setting.values, **dict(zip(free, own, strict=True))}) if free else pure
    values = [np.asarray(g) for g in got]
    for name, x, value in zip(setting.names, setting.xs, values, strict=True):
        array = setting.values[x]
        if value.dtype != array.dtype or value.shape != array.shape:
            raise CaseFailedError(
                f"the gradient for {name} is {value.dtype}{list(value.shape)}; it must be as the input, "
                f"{array.dtype}{list(array.shape)}"
            )
    try:
        # Nearly all are within the first limit, which is never the larger one and costs nothing.
        return _compare(setting.names, values, evaluated.wide, evaluated.units()), pure.wide
    except CaseFailedError:
        return _compare(setting.names, values, evaluated.wide, evaluated.moves(DRAWS)), pure.wide


def _compare(
    names: Sequence[str], got: Sequence[np.ndarray], wide: Sequence[np.ndarray], sizes: Sequence[float]
) -> Measured:
    """Raises WrongValuesError where a gradient is off by more than SLACK times its size, in unit roundoffs."""
    measured = Measured()
    for name, value, w, size in zip(names, got, wide, sizes, strict=True):
        if not value.size:
            continue
        form = FORMATS[value.dtype.name]
        allowed = SLACK * max(form.unit_roundoff * size, floor(form))
        errors = compare(value, w, value.dtype, np.asarray(allowed))
        error = errors.error
        worst = int(np.argmax(np.where(errors.wrong, np.inf, error)))
        if errors.wrong.any():
            index = [int(k) for k in np.unravel_index(worst, value.shape)]
            raise WrongValuesError(
                f"the gradient for {name} at {index} is {value.flat[worst]!r}, the references give {w.flat[worst]!r}: "
                f"off by {error.flat[worst]:.3g}, allowed {allowed:.3g}"
            )
        unit = float(np.max(np.abs(w))) * 2 * form.unit_roundoff
        if unit and (measured.max_ulp is None or error.flat[worst] / unit > measured.max_ulp):
            measured.max_ulp, measured.limit = float(error.flat[worst] / unit), allowed / unit
    return measured


def compare_differences(
    setting: Setting,
    gradients: Sequence[np.ndarray],
    value: Callable[[Sequence[np.ndarray]], float],
    start: list[np.ndarray],
    noise: float,
    natural: float,
    rng: np.random.Generator,
    count: int = DIRECTIONS,
) -> None:
    """Raises CaseFailedError if a gradient differs from the derivative of `value` by central differences."""
    constant = positions_of(setting.op.constant_inputs, setting.op.inputs, setting.attrs)
    for name, position, gradient in zip(setting.names, setting.positions, gradients, strict=True):
        if position in constant:
            continue
        x = start[position]
        most = max(1, min(count, 2 * count // len(setting.xs)))
        found = []
        for v in directions(x.shape, x.dtype, most, rng):
            if "both_triangles" in setting.op.gradient_notes:
                v = (v + np.conj(np.swapaxes(v, -1, -2))) / 2

            def along(t: float, v: np.ndarray = v, x: np.ndarray = x, position: int = position) -> float:
                return value([*start[:position], x + t * v, *start[position + 1 :]])

            declared = float(np.sum((np.conj(gradient) * v).real))
            # The points themselves are rounded, and the sum over up to MOST_ELEMENTS results is (pairwise: log2 n u).
            rounding = 2.0**-53 * float(np.sum(np.abs(gradient) * (np.abs(x) + 1))) + 2.0**-50 * natural
            size = float(np.sum(np.abs(gradient) * np.abs(v)))
            found.append((_determined(along, noise + rounding, natural), declared, size))
        determined = [(s, declared, size) for s, declared, size in found if s is not None]
        for s, declared, size in determined:
            # The gradient itself loses at most 13 of float64's 53 bits; differences lose more.
            allowed = s.bound + 2.0**-40 * size
            if not abs(s.value - declared) <= allowed:
                raise CaseFailedError(
                    f"the declared gradient for {name} gives the slope {declared!r} along a direction; central "
                    f"differences give {s.value!r}, which may be off by {allowed:.3g}; the definition of the op is "
                    "wrong, on every device"
                )
        if 2 * len(determined) < len(found):
            raise CaseFailedError(
                f"differences for {name} determine only {len(determined)} of {len(found)} slopes; the sample must have "
                "points where the function is smooth"
            )


def _determined(f: Callable[[float], float], noise: float, natural: float) -> Slope | None:
    """Returns the slope by the first step size that determines it; a shorter step meets fewer kinks."""
    for step in STEPS:
        s = slope(f, noise, step)
        if s.bound <= DETERMINED * (natural + abs(s.value)) + NOTHING:
            return s
    return None
