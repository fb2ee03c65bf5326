"""`tf.TensorArray`: an array of tensors that loops read and write; its value is a list (TensorList ops)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core import nest
from timberframe_core.dtypes import DType, as_dtype, int32, int64
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.shapes import Shape, compatible, format_shape, merge

__all__ = ["TensorArray"]


class _Known:
    """What is known of an array and of those made from it by writing: the shape of its elements, and its size."""

    def __init__(self, shape: Shape, size: int | None) -> None:
        self.shape = shape
        self.size = size


class TensorArray:
    """Tensors of one dtype by index. Writing gives a new array; use each only once, and the newest from then on.

    dtype: of the elements. size: how many there are, an integer or a scalar tensor. dynamic_size: writing after the
    end makes it larger. infer_shape: all elements must have one shape. element_shape: what is known of that shape.
    flow: the list of an existing array that this object is to represent. clear_after_read, tensor_array_name and
    colocate_with_first_write_call are TensorFlow's and change nothing; handle must be None.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None:
            raise InvalidArgumentError("tf.TensorArray: handle is given; an array is its flow here, and handle is None")
        if (size is None) == (flow is None):
            raise InvalidArgumentError("tf.TensorArray: size and flow are both given or both missing; give one of them")
        self._dtype = as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        static = size if isinstance(size, int) and not dynamic_size else None
        self._known = _Known(None if element_shape is None else as_shape(element_shape), static)
        if flow is None:
            attrs = {"element_dtype": self._dtype, "shape_type": int32}
            count = convert_to_tensor(size, int32)
            flow = apply_op("TensorListReserve", [self._sizes(), count], attrs, name or "TensorArray")
        self._flow: Tensor = flow

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def flow(self) -> Tensor:
        """The list that the array is."""
        return self._flow

    @property
    def handle(self) -> None:
        """TensorFlow's handle of a resource; there is none."""
        return

    @property
    def dynamic_size(self) -> bool:
        """Whether writes after the end make the array longer."""
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the elements."""
        return TensorShape(self._known.shape)

    def with_flow(self, flow: Tensor) -> TensorArray:
        """Returns an array of the same kind with another list."""
        new = TensorArray(self._dtype, flow=flow, infer_shape=self._infer_shape)
        new._dynamic_size, new._known = self._dynamic_size, self._known
        return new

    def _sizes(self, shape: Any = ...) -> Any:
        """Returns the shape of elements as ops take it: sizes with -1 for unknown ones, or -1 for an unknown rank."""
        known = self._known.shape if shape is ... else shape
        return convert_to_tensor(-1 if known is None else [-1 if d is None else d for d in known], int32)

    def _check(self, shape: Shape, what: str) -> None:
        """Notes the shape of an element that is written."""
        if not self._infer_shape:
            return
        if not compatible(self._known.shape, shape):
            raise InvalidArgumentError(
                f"TensorArray '{self._flow.op.name}': {what} of shape {format_shape(shape)}; the elements have shape "
                f"{format_shape(self._known.shape)}, which it must suit"
            )
        self._known.shape = merge(self._known.shape, shape)

    def _value(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self._dtype, "value", preferred_dtype=self._dtype)

    def _attrs(self, **more: Any) -> dict[str, Any]:
        return {"element_dtype": self._dtype, **more}

    # Elements

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Returns the element at `index`; zeros where nothing was written."""
        inputs = [self._flow, index, self._sizes()]
        value: Tensor = apply_op("TensorListGetItem", inputs, self._attrs(), name or "TensorArrayRead")
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with another element at `index`."""
        tensor = self._value(value)
        self._check(tensor.static_shape, "a value")
        attrs = self._attrs(resize_if_index_out_of_bounds=self._dynamic_size)
        flow = apply_op("TensorListSetItem", [self._flow, index, tensor], attrs, name or "TensorArrayWrite")
        return self.with_flow(flow)

    # All elements

    def stack(self, name: str | None = None) -> Tensor:
        """Returns all elements, which must have one shape, as the rows of one tensor."""
        attrs = self._attrs(num_elements=-1 if self._known.size is None else self._known.size)
        value: Tensor = apply_op("TensorListStack", [self._flow, self._sizes()], attrs, name or "TensorArrayStack")
        return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the elements at `indices`, which must have one shape, as the rows of one tensor."""
        inputs = [self._flow, indices, self._sizes()]
        value: Tensor = apply_op("TensorListGather", inputs, self._attrs(), name or "TensorArrayGather")
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """Returns the elements one after the other along their first dimension."""
        shape = self._known.shape
        sizes = self._sizes((None, *shape[1:]) if shape else None)
        attrs = self._attrs(shape_type=int32)
        inputs = [self._flow, sizes, convert_to_tensor([], int64)]
        made = apply_op("TensorListConcatV2", inputs, attrs, name or "TensorArrayConcat")
        value: Tensor = made[0]
        return value

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array of the rows of a tensor."""
        tensor = self._value(value)
        shape = tensor.static_shape
        self._check(shape[1:] if shape else None, "rows")
        attrs = self._attrs(shape_type=int32)
        inputs = [tensor, self._sizes(shape[1:] if shape else None)]
        made = self.with_flow(apply_op("TensorListFromTensor", inputs, attrs, name or "TensorArrayUnstack"))
        made._known = _Known(self._known.shape, shape[0] if shape and not self._dynamic_size else None)
        return made

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with row i of a tensor as its element ``indices[i]``."""
        tensor = self._value(value)
        shape = tensor.static_shape
        self._check(shape[1:] if shape else None, "rows")
        inputs = [self._flow, tensor, indices]
        name = name or "TensorArrayScatter"
        made = self.with_flow(apply_op("TensorListScatterIntoExistingList", inputs, self._attrs(), name))
        made._known = _Known(self._known.shape, None)
        return made

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns the array of consecutive pieces of a tensor, piece i of ``lengths[i]`` rows."""
        tensor = self._value(value)
        sizes = convert_to_tensor(lengths, int64, preferred_dtype=int64)
        shape = tensor.static_shape
        known = sizes.host_value
        equal = known is not None and known.dtype != object and known.size > 0 and len(set(known.tolist())) == 1
        first = int(known[0]) if equal and known is not None else None
        piece: Shape = (first, *shape[1:]) if shape else None
        self._check(piece, "pieces")
        made = self.with_flow(
            apply_op(
                "TensorListSplit",
                [tensor, self._sizes(piece), sizes],
                self._attrs(shape_type=int32),
                name or "TensorArraySplit",
            )
        )
        count = sizes.static_shape
        made._known = _Known(self._known.shape, count[0] if count and not self._dynamic_size else None)
        return made

    def size(self, name: str | None = None) -> Tensor:
        """Returns how many elements there are."""
        if self._known.size is not None:
            return convert_to_tensor(self._known.size, int32, name)
        count: Tensor = apply_op("TensorListLength", [self._flow], name=name or "TensorArraySize")
        return count

    def identity(self) -> TensorArray:
        """Returns an array with the same elements, which waits for the control dependencies around."""
        return self.with_flow(apply_op("Identity", [self._flow]))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """TensorFlow's array of gradients, which gradients of lists do not use: UnimplementedError."""
        raise UnimplementedError(
            f"TensorArray '{self._flow.op.name}': grad({source!r}) is called; arrays are differentiated by tf.gradients"
        )

    def close(self, name: str | None = None) -> Operation:
        """Returns an operation that does nothing: an array ends with the run that made it."""
        return get_default_graph().apply("NoOp", (), {}, name or "TensorArrayClose")


def to_flow(value: Any) -> Any:
    """Returns the list of a TensorArray; anything else as it is."""
    return value.flow if isinstance(value, TensorArray) else value


def like_structure(structure: Any, flat: Sequence[Any]) -> Any:
    """Returns the structure with other leaves, lists becoming a TensorArray where it has one."""
    leaves = [
        example.with_flow(tensor) if isinstance(example, TensorArray) else tensor
        for example, tensor in zip(nest.flatten(structure), flat, strict=True)
    ]
    return nest.pack_sequence_as(structure, leaves)
