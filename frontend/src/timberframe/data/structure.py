"""What the elements of a dataset look like: structures of tensors and datasets.

Tuples, named tuples and dicts are structures; everything else is a leaf, lists too: they become tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timberframe_core.dtypes import DType, as_dtype, string, variant
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.shapes import Shape, compatible, format_shape, in_common


def is_nested(value: Any) -> bool:
    """Returns whether a value is a structure."""
    return isinstance(value, tuple | Mapping)


def _children(structure: Any) -> Sequence[Any]:
    return [structure[key] for key in sorted(structure)] if isinstance(structure, Mapping) else structure


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves from left to right, those of dicts in the order of their keys."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack(structure: Any, leaves: Iterator[Any]) -> Any:
    """Returns the structure with other leaves, as many of which are taken as it has."""
    if not is_nested(structure):
        return next(leaves)
    packed = [pack(child, leaves) for child in _children(structure)]
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), packed, strict=True))
        kind: Any = type(structure)
        return kind((key, by_key[key]) for key in structure)
    return type(structure)(*packed) if hasattr(structure, "_fields") else tuple(packed)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """Returns the structure of what a function makes of the leaves."""
    return pack(structure, iter([function(leaf) for leaf in flatten(structure)]))


def flatten_up_to(structure: Any, values: Any) -> list[Any]:
    """Returns what another structure has in the places of the leaves of this one;
    InvalidArgumentError where it differs.
    """
    if not is_nested(structure):
        return [values]
    same = is_nested(values) and (
        isinstance(structure, Mapping) == isinstance(values, Mapping)
        and (sorted(structure) == sorted(values) if isinstance(structure, Mapping) else len(structure) == len(values))
    )
    if not same:
        raise InvalidTypeError(f"structures {structure!r} and {values!r} differ; they must have one form")
    pairs = zip(_children(structure), _children(values), strict=True)
    return [x for a, b in pairs for x in flatten_up_to(a, b)]


@dataclass(frozen=True)
class TensorLeaf:
    """A tensor of an element."""

    dtype: DType
    shape: Shape

    @property
    def output_type(self) -> Any:
        """What `output_types` says of it."""
        return self.dtype

    @property
    def output_shape(self) -> Any:
        """What `output_shapes` says of it."""
        return TensorShape(self.shape)

    @property
    def output_class(self) -> Any:
        """What `output_classes` says of it."""
        return Tensor

    @property
    def row(self) -> Leaf:
        """What it is in the rows of an element."""
        return TensorLeaf(self.dtype, None if self.shape is None else self.shape[1:])

    def batched(self, count: int | None) -> Leaf:
        """Returns what it is in batches."""
        return TensorLeaf(self.dtype, None if self.shape is None else (count, *self.shape))

    def value(self, tensor: Tensor) -> Any:
        """Returns what users get for what the ops give."""
        return tensor

    @property
    def of_any_shape(self) -> Leaf:
        """It without its shape."""
        return TensorLeaf(self.dtype, None)

    def in_common(self, other: Leaf) -> Leaf:
        """Returns what is known of a tensor that is this one or another."""
        assert isinstance(other, TensorLeaf)
        return TensorLeaf(self.dtype, in_common([self.shape, other.shape]))


@dataclass(frozen=True)
class SparseLeaf:
    """A sparse tensor of an element: strings [..., 3] of `tf.serialize_sparse` until users get it.

    value_dtype, value_shape: of the sparse tensor. outer: the sizes before the 3, each of which is one of its first.
    """

    value_dtype: DType
    value_shape: Shape
    outer: Shape = ()

    dtype = string

    @property
    def shape(self) -> Shape:
        """The shape of the strings."""
        return None if self.outer is None else (*self.outer, 3)

    @property
    def output_type(self) -> Any:
        """What `output_types` says of it."""
        return self.value_dtype

    @property
    def output_shape(self) -> Any:
        """What `output_shapes` says of it."""
        return TensorShape(self.value_shape)

    @property
    def output_class(self) -> Any:
        """What `output_classes` says of it."""
        return SparseTensor

    @property
    def row(self) -> Leaf:
        """What it is in the rows of an element."""
        if not self.outer:
            raise InvalidTypeError(
                "a sparse tensor that is an element has no rows here; tf.sparse_tensor_to_dense in `map` makes it dense"
            )
        rest = None if self.value_shape is None else self.value_shape[1:]
        return SparseLeaf(self.value_dtype, rest, self.outer[1:])

    def batched(self, count: int | None) -> Leaf:
        """Returns what it is in batches."""
        shape = None if self.value_shape is None else (count, *self.value_shape)
        return SparseLeaf(self.value_dtype, shape, None if self.outer is None else (count, *self.outer))

    def tensor(self, value: Any) -> Tensor:
        """Returns what the ops take for a value."""
        given = SparseTensor.from_value(value)
        made: Tensor = apply_op(
            "SerializeSparse", [given.indices, given.values, given.dense_shape], {"out_type": string}
        )
        return made

    def value(self, tensor: Tensor) -> Any:
        """Returns what users get for what the ops give."""
        made = SparseTensor(*apply_op("DeserializeSparse", [tensor], {"dtype": self.value_dtype}))
        rank = None if self.value_shape is None else len(self.value_shape)
        made.indices.set_shape([None, rank])
        made.dense_shape.set_shape([rank])
        made.set_shape(self.value_shape)
        return made

    @property
    def of_any_shape(self) -> Leaf:
        """It without its shape."""
        return SparseLeaf(self.value_dtype, None, None)

    def in_common(self, other: Leaf) -> Leaf:
        """Returns what is known of a sparse tensor that is this one or another."""
        assert isinstance(other, SparseLeaf)
        shape, outer = in_common([self.value_shape, other.value_shape]), in_common([self.outer, other.outer])
        return SparseLeaf(self.value_dtype, shape, outer)


def leaf_of(value: Any, rows: bool = False) -> tuple[TensorLeaf | SparseLeaf, Tensor]:
    """Returns the leaf that a value is, with what the ops take for it; rows: whose rows are to be the elements."""
    if not isinstance(value, SparseTensor | SparseTensorValue):
        tensor = convert_to_tensor(value)
        return TensorLeaf(tensor.dtype, tensor.static_shape), tensor
    sparse = SparseTensor.from_value(value)
    shape = sparse.shape.as_tuple()
    if not rows:
        leaf = SparseLeaf(sparse.dtype, shape)
        return leaf, leaf.tensor(sparse)
    parts = [sparse.indices, sparse.values, sparse.dense_shape]
    tensor = apply_op("SerializeManySparse", parts, {"out_type": string})
    return SparseLeaf(sparse.dtype, shape, (None if shape is None else shape[0],)), tensor


class Structured:
    """What has elements of a structure."""

    structure: Any

    @property
    def output_types(self) -> Any:
        """The dtypes of the components of an element, in its structure."""
        return map_leaves(lambda leaf: leaf.output_type, self.structure)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the components of an element, in its structure."""
        return map_leaves(lambda leaf: leaf.output_shape, self.structure)

    @property
    def output_classes(self) -> Any:
        """The classes of the components of an element, in its structure."""
        return map_leaves(lambda leaf: leaf.output_class, self.structure)


