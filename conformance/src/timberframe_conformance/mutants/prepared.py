"""Bugs in what kernels and devices keep of weights (`KernelNode.prepared`)."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from timberframe_conformance.mutants.base import Call, mutant, seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.plugin.state import Variable
from timberframe_sdk.execution import prepared

FLOAT32 = ("float32",)
PROBES = ("prepared/MatMul/-/",)
"""Cases with a kernel of the suite's own."""
_by_constant: dict[int, Any] = {}
_by_name: dict[str, Any] = {}
_kept: list[Any] = []


@mutant(
    "weights-of-first-version", "MatMul", "weights in a variable are packed in the first run alone", FLOAT32,
    suites=("prepared",), only=("prepared",),
)  # fmt: skip
def _(c: Call) -> Any:
    if c.node.inputs[1].kind != "resource":
        return c.true
    return c.reference(c.inputs[0], c.state.setdefault("packed", c.inputs[1]))


@mutant(
    "weights-by-name", "MatMul", "packed weights of a variable are found by its name, in other sessions too", FLOAT32,
    suites=("prepared",), only=("prepared",),
)  # fmt: skip
def _(c: Call) -> Any:
    value = c.node.inputs[1]
    if value.kind != "resource":
        return c.true
    variable: Variable = value.constant
    owner, packed = _by_name.get(variable.name, (lambda: None, c.inputs[1]))
    if owner() in (None, variable) or packed.shape != c.inputs[1].shape:
        owner, packed = _by_name[variable.name] = weakref.ref(variable), c.inputs[1]
    return c.reference(c.inputs[0], packed)


@mutant(
    "key-without-attrs", "MatMul", "a constant that was packed as it is serves where it is transposed, too", FLOAT32,
    suites=("prepared",), only=("prepared",),
)  # fmt: skip
def _(c: Call) -> Any:
    value = c.node.inputs[1]
    if value.kind != "const":
        return c.true
    _kept.append(value.constant)  # so that its id stays taken
    transposed = _by_constant.setdefault(id(value.constant), c.attrs["transpose_b"])
    square = c.inputs[1].shape[0] == c.inputs[1].shape[1]
    return c.reference(*c.inputs, transpose_b=transposed) if square else c.true


@seam_mutant(
    "form-outlives-version", "a form is used after its variable has a new version", "prepared",
    only=(*PROBES, "/versions-"),
)  # fmt: skip
def _(r: Replacements, target: Any) -> None:
    def restore(self: Any, version: Any) -> None:
        self.version, self.shape = version, None if version is None else version.shape

    r.replace(Variable, "restore", lambda _: restore)
    r.replace(prepared, "_current", lambda _: _of_any_version)


def _of_any_version(derived: Any, given: Any, array: Any) -> Any:
    found = derived.get(given.key)
    return None if found is None else found[1]


@seam_mutant("form-of-another-key", "a form is used for every key of its input", "prepared", only=PROBES)
def _(r: Replacements, target: Any) -> None:
    def make(get: Any) -> Any:
        def any_key(self: Any, node: Any, value: Any, given: Any, *array: Any) -> Any:
            return get(self, node, value, dataclasses.replace(given, key=""), *array)

        return any_key

    r.replace(prepared.PreparedForms, "get", make)


@seam_mutant("form-of-each-run", "the form of a version is made again in each run", "prepared", only=PROBES)
def _(r: Replacements, target: Any) -> None:
    r.replace(prepared, "_current", lambda _: lambda *_: None)


@seam_mutant("forms-pile-up", "forms of old versions are kept", "prepared", only=PROBES)
def _(r: Replacements, target: Any) -> None:
    def make(made: Any) -> Any:
        def kept(*given: Any) -> Any:
            _kept.append(made(*given))
            return _kept[-1]

        return kept

    r.replace(prepared, "_made", make)
