"""Optimizers with weight decay that is decoupled from the gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.framework import is_tensor
from timberframe.train.adaptive import AdamOptimizer
from timberframe.train.descent import MomentumOptimizer
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation


class DecoupledWeightDecayExtension(Optimizer):
    """Makes an optimizer multiply variables by 1 - weight_decay before each of its steps; a base class.

    Loshchilov and Hutter 2019, arXiv 1711.05101, where weight_decay is called lambda times eta: it is not multiplied by
    the learning rate. A subclass names this class first and the optimizer second, whose step must not depend on the
    value of the variable. Of a sparse gradient only the rows that it has decay.

    weight_decay: a number, a tensor, or a function without arguments that returns one. The other arguments are those of
    the optimizer. `minimize` and `apply_gradients` take a list decay_var_list of the variables that decay, by default
    (and where it is empty) all.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._weight_decay = weight_decay
        self._decay_var_list: list[Any] = []

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """As `tf.train.Optimizer.minimize`; the variables of decay_var_list decay."""
        with self._decaying(decay_var_list):
            return super().minimize(
                loss, global_step, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, name,
                grad_loss,
            )  # fmt: skip

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """As `tf.train.Optimizer.apply_gradients`; the variables of decay_var_list decay."""
        with self._decaying(decay_var_list):
            return super().apply_gradients(grads_and_vars, global_step, name)

    @contextmanager
    def _decaying(self, variables: Iterable[Any] | None) -> Iterator[None]:
        """Lets these variables decay, inside; those that `minimize` chose where None is given."""
        before = self._decay_var_list
        self._decay_var_list = before if variables is None else list(variables)
        try:
            yield
        finally:
            self._decay_var_list = before

    def _prepare(self) -> None:
        self._decay_now = self._call_if_callable(self._weight_decay)
        super()._prepare()

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        if not self._decays(handle):
            return super()._resource_apply_dense(grad, handle)
        graph = get_default_graph()
        with graph.control_dependencies([grad]):  # it is computed from the weights before they decay
            decay = handle.assign_sub(self._decay_of(handle) * handle, read_value=False)
        with graph.control_dependencies([decay]):
            return super()._resource_apply_dense(grad, handle)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        if not self._decays(handle):
            return super()._resource_apply_sparse(grad, handle, indices)
        graph = get_default_graph()
        with graph.control_dependencies([grad]):
            lost = self._decay_of(handle) * handle.sparse_read(indices)
            decay = apply_op("ResourceScatterSub", [handle.handle, indices, lost])
        with graph.control_dependencies([decay]):
            return super()._resource_apply_sparse(grad, handle, indices)

    def _decays(self, variable: Any) -> bool:
        return not self._decay_var_list or any(v is variable for v in self._decay_var_list)

    def _decay_of(self, variable: Any) -> Any:
        """Returns the weight decay as a factor of a variable: in its dtype where it is a tensor."""
        return as_dtype_of(self._decay_now, variable) if is_tensor(self._decay_now) else self._decay_now


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[DecoupledWeightDecayExtension]:
    """Returns a class of optimizers that step as `base_optimizer` does, with weight decay, its first argument."""
    bases = (DecoupledWeightDecayExtension, base_optimizer)
    doc = f"{base_optimizer.__name__} with weight decay; see DecoupledWeightDecayExtension."
    return type("OptimizerWithDecoupledWeightDecay", bases, {"__doc__": doc})


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decoupled weight decay; see DecoupledWeightDecayExtension, and `tf.train.AdamOptimizer`."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with decoupled weight decay; see DecoupledWeightDecayExtension, and `tf.train.MomentumOptimizer`."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)