class Elements(Structured):
    """What all datasets are: a tensor of dtype variant, and the structure of their elements."""

    def __init__(self, variant_tensor: Tensor, structure: Any) -> None:
        self.variant = variant_tensor
        self.structure = structure


@dataclass(frozen=True)
class DatasetLeaf:
    """A dataset in an element, as those of `window`. structure: of its elements."""

    structure: Any
    make: Callable[[Tensor, Any], Elements]
    """Makes a dataset of a tensor of dtype variant and a structure."""

    dtype = variant
    shape: Shape = ()

    @property
    def output_type(self) -> Any:
        """What `output_types` says of it."""
        return self

    output_shape = output_type

    @property
    def output_class(self) -> Any:
        """What `output_classes` says of it."""
        return self

    @property
    def row(self) -> Leaf:
        """What it is in the rows of an element."""
        raise InvalidTypeError("datasets of datasets have no rows; flat_map gives the elements of those within")

    def batched(self, count: int | None) -> Leaf:
        """Returns what it is in batches."""
        raise InvalidTypeError("datasets cannot be put into batches; flat_map gives their elements")

    def value(self, tensor: Tensor) -> Any:
        """Returns what users get for what the ops give."""
        return self.make(tensor, self.structure)

    @property
    def of_any_shape(self) -> Leaf:
        """It without its shape, which it has not."""
        return self

    def in_common(self, other: Leaf) -> Leaf:
        """Returns what is known of a dataset that is this one or another."""
        return self


