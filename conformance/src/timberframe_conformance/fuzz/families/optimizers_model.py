"""A model of TensorFlow 1's optimizers in NumPy: what programs of family `optimizers` that apply arrays call.

The formulas are those of the papers and of TensorFlow's documentation, in the dtype of the variable; options are float32
tensors there, whatever the variable is. Sparse gradients are rows, which are added where they are repeated; state of other rows stays, but for Adam, whose moments decay
everywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any


class NotModelledError(Exception):
    """The program has a graph."""


def device(name: str) -> Any:
    """Does nothing."""
    return contextlib.nullcontext()


def constant(x: Any) -> Array:
    return np.asarray(x)


class Variable:
    """An array that changes."""

    def __init__(self, value: Any, use_resource: bool = True) -> None:
        self.value = np.array(value)

    def numpy(self) -> Array:
        return self.value.copy()


class IndexedSlices:
    """Rows of a gradient."""

    def __init__(self, values: Array, indices: Array, shape: Any) -> None:
        self.rows = values
        self.places = indices


class Graph:
    """Graphs are not modelled."""

    def __init__(self) -> None:
        raise NotModelledError("a graph")


class Optimizer:
    """Applies gradients to variables; `slots` are initial values by name."""

    slots: tuple[str, ...] = ()

    def __init__(self, learning_rate: Any, **options: Any) -> None:
        self.rate = learning_rate
        self.options = options
        self.steps = 0
        self.state: dict[int, dict[str, Array]] = {}

    def option(self, name: str, default: Any) -> Any:
        """Returns an option, a number as float32 holds it."""
        value = self.options.get(name, default)
        return float(np.float32(value)) if isinstance(value, float) else value

    def initial(self, slot: str) -> float:
        return 0.0

    def get_slot_names(self) -> list[str]:
        return sorted(self.slots)

    def get_slot(self, variable: Variable, name: str) -> Any:
        state = self.state.get(id(variable))
        return None if state is None else state[name]

    def apply_gradients(self, pairs: Sequence[tuple[Any, Variable]]) -> None:
        """Takes one step."""
        self.steps += 1
        for gradient, variable in pairs:
            x = variable.value
            state = self.state.setdefault(
                id(variable), {s: np.full(x.shape, self.initial(s), x.dtype) for s in self.slots}
            )
            rate = x.dtype.type(np.float32(self.rate() if callable(self.rate) else self.rate))
            if isinstance(gradient, IndexedSlices):
                rows, inverse = np.unique(gradient.places, return_inverse=True)
                summed = np.zeros((len(rows), *x.shape[1:]), x.dtype)
                np.add.at(summed, inverse, gradient.rows)
                self.apply_rows(x, state, rows, summed, rate)
            else:
                self.apply(x, state, slice(None), gradient, rate)

    def apply_rows(self, x: Array, state: dict[str, Array], rows: Array, g: Array, rate: Any) -> None:
        """Takes a step of some rows."""
        self.apply(x, state, rows, g, rate)

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        """Takes a step of the rows `at`, in place."""
        raise NotImplementedError


class GradientDescentOptimizer(Optimizer):
    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        x[at] -= rate * g


class MomentumOptimizer(Optimizer):
    slots = ("momentum",)

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        m, moment = x.dtype.type(self.option("momentum", 0.0)), state["momentum"]
        moment[at] = moment[at] * m + g
        x[at] -= rate * (g + m * moment[at]) if self.option("use_nesterov", False) else rate * moment[at]


class AdamOptimizer(Optimizer):
    slots = ("m", "v")

    def _parts(self, x: Array, rate: Any) -> tuple[Any, Any, Any, Any]:
        one, two = self.option("beta1", 0.9), self.option("beta2", 0.999)
        powers = [np.prod([np.float32(b)] * self.steps, dtype=np.float32) for b in (one, two)]
        kind = x.dtype.type
        corrected = rate * np.sqrt(1 - kind(powers[1])) / (1 - kind(powers[0]))
        return kind(one), kind(two), kind(self.option("epsilon", 1e-8)), kind(corrected)

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        one, two, epsilon, corrected = self._parts(x, rate)
        m, v = state["m"], state["v"]
        m[at] = m[at] * one + (1 - one) * g
        v[at] = v[at] * two + (1 - two) * g * g
        x[at] -= corrected * m[at] / (np.sqrt(v[at]) + epsilon)

    def apply_rows(self, x: Array, state: dict[str, Array], rows: Array, g: Array, rate: Any) -> None:
        whole = np.zeros_like(x)
        whole[rows] = g
        self.apply(x, state, slice(None), whole, rate)


class AdagradOptimizer(Optimizer):
    slots = ("accumulator",)

    def initial(self, slot: str) -> float:
        return float(self.options.get("initial_accumulator_value", 0.1))

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        a = state["accumulator"]
        a[at] += g * g
        x[at] -= rate * g / np.sqrt(a[at])


class AdadeltaOptimizer(Optimizer):
    slots = ("accum", "accum_update")

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        rho, epsilon = x.dtype.type(self.option("rho", 0.95)), x.dtype.type(self.option("epsilon", 1e-8))
        a, u = state["accum"], state["accum_update"]
        a[at] = rho * a[at] + (1 - rho) * g * g
        update = np.sqrt(u[at] + epsilon) / np.sqrt(a[at] + epsilon) * g
        u[at] = rho * u[at] + (1 - rho) * update * update
        x[at] -= rate * update


class RMSPropOptimizer(Optimizer):
    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]  # it depends on the options
        return ("rms", "momentum", "mg") if self.option("centered", False) else ("rms", "momentum")

    def initial(self, slot: str) -> float:
        return 1.0 if slot == "rms" else 0.0

    def get_slot_names(self) -> list[str]:
        raise NotModelledError("names of RMSProp's slots")

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        kind = x.dtype.type
        decay, m, epsilon = (
            kind(self.option("decay", 0.9)),
            kind(self.option("momentum", 0.0)),
            self.option("epsilon", 1e-10),
        )
        r = state["rms"]
        r[at] = decay * r[at] + (1 - decay) * g * g
        spread = r[at] + kind(epsilon)
        if "mg" in state:
            mean = state["mg"]
            mean[at] = decay * mean[at] + (1 - decay) * g
            spread = spread - mean[at] ** 2
        moment = state["momentum"]
        moment[at] = m * moment[at] + rate * g / np.sqrt(spread)
        x[at] -= moment[at]


class FtrlOptimizer(Optimizer):
    slots = ("accum", "linear")

    def initial(self, slot: str) -> float:
        return float(self.options.get("initial_accumulator_value", 0.1)) if slot == "accum" else 0.0

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        kind = x.dtype.type
        power, one, two, shrink = (
            kind(self.option(n, default))
            for n, default in (
                ("learning_rate_power", -0.5), ("l1_regularization_strength", 0.0),
                ("l2_regularization_strength", 0.0), ("l2_shrinkage_regularization_strength", 0.0),
            )
        )  # fmt: skip
        a, linear = state["accum"], state["linear"]
        shrunk = g + 2 * shrink * x[at]
        new = a[at] + g * g
        linear[at] += shrunk - (new**-power - a[at] ** -power) / rate * x[at]
        quadratic = new**-power / rate + 2 * two
        clipped = np.clip(linear[at], -one, one)
        x[at] = (clipped - linear[at]) / quadratic
        a[at] = new


def _proximal(v: Array, rate: Any, one: Any, two: Any) -> Array:
    shrunk = np.sign(v) * np.maximum(np.abs(v) - rate * one, 0) if one > 0 else v
    return shrunk / (1 + rate * two)


class ProximalGradientDescentOptimizer(Optimizer):
    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        one, two = (x.dtype.type(self.option(f"l{i}_regularization_strength", 0.0)) for i in (1, 2))
        x[at] = _proximal(x[at] - rate * g, rate, one, two)


class ProximalAdagradOptimizer(Optimizer):
    slots = ("accumulator",)

    def initial(self, slot: str) -> float:
        return float(self.options.get("initial_accumulator_value", 0.1))

    def apply(self, x: Array, state: dict[str, Array], at: Any, g: Array, rate: Any) -> None:
        one, two = (x.dtype.type(self.option(f"l{i}_regularization_strength", 0.0)) for i in (1, 2))
        a = state["accumulator"]
        a[at] += g * g
        own = rate / np.sqrt(a[at])
        x[at] = _proximal(x[at] - own * g, own, one, two)


class train:  # noqa: N801 - the name of TensorFlow's module
    """The module `tf.train`."""

    GradientDescentOptimizer = GradientDescentOptimizer
    MomentumOptimizer = MomentumOptimizer
    AdamOptimizer = AdamOptimizer
    AdagradOptimizer = AdagradOptimizer
    AdadeltaOptimizer = AdadeltaOptimizer
    RMSPropOptimizer = RMSPropOptimizer
    FtrlOptimizer = FtrlOptimizer
    ProximalGradientDescentOptimizer = ProximalGradientDescentOptimizer
    ProximalAdagradOptimizer = ProximalAdagradOptimizer
