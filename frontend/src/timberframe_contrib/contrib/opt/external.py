"""Optimizers outside the graph, such as SciPy's L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from timberframe.api.constants import zeros_like
from timberframe.api.framework import placeholder
from timberframe.api.variable_collections import trainable_variables
from timberframe_core import logging, nest
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.extras import extra
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.shapes import format_shape

_At = Callable[[Any], Any]
"""A function of the vector of all variables."""


class ExternalOptimizerInterface:
    """Base of optimizers outside the graph, which see the variables as one vector.

    loss: a scalar. var_list: the variables, by default all trainable ones. equalities, inequalities: scalars that are
    to be zero, and zero or above. var_to_bounds: for a variable (lowest, highest), each a number or an array.
    optimizer_kwargs: for the optimizer. An optimizer derives from this and has a method `_minimize`.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self.optimizer_kwargs = optimizer_kwargs
        self._vars = list(trainable_variables() if var_list is None else var_list)
        if not self._vars:
            raise InvalidArgumentError(f"{self._kind}: there are no variables to optimize; at least one is required")
        self._sizes = [int(np.prod(v.shape.as_list(), dtype=int)) for v in self._vars]
        self._loss = self._with_slopes(loss, "loss")
        self._equalities = [self._with_slopes(y, "an equality") for y in equalities or ()]
        self._inequalities = [self._with_slopes(y, "an inequality") for y in inequalities or ()]
        self._packed_bounds = self._bounds(var_to_bounds) if var_to_bounds is not None else None
        self._values = [placeholder(v.dtype.base_dtype, v.shape) for v in self._vars]
        self._updates = [v.assign(value) for v, value in zip(self._vars, self._values, strict=True)]

    @property
    def _kind(self) -> str:
        return type(self).__name__

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss, then assigns the variables; until then, and where this fails, they are what they were.

        session: the default one if None. feed_dict: for all runs. step_callback: gets all variables as one vector after
        each step. loss_callback: gets the values of `fetches` whenever the loss is computed. run_kwargs: for
        Session.run.
        """
        session = session or get_default_session()
        if session is None:
            raise WrongStateError(f"{self._kind}.minimize: there is no default session; give one")
        fed, more = dict(feed_dict or {}), list(fetches or [])

        def run(wanted: Any, vector: Any) -> Any:
            return session.run(
                wanted, {**fed, **dict(zip(self._vars, self._unpacked(vector), strict=True))}, **run_kwargs
            )

        def loss_and_slopes(vector: Any) -> tuple[Any, Any]:
            (loss, slopes), found = run([self._loss, more], vector)
            if loss_callback is not None:
                loss_callback(*found)
            return loss, _packed(slopes)

        def values_of(pairs: Sequence[Any]) -> list[_At]:
            return [partial(run, y) for y, _ in pairs]

        def slopes_of(pairs: Sequence[Any]) -> list[_At]:
            return [partial(lambda slopes, vector: _packed(run(slopes, vector)), slopes) for _, slopes in pairs]

        found = self._minimize(
            initial_val=_packed(session.run(self._vars, fed, **run_kwargs)),
            loss_grad_func=loss_and_slopes,
            equality_funcs=values_of(self._equalities),
            equality_grad_funcs=slopes_of(self._equalities),
            inequality_funcs=values_of(self._inequalities),
            inequality_grad_funcs=slopes_of(self._inequalities),
            packed_bounds=self._packed_bounds,
            step_callback=step_callback,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        session.run(self._updates, dict(zip(self._values, self._unpacked(found), strict=True)), **run_kwargs)

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: _At,
        equality_funcs: Sequence[_At],
        equality_grad_funcs: Sequence[_At],
        inequality_funcs: Sequence[_At],
        inequality_grad_funcs: Sequence[_At],
        packed_bounds: Sequence[tuple[float, float]] | None,
        step_callback: Callable[..., Any] | None,
        optimizer_kwargs: dict[str, Any],
    ) -> Any:
        """Returns the vector where loss_grad_func's first result, its second being the gradient, is least."""
        raise NotImplementedError(f"{self._kind} has no _minimize; classes of optimizers define it")

    def _with_slopes(self, y: Any, what: str) -> tuple[Any, list[Any]]:
        """Returns a scalar and its gradients, zeros for variables on which it does not depend."""
        y = convert_to_tensor(y)
        if y.static_shape not in (None, ()):
            raise InvalidArgumentError(
                f"{self._kind}: {what} has shape {format_shape(y.static_shape)}; a scalar is required"
            )
        slopes = gradients(y, self._vars)
        return y, [
            zeros_like(v) if s is None else convert_to_tensor(s) for s, v in zip(slopes, self._vars, strict=True)
        ]

    def _bounds(self, given: Mapping[Any, Any]) -> list[tuple[float, float]]:
        """Returns the bounds of all elements of the vector."""
        pairs: list[tuple[float, float]] = []
        for variable in self._vars:
            low, high = given.get(variable, (-np.inf, np.inf))
            shape = variable.shape.as_list()
            try:
                ends = [np.broadcast_to(end, shape).ravel() for end in (low, high)]
            except ValueError as e:
                raise InvalidArgumentError(
                    f"{self._kind}: the bounds of '{variable.name}' are {low} and {high}; they must broadcast to its "
                    f"shape {format_shape(shape)}"
                ) from e
            pairs += zip(*ends, strict=True)
        return pairs

    def _unpacked(self, vector: Any) -> list[Any]:
        """Returns the values of the variables in a vector."""
        parts = np.split(np.asarray(vector), np.cumsum(self._sizes)[:-1])
        return [
            part.reshape(v.shape.as_list()).astype(v.dtype.base_dtype.as_numpy_dtype)
            for part, v in zip(parts, self._vars, strict=True)
        ]


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes by `scipy.optimize.minimize`; `method` is L-BFGS-B by default, SLSQP obeys constraints.

    ``ScipyOptimizerInterface(loss, method="L-BFGS-B", options={"maxiter": 100}).minimize(session)``
    """

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: _At,
        equality_funcs: Sequence[_At],
        equality_grad_funcs: Sequence[_At],
        inequality_funcs: Sequence[_At],
        inequality_grad_funcs: Sequence[_At],
        packed_bounds: Sequence[tuple[float, float]] | None,
        step_callback: Callable[..., Any] | None,
        optimizer_kwargs: dict[str, Any],
    ) -> Any:
        with extra("scipy", self._kind):
            from scipy.optimize import minimize  # takes long to import

        def in_double(function: _At) -> _At:  # the methods take no other numbers
            return lambda vector: nest.map_structure(lambda y: np.asarray(y, np.float64), function(vector))

        constraints = [
            {"type": kind, "fun": in_double(value), "jac": in_double(slopes)}
            for kind, values, gradients in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for value, slopes in zip(values, gradients, strict=True)
        ]
        ours = {"jac": True, "callback": step_callback, "constraints": constraints, "bounds": packed_bounds}
        taken = sorted(set(ours) & set(optimizer_kwargs))
        if taken:
            raise InvalidArgumentError(
                f"{self._kind}: {', '.join(taken)} cannot be given; they are made of the graph, var_to_bounds, "
                "equalities, inequalities and step_callback"
            )
        result = minimize(
            in_double(loss_grad_func),
            np.asarray(initial_val, np.float64),
            **{"method": "L-BFGS-B", **ours, **optimizer_kwargs},
        )
        logging.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f\n  Number of iterations: %s\n"
            "  Number of functions evaluations: %s", result.message, result.fun, result.get("nit"), result.get("nfev"),
        )  # fmt: skip
        return result.x


def _packed(values: Sequence[Any]) -> Any:
    return np.concatenate([np.ravel(v) for v in values])
