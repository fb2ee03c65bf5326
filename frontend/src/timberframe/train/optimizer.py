"""Optimizer: what all optimizers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, group
from timberframe.api.framework import tuple as gated_together
from timberframe.api.selection import cast
from timberframe.api.variable_collections import trainable_variables
from timberframe.api.variables import Variable, outermost
from timberframe.saving.trackable import Trackable
from timberframe.train import slots
from timberframe_core import nest
from timberframe_core.arguments import brief, listed
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.gradients.blocked import blocking_operations
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import compatible, format_shape

_STOPS = 4  # operations that a message names at most

_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


class Optimizer(Trackable):
    """Changes variables so that a loss falls; a base class.

    A subclass defines `_resource_apply_dense(gradient, variable)` and `_resource_apply_sparse(gradient, variable,
    indices)`, which return the operation that changes the variable, or `_apply_dense(gradient, variable)` and
    `_apply_sparse(slices, variable)`, and may define `_create_slots(variables)`,
    `_prepare()` and `_finish(operations, name)`. use_locking changes nothing: updates of a variable never overlap.

    Numbers such as learning rates may be Python values, tensors or functions without arguments that return one. A
    Python number becomes a float32, whatever the dtype of the variables, as in TensorFlow.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise InvalidArgumentError(f"Optimizer: name is {name!r}; it must not be empty")
        self._name = name
        self._use_locking = use_locking
        self._slots: dict[str, dict[tuple[Graph, str], Any]] = {}
        self._non_slots: dict[tuple[str, Graph], Any] = {}

    def get_name(self) -> str:
        """Returns the name that was given."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """Returns an operation that takes one step down the gradient of `loss`:
        `compute_gradients`, then `apply_gradients`.

        Raises InvalidArgumentError (a ValueError) where no variable has a gradient.
        """
        pairs = self.compute_gradients(  # by names, in which methods of subclasses may differ from it
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(v.name for _, v in pairs)
            raise InvalidArgumentError(
                f"{self._name}: the loss has no gradient for any of the variables {names}; it must depend on one "
                f"through differentiable ops{_why_none(loss, [v for _, v in pairs])}"
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Returns pairs of gradient and variable: a tensor, IndexedSlices, or None where `loss` does not depend on it.

        loss: a tensor, or a function that makes one. var_list: by default all trainable variables, of a function those
        that it reads. gate_gradients: with GATE_GRAPH no gradient is used before all are computed; the others change
        nothing. grad_loss: the gradient of `loss` to begin with.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise InvalidArgumentError(
                f"{self._name}: gate_gradients is {gate_gradients}; it must be GATE_NONE, GATE_OP or GATE_GRAPH"
            )
        if get_default_graph().eager or callable(loss):
            return self._compute_by_tape(loss, var_list, grad_loss)
        variables = trainable_variables() if var_list is None else list(nest.flatten(var_list))
        if not variables:
            raise InvalidArgumentError(f"{self._name}: there are no variables to optimize; at least one is required")
        self._check_dtype(loss)
        found = gradients(
            loss,
            [_checked_variable(v, self._name) for v in variables],
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH and any(g is not None for g in found):
            found = gated_together(found)
        pairs = list(zip(found, variables, strict=True))
        for gradient, variable in pairs:
            if gradient is not None:  # lists of all variables have steps too, of which no loss is a function
                self._check_dtype(variable)
        return pairs

    def _compute_by_tape(self, loss: Any, var_list: Any, grad_loss: Any) -> list[tuple[Any, Any]]:
        """Returns the pairs of a loss that is a function, as in eager execution; by default of
        the variables that it reads.
        """
        from timberframe.eager.tape import GradientTape

        if not callable(loss):
            raise WrongStateError(
                f"{self._name}: the loss is {type(loss).__name__} in eager execution; a function that computes it is "
                "required, or gradients of a tf.GradientTape in apply_gradients"
            )
        with GradientTape() as tape:
            value = loss()
        variables = list(tape.watched_variables() if var_list is None else nest.flatten(var_list))
        if not variables:
            raise InvalidArgumentError(f"{self._name}: there are no variables to optimize; at least one is required")
        for item in (value, *variables):
            self._check_dtype(item)
        return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Returns an operation that changes variables by gradients; pairs with gradient None are left out.

        global_step: a variable that grows by one when all are changed. The operation joins GraphKeys.TRAIN_OP.
        Raises InvalidArgumentError where there is no gradient at all, where one has another shape than its variable,
        and where a variable belongs to another graph.
        """
        given = listed(grads_and_vars, f"{self._name}: grads_and_vars", "pairs of gradient and variable")
        odd = [p for p in given if not isinstance(p, list | tuple) or len(p) != 2]
        if odd:
            raise InvalidTypeError(f"{self._name}: {brief(odd[0])} given; pairs of gradient and variable are required")
        pairs = [(_as_gradient(g), v) for g, v in given]
        if not pairs:
            raise InvalidArgumentError(f"{self._name}: no variables given; apply_gradients needs some")
        present = [(g, v) for g, v in pairs if g is not None]
        if not present:
            names = ", ".join(v.name for _, v in pairs)
            raise InvalidArgumentError(f"{self._name}: no gradients for any of the variables {names}; one is required")
        for gradient, variable in present:
            self._check_pair(gradient, _checked_variable(variable, self._name))
        graph, root = get_default_graph(), outermost(get_default_graph())
        with root.as_default(), root.control_dependencies(None):
            self._create_slots([v for _, v in present])
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = [self._update(gradient, variable) for gradient, variable in present]
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                with graph.control_dependencies([self._finish(updates, "update")]), graph.colocate_with(global_step.op):
                    done = _count_step(global_step, scope)
        if done is not None and done not in graph.get_collection(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, done)
        return done

    def _update(self, gradient: Any, variable: Any) -> Operation:
        graph = get_default_graph()
        with graph.name_scope(f"update_{variable.op.name}"), graph.colocate_with(variable.op):
            if isinstance(gradient, IndexedSlices):
                if variable.constraint is not None:
                    raise InvalidArgumentError(
                        f"{self._name}: variable '{variable.name}' has a constraint and a gradient of some rows only; "
                        "a constraint needs a dense gradient"
                    )
                if self._defines("_apply_sparse_duplicate_indices"):
                    return self._apply_sparse_duplicate_indices(gradient, variable)
                return self._resource_apply_sparse_duplicate_indices(gradient.values, variable, gradient.indices)
            apply = self._apply_dense if self._defines("_apply_dense") else self._resource_apply_dense
            done = apply(gradient, variable)
            if variable.constraint is None:
                return done
            with graph.control_dependencies([done]):
                constrained: Operation = variable.assign(variable.constraint(variable), read_value=False)
            return constrained

    def _check_pair(self, gradient: Any, variable: Any) -> None:
        self._check_dtype(variable)
        if not isinstance(gradient, IndexedSlices) and not compatible(gradient.static_shape, variable.shape.as_tuple()):
            raise InvalidArgumentError(
                f"{self._name}: the gradient of variable '{variable.name}' has shape "
                f"{format_shape(gradient.static_shape)}; it must be the variable's, "
                f"{format_shape(variable.shape.as_tuple())}"
            )

    def _check_dtype(self, item: Any) -> None:
        if not isinstance(getattr(item, "dtype", None), DType):
            raise InvalidTypeError(f"{self._name}: {brief(item)} given; tensors and variables are required")
        dtype = item.dtype.base_dtype
        if dtype.name not in _FLOATING:
            raise InvalidArgumentError(
                f"{self._name}: '{item.name}' has dtype {dtype.name}; it must be one of {', '.join(_FLOATING)}"
            )

    # What a subclass may define

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of these variables."""

    def _prepare(self) -> None:
        """Makes tensors of the numbers, before the first variable is changed."""

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        raise NotImplementedError(f"{type(self).__name__} has no _resource_apply_dense; optimizers must define it")

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        raise NotImplementedError(f"{type(self).__name__} has no _resource_apply_sparse; optimizers must define it")

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Operation:
        """Changes rows of which some may be named twice: their gradients are summed first."""
        unique, positions = apply_op("Unique", [indices])
        count = apply_op("Size", [unique])
        summed = apply_op("UnsortedSegmentSum", [grad, positions, count])
        if self._defines("_apply_sparse"):
            return self._apply_sparse(IndexedSlices(summed, unique), handle)
        return self._resource_apply_sparse(summed, handle, unique)

    # The same by the names that TensorFlow 1 calls for its variables that are references, which are its default

    def _apply_dense(self, grad: Any, var: Any) -> Operation:
        return self._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Operation:
        return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)

    def _defines(self, method: str) -> bool:
        """Returns whether a subclass defines this method for references, and no class derived
        from it that for resources.
        """
        for kind in type(self).__mro__:
            if f"_resource{method}" in vars(kind):
                return False
            if method in vars(kind):
                return True
        return False

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        """Returns the operation that is done when all variables are changed."""
        return group(*update_ops, name=name_scope)

    # Slots

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns the slot of this name that belongs to the variable, or None."""
        return self._slots.get(name, {}).get(_key(var))

    def get_slot_names(self) -> list[str]:
        """Returns the names of the slots."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """Returns the optimizer's own variables in the current graph, by name."""
        graph = outermost(get_default_graph())
        own = [v for (_, owner), v in self._non_slots.items() if owner is graph]
        for named in self._slots.values():
            own += [v for (owner, _), v in named.items() if owner is graph]
        return sorted(own, key=lambda v: str(v.name))

    def _tracked(self) -> dict[str, Any]:
        """Returns its variables in the current graph that are no slots."""
        graph = outermost(get_default_graph())
        own = {name: v for (name, owner), v in self._non_slots.items() if owner is graph}
        return dict(sorted(own.items()))

    def _slots_of(self, variable: Any) -> dict[str, Any]:
        """Returns the slots of a variable."""
        found = {name: self.get_slot(variable, name) for name in self.get_slot_names()}
        return {name: slot for name, slot in found.items() if slot is not None}

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        return self._slot(var, slot_name, lambda: slots.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Callable[..., Any], shape: Any, dtype: DType, slot_name: str, op_name: str
    ) -> Any:
        return self._slot(
            var, slot_name, lambda: slots.create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        )

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._slot(var, slot_name, lambda: slots.create_zeros_slot(var, op_name))

    def _slot(self, var: Any, name: str, make: Callable[[], Any]) -> Any:
        named = self._slots.setdefault(name, {})
        if _key(var) not in named:
            named[_key(var)] = make()
            if self._restoration is not None:
                self._restoration.go_on()
        return named[_key(var)]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        graph = colocate_with.graph
        if (name, graph) not in self._non_slots:
            with graph.as_default(), graph.colocate_with(colocate_with.op):
                self._non_slots[name, graph] = Variable(initial_value, name=name, trainable=False)
            if self._restoration is not None:
                self._restoration.go_on()
        return self._non_slots[name, graph]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any:
        return self._non_slots.get((name, graph or outermost(get_default_graph())))

    # Numbers

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param

    def _number(self, value: Any, name: str) -> Any:
        """Returns a tensor of a number that the user gave in one of the accepted ways."""
        return convert_to_tensor(self._call_if_callable(value), name=name)


