"""Variables."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from timberframe.api.control_flow import cond
from timberframe.api.framework import GraphKeys, control_dependencies
from timberframe.api.slice_info import SaveSliceInfo
from timberframe.api.variable_copies import VariableAggregation as VariableAggregation
from timberframe.api.variable_copies import VariableSynchronization as VariableSynchronization
from timberframe.api.variable_creators import Created
from timberframe.api.variable_creators import outermost as outermost
from timberframe.api.variable_slices import assignable
from timberframe.api.variable_updates import Updates
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.defaults import Defaults
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.operator_types import Operators
from timberframe_core.graph.operators import METHODS
from timberframe_core.graph.reference import Reference
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.graphdef import messages

__all__ = ["Variable", "VariableAggregation", "VariableSynchronization"]

_REFERENCES = ("VariableV2", "Variable")
"""Variables of graphs that TensorFlow 1 wrote, whose tensors are references."""

_REFERENCE_OPS = {
    "AssignVariableOp": "Assign", "AssignAddVariableOp": "AssignAdd", "AssignSubVariableOp": "AssignSub",
    "VarIsInitializedOp": "IsVariableInitialized",
}  # fmt: skip
"""The ops on references by those on resources; the others have the same name without the prefix Resource."""


class Variable(Updates, Operators, metaclass=Created):
    """A tensor that a Session keeps from run to run, until it is closed.

    initial_value: a value or a function without arguments that returns one; it decides dtype and shape. trainable: adds
    the variable to GraphKeys.TRAINABLE_VARIABLES. collections: to which it belongs, by default
    GraphKeys.GLOBAL_VARIABLES. validate_shape: if False, values of any shape may be assigned. constraint: a function of
    the value that optimizers apply after each update. variable_def: a VariableDef that names the variable's operations
    in the current graph, instead of the arguments above. The others are TensorFlow's and change nothing.

    In a graph a variable represents its value: operators, functions of `tf.*` and fetches read it.
    """

    __array_priority__ = 100  # so that ndarray + Variable asks the Variable
    SaveSliceInfo = SaveSliceInfo
    _known_shape: TensorShape | None = None  # by `set_shape`

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
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
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        self.constraint = constraint
        self.synchronization = synchronization
        self.aggregation = aggregation
        if variable_def is not None:
            self._find(messages.as_message(variable_def, messages.VariableDef, "variable_def"), import_scope)
            return
        label = name or "Variable"
        if initial_value is None:
            raise InvalidArgumentError(f"Variable '{label}': has no initial_value; one is required")
        self.trainable = synchronization is not VariableSynchronization.ON_READ if trainable is None else trainable
        names = _collection_names(label, collections)
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph = outermost(get_default_graph())
        create = self._create_eagerly if graph.eager else self._create
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(label) as scope:
            create(scope, initial_value, None if dtype is None else as_dtype(dtype), validate_shape, shape)
        graph.add_to_collections(names, self)

    def _create(self, scope: str, initial_value: Any, dtype: DType | None, validate_shape: bool, shape: Any) -> None:
        graph = get_default_graph()
        with graph.name_scope("Initializer"):
            self.initial_value: Tensor | None = _initial_tensor(scope[:-1], initial_value, dtype, graph)
        value = self.initial_value
        self.dtype = value.dtype.base_dtype
        declared = as_shape(shape) if shape is not None else value.static_shape if validate_shape else None
        attrs = {"dtype": self.dtype, "shape": TensorShape(declared), "shared_name": scope[:-1]}
        self.handle: Tensor = apply_op("VarHandleOp", attrs=attrs, name=scope)
        with self.on_its_device():
            with graph.name_scope("IsInitialized"):
                self._is_initialized: Tensor = apply_op("VarIsInitializedOp", [self.handle])
            self.initializer: Any = apply_op(
                "AssignVariableOp", [self.handle, value], {"validate_shape": validate_shape}, "Assign"
            )
            with graph.name_scope("Read"):
                self._fetched = self.value()

    def _create_eagerly(
        self, scope: str, initial_value: Any, dtype: DType | None, validate_shape: bool, shape: Any
    ) -> None:
        """Makes the variable with its value; it goes with the last reference to it."""
        graph = get_default_graph()
        value = _initial_tensor(scope[:-1], initial_value, dtype, graph)
        self.dtype = value.dtype.base_dtype
        declared = as_shape(shape) if shape is not None else value.static_shape if validate_shape else None
        attrs = {"dtype": self.dtype, "shape": TensorShape(declared)}
        self.handle = apply_op("VarHandleOp", attrs=attrs, name=scope)
        spec: Any = self.handle.spec  # type: ignore[attr-defined]  # an EagerTensor has one
        spec.trainable, spec.variable = self.trainable, weakref.ref(self)
        apply_op("AssignVariableOp", [self.handle, value], {"validate_shape": validate_shape})
        self.initial_value = self.initializer = None
        notify_created(self)

    def _find(self, proto: Any, import_scope: str | None) -> None:
        """Takes the operations that a VariableDef names, from the current graph."""
        graph = get_default_graph()
        prefix = f"{import_scope}/" if import_scope else ""

        def tensor(name: str) -> Any:
            return graph.as_graph_element(prefix + name, allow_operation=False)

        self.handle = graph.get_operation_by_name(prefix + proto.variable_name.rpartition(":")[0]).outputs[0]
        if self.op.type not in ("VarHandleOp", *_REFERENCES):
            raise InvalidArgumentError(
                f"Variable '{proto.variable_name}': is a {self.op.type} in the graph; a VarHandleOp is required"
            )
        self.dtype = self.op.attrs["dtype"]
        self.trainable = bool(proto.trainable)
        if proto.HasField("save_slice_info_def"):
            self.save_slice_info = SaveSliceInfo.read(proto.save_slice_info_def, prefix)
        try:
            self.synchronization = VariableSynchronization(proto.synchronization)
            self.aggregation = VariableAggregation(proto.aggregation)
        except ValueError as e:
            raise InvalidArgumentError(f"Variable '{proto.variable_name}': {e}; another number is required") from None
        initializer: Any = graph.as_graph_element(prefix + proto.initializer_name, allow_tensor=False)
        self.initializer = initializer
        self.initial_value = tensor(proto.initial_value_name) if proto.initial_value_name else None
        self._fetched = tensor(proto.snapshot_name) if proto.snapshot_name else self.value()

    def on_its_device(self) -> AbstractContextManager[None]:
        """Places operations made inside on the variable's device."""
        if self.handle.eager and not get_default_graph().has_device_scope():
            return nullcontext()
        return self._on_its_device()

    @contextmanager
    def _on_its_device(self) -> Iterator[None]:
        graph = get_default_graph()
        with graph.device(None), graph.device(self.op.device):
            yield

    # What it is

    @property
    def name(self) -> str:
        """The name of its handle."""
        return self.handle.name

    @property
    def op(self) -> Operation:
        """The operation that makes its handle."""
        return self.handle.op

    @property
    def graph(self) -> Graph:
        """The graph that it is in."""
        return self.handle.graph

    @property
    def device(self) -> str:
        """The device that it asks for, and in eager execution the one that has it."""
        if self.handle.eager:
            return self._read().device
        return self.handle.device

    @property
    def shape(self) -> TensorShape:
        """The shape of the values that it may hold."""
        return TensorShape(self.handle.op.attrs["shape"]) if self._known_shape is None else self._known_shape

    def get_shape(self) -> TensorShape:
        """Returns the shape of the values that it may hold."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Adds knowledge about the shape of what is read from now on; assigns are not bound by it."""
        self._known_shape = self.shape.merge_with(shape)
        if not self.handle.eager:
            self._fetched.set_shape(shape)

    def numpy(self) -> Any:
        """Returns the value as an array, in eager execution."""
        if not self.handle.eager or get_default_graph().is_body:
            raise WrongStateError(
                f"Variable '{self.name}': numpy() is called while a graph is built; fetch it with Session.run"
            )
        with self.graph.as_default():
            value: Any = self._read()
        return value.numpy()

    def __repr__(self) -> str:
        if self.handle.eager and get_default_graph().eager:
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={self.numpy()!r}>"
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def _is_reference(self) -> bool:
        return self.op.type in _REFERENCES

    def _own_op(self, op: str) -> str:
        """Returns the op for this variable that corresponds to `op` for a resource."""
        return _REFERENCE_OPS.get(op, op.removeprefix("Resource")) if self._is_reference() else op

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns the VariableDef that names its operations, without `export_scope`; None
        where it is not in that scope.
        """
        prefix = f"{export_scope}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        proto = messages.VariableDef(is_resource=not self._is_reference(), trainable=self.trainable)
        proto.synchronization, proto.aggregation = self.synchronization.value, self.aggregation.value
        proto.variable_name = self.name.removeprefix(prefix)
        proto.initializer_name = self.initializer.name.removeprefix(prefix)
        proto.snapshot_name = self._fetched.name.removeprefix(prefix)
        if self.initial_value is not None:
            proto.initial_value_name = self.initial_value.name.removeprefix(prefix)
        if self.save_slice_info is not None:
            self.save_slice_info.write(proto.save_slice_info_def, prefix)
        return proto

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """Returns the variable whose operations a VariableDef names; import_scope is a prefix of all its names."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    # Reading

    def value(self) -> Tensor:
        """Returns the value at the time of the read."""
        return self._read()

    def _read(self, name: str | None = None) -> Tensor:
        graph: Any = get_default_graph()
        if graph.eager and self.handle.eager:
            held: Tensor = graph.read(self.handle)
            return held
        with self.on_its_device():
            if self._is_reference():
                value: Tensor = apply_op("Identity", [self.handle], name=name)
            else:
                value = apply_op("ReadVariableOp", [self.handle], {"dtype": self.dtype}, name)
        if self._known_shape is not None:
            value.set_shape(self._known_shape)
        return value

    def read_value(self) -> Tensor:
        """Returns the value at the time of the read."""
        with get_default_graph().name_scope("Read"):
            value = self._read()
        result: Tensor = apply_op("Identity", [value])
        return result

    def __tf_tensor__(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        user = (name or "").rpartition("/")[0]  # the read gets the name of the operation that it is made for
        return self._read(f"{user}/ReadVariableOp" if user and not user.endswith("/") else None)

    def _as_graph_element(self) -> Tensor:
        """Returns the tensor that a fetch or feed of the variable uses: one read, made with it."""
        return self._read() if self.handle.eager else self._fetched

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns rows of the value: slices along its first dimension, one for each index."""
        if self._is_reference():
            gathered: Tensor = apply_op("GatherV2", [self._read(), indices, 0], name=name)
            return gathered
        return self._read_part("ResourceGather", indices, name or "Gather")

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Slices of the value, one for each index tuple in the last dimension of indices."""
        if self._is_reference():
            found: Tensor = apply_op("GatherNd", [self._read(), indices], name=name)
            return found
        return self._read_part("ResourceGatherNd", indices, name or "GatherNd")

    def _read_part(self, op: str, indices: Any, name: str) -> Tensor:
        with get_default_graph().name_scope(name) as scope, self.on_its_device():
            where = convert_to_tensor(indices, name="indices")
            part: Tensor = apply_op(op, [self.handle, where], {"dtype": self.dtype}, scope)
        return part

    def initialized_value(self) -> Tensor:
        """Returns the value, or the initial value while it has none."""
        value: Tensor = cond(self.is_initialized(), self._read, lambda: self.initial_value)
        return value

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Returns whether it has a value."""
        with self.on_its_device():
            result: Tensor = apply_op(self._own_op("VarIsInitializedOp"), [self.handle], name=name)
        return result

    def eval(self, session: Any = None) -> Any:
        """Returns the value in `session`, or in the default session."""
        return self._as_graph_element().eval(session=session)

    # Writing, see also api/variable_updates.py

    def update(
        self,
        op: str,
        inputs: Sequence[Any],
        name: str | None,
        read_value: bool = True,
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs an op that changes the variable, whose first input is the handle and whose last is of its dtype.

        Returns the value read thereafter, or the operation without read_value.
        """
        values = [*inputs[:-1], convert_to_tensor(inputs[-1], self.dtype)]
        with self.on_its_device():
            made = apply_op(self._own_op(op), [self.handle, *values], attrs, name)
        if made is None:  # in eager execution it is done
            return self if read_value else None
        update: Operation = made.op if self._is_reference() else made
        if not read_value:
            return update
        with control_dependencies([update]):
            return self._read()

    def count_up_to(self, limit: int, name: str | None = None) -> Tensor:
        """Returns the value, which then grows by one; OutOfRangeError once it has reached `limit`."""
        with self.on_its_device():
            before: Tensor = apply_op(
                self._own_op("ResourceCountUpTo"), [self.handle], {"limit": limit, "T": self.dtype}, name
            )
        return before

    def load(self, value: Any, session: Any = None) -> None:
        """Sets the value in `session`, or in the default session, at once."""
        if self.handle.eager:
            self.assign(value)
            return
        self.initializer.run({self.initializer.inputs[1]: value}, session)

    def __getitem__(self, key: Any) -> Any:
        return assignable(self.value()[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __bool__(self) -> bool:
        if self.handle.eager and get_default_graph().eager:
            return bool(self._read())
        return True  # programs write `average if average else variable` where there may be None

    def __int__(self) -> int:
        value: Any = self._read()  # of eager execution, or an error says what to do
        return int(value)

    def __float__(self) -> float:
        value: Any = self._read()
        return float(value)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._read().__array__(*args, **kwargs)

    def ref(self) -> Reference:
        """Returns what stands for the variable itself in sets and dicts."""
        return Reference(self)

    experimental_ref = ref

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


creation_watchers = Defaults()
"""Functions that are called with each variable that a thread makes in eager execution: what traces a function does."""


def notify_created(variable: Variable) -> None:
    """Tells the innermost watcher of a new variable."""
    if creation_watchers.stack:
        creation_watchers.stack[-1](variable)


def _collection_names(label: str, collections: Sequence[str] | None) -> list[str]:
    if collections is None:
        return [GraphKeys.GLOBAL_VARIABLES]
    if isinstance(collections, str) or not isinstance(collections, list | tuple | set):
        raise InvalidArgumentError(f"Variable '{label}': collections is {collections!r}; a list of names is required")
    return list(collections)


def _initial_tensor(label: str, value: Any, dtype: DType | None, graph: Graph) -> Tensor:
    made = value() if callable(value) and not hasattr(value, "__tf_tensor__") else value
    tensor = convert_to_tensor(made, dtype, "initial_value")
    if tensor.graph is not graph:
        raise InvalidArgumentError(
            f"Variable '{label}': initial_value '{tensor.name}' belongs to a loop, a branch or another graph; "
            "it must be computed outside, or be a function that computes it"
        )
    return tensor


def _install_operators() -> None:
    def through_read(method: str) -> Callable[..., Any]:
        def operator(self: Variable, *args: Any) -> Any:
            return getattr(self.value(), method)(*args)

        operator.__name__ = method
        return operator

    for method in METHODS:
        setattr(Variable, method, through_read(method))


_install_operators()
