"""`tf.contrib.eager`: eager execution by the names that it had before it was part of `tf`."""

from __future__ import annotations

from collections.abc import Iterator as _Iterations
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from timberframe.api.framework import executing_eagerly as executing_eagerly
from timberframe.api.python_functions import py_func as py_func
from timberframe.api.settings import enable_eager_execution as enable_eager_execution
from timberframe.api.templates import make_template as make_template
from timberframe.api.variable_store import VariableStore
from timberframe.api.variables import Variable as Variable
from timberframe.eager import metrics as metrics
from timberframe.eager.context import ASYNC as ASYNC
from timberframe.eager.context import DEVICE_PLACEMENT_EXPLICIT as DEVICE_PLACEMENT_EXPLICIT
from timberframe.eager.context import DEVICE_PLACEMENT_SILENT as DEVICE_PLACEMENT_SILENT
from timberframe.eager.context import DEVICE_PLACEMENT_SILENT_FOR_INT32 as DEVICE_PLACEMENT_SILENT_FOR_INT32
from timberframe.eager.context import DEVICE_PLACEMENT_WARN as DEVICE_PLACEMENT_WARN
from timberframe.eager.context import SYNC as SYNC
from timberframe.eager.context import current_graph
from timberframe.eager.function import function as defun
from timberframe.eager.gradient_functions import gradients_function as gradients_function
from timberframe.eager.gradient_functions import implicit_gradients as implicit_gradients
from timberframe.eager.gradient_functions import implicit_value_and_gradients as implicit_value_and_gradients
from timberframe.eager.gradient_functions import value_and_gradients_function as value_and_gradients_function
from timberframe.eager.tape import GradientTape as GradientTape
from timberframe.eager.tensor_spec import TensorSpec as TensorSpec
from timberframe.eager.testing import run_all_tests_in_graph_and_eager_modes as run_all_tests_in_graph_and_eager_modes
from timberframe.eager.testing import run_test_in_graph_and_eager_modes as run_test_in_graph_and_eager_modes
from timberframe.train.object_checkpoints import Checkpoint as Checkpoint
from timberframe.train.saver import Saver as _Saver
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.gradients.custom import custom_gradient as custom_gradient

__all__ = [
    "ASYNC", "DEVICE_PLACEMENT_EXPLICIT", "DEVICE_PLACEMENT_SILENT", "DEVICE_PLACEMENT_SILENT_FOR_INT32",
    "DEVICE_PLACEMENT_WARN", "SYNC", "Checkpoint", "EagerVariableStore", "GradientTape", "Iterator", "Saver",
    "TensorSpec", "Variable", "async_wait", "custom_gradient", "defun", "enable_eager_execution", "executing_eagerly",
    "execution_mode", "get_optimizer_variables", "gradients_function", "implicit_gradients",
    "implicit_value_and_gradients", "in_eager_mode", "list_devices", "make_template", "metrics", "num_gpus", "py_func",
    "run_all_tests_in_graph_and_eager_modes", "run_test_in_graph_and_eager_modes", "set_execution_mode",
    "value_and_gradients_function",
]  # fmt: skip

in_eager_mode = executing_eagerly


class EagerVariableStore:
    """Keeps the variables that tf.get_variable and the functions of tf.layers make, so that they are found again."""

    def __init__(self, store: Any = None) -> None:
        self._store = store if store is not None else VariableStore(keeps_eager=True)

    def as_default(self) -> AbstractContextManager[None]:
        """Makes tf.get_variable in the block look here."""
        used: AbstractContextManager[None] = self._store.as_default(current_graph())
        return used

    def variables(self) -> list[Any]:
        """Returns all variables, by name."""
        return sorted((v for _, v in self._store.items()), key=lambda v: str(v.name))

    def trainable_variables(self) -> list[Any]:
        """Returns those that are to be trained."""
        return [v for v in self.variables() if v.trainable]

    def non_trainable_variables(self) -> list[Any]:
        """Returns those that are not."""
        return [v for v in self.variables() if not v.trainable]

    def copy(self) -> EagerVariableStore:
        """Returns a store with variables of its own of the same values."""
        made = VariableStore(keeps_eager=True)
        for name, v in self._store.items():
            made.keep(name, Variable(v.read_value(), trainable=v.trainable, name=v.op.name))
        return EagerVariableStore(made)


class Saver:
    """Saves variables to checkpoints and restores them. var_list: variables, or a map from names to variables."""

    def __init__(self, var_list: Any) -> None:
        self._saver = _Saver(var_list)

    def save(self, file_prefix: str, global_step: Any = None) -> Any:
        """Writes a checkpoint and returns its path."""
        return self._saver.save(None, file_prefix, global_step=global_step)

    def restore(self, file_prefix: str) -> None:
        """Gives the variables their values of a checkpoint."""
        self._saver.restore(None, file_prefix)


def Iterator(dataset: Any) -> Any:  # noqa: N802 - TensorFlow's name, of a class there
    """Goes through the elements of a tf.data.Dataset."""
    return iter(dataset)


def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """Returns the optimizer's own variables."""
    found: list[Any] = optimizer.variables()
    return found


def list_devices() -> list[str]:
    """Returns the full names of the devices."""
    return [d.name for d in current_graph().session.list_devices()]


def num_gpus() -> int:
    """Returns how many devices there are besides the host's."""
    graph = current_graph()
    return sum(d is not graph.host for d in graph.session.list_devices())


def set_execution_mode(mode: int | None) -> None:
    """Accepts SYNC and ASYNC: an operation has ended when its function returns under both."""
    if mode not in (None, SYNC, ASYNC):
        raise InvalidArgumentError(f"set_execution_mode: mode is {mode!r}; SYNC or ASYNC is required")


@contextmanager
def execution_mode(mode: int | None) -> _Iterations[None]:
    """A block with a mode; see set_execution_mode."""
    set_execution_mode(mode)
    yield


def async_wait() -> None:
    """Waits for operations that have not ended; there are none."""
