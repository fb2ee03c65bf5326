"""Ops that TensorFlow puts into graphs to save and restore variables, and those that make file names for them.

They read every format that `timberframe.saving` knows and write Timberframe's own. The files belong to the host, so the
executor carries them out there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

if TYPE_CHECKING:
    from timberframe.saving.reader import CheckpointReader

_FILES = NotDifferentiable("files are not functions of tensors")
_STRINGS = NotDifferentiable("strings have no derivative")


def _scalar(c: InferenceContext, i: int, name: str) -> None:
    if c.shapes[i] not in (None, ()):
        raise c.error(f"{name} has shape {format_shape(c.shapes[i])}; it must be a scalar")


def _names_shape(c: InferenceContext, count: int) -> None:
    _scalar(c, 0, "prefix")
    for i, name in ((1, "tensor_names"), (2, "shape_and_slices")):
        shape = c.shapes[i]
        if shape is not None and (len(shape) != 1 or shape[0] not in (None, count)):
            raise c.error(f"{name} has shape {format_shape(shape)}; with {count} tensors it must be ({count},)")


def _save_shape(c: InferenceContext) -> Sequence[Shape]:
    _names_shape(c, len(c.attrs["dtypes"]))
    return []


def _restore_shape(c: InferenceContext) -> Sequence[Shape]:
    _names_shape(c, len(c.attrs["dtypes"]))
    return [None] * len(c.attrs["dtypes"])


def _text(array: np.ndarray) -> str:
    return _decoded(array.item())


def _decoded(text: bytes) -> str:
    """Returns a name of a file or tensor."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"name {text!r} is not UTF-8; names of files and tensors must be") from None


def _named(names: np.ndarray, slices: np.ndarray) -> list[tuple[str, str]]:
    """Returns the name of each tensor and which slice of it is meant; "" for all of it."""
    return [(_decoded(name), _decoded(part)) for name, part in zip(names.tolist(), slices.tolist(), strict=True)]


def _save(attrs: Attrs, prefix: np.ndarray, names: np.ndarray, slices: np.ndarray, *tensors: Any) -> tuple[()]:
    from timberframe.saving.bundle_writer import Saved, SavedSlices, write_bundle
    from timberframe.saving.files import file_errors

    saved: dict[str, Saved | SavedSlices] = {}
    for (name, part), dtype, x in zip(_named(names, slices), attrs["dtypes"], tensors, strict=True):
        if part:
            _add_slice(saved, name, part, dtype, np.asarray(x))
        elif name in saved:
            raise InvalidArgumentError(f"tensor_names has '{name}' twice; each tensor must have a name of its own")
        else:
            saved[name] = Saved(dtype, np.shape(x), lambda x=x: np.asarray(x))
    path = _text(prefix)
    with file_errors(f"checkpoint '{path}' cannot be written"):
        write_bundle(path, saved)
    return ()


def _add_slice(saved: dict[str, Any], name: str, text: str, dtype: DType, value: np.ndarray) -> None:
    from timberframe.saving.bundle_writer import SavedSlices, add_slice
    from timberframe.saving.tensor_slices import parse_slice, sizes_of, slice_range

    shape, part = parse_slice(text, name)
    sizes = sizes_of(slice_range(part, shape) or ())
    if value.shape != sizes:
        raise InvalidArgumentError(
            f"tensor '{name}' to be saved as the slice '{text}' has shape {list(value.shape)}; it must be {list(sizes)}"
        )
    add_slice(saved, name, SavedSlices(dtype, shape), part, lambda: value)


