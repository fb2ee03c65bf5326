"""EagerGraph: the graph that is the default in eager execution. It runs operations in place of keeping them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from timberframe.eager.execution.calls import (
    Call,
    arguments_key,
    constant_positions,
    filled,
    frozen,
    is_small,
    trim,
)
from timberframe.eager.execution.resources import ResourceSpec
from timberframe.eager.execution.values import EagerScopes, EagerValues
from timberframe_core.dtypes import as_dtype, resource
from timberframe_core.errors import InvalidTypeError, OpError, UnimplementedError, WrongStateError
from timberframe_core.gradients.tape import Record, Tape, record
from timberframe_core.graph.apply import flat_inputs
from timberframe_core.graph.attributes import complete_attrs
from timberframe_core.graph.eager_tensor import EagerTensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.library import user_line
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

_CALLS = 4096  # ops with attrs, shapes and devices that are kept compiled
_NUMBERS = (float, int)
_STREAMS = 4096  # random ops with seeds of their own whose streams are kept


class EagerGraph(EagerValues):
    """Runs each operation at once, by a plan that is made once for its op, attrs, shapes and devices.

    Names are not made unique, control dependencies hold by themselves, and nothing that has run is kept. Variables,
    tables and other resources live as long as something refers to them. Thread-safe.
    uncollected: collections that stay empty, since what is added to them would be kept for ever.
    """

    def __init__(self, config: Any = None, uncollected: Collection[str] = ()) -> None:
        self._random = random.Random()
        self._seed: int | None = None
        super().__init__(config)
        self._calls: dict[Any, Call] = {}
        self._direct: dict[Any, Call] = {}
        self._known: dict[Any, tuple[Call, Sequence[EagerTensor | None]]] = {}
        self._streams: dict[str, None] = {}
        self._uncollected = frozenset(uncollected)

    # Running

    def execute(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, name: str | None) -> Any:
        """Runs an op; `apply_op` says what inputs and attrs may be."""
        scopes = self._scopes
        if not attrs and len(inputs) == 2 and not scopes.device:
            x, y = inputs
            if type(y) in _NUMBERS and type(x) is EagerTensor and _is_pair(op):
                inputs = x, y = x, self.scalar(y, x.dtype)
            elif type(x) in _NUMBERS and type(y) is EagerTensor and _is_pair(op):
                inputs = x, y = self.scalar(x, y.dtype), y
            if type(x) is EagerTensor and type(y) is EagerTensor:
                call = self._direct.get((op, x.spec, y.spec))
                if call is not None:
                    try:
                        made = EagerTensor(call.direct(x.array, y.array), call.specs[0], call.operation)
                    except OpError as e:
                        raise _at_users_line(e, op, name) from e.__cause__
                    if scopes.tapes:
                        operation = call.operation
                        record(scopes.tapes, operation, (x, y), (made,), operation.gradient)
                    return made
        if any(hasattr(x, "__tf_tensor__") for x in inputs):
            inputs = [x.__tf_tensor__() if hasattr(x, "__tf_tensor__") else x for x in inputs]
            return self.execute(op, inputs, attrs, name)
        tensors: list[EagerTensor] = []
        key = arguments_key(op, inputs, attrs, scopes.device, tensors)
        if key is not None:
            kept = self._known_calls(tensors)
            entry = kept.get(key)
            if entry is not None:
                known, template = entry
                outputs: Sequence[Any] = self._outputs_of(known, filled(template, tensors), scopes, op, name)
                return _result(known.operation.op_def, outputs)
        op_def = registry.get(op)
        given = {k: v for k, v in (attrs or {}).items() if v is not None}
        flat = flat_inputs(op_def, name or op, inputs, given)
        outputs, found = self._run(op_def, flat, given, name)
        if key is not None and found is not None and found.settled and not op_def.function_attrs:
            self._remember(kept, key, found, flat, tensors)
        return _result(op_def, outputs)

    def _known_calls(self, tensors: Sequence[EagerTensor]) -> dict[Any, Any]:
        """Returns where the calls of these inputs are kept: with the first handle among them, or here."""
        for x in tensors:
            if isinstance(x.spec, ResourceSpec):
                return x.spec.calls
        return self._known

    def _remember(
        self, kept: dict[Any, Any], key: Any, call: Call, flat: Sequence[Any], tensors: Sequence[EagerTensor]
    ) -> None:
        """Makes later calls with these arguments find their way without a look at each."""
        given = {id(x) for x in tensors}
        if any(id(flat[i]) in given for i in call.constants):
            return  # its value, which the key has not, decides
        if len(tensors) == 2 and call.is_direct_pair(flat) and key == (key[0], "", tensors[0].spec, tensors[1].spec):
            trim(self._direct, _CALLS)
            self._direct[key[0], tensors[0].spec, tensors[1].spec] = call
            return
        trim(kept, _CALLS)
        kept[key] = call, [None if id(x) in given else x for x in flat]

    def read(self, handle: EagerTensor) -> EagerTensor:
        """Returns the value of the variable of a handle, by the shortest way."""
        try:
            made = self.read_variable(handle)
        except OpError as e:
            raise _at_users_line(e, "ReadVariableOp", None) from e.__cause__
        tapes = self._scopes.tapes
        if tapes:
            record(tapes, made.op, (handle,), (made,), made.op.gradient)
        return made

    def create_op(  # type: ignore[override]  # gives the record of what has run
        self, op_def: OpDef, inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str | None = None, **_: Any
    ) -> Record:
        """Runs an op on the flat list of its inputs; what it returns has the outputs."""
        given = {k: v for k, v in attrs.items() if v is not None}
        if op_def.role == "constant":
            made = self.constant(np.array(given["value"]), as_dtype(given["dtype"]))
            return Record(self._constant_op, (), (made,), None)
        outputs = self._run(op_def, list(inputs), given, name)[0]
        operation = outputs[0].op if outputs else self._constant_op
        return Record(operation, tuple(inputs), tuple(outputs), operation.gradient)

    def _run(
        self, op_def: OpDef, inputs: list[Any], attrs: dict[str, Any], name: str | None
    ) -> tuple[list[Any], Call | None]:
        scopes = self._scopes
        for x in inputs:
            if not x.eager:
                raise InvalidTypeError(
                    f"{op_def.name} '{name or op_def.name}': input '{x.name}' is a tensor of a graph and has no value "
                    "in eager execution; fetch it in a Session of that graph, or return it from its function"
                )
        try:
            outputs, call = self._outputs(op_def, inputs, attrs, name, scopes.device)
        except OpError as e:
            raise _at_users_line(e, op_def.name, name) from e.__cause__
        if scopes.tapes and outputs:
            operation = outputs[0].op
            record(scopes.tapes, operation, inputs, outputs, operation.gradient)
        return outputs, call

    def _outputs_of(
        self, call: Call, inputs: Sequence[EagerTensor], scopes: EagerScopes, op: str, name: str | None
    ) -> Sequence[EagerTensor]:
        """Runs a call that is known to suit."""
        try:
            outputs = call.run(inputs)
        except OpError as e:
            raise _at_users_line(e, op, name) from e.__cause__
        if scopes.tapes and outputs:
            record(scopes.tapes, call.operation, inputs, outputs, call.operation.gradient)
        return outputs

    def _outputs(
        self, op_def: OpDef, inputs: list[EagerTensor], attrs: dict[str, Any], name: str | None, device: str
    ) -> tuple[list[Any], Call | None]:
        """Returns the outputs, and the call that gave them, where all is said by it."""
        role = op_def.role
        if role == "read_variable":
            return [self.read_variable(inputs[0])], None
        if role == "variable" or op_def.resource:
            if inputs:
                raise UnimplementedError(
                    f"{op_def.name} '{name or op_def.name}': makes a handle of its inputs; eager execution takes "
                    "handles without inputs, a graph takes all"
                )
            return [self.make_handle(op_def, attrs, name, device)], None
        if role == "no_op":
            return [], None
        if role == "placeholder" and not inputs:
            raise WrongStateError(
                f"{op_def.name} '{name or op_def.name}': tf.placeholder is not compatible with eager execution; "
                "pass a value, or build a graph with tf.Graph().as_default()"
            )
        call = self._call(op_def, inputs, attrs, device)
        if op_def.passes_through:
            return [self.passed_on(x, call.operation, i, device) for i, x in enumerate(inputs)], None
        return call.run(inputs), call

    def _call(self, op_def: OpDef, inputs: Sequence[EagerTensor], attrs: Mapping[str, Any], device: str) -> Call:
        """Returns the compiled call for these inputs, made where there is none."""
        full = complete_attrs(op_def, op_def.name, attrs)
        wanted = constant_positions(op_def, full, inputs)
        constants = [i for i in wanted if inputs[i].dtype is not resource and is_small(inputs[i])]
        owner = next((x.spec for x in inputs if isinstance(x.spec, ResourceSpec)), None)
        parts: list[Any] = [x.spec.key if isinstance(x.spec, ResourceSpec) else x.spec for x in inputs]
        for i in constants:
            parts[i] = inputs[i].dtype, frozen(inputs[i]._on_host())
        calls = self._calls if owner is None else owner.calls
        key: Any = None
        if not op_def.function_attrs:  # functions are traced again each time
            with suppress(TypeError):
                key = op_def.name, device, tuple([(k, frozen(v)) for k, v in attrs.items()]), *parts
        call = calls.get(key)
        if call is None:
            call = Call(self, op_def, attrs, inputs, constants, device)
            if op_def.stream is not None:
                self._keep_stream(call.operation.name)
            if key is not None:
                trim(calls, _CALLS)
                calls[key] = call
        return call

    # Random numbers

    def _keep_stream(self, name: str) -> None:
        self._streams.pop(name, None)
        self._streams[name] = None
        if len(self._streams) > _STREAMS:
            oldest = next(iter(self._streams))
            del self._streams[oldest]
            self.session.runtime.resources.destroy(f"random stream {oldest}")

    @property
    def seed(self) -> int | None:
        """What `tf.set_random_seed` was given. Setting it starts all random numbers again."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed
        self._random.seed(seed)
        if self._session is None:
            return
        with self._lock:
            for name in self._streams:
                self._session.runtime.resources.destroy(f"random stream {name}")
            self._streams.clear()
            self._known.clear()
            for key in [k for k, c in self._calls.items() if c.operation.op_def.stream is not None]:
                del self._calls[key]

    def next_op_seed(self) -> int:
        """Returns the seed of an op that has none of its own: as TensorFlow draws them from the global seed."""
        return self._random.randint(0, 2**31 - 1)

    # What graphs have and eager execution needs not

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Returns the name within the current scope; nothing has to be found by it, so it may be another's too."""
        return f"{self._scopes.name}{name}"

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Does nothing: operations run in the order in which they are made."""
        if callable(control_inputs):
            control_inputs()
        yield

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Runs the operations of the block on the device of a tensor or variable, where it has one by request."""
        requested = getattr(op, "device", "") if isinstance(getattr(op, "op", op), Operation) else ""
        with self.device(requested or None):
            yield

    def add_function(self, function: FuncGraph) -> str:
        """Returns its name; each call has the functions that it runs."""
        return function.name

    def find_function(self, name: str) -> FuncGraph | None:
        """Returns None: functions belong to calls."""
        return None

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends a value to a collection, unless it is one that nobody may fill in eager execution."""
        if name not in self._uncollected:
            super().add_to_collection(name, value)

    # Tapes

    @property
    def tapes(self) -> tuple[Tape, ...]:
        """The tapes that record in this thread, outermost first."""
        return self._scopes.tapes

    @tapes.setter
    def tapes(self, tapes: tuple[Tape, ...]) -> None:
        self._scopes.tapes = tapes

    @contextmanager
    def recording(self, tapes: tuple[Tape, ...]) -> Iterator[None]:
        """Makes these tapes alone record in the block."""
        scopes = self._scopes
        old = scopes.tapes
        scopes.tapes = tapes
        try:
            yield
        finally:
            scopes.tapes = old


@cache
def _is_pair(op: str) -> bool:
    """Returns whether an op has two inputs of one dtype."""
    inputs = registry.get(op).inputs
    return len(inputs) == 2 and inputs[0].type_attr is not None and inputs[0].type_attr == inputs[1].type_attr


def _result(op_def: OpDef, outputs: Sequence[Any]) -> Any:
    """Returns what `apply_op` returns for these outputs."""
    if len(op_def.outputs) == 1 and not op_def.outputs[0].is_list:
        return outputs[0]
    return list(outputs) if op_def.outputs else None


def _at_users_line(error: OpError, op: str, name: str | None) -> OpError:
    """Returns an error of the call with the name that the user gave, and the line where the user called."""
    text, label = error.message, (name or op).rstrip("/")
    if error.node is not None:
        text = text.replace(f"{op} '{error.node}'", f"{op} '{label}'", 1)
    line = user_line()
    where = "" if line is None else f"{line[0]}:{line[1]}"
    if where and where not in text:
        text = f"{text[:-1]}, {where}]" if text.endswith("]") and "  [" in text else f"{text}  [{where}]"
    located = type(error)(text, label)
    located.__traceback__ = error.__traceback__
    return located
