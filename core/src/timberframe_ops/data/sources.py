"""Datasets that begin a pipeline: tensors, ranges, files, functions of Python."""

from __future__ import annotations

from timberframe_ops.data.signatures import define_dataset

_TENSORS = ("Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1")

define_dataset(
    "TensorDataset",
    "One element, whose components are these tensors.",
    ["components: Toutput_types"],
    _TENSORS,
    elements=False,
    stateful=True,
)
define_dataset(
    "TensorSliceDataset",
    "The rows of these tensors, whose first dimensions are equal.",
    ["components: Toutput_types"],
    [*_TENSORS, "is_files: bool = false", "replicate_on_split: bool = false"],
    elements=False,
    stateful=True,
)
define_dataset(
    "RangeDataset",
    "The integers from `start` up to `stop`, which is left out, by `step`.",
    ["start: int64", "stop: int64", "step: int64"],
    ["replicate_on_split: bool = false"],
    stateful=True,
)
define_dataset(
    "RandomDataset",
    "Random integers of 32 bits, without an end. seed, seed2: where they start; both 0: anywhere.",
    ["seed: int64", "seed2: int64"],
    stateful=True,
)
define_dataset(
    "ExperimentalRandomDataset",
    "RandomDataset by its older name.",
    ["seed: int64", "seed2: int64"],
    stateful=True,
    metadata=False,
)
define_dataset(
    "TextLineDataset",
    "The lines of files, without their ends. compression_type: '', 'ZLIB' or 'GZIP'. buffer_size: bytes read at once.",
    ["filenames: string", "compression_type: string", "buffer_size: int64"],
    elements=False,
    stateful=True,
)
define_dataset(
    "TFRecordDataset",
    "The records of TFRecord files. compression_type: '', 'ZLIB' or 'GZIP'. buffer_size: bytes read at once.",
    ["filenames: string", "compression_type: string", "buffer_size: int64"],
    elements=False,
    stateful=True,
)
define_dataset(
    "FixedLengthRecordDataset",
    "Records of record_bytes of files, after a header and before a footer.",
    ["filenames: string", "header_bytes: int64", "record_bytes: int64", "footer_bytes: int64", "buffer_size: int64"],
    elements=False,
    stateful=True,
)
define_dataset(
    "FixedLengthRecordDatasetV2",
    "FixedLengthRecordDataset of files that may be compressed: '', 'ZLIB' or 'GZIP'.",
    [
        "filenames: string",
        "header_bytes: int64",
        "record_bytes: int64",
        "footer_bytes: int64",
        "buffer_size: int64",
        "compression_type: string",
    ],
    elements=False,
    stateful=True,
)
define_dataset(
    "GeneratorDataset",
    "What `next_func` gives again and again until it raises OutOfRangeError. It gets what `init_func` returns, as "
    "does `finalize_func` at the end.",
    [
        "init_func_other_args: Tinit_func_args",
        "next_func_other_args: Tnext_func_args",
        "finalize_func_other_args: Tfinalize_func_args",
    ],
    [
        "init_func: func",
        "next_func: func",
        "finalize_func: func",
        "Tinit_func_args: list(type) >= 0",
        "Tnext_func_args: list(type) >= 0",
        "Tfinalize_func_args: list(type) >= 0",
    ],
    stateful=True,
)