def _restore(attrs: Attrs, prefix: np.ndarray, names: np.ndarray, slices: np.ndarray) -> tuple[np.ndarray, ...]:
    from timberframe.saving.formats import open_checkpoint

    reader = open_checkpoint(_text(prefix))
    found = []
    for (name, part), dtype in zip(_named(names, slices), attrs["dtypes"], strict=True):
        entry = reader.require(name)
        if entry.dtype is not dtype:
            raise InvalidArgumentError(
                f"tensor '{name}' is {entry.dtype.name} in checkpoint '{reader.path}'; it must be {dtype.name}"
            )
        found.append(_slice(reader, name, part) if part else reader.get_tensor(name))
    return tuple(found)


def _slice(reader: CheckpointReader, name: str, text: str) -> np.ndarray:
    from timberframe.saving.tensor_slices import parse_slice

    shape, part = parse_slice(text, name)
    if shape != reader.entries[name].shape:
        raise InvalidArgumentError(
            f"tensor '{name}' is to be the slice '{text}' and has shape {list(reader.entries[name].shape)} in "
            f"checkpoint '{reader.path}'; the slice must be one of that shape"
        )
    return reader.read_slice(name, part).copy()


def _merge(attrs: Attrs, prefixes: np.ndarray, destination: np.ndarray) -> tuple[()]:
    from timberframe.saving.formats import merge_checkpoints

    sources = [_decoded(p) for p in prefixes.reshape(-1).tolist()]
    merge_checkpoints(sources, _text(destination), attrs["delete_old_dirs"], attrs["allow_missing_files"])
    return ()


def _merge_shape(c: InferenceContext) -> Sequence[Shape]:
    _scalar(c, 1, "destination_prefix")
    return []


define_op(
    "SaveV2",
    inputs=("prefix: string", "tensor_names: string", "shape_and_slices: string", "tensors: dtypes"),
    attrs=("dtypes: list(type)",),
    doc="Writes tensors to the checkpoint `prefix`. shape_and_slices: '' or, where a tensor "
    "is a slice of a larger one, its shape and where the slice lies, such as '4 6 0,2:-'.",
    shape=_save_shape,
    reference=_save,
    gradient=_FILES,
    on_host=True,
    stateful=True,
)

define_op(
    "RestoreV2",
    inputs=("prefix: string", "tensor_names: string", "shape_and_slices: string"),
    outputs=("tensors: dtypes",),
    attrs=("dtypes: list(type)",),
    doc="Reads tensors from the checkpoint `prefix`. shape_and_slices: '' or, where a tensor "
    "is a slice of a larger one, its shape and where the slice lies, such as '4 6 0,2:-'.",
    shape=_restore_shape,
    reference=_restore,
    gradient=_FILES,
    on_host=True,
    stateful=True,
)

define_op(
    "MergeV2Checkpoints",
    inputs=("checkpoint_prefixes: string", "destination_prefix: string"),
    attrs=("delete_old_dirs: bool = true", "allow_missing_files: bool = false"),
    doc="Makes one checkpoint of several, which are removed with delete_old_dirs.",
    shape=_merge_shape,
    reference=_merge,
    gradient=_FILES,
    on_host=True,
    stateful=True,
)


def _all_scalars(c: InferenceContext) -> Sequence[Shape]:
    for i, argument in enumerate(c.op.inputs):
        _scalar(c, i, argument.name)
    return [()]


def _string(text: str) -> np.ndarray:
    return np.array(text.encode(), object)


_NUMBERED: dict[str, str] = {"ShardedFilename": "-{1:05d}-of-{2:05d}", "ShardedFilespec": "-?????-of-{1:05d}"}
for _name, _form in _NUMBERED.items():
    _shard = ("shard: int32",) if _name == "ShardedFilename" else ()
    define_op(
        _name,
        inputs=("basename: string", *_shard, "num_shards: int32"),
        outputs=("filename: string",),
        doc="The name of one file of several." if _shard else "The pattern of the names of all of several files.",
        shape=_all_scalars,
        reference=lambda attrs, name, *numbers, form=_form: _string(
            _text(name) + form.format("", *(int(n) for n in numbers))
        ),
        gradient=_STRINGS,
        on_host=True,
    )