Leaf = TensorLeaf | SparseLeaf | DatasetLeaf


def values_of(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """Returns the element that has this structure and these tensors."""
    leaves = flatten(structure)
    return pack(structure, iter([leaf.value(t) for leaf, t in zip(leaves, tensors, strict=True)]))


def attrs_of(structure: Any) -> dict[str, Any]:
    """Returns the attrs that say of an op what its elements are."""
    leaves = flatten(structure)
    return {"output_types": [leaf.dtype for leaf in leaves], "output_shapes": [leaf.shape for leaf in leaves]}


def declared(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """Returns the structure that dtypes, shapes and classes describe; shapes None: all unknown;
    classes None: all Tensors.
    """
    leaves = flatten(types)
    known = [None] * len(leaves) if shapes is None else _shapes_up_to(types, shapes)
    kinds = [Tensor] * len(leaves) if classes is None else flatten_up_to(types, classes)
    return pack(types, iter([_declared(*given) for given in zip(leaves, known, kinds, strict=True)]))


def _declared(kind: Any, shape: Shape, given_class: Any) -> Leaf:
    if isinstance(kind, DatasetLeaf):
        return kind
    if isinstance(given_class, type) and issubclass(given_class, SparseTensor):
        return SparseLeaf(as_dtype(kind), shape, None)
    return TensorLeaf(as_dtype(kind), shape)


def _shapes_up_to(types: Any, shapes: Any) -> list[Shape]:
    """Returns a shape for each dtype; where dtypes are nested, so are shapes, which may be lists themselves."""
    if not is_nested(types):
        return [as_shape(shapes)]
    if isinstance(shapes, TensorShape) or not isinstance(shapes, tuple | list | Mapping):
        raise InvalidTypeError(f"output_shapes is {shapes!r} for output_types {types!r}; they must have one form")
    if not isinstance(types, Mapping) and len(shapes) != len(types):
        raise InvalidTypeError(f"output_shapes is {shapes!r} for output_types {types!r}; they must have one form")
    return [s for t, x in zip(_children(types), _children(shapes), strict=True) for s in _shapes_up_to(t, x)]


def check_same(what: str, found: Any, wanted: Any) -> None:
    """Raises where two structures differ in form, dtypes or known sizes; what: whom the message is about."""
    leaves = zip(flatten(wanted), flatten_up_to(wanted, found), strict=True)
    for i, (want, have) in enumerate(leaves):
        if type(want) is not type(have):
            raise InvalidTypeError(f"{what}: component {i} is {have}; one like {want} is required")
        sparse = isinstance(want, SparseLeaf)
        (dtype, shape), (its_dtype, its_shape) = (
            (leaf.value_dtype, leaf.value_shape) if sparse else (leaf.dtype, leaf.shape) for leaf in (want, have)
        )
        if dtype is not its_dtype:
            raise InvalidTypeError(f"{what}: component {i} has dtype {its_dtype.name}; {dtype.name} is required")
        if not compatible(shape, its_shape):
            raise InvalidArgumentError(
                f"{what}: component {i} has shape {format_shape(its_shape)}; "
                f"one compatible with {format_shape(shape)} is required"
            )
