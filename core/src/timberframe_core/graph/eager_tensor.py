"""EagerTensor: a tensor that has its value, as operations of eager execution give it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType, resource, variant
from timberframe_core.errors import InvalidTypeError, WrongStateError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import Shape, StaticShape, format_shape, num_elements

if TYPE_CHECKING:
    from timberframe_core.graph.graph import Graph

_HOST_VALUE_ELEMENTS = 1024  # larger tensors are data, not shape arithmetic


class EagerSpec:
    """What tensors have in common that one compiled call takes: dtype, shape and device. Equal ones are one object.

    graph: the graph of eager execution. device: a Device, None for a host without one. The spec of a resource handle is
    that handle's alone, a ResourceSpec.
    """

    __slots__ = ("__weakref__", "device", "dtype", "graph", "shape")
    key: str
    """Of a handle: the name of its resource in the store."""

    def __init__(self, graph: Graph, dtype: DType, shape: StaticShape, device: Any) -> None:
        self.graph = graph
        self.dtype = dtype
        self.shape = shape
        self.device = device


class EagerTensor(Tensor):
    """A tensor with a value, which never changes.

    Functions of `tf.*` and operators take it like any other tensor and run at once. `op` is what the call that made it
    was compiled from: its type and attrs hold, its inputs do not. `==` and `!=` compare identity, as in TensorFlow 1.
    """

    __slots__ = ("array", "lease", "spec")
    lease: Any
    """Of a value that is a variable's own: keeps it from being written over. Others have none."""
    eager = True

    def __init__(self, array: Any, spec: EagerSpec, op: Operation, index: int = 0) -> None:
        self.array = array
        self.spec = spec
        self.dtype = spec.dtype
        self._shape = spec.shape
        self.op = op
        self.value_index = index

    # What is known of it, for shape functions and gradient functions

    @property
    def host_value(self) -> np.ndarray | None:  # type: ignore[override]  # a slot of the base class
        """The value of a small integer or bool tensor: what shapes are computed of."""
        if not (self.dtype.is_integer or self.dtype.is_bool) or num_elements(self.spec.shape) > _HOST_VALUE_ELEMENTS:
            return None
        return self._on_host()

    @property
    def handle(self) -> tuple[DType | None, Shape] | None:  # type: ignore[override]  # a slot of the base class
        """Of a resource handle dtype and shape of its variable, of a list those of its elements."""
        if self.dtype is resource:
            attrs = self.op.attrs
            return (attrs["dtype"], attrs["shape"]) if self.op.op_def.role == "variable" else None
        if self.dtype is variant:
            return getattr(self.array, "dtype", None), getattr(self.array, "element_shape", None)
        return None

    def set_shape(self, shape: Any) -> None:
        """Checks a shape; raises InvalidArgumentError where it is not the tensor's."""
        self.shape.merge_with(shape)

    def forget(self) -> None:
        """Does nothing: shape and value are what they are."""

    @property
    def graph(self) -> Graph:
        """The graph of eager execution, which has no operations."""
        return self.spec.graph

    @property
    def device(self) -> str:
        """The full name of the device that has the value."""
        home = self.spec.device
        return "" if home is None else str(home.name)

    backing_device = device

    def consumers(self) -> list[Operation]:
        """Raises WrongStateError: in eager execution nobody knows what uses a tensor."""
        raise WrongStateError(f"{self!r}: consumers() is asked for in eager execution; only graphs know them")

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Raises WrongStateError: the value is there without a session."""
        raise WrongStateError(f"{self!r}: eval() is called in eager execution; use numpy()")

    # The value

    def _on_host(self) -> np.ndarray:
        """Returns the array on the host, which must not be written to."""
        if self.dtype is resource:
            raise InvalidTypeError(f"{self!r} is a handle and has no value; read the variable")
        home = self.spec.device
        found: np.ndarray = self.array if home is None or home.host_memory else home.copy_out(self.array)
        return found

    def numpy(self) -> Any:
        """Returns the value as an array of its own; of a scalar as a NumPy scalar, or bytes."""
        array = self._on_host()
        if self.dtype is variant:
            return array
        return array.copy() if array.ndim else array[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._on_host(), dtype)

    def _scalar(self, kind: str) -> Any:
        array = self._on_host()
        if array.size != 1:
            raise InvalidTypeError(
                f"a tensor of shape {format_shape(self._shape)} is used as a Python {kind}; one element is required"
            )
        return array.reshape(())[()]

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer or self._shape:
            raise InvalidTypeError(f"{self!r} is used as an index; an integer scalar is required")
        return int(self._scalar("index"))

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if not self._shape else format(str(self), spec)

    def __len__(self) -> int:
        if not self._shape:
            raise InvalidTypeError("a scalar tensor has no length; a tensor of rank 1 or more is required")
        return int(self._shape[0] or 0)

    def __iter__(self) -> Iterator[Tensor]:
        if not self._shape:
            raise InvalidTypeError("a scalar tensor cannot be iterated; a tensor of rank 1 or more is required")
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> EagerTensor:
        return self

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return self

    def __reduce__(self) -> Any:
        return _unpickled, (np.asarray(self._on_host()), self.dtype.name)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape or ())

    # Devices

    def cpu(self) -> Any:
        """Returns the tensor in the memory of the host."""
        graph: Any = self.spec.graph
        return graph.copy_to_host(self)

    def gpu(self, gpu_index: int = 0) -> Any:
        """Returns the tensor on an accelerator, the first by default; raises
        InvalidArgumentError where there is none.
        """
        graph: Any = self.spec.graph
        return graph.copy_to_accelerator(self, gpu_index)

    def _text(self, show: Any) -> str:
        if self.dtype in (resource, variant):
            return f"<{self.dtype.name}>"
        text: str = show(self.numpy())
        return f"\n{text}" if "\n" in text else text

    def __repr__(self) -> str:
        shape = format_shape(self._shape)
        return f"<tf.Tensor: shape={shape}, dtype={self.dtype.name}, numpy={self._text(repr)}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self._text(str)}, shape={format_shape(self._shape)}, dtype={self.dtype.name})"


def _unpickled(array: np.ndarray, dtype: str) -> Any:
    return convert_to_tensor(array, dtype)
