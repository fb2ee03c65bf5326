"""Variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.control_flow import cond
from timberframe.api.framework import GraphKeys, control_dependencies, group
from timberframe.dtypes import DType, as_dtype
from timberframe.errors import InvalidArgumentError
from timberframe.graph.apply import apply_op, convert_to_tensor
from timberframe.graph.function import FuncGraph
from timberframe.graph.graph import Graph, get_default_graph
from timberframe.graph.operation import Operation, Tensor
from timberframe.graph.tensor_shape import TensorShape, as_shape

__all__ = [
    "Variable", "assign", "assign_add", "assign_sub", "global_variables", "global_variables_initializer",
    "is_variable_initialized", "local_variables", "local_variables_initializer", "model_variables",
    "report_uninitialized_variables", "trainable_variables", "variables_initializer",
]  # fmt: skip

_OPERATORS = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "div", "rdiv", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod",
    "rmod", "lt", "le", "gt", "ge", "and", "rand", "or", "ror", "xor", "rxor", "getitem", "pow", "rpow", "invert",
    "neg", "abs", "matmul", "rmatmul",
)  # fmt: skip


class Variable:
    """A tensor that a Session keeps from run to run, until it is closed.

    initial_value: a value or a function without arguments that returns one; it decides dtype and shape. trainable: adds
    the variable to GraphKeys.TRAINABLE_VARIABLES. collections: to which it belongs, by default
    GraphKeys.GLOBAL_VARIABLES. validate_shape: if False, values of any shape may be assigned. The others are
    TensorFlow's; caching_device, variable_def, import_scope and use_resource change nothing.

    In a graph a variable stands for its value: operators, functions of `tf.*` and fetches read it.
    """

    __array_priority__ = 100  # so that ndarray + Variable asks the Variable

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = True,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise InvalidArgumentError(f"Variable '{name or 'Variable'}': has no initial_value; one is required")
        self.trainable = trainable
        self.constraint = constraint
        graph = _outermost(get_default_graph())
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(name or "Variable") as scope:
            self._create(scope, initial_value, None if dtype is None else as_dtype(dtype), validate_shape, shape)
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(names, self)

    def _create(self, scope: str, initial_value: Any, dtype: DType | None, validate_shape: bool, shape: Any) -> None:
        graph = get_default_graph()
        with graph.name_scope("Initializer"):
            value = initial_value() if callable(initial_value) else initial_value
            self.initial_value = convert_to_tensor(value, dtype, "initial_value")
        self.dtype = self.initial_value.dtype.base_dtype
        declared = as_shape(shape) if shape is not None else self.initial_value.static_shape if validate_shape else None
        attrs = {"dtype": self.dtype, "shape": TensorShape(declared), "shared_name": scope[:-1]}
        self.handle: Tensor = apply_op("VarHandleOp", attrs=attrs, name=scope)
        with self._on_its_device():
            with graph.name_scope("IsInitialized"):
                self._is_initialized: Tensor = apply_op("VarIsInitializedOp", [self.handle])
            self.initializer: Operation = apply_op(
                "AssignVariableOp", [self.handle, self.initial_value], {"validate_shape": validate_shape}, "Assign"
            )
            with graph.name_scope("Read"):
                self._fetched = self._read()

    @contextmanager
    def _on_its_device(self) -> Iterator[None]:
        graph = get_default_graph()
        with graph.device(None), graph.device(self.handle.device):
            yield

    def _read(self, name: str | None = None) -> Tensor:
        with self._on_its_device():
            value: Tensor = apply_op("ReadVariableOp", [self.handle], {"dtype": self.dtype}, name)
        return value

    # What it is

    @property
    def name(self) -> str:
        return self.handle.name

    @property
    def op(self) -> Operation:
        return self.handle.op

    @property
    def graph(self) -> Graph:
        return self.handle.graph

    @property
    def device(self) -> str:
        return self.handle.device

    @property
    def shape(self) -> TensorShape:
        """The shape of the values that it may hold."""
        assert self.handle.handle is not None
        return TensorShape(self.handle.handle[1])

    def get_shape(self) -> TensorShape:
        """The shape of the values that it may hold."""
        return self.shape

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    # Reading

    def value(self) -> Tensor:
        """The value at the time of the read."""
        return self._read()

    def read_value(self) -> Tensor:
        """The value at the time of the read."""
        return self._read()

    def __tf_tensor__(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        return self._read(name)

    def _as_graph_element(self) -> Tensor:
        """What a fetch or a feed of the variable means: one read, made with it."""
        return self._fetched

    def initialized_value(self) -> Tensor:
        """The value, or the initial value while it has none."""
        value: Tensor = cond(self.is_initialized(), self._read, lambda: self.initial_value)
        return value

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether it has a value."""
        with self._on_its_device():
            result: Tensor = apply_op("VarIsInitializedOp", [self.handle], name=name)
        return result

    def eval(self, session: Any = None) -> Any:
        """The value in `session`, or in the default session."""
        return self._fetched.eval(session=session)

    # Writing

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Makes `value` the value; returns it as read thereafter, or the operation without read_value."""
        return self._update("AssignVariableOp", value, name, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`; returns like `assign`."""
        return self._update("AssignAddVariableOp", delta, name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`; returns like `assign`."""
        return self._update("AssignSubVariableOp", delta, name, read_value)

    def _update(self, op: str, value: Any, name: str | None, read_value: bool) -> Any:
        tensor = convert_to_tensor(value, self.dtype)
        with self._on_its_device():
            update: Operation = apply_op(op, [self.handle, tensor], name=name)
        if not read_value:
            return update
        with control_dependencies([update]):
            return self._read()

    def load(self, value: Any, session: Any = None) -> None:
        """Sets the value in `session`, or in the default session, at once."""
        self.initializer.run({self.initial_value: value}, session)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def _outermost(graph: Graph) -> Graph:
    """The graph around function bodies: a variable made inside a loop or branch belongs there."""
    while isinstance(graph, FuncGraph) and graph.outer is not None:
        graph = graph.outer
    return graph


def _install_operators() -> None:
    def through_read(method: str) -> Callable[..., Any]:
        def operator(self: Variable, *args: Any) -> Any:
            return getattr(self._read(), method)(*args)

        operator.__name__ = method
        return operator

    for word in _OPERATORS:
        setattr(Variable, f"__{word}__", through_read(f"__{word}__"))


_install_operators()


def assign(
    ref: Variable, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None
) -> Any:
    """Makes `value` the variable's value; returns the value read thereafter."""
    return ref.assign(value, name=name)


def assign_add(ref: Variable, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Adds `value` to the variable; returns the value read thereafter."""
    return ref.assign_add(value, name=name)


def assign_sub(ref: Variable, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Subtracts `value` from the variable; returns the value read thereafter."""
    return ref.assign_sub(value, name=name)


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph that all workers share; by default every variable."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph that belong to one worker."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph that are marked as the model's."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph that optimizers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that gives these variables their initial values."""
    return group(*(v.initializer for v in var_list), name=name)


def global_variables_initializer() -> Operation:
    """An operation that gives all global variables their initial values."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """An operation that gives all local variables their initial values."""
    return variables_initializer(local_variables())


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether a variable has a value."""
    return variable.is_initialized()


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables without a value: a string vector. By default of all global and local variables."""
    variables = global_variables() + local_variables() if var_list is None else list(var_list)
    with get_default_graph().name_scope(name):
        if not variables:
            return convert_to_tensor(np.empty(0, object))
        states = apply_op("Pack", [[v.is_initialized() for v in variables]])
        absent = apply_op("Reshape", [apply_op("Where", [apply_op("LogicalNot", [states])]), [-1]])
        names = [v.op.name for v in variables]
        missing: Tensor = apply_op("GatherV2", [names, absent, 0])
        return missing
