"""Graphs, scopes, collections, constants and placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from timberframe.api.device_spec import DeviceSpec
from timberframe.api.variable_creators import outermost
from timberframe_core import nest
from timberframe_core.arguments import listed
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, ResourceExhaustedError
from timberframe_core.graph.apply import apply_op, constant_op, convert_to_tensor, is_tensor, to_array
from timberframe_core.graph.conversions import register_tensor_conversion_function
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.graph import Graph, get_default_graph, reset_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.scopes import name_scope
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.graphdef.importer import import_graph_def
from timberframe_core.graphdef.tensors import encode_array, make_ndarray
from timberframe_core.ops.definition.opdef import is_known
from timberframe_core.shapes import check_array, format_shape, num_elements

__all__ = [
    "DeviceSpec", "Dimension", "Graph", "GraphKeys", "IndexedSlices", "IndexedSlicesValue", "Operation", "Tensor",
    "TensorShape", "add_to_collection", "add_to_collections", "colocate_with", "constant", "container",
    "control_dependencies", "convert_to_tensor", "device", "dimension_value", "executing_eagerly", "get_collection",
    "get_collection_ref", "get_default_graph", "get_static_value", "group", "import_graph_def", "init_scope",
    "is_tensor", "make_ndarray", "make_tensor_proto", "name_scope", "op_scope", "placeholder",
    "placeholder_with_default",
    "register_tensor_conversion_function", "reset_default_graph", "tuple",
]  # fmt: skip


class GraphKeys:
    """Names of the collections that the library uses, and of others that programs for TensorFlow refer to."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SUMMARIES = "summaries"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    GLOBAL_STEP = "global_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    VARIABLES = "variables"
    METRIC_VARIABLES = "metric_variables"
    CONCATENATED_VARIABLES = "concatenated_variables"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    SAVERS = "savers"
    SAVEABLE_OBJECTS = "saveable_objects"
    SUMMARY_OP = "summary_op"
    EVAL_STEP = "eval_step"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    QUEUE_RUNNERS = "queue_runners"


# Scopes


def op_scope(values: Sequence[Any], name: str | None, default_name: str | None = None) -> AbstractContextManager[str]:
    """`name_scope` with TensorFlow's older order of arguments."""
    return name_scope(name, default_name, values)


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """Places the operations made inside.

    A device string such as ``/acme:0`` overrides parts of those of surrounding blocks; a function of the operation
    returns its device; None forgets the surrounding blocks.
    """
    return get_default_graph().device(device_name_or_function)


def container(container_name: str) -> Any:
    """Puts the variables, queues, tables and readers made inside into a container: `Graph.container`."""
    return get_default_graph().container(container_name)


def dimension_value(dimension: Any) -> int | None:
    """Returns the size that a Dimension, an integer or None means."""
    return Dimension(dimension).value


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Makes the operations made inside wait for these operations or tensors; None forgets surrounding blocks."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Puts the operations made inside on the device of `op`, whichever that will be."""
    return get_default_graph().colocate_with(op, ignore_existing)


def executing_eagerly() -> bool:
    """Returns whether operations run when they are made; False inside tf.function and `with
    tf.Graph().as_default()`.
    """
    return get_default_graph().eager


# Collections


