"""What the elements of a dataset look like: structures of tensors and datasets.

Tuples, named tuples and dicts are structures; everything else is a leaf, lists too: they become tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timberframe_core.dtypes import DType, as_dtype, variant
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.shapes import Shape, compatible, format_shape


def is_nested(value: Any) -> bool:
    """Whether a value is a structure."""
    return isinstance(value, tuple | Mapping)


def _children(structure: Any) -> Sequence[Any]:
    return [structure[key] for key in sorted(structure)] if isinstance(structure, Mapping) else structure


def flatten(structure: Any) -> list[Any]:
    """The leaves from left to right, those of dicts in the order of their keys."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack(structure: Any, leaves: Iterator[Any]) -> Any:
    """The structure with other leaves, as many of which are taken as it has."""
    if not is_nested(structure):
        return next(leaves)
    packed = [pack(child, leaves) for child in _children(structure)]
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), packed, strict=True))
        kind: Any = type(structure)
        return kind((key, by_key[key]) for key in structure)
    return type(structure)(*packed) if hasattr(structure, "_fields") else tuple(packed)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """The structure of what a function makes of the leaves."""
    return pack(structure, iter([function(leaf) for leaf in flatten(structure)]))


def flatten_up_to(structure: Any, values: Any) -> list[Any]:
    """What another structure has in the places of the leaves of this one; InvalidArgumentError where it differs."""
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
        """What it is in batches."""
        return TensorLeaf(self.dtype, None if self.shape is None else (count, *self.shape))

    def tensor(self, value: Any) -> Tensor:
        """What the ops take for a value."""
        return convert_to_tensor(value, self.dtype)

    def value(self, tensor: Tensor) -> Any:
        """What users get for what the ops give."""
        return tensor

    def in_common(self, other: Leaf) -> Leaf:
        """What is known of a tensor that is this one or another."""
        from timberframe_core.shapes import in_common

        assert isinstance(other, TensorLeaf)
        return TensorLeaf(self.dtype, in_common([self.shape, other.shape]))


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
        """What it is in batches."""
        raise InvalidTypeError("datasets cannot be put into batches; flat_map gives their elements")

    def tensor(self, value: Any) -> Tensor:
        """What the ops take for a value."""
        found: Tensor = value.variant
        return found

    def value(self, tensor: Tensor) -> Any:
        """What users get for what the ops give."""
        return self.make(tensor, self.structure)

    def in_common(self, other: Leaf) -> Leaf:
        """What is known of a dataset that is this one or another."""
        return self


Leaf = TensorLeaf | DatasetLeaf


def tensors_of(structure: Any, values: Any) -> list[Tensor]:
    """The tensors of an element that has this structure."""
    return [leaf.tensor(x) for leaf, x in zip(flatten(structure), flatten_up_to(structure, values), strict=True)]


def values_of(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """The element that has this structure and these tensors."""
    leaves = flatten(structure)
    return pack(structure, iter([leaf.value(t) for leaf, t in zip(leaves, tensors, strict=True)]))


def attrs_of(structure: Any) -> dict[str, Any]:
    """The attrs that say of an op what its elements are."""
    leaves = flatten(structure)
    return {"output_types": [leaf.dtype for leaf in leaves], "output_shapes": [leaf.shape for leaf in leaves]}


def declared(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The structure that dtypes and shapes describe; shapes None: all unknown."""
    if shapes is None:
        return map_leaves(lambda t: TensorLeaf(as_dtype(t), None), types)
    found = iter(_shapes_up_to(types, shapes))
    return map_leaves(lambda t: t if isinstance(t, DatasetLeaf) else TensorLeaf(as_dtype(t), next(found)), types)


def _shapes_up_to(types: Any, shapes: Any) -> list[Shape]:
    """A shape for each dtype; where dtypes are nested, so are shapes, which may be lists themselves."""
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
        if want.dtype is not have.dtype:
            raise InvalidTypeError(f"{what}: component {i} has dtype {have.dtype.name}; {want.dtype.name} is required")
        if not compatible(want.shape, have.shape):
            raise InvalidArgumentError(
                f"{what}: component {i} has shape {format_shape(have.shape)}; "
                f"one compatible with {format_shape(want.shape)} is required"
            )
