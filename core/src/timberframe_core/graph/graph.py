"""Graph: operations in creation order, with the scopes that name, place on devices and order new ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from timberframe_core.arguments import listed
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, MissingNameError, WrongStateError
from timberframe_core.graph.attributes import complete_attrs
from timberframe_core.graph.collections import Collections
from timberframe_core.graph.defaults import Defaults
from timberframe_core.graph.feeds_and_fetches import FeedsAndFetches
from timberframe_core.graph.gradient_overrides import GradientOverrides
from timberframe_core.graph.inference import check_inputs, infer_outputs, output_dtypes
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.variable_value import value_of
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.registered_gradients import ATTR, gradient_named

if TYPE_CHECKING:
    from timberframe_core.graph.function import FuncGraph

_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
_SCOPE = re.compile(r"^[A-Za-z0-9_.\\/>-]*\Z")

DeviceFunction = Callable[[Operation], "str | None"]


class Scopes(threading.local):
    """What surrounds the next operation; each thread has its own."""

    def __init__(self) -> None:
        self.name = ""
        self.devices: list[str | DeviceFunction | None] = []
        self.control: list[tuple[Operation, ...] | None] = []
        self.colocation: list[Operation | None] = []
        self.container = ""
        self.gradients: Mapping[str, str] = {}


class Graph(Collections, GradientOverrides, FeedsAndFetches):
    """A dataflow graph. Operations are only ever added; several threads may add to one graph."""

    is_body = False
    """Whether this is the body of a loop, a branch or a call."""
    eager = False
    """Whether operations run at once, in place of being recorded."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._collections = {}
        self._scopes: Scopes = Scopes()
        self._lock = threading.RLock()
        self._finalized = False
        self._not_fed, self._not_fetched = set(), set()
        self.functions: dict[str, FuncGraph] = {}
        """Bodies that While, If and calls name in their attrs."""
        self.version = 0
        """Counts changes to operations that already existed; adding new ones does not count."""
        self.seed: int | None = None
        """What `tf.set_random_seed` was given."""
        self.seeds_made = 0
        """How many random ops took a seed from the graph's alone."""

    def next_op_seed(self) -> int:
        """Returns the seed of a random op that has none of its own: the number of such ops made before."""
        self.seeds_made += 1
        return self.seeds_made - 1

    def apply(self, op: str, inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str | None = None) -> Operation:
        """Adds a node by the op's name; see `create_op`."""
        return self.create_op(registry.get(op), inputs, attrs, name)

    def create_op(
        self,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
        name: str | None = None,
        *,
        control_inputs: Sequence[Operation] = (),
        device: str | None = None,
        colocation: tuple[str, ...] = (),
        exact_name: bool = False,
        defer_errors: bool = False,
    ) -> Operation:
        """Adds a node and infers the shapes of its outputs.

        inputs is the flat list of all input tensors. With `exact_name` the name is taken as it is, without scopes, and
        must be free. device None takes the surrounding device scopes. With `defer_errors` wrong values are errors only
        when the node runs.
        """
        with self._lock:
            self._refuse_finalized()
            name = self._claim_name(name or op_def.name, exact_name)
            if self._scopes.gradients and op_def.name in self._scopes.gradients:
                attrs = {**attrs, ATTR: self._scopes.gradients[op_def.name]}
            full = complete_attrs(op_def, name, attrs, self._scopes.container)
            tensors = tuple(self._own(t, op_def, name, inputs) for t in inputs)
            op = Operation(self, op_def, name, tensors, full, self._control_inputs(tensors, control_inputs))
            op.outputs = tuple(Tensor(op, i, t, None) for i, t in enumerate(output_dtypes(op_def, name, full)))
            infer_outputs(op, defer_errors)
            op.colocation = colocation or self._colocation()
            op.device = self._device_for(op) if device is None else device
            if ATTR in full:
                op.gradient = gradient_named(full[ATTR])
            self._append(op)
            return op

    def _refuse_finalized(self) -> None:
        if self._finalized:
            raise WrongStateError("graph is finalized; operations can be added only before finalize()")

    def _append(self, op: Operation) -> None:
        op.id = len(self._operations)
        self._operations.append(op)
        self._by_name[op.name] = op

    def _own(self, tensor: Tensor, op_def: OpDef, name: str, inputs: Sequence[Tensor] = ()) -> Tensor:
        """Returns the tensor as one of this graph; function bodies override this to capture outer tensors."""
        if tensor.op.graph is not self:
            if tensor.eager:
                return self.capture_value(tensor, f"{op_def.name} '{name}'")
            own = next((f" than '{t.name}'" for t in inputs if t.op.graph is self), "")
            raise InvalidArgumentError(
                f"{op_def.name} '{name}': input '{tensor.name}' is of another graph{own}; "
                f"{_how_to_reach(tensor.op.graph, 'all inputs must be of one graph')}",
                name,
            )
        return tensor

    def capture_value(self, tensor: Tensor, where: str) -> Tensor:
        """Returns what stands in this graph for a tensor of eager execution; a `tf.function` has it as an input."""
        rule = "feed it as an array, tensor.numpy(), or build the graph inside tf.function"
        raise WrongStateError(f"{where}: input {tensor!r} has a value already and the graph is for a Session; {rule}")

    def get_operations(self) -> list[Operation]:
        """Returns all operations in creation order."""
        return list(self._operations)

    def operations_from(self, index: int) -> list[Operation]:
        """Returns the operations that were made after the first `index` ones."""
        return self._operations[index:]

    def get_operation_by_name(self, name: str) -> Operation:
        """Returns the operation of this name; MissingNameError, which is a NotFoundError, if there is none."""
        try:
            return self._by_name[_text(name, "name of an operation")]
        except KeyError:
            raise MissingNameError(
                f"operation '{name}': not in the graph; it has {len(self._operations)} operations"
            ) from None

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Returns the tensor ``operation:index``; of a variable its value, also where the operation makes a handle."""
        base, colon, index = _text(name, "name of a tensor").rpartition(":")
        if not colon or not index.isdigit():
            raise InvalidArgumentError(f"tensor name {name!r}: has no output number; it must be '<operation>:<number>'")
        op = self.get_operation_by_name(base)
        if int(index) >= len(op.outputs):
            raise MissingNameError(
                f"{op.type} '{base}': output {index} is wanted; the operation has {len(op.outputs)} outputs", base
            )
        return value_of(op.outputs[int(index)], self._by_name)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """Returns the tensor or operation that `obj` (one of them, a name, or an object that stands for one) means."""
        if isinstance(obj, Tensor | Operation):
            element: Tensor | Operation = value_of(obj, self._by_name) if isinstance(obj, Tensor) else obj
        elif isinstance(obj, str):
            element = self.get_tensor_by_name(obj) if ":" in obj else self.get_operation_by_name(obj)
        elif hasattr(obj, "_as_graph_element"):
            element = obj._as_graph_element()
        elif hasattr(obj, "__tf_tensor__"):
            element = obj.__tf_tensor__()
        else:
            raise InvalidTypeError(
                f"{obj!r} of type {type(obj).__name__} is not in a graph; a Tensor, an Operation or a name is required"
            )
        if element.graph is not self:
            rule = _how_to_reach(element.graph, "it must be of this graph")
            raise InvalidArgumentError(f"{element!r} belongs to another graph; {rule}")
        if not (allow_tensor if isinstance(element, Tensor) else allow_operation):
            raise InvalidTypeError(f"{element!r}: {'an Operation' if allow_operation else 'a Tensor'} is required here")
        return element

    def add_control_input(self, op: Operation, control_input: Operation) -> None:
        """Makes an existing operation wait for another one; earlier plans are made again."""
        with self._lock:
            if control_input not in op.control_inputs:
                op.control_inputs = (*op.control_inputs, control_input)
                self.version += 1

    def close_loop(self, merge: Operation, index: int, tensor: Tensor) -> None:
        """Makes `tensor`, which a NextIteration of a later iteration makes, an input of a Merge that exists already."""
        with self._lock:
            merge.inputs = (*merge.inputs[:index], tensor, *merge.inputs[index + 1 :])
            check_inputs(merge)
            self.version += 1

    def finalize(self) -> None:
        """Forbids further operations."""
        self._finalized = True

    def unfinalize(self) -> None:
        """Allows further operations again."""
        self._finalized = False

    @property
    def finalized(self) -> bool:
        """Whether further operations are forbidden."""
        return self._finalized

    def __len__(self) -> int:
        return len(self._operations)

    def __bool__(self) -> bool:
        return True  # also while it is empty: programs write `graph or tf.get_default_graph()`

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Takes back the operations, functions and names added inside when it ends with an error."""
        with self._lock:
            operations, names, functions = len(self._operations), dict(self._names), dict(self.functions)
            try:
                yield
            except BaseException:
                for op in self._operations[operations:]:
                    del self._by_name[op.name]
                del self._operations[operations:]
                self._names, self.functions = names, functions
                raise

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a function."""
        return self.is_body

    # Functions

    def add_function(self, function: FuncGraph) -> str:
        """Makes a body known by its name; another body of the same name raises InvalidArgumentError."""
        with self._lock:
            old = self.functions.setdefault(function.name, function)
            if old is not function:
                raise InvalidArgumentError(f"function '{function.name}': defined twice; names of functions must differ")
            for name, inner in function.functions.items():
                self.functions.setdefault(name, inner)
        return function.name

    def find_function(self, name: str) -> FuncGraph | None:
        """Returns the body of this name; function bodies also look in the graphs around them."""
        return self.functions.get(name)

    # Names

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` within the current scope, with a number after it where it is taken."""
        full = f"{self._scopes.name}{_text(name, 'name')}"
        with self._lock:
            key = full.lower()
            count = self._names.get(key, 0)
            if mark_as_used:
                self._names[key] = count + 1
            if not count:
                return full
            candidate = full
            while candidate.lower() in self._names:
                candidate = f"{full}_{count}"
                count += 1
            if mark_as_used:
                self._names[key] = count
                self._names[candidate.lower()] = 1
            return candidate

    def _claim_name(self, name: str, exact: bool) -> str:
        if _text(name, "name").endswith("/") and not exact:
            name, exact = name[:-1], True
        if not name or not (_SCOPE if self._scopes.name or exact else _NAME).match(name):
            raise InvalidArgumentError(f"operation name {name!r} is not valid; names match {_NAME.pattern}")
        if not exact:
            return self.unique_name(name)
        if name in self._by_name:
            raise InvalidArgumentError(f"operation '{name}': exists already; names within a graph are unique")
        self._names[name.lower()] = max(1, self._names.get(name.lower(), 0))
        return name

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Puts ``name/`` before the names made inside; ``name/`` itself re-enters a scope, None or "" leaves all."""
        if name and not _SCOPE.match(_text(name, "name of a scope")):
            raise InvalidArgumentError(f"scope name {name!r} is not valid; names match {_SCOPE.pattern}")
        old = self._scopes.name
        self._scopes.name = "" if not name else name if name.endswith("/") else self.unique_name(name) + "/"
        try:
            yield self._scopes.name
        finally:
            self._scopes.name = old

    def get_name_scope(self) -> str:
        """Returns the current name scope, without the slash at its end."""
        return self._scopes.name.rstrip("/")

    # Placement and order

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Places the operations made inside: a device string, a function of the operation, or None for no device."""
        from timberframe_core.graph.device_spec import canonical_device

        entry = device_name_or_function
        if entry is not None and not callable(entry):
            entry = canonical_device(entry.to_string() if hasattr(entry, "to_string") else _text(entry, "device"))
        self._scopes.devices.append(entry)
        try:
            yield
        finally:
            self._scopes.devices.pop()

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Puts the variables, queues, tables and readers made inside into a container, which `Session.reset` can drop.

        Resources of equal names in two containers are two resources.
        """
        before, self._scopes.container = self._scopes.container, _text(container_name, "name of a container")
        try:
            yield container_name
        finally:
            self._scopes.container = before

    def has_device_scope(self) -> bool:
        """Returns whether a `device` block of this thread surrounds new operations."""
        return bool(self._scopes.devices)

    def _device_for(self, op: Operation) -> str:
        if not self._scopes.devices:
            return ""
        from timberframe_core.graph.device_spec import device_in_scopes

        return device_in_scopes(self._scopes.devices, op)

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Makes the operations made inside wait for these operations or tensors; None forgets those around."""
        entry: tuple[Operation, ...] | None = None
        if control_inputs is not None:
            given = listed(control_inputs, "control_inputs", "operations and tensors")
            found = [self._control_input(getattr(c, "op", c)) for c in given]
            entry = tuple(op for op in found if op is not None)
        self._scopes.control.append(entry)
        try:
            yield
        finally:
            self._scopes.control.pop()

    def _control_input(self, element: Any) -> Operation | None:
        """Returns the operation of this graph to wait for; None where something else sees to it."""
        found = self.as_graph_element(element)
        return found.op if isinstance(found, Tensor) else found

    def _control_inputs(self, inputs: Sequence[Tensor], given: Sequence[Operation]) -> tuple[Operation, ...]:
        if not given and not self._scopes.control:
            return ()
        wanted = dict.fromkeys(given)
        for entry in reversed(self._scopes.control):
            if entry is None:
                break
            wanted.update(dict.fromkeys(entry))
        if given:
            return tuple(wanted)
        implied = {t.op for t in inputs}
        return tuple(op for op in wanted if op not in implied)

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Puts the operations made inside on the device of `op`."""
        element = None if op is None else self.as_graph_element(getattr(op, "op", op))
        entry = element.op if isinstance(element, Tensor) else element
        old = self._scopes.colocation
        self._scopes.colocation = [entry] if ignore_existing else [*old, entry]
        try:
            yield
        finally:
            self._scopes.colocation = old

    def _colocation(self) -> tuple[str, ...]:
        return tuple(op.name for op in self._scopes.colocation if op is not None)

    # The default graph

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes this the graph that tf.* functions add to."""
        _defaults.stack.append(self)
        try:
            yield self
        finally:
            _defaults.remove(self)

    if TYPE_CHECKING:  # it comes with timberframe_core.graphdef

        def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any: ...


def _how_to_reach(graph: Graph, rule: str) -> str:
    """Returns what to do about a tensor that is made in `graph` and used in another one, where
    `rule` says what must hold.
    """
    if graph.is_body:
        return "it was made inside the body of a loop or branch; return it from there"
    return rule


def _text(value: Any, what: str) -> str:
    """Returns the value, which must be a str."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} is {value!r} of type {type(value).__name__}; a str is required")
    return value


_defaults = Defaults()
_global_graph = Graph()


def get_default_graph() -> Graph:
    """Returns the innermost graph of `as_default` in this thread, or else the global one."""
    return _defaults.stack[-1] if _defaults.stack else _global_graph


def reset_default_graph() -> None:
    """Replaces the global graph by an empty one."""
    if _defaults.stack:
        raise WrongStateError("a graph is in use by as_default(); reset_default_graph needs none to be")
    if not _global_graph.eager:
        set_global_graph(Graph())


def set_global_graph(graph: Graph) -> None:
    """Makes this the graph that is the default where no `as_default` is open."""
    global _global_graph
    _global_graph = graph
