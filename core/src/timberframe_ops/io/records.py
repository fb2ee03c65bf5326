"""RecordInput: records of files in random order, batch after batch."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape


def _shape(c: InferenceContext) -> list[Shape]:
    for name in ("batch_size", "file_buffer_size", "file_parallelism"):
        if c.attrs[name] < 1:
            raise c.late_error(f"{name} is {c.attrs[name]}; it must be positive")
    if c.attrs["compression_type"] not in ("", "ZLIB", "GZIP"):
        raise c.late_error(f"compression_type is {c.attrs['compression_type']!r}; it must be '', 'ZLIB' or 'GZIP'")
    return [(c.attrs["batch_size"],)]


define_op(
    "RecordInput",
    outputs=("records: string",),
    attrs=(
        "file_pattern: string",
        "file_random_seed: int = 301",
        "file_shuffle_shift_ratio: float = 0.0",
        "file_buffer_size: int = 10000",
        "file_parallelism: int = 16",
        "batch_size: int = 32",
        "compression_type: string = ''",
    ),
    doc="A batch of records from the TFRecord files that match file_pattern. The order of the files and, within a "
    "buffer of file_buffer_size, that of the records follow from the seed; when all records were given, the next round "
    "begins. The order is not TensorFlow's, which depends on its threads.",
    shape=_shape,
    gradient=NotDifferentiable("files are not functions of tensors"),
    on_host=True,
    stateful=True,
)