def as_dtype_of(number: Any, gradient: Any) -> Any:
    """Returns a number in the dtype of the gradient that it goes with."""
    return cast(number, gradient.dtype.base_dtype)


def _key(variable: Any) -> tuple[Graph, str]:
    return variable.graph, variable.handle.spec.key if variable.handle.eager else variable.op.name


def _checked_variable(variable: Any, optimizer: str) -> Any:
    """Returns the variable, which must be one of the current graph; within a branch or loop, of the graph around it."""
    if isinstance(variable, Tensor) or not isinstance(getattr(variable, "handle", None), Tensor):
        raise InvalidTypeError(f"{optimizer}: {variable!r} given; a variable is required")
    if variable.graph is not outermost(get_default_graph()):
        raise InvalidArgumentError(
            f"{optimizer}: variable '{variable.name}' belongs to another graph; all must belong to the current one"
        )
    return variable


def _why_none(loss: Any, variables: Sequence[Any]) -> str:
    """Returns the operations that stop gradients from the loss, as the end of a message."""
    if callable(loss):  # its tensor is not known here, and calling it would build it again
        return ""
    if get_default_graph().eager:
        return ""
    stopped = blocking_operations(convert_to_tensor(loss), [v.handle for v in variables])
    return f" (gradients stop at {', '.join(stopped[:_STOPS])})" if stopped else ""


def _as_gradient(gradient: Any) -> Any:
    return gradient if gradient is None or isinstance(gradient, IndexedSlices) else convert_to_tensor(gradient)


def _count_step(global_step: Any, name: str) -> Operation:
    one = convert_to_tensor(1, global_step.dtype)
    done: Operation = apply_op("AssignAddVariableOp", [global_step.handle, one], name=name)
    return done
