"""Ops on whole files: TensorFlow's io_ops."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import NotDifferentiable, define_op

_FILES = NotDifferentiable("a file is no function of tensors")

define_op(
    "ReadFile",
    inputs=("filename: string",),
    outputs=("contents: string",),
    doc="The bytes of a file.",
    shape=lambda c: [()],
    gradient=_FILES,
    on_host=True,
    stateful=True,
)

define_op(
    "WriteFile",
    inputs=("filename: string", "contents: string"),
    doc="Writes bytes to a file, whose folder is made if it is not there.",
    shape=lambda c: [],
    gradient=_FILES,
    on_host=True,
    stateful=True,
)

define_op(
    "MatchingFiles",
    inputs=("pattern: string",),
    outputs=("filenames: string",),
    doc="The files that a pattern, or any of several, matches, in order.",
    shape=lambda c: [(None,)],
    gradient=_FILES,
    on_host=True,
    stateful=True,
)
