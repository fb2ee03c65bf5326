"""SyncReplicasOptimizer: one step for the gradients of several replicas of a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from timberframe.api.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from timberframe.api.arrays import no_op
from timberframe.api.constants import fill
from timberframe.api.framework import GraphKeys, group, name_scope
from timberframe.api.queues import FIFOQueue
from timberframe.api.variable_collections import global_variables, report_uninitialized_variables
from timberframe.api.variables import Variable
from timberframe.train.optimizer import Optimizer
from timberframe.train.queue_runner import QueueRunner
from timberframe.train.replica_positions import mark_synchronous
from timberframe.train.session_run_hook import SessionRunHook
from timberframe_core import logging
from timberframe_core.arguments import instance, listed
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation


class SyncReplicasOptimizer(Optimizer):
    """Takes a step of another optimizer by the mean of the gradients of several replicas, for which it waits.

    opt: the other optimizer. replicas_to_aggregate: how many gradients make a step. total_num_replicas: how many
    replicas there are, by default as many; more of them are backups, whose late gradients are dropped. Where there are
    fewer, some compute several gradients for a step. variable_averages, variables_to_average: an
    ExponentialMovingAverage that is applied after each step, and to what.

    Each replica adds its gradients to accumulators beside the variables, and waits for a token of a queue beside the
    global step. The chief's queue runner takes the mean, applies it, and puts as many tokens into the queue as there
    are replicas: the new global step, with which the next gradients are computed. A gradient of an earlier step is
    dropped. The hook of `make_session_run_hook` starts all of that.

    The queue gives a token to the first that asks: a quick replica may get two where a slow one is late. Sums have the
    same bits in whatever order the gradients of a step come.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt: Optimizer = instance(opt, Optimizer, "SyncReplicasOptimizer: opt", "a tf.train.Optimizer")
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        if min(self._replicas_to_aggregate, self._total_num_replicas) < 1:
            raise InvalidArgumentError(
                f"SyncReplicasOptimizer: replicas_to_aggregate is {self._replicas_to_aggregate} and total_num_replicas "
                f"is {self._total_num_replicas}; at least 1 is required of each"
            )
        self._variable_averages, self._variables_to_average = variable_averages, variables_to_average
        self._global_step: Any = None
        self._token_queue: Any = None
        self._chief_queue_runner: Any = None
        self._accumulators: list[tuple[Any, str]] = []
        self.local_step_init_op: Any = None
        """Makes the replica's step the global one; the hook runs it."""
        self.chief_init_op: Any = None
        """The same, and for the accumulators' steps, in the chief."""
        self.ready_for_local_init_op: Any = None
        """Names the variables that these need and that have no value."""
        logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            self._replicas_to_aggregate,
            self._total_num_replicas,
        )

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Returns what the other optimizer's gives: the gradients of this replica."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Returns an operation that adds this replica's gradients, and waits until a step was
        taken with them or without.

        global_step: is required, since it says which gradients are late.
        """
        pairs = listed(grads_and_vars, f"{self._name}: grads_and_vars", "pairs of gradient and variable")
        if not pairs:
            raise InvalidArgumentError(f"{self._name}: no variables given; apply_gradients needs some")
        if global_step is None:
            raise InvalidArgumentError(
                f"{self._name}: global_step is None; a variable is required, by which late gradients are known"
            )
        self._global_step = global_step
        if self._total_num_replicas == self._replicas_to_aggregate:
            mark_synchronous(get_default_graph())
        local_step = self._make_local_step(global_step)
        graph = get_default_graph()
        with name_scope(None, self._name):
            added, averages = [], []
            for gradient, variable in pairs:
                with graph.device(variable.device):
                    add, average = self._accumulated(gradient, variable, local_step)
                added += add
                averages.append((average, variable))
            train_op = self._steps(added, averages, local_step)
            steps = [self.local_step_init_op]
            for accumulator, device in self._accumulators:
                with graph.device(device):
                    steps.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = group(*steps)
        return train_op

    def _make_local_step(self, global_step: Any) -> Any:
        """Returns the replica's own variable: the step for which it computes gradients."""
        graph = get_default_graph()
        here = no_op().device  # the replica's device, not that of variables
        with graph.device(None), graph.device(here):
            local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        self.local_step_init_op = local_step.assign(global_step, read_value=False)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        return local_step

    def _accumulated(self, gradient: Any, variable: Any, local_step: Any) -> tuple[list[Any], Any]:
        """Returns what adds a gradient to the accumulator of its variable, and the mean that is taken of it."""
        if gradient is None:
            return [], None
        shared_name, count = f"{variable.name}/grad_accum", self._replicas_to_aggregate
        accumulator: Any
        if isinstance(gradient, IndexedSlices):
            accumulator = SparseConditionalAccumulator(gradient.dtype, shape=(), shared_name=shared_name)
            add = accumulator.apply_indexed_slices_grad(gradient, local_step=local_step)
            average: Any = accumulator.take_indexed_slices_grad(count)
        else:
            accumulator = ConditionalAccumulator(gradient.dtype, shape=variable.get_shape(), shared_name=shared_name)
            add = accumulator.apply_grad(gradient, local_step=local_step)
            average = accumulator.take_grad(count)
        self._accumulators.append((accumulator, variable.device))
        return [add], average

    def _steps(self, added: list[Any], averages: list[tuple[Any, Any]], local_step: Any) -> Operation:
        """Returns the replica's operation; makes the chief's, which takes the steps."""
        graph, step = get_default_graph(), self._global_step
        with graph.device(step.device), name_scope(""):
            update = self._opt.apply_gradients(averages, step)
            self._token_queue = FIFOQueue(
                -1, step.dtype.base_dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q"
            )
            with graph.control_dependencies(added):
                token = self._token_queue.dequeue()
            train_op: Operation = local_step.assign(token, read_value=False)
            with graph.control_dependencies([update]):
                count = max(self._total_num_replicas, self._replicas_to_aggregate)
                sync = self._token_queue.enqueue_many((fill([count], step.read_value()),))
            if self._variable_averages is not None:
                with graph.control_dependencies([sync]):
                    sync = self._variable_averages.apply(self._variables_to_average)
            self._chief_queue_runner = QueueRunner(self._token_queue, [sync])
        return train_op

    def get_chief_queue_runner(self) -> QueueRunner:
        """Returns what takes the steps, in the chief alone; `apply_gradients` must have been called."""
        self._check_applied("get_chief_queue_runner")
        found: QueueRunner = self._chief_queue_runner
        return found

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Puts the first tokens into the queue, replicas_to_aggregate by default; the chief runs it once.

        With tokens a replica may begin its second gradient before the first step is taken. Where there are fewer
        replicas than replicas_to_aggregate, at least as many as are missing are required.
        """
        self._check_applied("get_init_tokens_op")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise InvalidArgumentError(
                f"{self._name}: num_tokens is {num_tokens}; the first step needs {needed} at least"
            )
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        with get_default_graph().device(self._global_step.device), name_scope(""):
            tokens = fill([num_tokens], self._global_step.read_value())
            made: Operation = self._token_queue.enqueue_many((tokens,))
        return made

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """Returns a hook that initializes a replica and, in the chief, starts what takes the steps.

        See get_init_tokens_op.
        """
        return _SyncReplicasHook(self, is_chief, num_tokens)

    def _check_applied(self, what: str) -> None:
        if self._chief_queue_runner is None:
            raise WrongStateError(f"{self._name}: {what} was called before apply_gradients; call that first")

    # What the other optimizer has

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a slot of the other optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """Returns the names of the other optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """Returns the other optimizer's variables; the replica's step is not among them."""
        return self._opt.variables()


class _SyncReplicasHook(SessionRunHook):
    """Initializes a replica in each new session."""

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer, self._is_chief, self._num_tokens = optimizer, is_chief, num_tokens
        self._init: Any = None
        self._tokens: Any = None

    def begin(self) -> None:
        """Makes the operations that it runs."""
        self._optimizer._check_applied("the hook")
        self._init = self._optimizer.chief_init_op if self._is_chief else self._optimizer.local_step_init_op
        if self._is_chief:
            self._tokens = self._optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the steps; in the chief puts the first tokens into the queue, and starts what takes the steps."""
        missing = session.run(self._optimizer.ready_for_local_init_op)
        if len(missing):
            names = ", ".join(name.decode() for name in missing)
            raise WrongStateError(
                f"SyncReplicasOptimizer: variables {names} have no value; the session's init_op must initialize them"
            )
        session.run(self._init)
        if self._is_chief:
            session.run(self._tokens)
            runner = self._optimizer.get_chief_queue_runner()
            runner.create_threads(session, coord=coord, daemon=True, start=True)
