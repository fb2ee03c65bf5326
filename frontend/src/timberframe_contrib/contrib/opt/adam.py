"""Variants of Adam: with Nesterov's momentum, and with averages that change only where the gradient has rows."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import group
from timberframe.train.adaptive import AdamOptimizer, bias_corrected, decayed
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum: the step is by the decaying average as it will be, not as it is.

    Dozat 2015, "Incorporating Nesterov momentum into Adam". Arguments and slots are those of
    `tf.train.AdamOptimizer`. A sparse gradient makes the averages of all rows decay and changes its own rows.
    """

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        states = [handle, self.get_slot(handle, "m"), self.get_slot(handle, "v")]
        inputs = [*(s.handle for s in states), *self._numbers(grad), grad]
        done: Operation = apply_op("ResourceApplyAdam", inputs, {"use_nesterov": True})
        return done

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        power1, power2, rate, beta1, beta2, epsilon = self._numbers(grad)
        added = grad * (1 - beta1)
        mean = decayed(self.get_slot(handle, "m"), beta1, indices, added)
        square = decayed(self.get_slot(handle, "v"), beta2, indices, grad * grad * (1 - beta2))
        mean_rows, square_rows = (apply_op("GatherV2", [x, indices, 0]) for x in (mean, square))
        step = bias_corrected(rate, power1, power2) * (added + beta1 * mean_rows)
        change = step / (apply_op("Sqrt", [square_rows]) + epsilon)
        done: Operation = apply_op("ResourceScatterSub", [handle.handle, indices, change])
        return done


class LazyAdamOptimizer(AdamOptimizer):
    """Adam whose averages change only in the rows that a sparse gradient has; these are all that it reads and writes.

    It trains large embeddings faster than `tf.train.AdamOptimizer`, whose arguments and slots it has, but otherwise:
    there the averages of all rows decay, and all rows change, in each step.
    """

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        power1, power2, rate, beta1, beta2, epsilon = self._numbers(grad)
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        mean = beta1 * m.sparse_read(indices) + (1 - beta1) * grad
        square = beta2 * v.sparse_read(indices) + (1 - beta2) * grad * grad
        change = bias_corrected(rate, power1, power2) * mean / (apply_op("Sqrt", [square]) + epsilon)
        return group(
            apply_op("ResourceScatterUpdate", [m.handle, indices, mean]),
            apply_op("ResourceScatterUpdate", [v.handle, indices, square]),
            apply_op("ResourceScatterSub", [handle.handle, indices, change]),
        )
