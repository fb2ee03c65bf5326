"""Ops that make strings of tensors, and tensors of such strings: of TensorFlow's parsing_ops and sparse_ops."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.dtypes import variant
from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.sparse.shapes import check_parts

_STRINGS = NotDifferentiable("strings have no derivative")
_SPARSE = ("sparse_indices: int64", "sparse_values: T", "sparse_shape: int64")
_PARSED = ("sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64")


def _parsed_shape(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[0] not in (None, ()):
        raise c.late_error(f"serialized has shape {format_shape(c.shapes[0])}; it must be a scalar")
    return [None]


define_op(
    "SerializeTensor",
    inputs=("tensor: T",),
    outputs=("serialized: string",),
    attrs=("T: type",),
    doc="A tensor as the bytes of a TensorProto.",
    shape=lambda c: [()],
    gradient=_STRINGS,
    on_host=True,
)

define_op(
    "ParseTensor",
    inputs=("serialized: string",),
    outputs=("output: out_type",),
    attrs=("out_type: type",),
    doc="The tensor whose TensorProto a string has; its dtype must be out_type.",
    shape=_parsed_shape,
    gradient=_STRINGS,
    on_host=True,
)


def _refuse_variants(c: InferenceContext, attr: str) -> None:
    if c.attrs[attr] is variant:
        raise c.error(f"{attr} is variant; sparse tensors are serialised as strings here, it must be string")


def _serialized_shape(c: InferenceContext) -> Sequence[Shape]:
    _refuse_variants(c, "out_type")
    check_parts(c, label="sparse")
    return [(3,)]


def _many_serialized_shape(c: InferenceContext) -> Sequence[Shape]:
    _refuse_variants(c, "out_type")
    rank = check_parts(c, label="sparse")
    if rank is not None and rank < 2:
        raise c.late_error(f"the sparse tensor has rank {rank}; its rows are serialised, 2 at least is required")
    return [(None, 3)]


for _name, _doc, _shape in (
    ("SerializeSparse", "A sparse tensor as 3 strings: the TensorProtos of its indices, values and shape.",
     _serialized_shape),
    ("SerializeManySparse", "The rows of a sparse tensor, each as SerializeSparse gives it.", _many_serialized_shape),
):  # fmt: skip
    define_op(
        _name,
        inputs=_SPARSE,
        outputs=("serialized_sparse: out_type",),
        attrs=("T: type", "out_type: {string, variant} = DT_STRING"),
        doc=_doc,
        shape=_shape,
        gradient=_STRINGS,
        on_host=True,
    )


def _deserialized_shape(c: InferenceContext) -> Sequence[Shape]:
    if "Tserialized" in c.attrs:
        _refuse_variants(c, "Tserialized")
    shape, many = c.shapes[0], c.op.name == "DeserializeManySparse"
    if shape is not None and (not shape or shape[-1] not in (None, 3) or (many and len(shape) != 2)):
        required = "(N, 3)" if many else "(..., 3)"
        raise c.late_error(f"serialized_sparse has shape {format_shape(shape)}; it must be {required}")
    return [(None, None), (None,), (None,)]


define_op(
    "DeserializeManySparse",
    inputs=("serialized_sparse: string",),
    outputs=_PARSED,
    attrs=("dtype: type",),
    doc="The sparse tensors that SerializeSparse or SerializeManySparse made strings of, as the rows of one that has "
    "one dimension more and in the others the largest sizes.",
    shape=_deserialized_shape,
    gradient=_STRINGS,
    on_host=True,
)

define_op(
    "DeserializeSparse",
    inputs=("serialized_sparse: Tserialized",),
    outputs=_PARSED,
    attrs=("dtype: type", "Tserialized: {string, variant} = DT_STRING"),
    doc="As DeserializeManySparse, for any number of dimensions in front of the 3 strings; for none it is the one "
    "sparse tensor.",
    shape=_deserialized_shape,
    gradient=_STRINGS,
    on_host=True,
)
