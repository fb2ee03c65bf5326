"""Ops that TensorFlow puts into graphs to save and restore variables, and those that make file names for them.

They read every format that `timberframe.saving` knows and write Timberframe's own. The files belong to the host, so the
executor carries them out there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

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
    """A name of a file or tensor."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"name {text!r} is not UTF-8, which it must be") from None


def _checked_names(names: np.ndarray, slices: np.ndarray) -> list[str]:
    for name, part in zip(names.tolist(), slices.tolist(), strict=True):
        if part:
            raise UnimplementedError(
                f"tensor '{_decoded(name)}' is to be the slice '{_decoded(part)}' of a partitioned variable; "
                "only whole tensors are saved and restored"
            )
    return [_decoded(name) for name in names.tolist()]


def _save(attrs: Attrs, prefix: np.ndarray, names: np.ndarray, slices: np.ndarray, *tensors: Any) -> tuple[()]:
    from timberframe.saving.bundle_writer import Saved, write_bundle
    from timberframe.saving.files import file_errors

    kept = zip(_checked_names(names, slices), attrs["dtypes"], tensors, strict=True)
    saved = {name: Saved(as_dtype(dtype), np.shape(x), lambda x=x: np.asarray(x)) for name, dtype, x in kept}
    path = _text(prefix)
    with file_errors(f"checkpoint '{path}' cannot be written"):
        write_bundle(path, saved)
    return ()


def _restore(attrs: Attrs, prefix: np.ndarray, names: np.ndarray, slices: np.ndarray) -> tuple[np.ndarray, ...]:
    from timberframe.saving.formats import open_checkpoint

    reader = open_checkpoint(_text(prefix))
    found = []
    for name, dtype in zip(_checked_names(names, slices), attrs["dtypes"], strict=True):
        value = reader.get_tensor(name)
        if reader.entries[name].dtype is not dtype:
            raise InvalidArgumentError(
                f"tensor '{name}' is {reader.entries[name].dtype.name} in checkpoint '{reader.path}'; "
                f"it must be {dtype.name}"
            )
        found.append(value)
    return tuple(found)


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
    doc="Writes tensors to the checkpoint `prefix`. Slices of variables are refused.",
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
    doc="Reads tensors from the checkpoint `prefix`. Slices of variables are refused.",
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
