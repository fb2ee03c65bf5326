"""EagerValues: the tensors, resources and devices of eager execution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.eager.execution.resources import ResourceSpec, add_handle
from timberframe_core.config import SessionConfig
from timberframe_core.dtypes import DType, resource
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.gradients.tape import Tape, record
from timberframe_core.graph.device_spec import canonical_device, merge_device
from timberframe_core.graph.eager_tensor import EagerSpec, EagerTensor
from timberframe_core.graph.graph import Graph, Scopes
from timberframe_core.graph.operation import Operation
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.located import move
from timberframe_core.runtime.session import BaseSession
from timberframe_core.runtime.variables import HeldVersion

_SPECS = 1 << 16
_SCALARS = 1024


class EagerScopes(Scopes):
    """What surrounds the next operation of a thread. device: that is requested; tapes: that record, outermost first."""

    def __init__(self) -> None:
        super().__init__()
        self.device = ""
        self.tapes: tuple[Tape, ...] = ()


class EagerValues(Graph):
    """What EagerGraph, the only subclass, knows of values: where they are, and how they are made and copied."""

    eager = True
    _scopes: EagerScopes

    def __init__(self, config: Any = None) -> None:
        self._session: BaseSession | None = None
        super().__init__()
        self._scopes = EagerScopes()
        self.config = SessionConfig.of(config)
        self._specs: dict[Any, EagerSpec] = {}
        self._scalars: dict[Any, EagerTensor] = {}
        self._made = 0
        self._constant_op = Graph().create_op(
            registry.get("Const"), (), {"value": np.zeros((), np.float32), "dtype": "float32"}
        )

    # The session

    @property
    def session(self) -> BaseSession:
        """What has the devices and variables; opened at first need."""
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = BaseSession("", self, self.config, lasting=True)
                    self._host = self._session.runtime.devices.host
        return self._session

    @property
    def host(self) -> Device | None:
        """The device that works in the host's memory, None where there is none."""
        return self._host if self._session is not None else self.session.runtime.devices.host

    def scalar(self, value: float, dtype: DType) -> Any:
        """Returns the tensor of a number; the number itself where it needs a closer look."""
        if type(value) is int and not dtype.is_integer and not dtype.is_floating:
            return value
        if (type(value) is float and not dtype.is_floating) or (not value and math.copysign(1, value) < 0):
            return value
        key = value, dtype
        found = self._scalars.get(key)
        if found is None:
            try:
                array = np.array(value, dtype.numpy)
            except OverflowError:
                return value
            if dtype.is_integer and int(array) != value:
                return value
            found = self.constant(array, dtype)
            if len(self._scalars) >= _SCALARS:
                self._scalars.clear()
            self._scalars[key] = found
        return found

    def constant(self, array: np.ndarray, dtype: Any) -> EagerTensor:
        """Returns a tensor of an array that nobody else writes to."""
        made = EagerTensor(array, self.spec_of(dtype, array, self.host), self._constant_op)
        return self._on_requested(made, self._scopes.device)

    def spec_of(self, dtype: DType, array: Any, device: Device | None) -> EagerSpec:
        """Returns the spec of an array on a device; None as the device is the host."""
        device = self.host if device is None else device
        shape = getattr(array, "shape", ())
        key = dtype, shape, id(device)
        found = self._specs.get(key)
        if found is None:
            if len(self._specs) >= _SPECS:
                self._specs.clear()
            found = self._specs[key] = EagerSpec(self, dtype.base_dtype, tuple(shape), device)
        return found

    def passed_on(self, x: EagerTensor, operation: Operation, index: int, device: str) -> EagerTensor:
        """Output `index` of a call that passes its inputs on, as the same array."""
        if x.dtype is resource:
            return x
        made = EagerTensor(x.array, x.spec, operation, index)
        lease = getattr(x, "lease", None)
        if lease is not None:
            made.lease = lease
        return self._on_requested(made, device)

    # Resources

    def make_handle(self, op_def: OpDef, attrs: dict[str, Any], name: str | None, device: str) -> EagerTensor:
        """Returns the handle of a new resource, which is made when something first uses it."""
        base = (name or op_def.name).rstrip("/")
        with self._lock:
            self._made += 1
            number = self._made
        graph = Graph()
        if "shared_name" in op_def.attrs:
            attrs = {**attrs, "shared_name": f"{attrs.get('shared_name') or base}/{number}"}
        else:
            base = f"{base}_{number}"
        operation = graph.create_op(op_def, [], attrs, base, device=device, exact_name=True)
        spec = ResourceSpec(self, operation)
        return EagerTensor(np.empty((), object), spec, operation)

    def read_variable(self, handle: EagerTensor) -> EagerTensor:
        """Returns the value of a variable, which is the variable's own version as long as the tensor lives."""
        spec = handle.spec
        assert isinstance(spec, ResourceSpec)
        variable = self.session.runtime.variables.find(spec.key)
        version = None if variable is None else variable.lease()
        if variable is None or version is None:
            raise FailedPreconditionError(
                f"ReadVariableOp 'ReadVariableOp': variable '{spec.operation.name}' has no value; assign one first"
            )
        if spec.read is None:
            graph = Graph()
            read = registry.get("ReadVariableOp")
            spec.read = graph.create_op(read, [add_handle(graph, spec)], {"dtype": variable.dtype})
            spec.read._where = None
        made = EagerTensor(version.array, self.spec_of(variable.dtype, version.array, variable.device), spec.read)
        made.lease = HeldVersion(variable.device, version)
        return made

    def drop_resource(self, spec: ResourceSpec) -> None:
        """Drops what a handle meant that nothing refers to any more."""
        session = self._session
        if session is None or session.closed:
            return
        if spec.operation.op_def.resource:
            session.runtime.resources.destroy(spec.key)
        else:
            session.runtime.variables.forget(spec.key)

    # Devices

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Runs the operations of the block on a device: a device string, or None for no request."""
        scopes, entry = self._scopes, device_name_or_function
        if callable(entry):
            raise WrongStateError("tf.device: a function is given in eager execution; a device string is required")
        if entry is not None and not isinstance(entry, str) and not hasattr(entry, "to_string"):
            raise InvalidTypeError(f"device is {entry!r} of type {type(entry).__name__}; a str is required")
        old = scopes.device
        if entry is None or entry == "":
            scopes.device = "" if entry is None else old
        else:
            scopes.device = merge_device(canonical_device(getattr(entry, "to_string", lambda: entry)()), old)
        try:
            yield
        finally:
            scopes.device = old

    @property
    def requested_device(self) -> str:
        """The device that the blocks around request in this thread; "" where there is none."""
        return self._scopes.device

    def has_device_scope(self) -> bool:
        """Returns whether a `device` block of this thread surrounds new operations."""
        return bool(self._scopes.device)

    def _on_requested(self, tensor: EagerTensor, device: str) -> EagerTensor:
        """Returns the tensor on the device that is requested."""
        if not device or tensor.dtype.numpy.hasobject:
            return tensor
        runtime = self.session.runtime
        found = runtime.devices.matching(device)
        if not found and runtime.placer.soft:
            found = runtime.devices.nearest(device)[:1]
        if not found:
            raise InvalidArgumentError(
                f"device '{device}' is requested; there is none ({runtime.devices.describe(device)}), "
                "and allow_soft_placement is off"
            )
        return tensor if tensor.spec.device in found else self._copy(tensor, found[0])

    def _copy(self, tensor: EagerTensor, device: Device) -> EagerTensor:
        home = tensor.spec.device
        if home is device or tensor.dtype.numpy.hasobject:
            return tensor
        array = move((tensor.array, home), device)
        made = EagerTensor(array, self.spec_of(tensor.dtype, array, device), tensor.op, tensor.value_index)
        if self._scopes.tapes:
            identity = registry.get("Identity")
            graph = Graph()
            feed = graph.apply("Placeholder", (), {"dtype": tensor.dtype, "shape": tensor.static_shape}).outputs[0]
            made.op = graph.create_op(identity, [feed], {"T": tensor.dtype})
            record(self._scopes.tapes, made.op, (tensor,), (made,), made.op.gradient)
        return made

    def copy_to_host(self, tensor: EagerTensor) -> EagerTensor:
        """Returns the tensor in the host's memory."""
        return tensor if self.host is None else self._copy(tensor, self.host)

    def copy_to_accelerator(self, tensor: EagerTensor, index: int) -> EagerTensor:
        """Returns the tensor on a device that has its own memory or, where there is none, on the best one that is not
        the host's; InvalidArgumentError where there are not so many."""
        host = self.host
        found = [d for d in self.session.runtime.devices.devices if d is not host]
        if index >= len(found):
            raise InvalidArgumentError(
                f"accelerator {index} is asked for; {len(found)} are there: "
                f"{', '.join(d.spec for d in found) or 'the host is the only device'}"
            )
        return self._copy(tensor, found[index])