def add_to_collection(name: Any, value: Any) -> None:
    """Adds to a collection of the current graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Adds to several collections of the current graph, once to each."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """Returns a copy of a collection; with `scope` only what has a name that this regular
    expression matches at its start.
    """
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """Returns a collection itself; changes to the list change it."""
    return get_default_graph().get_collection_ref(key)


# Tensors


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False
) -> Tensor:
    """Returns a tensor that holds `value`.

    dtype: by default float32 for Python floats, int32 for integers that fit it, and that of an array. shape: the values
    are put into it; where they are fewer the last one is repeated, unless verify_shape is set.
    """
    if isinstance(value, Tensor) and value.eager and value.graph is get_default_graph():
        value = value.numpy()  # type: ignore[attr-defined]  # an EagerTensor
    if isinstance(value, Tensor):
        raise InvalidTypeError(f"tf.constant: value is tensor '{value.name}'; a value is required")
    array, kind = to_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        array = _fit(array, as_shape(shape), verify_shape)
    return constant_op(array, kind, name)


def _fit(array: np.ndarray, shape: Any, verify_shape: bool) -> np.ndarray:
    if shape is None or None in shape:
        raise InvalidArgumentError(f"tf.constant: shape is {format_shape(shape)}; every size must be known")
    if verify_shape and array.shape != shape:
        raise InvalidArgumentError(
            f"tf.constant: value has shape {format_shape(array.shape)}; it must have {format_shape(shape)}"
        )
    shape = check_array(shape)
    count = num_elements(shape)
    if array.size > count or (not array.size and count):
        raise InvalidArgumentError(
            f"tf.constant: value has {array.size} elements; 1 to {count} suit shape {format_shape(shape)}"
        )
    flat = array.ravel()
    missing = count - array.size
    return (np.concatenate([flat, _repeated(flat[-1:], missing)]) if missing else flat).reshape(shape)


def _repeated(element: np.ndarray, count: int) -> np.ndarray:
    """Returns a vector of `count` times the only element of an array."""
    try:
        return np.repeat(element.reshape(1), count)
    except (MemoryError, ValueError) as e:  # ValueError: more bytes than can be counted
        raise ResourceExhaustedError(
            f"tf.constant: {count} elements of {element.dtype} do not fit the memory ({e}); "
            "tf.fill makes them in the run"
        ) from None


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """Returns a tensor whose value every run must feed. Unknown sizes in `shape` are None."""
    made: Tensor = apply_op("Placeholder", [], {"dtype": as_dtype(dtype), "shape": TensorShape(shape)}, name)
    return made


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns a tensor that has the value of `input` unless a run feeds another one."""
    made: Tensor = apply_op("PlaceholderWithDefault", [input], {"shape": TensorShape(shape)}, name)
    return made


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> Any:
    """Returns the TensorProto message of a value; the arguments are those of `constant`.

    allow_broadcast: whether a value of several elements must have the shape; otherwise its last element fills the rest.
    """
    if hasattr(values, "tensor_shape"):
        return values
    array, kind = to_array(values, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        array = _fit(array, as_shape(shape), verify_shape or (allow_broadcast and array.shape not in ((), (1,))))
    return encode_array(array, kind)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the value of a tensor as an array where it is known without running, else None.

    partial: unknown elements of a vector become None instead of making the whole unknown.
    """
    tensor = convert_to_tensor(tensor)
    if tensor.eager:
        return tensor.numpy()
    if tensor.op.type == "Const":
        return tensor.op.attrs["value"].copy()
    value = tensor.host_value
    if value is None or is_known(value):
        return None if value is None else value.astype(tensor.dtype.numpy)
    if not partial:
        return None
    return np.array([x if isinstance(x, int | np.integer) else None for x in value.flat], object).reshape(value.shape)


@contextmanager
def init_scope() -> Iterator[None]:
    """Puts what is made inside into the graph around loops, branches and function bodies, without control inputs.

    The name scope stays; in eager execution operations run at once.
    """
    inner = get_default_graph()
    graph = outermost(inner)
    scope = inner.get_name_scope()
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(f"{scope}/" if scope else None):
        yield


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """Returns an operation that is done when all inputs (operations, tensors, or lists of them) are. Takes `name`.

    None in eager execution, where all is done.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise InvalidArgumentError(f"tf.group: got {', '.join(kwargs)}; the only keyword is name")
    if get_default_graph().eager:
        return None  # type: ignore[return-value]  # what graphs alone have
    given = nest.flatten(inputs)
    if any(x is None for x in given):
        raise InvalidTypeError("tf.group: an input is None; operations and tensors are required")
    with control_dependencies(given):
        made: Operation = apply_op("NoOp", name=name or "group_deps")
    return made


def tuple(tensors: Any, name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:
    """Returns the tensors, each of which can be used only when all of them, and control_inputs, are computed."""
    tensors = listed(tensors, "tf.tuple: tensors", "tensors")
    present = [t for t in tensors if t is not None]
    if not present:
        raise InvalidArgumentError("tf.tuple: no tensor given; at least one is required")
    with name_scope(name, "tuple", present):
        gate = group(*present, *(control_inputs or ()))
        with control_dependencies([gate]):
            return [None if t is None else _gated(t) for t in tensors]


def _gated(value: Any) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(apply_op("Identity", [value.values]), value.indices, value.dense_shape)
    if isinstance(value, Operation):
        return group(value)
    return apply_op("Identity", [value])
