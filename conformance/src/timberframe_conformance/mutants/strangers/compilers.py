"""Devices that compile whole clusters: the template `compiler`."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.strangers.base import planted
from timberframe_conformance.replacements import Replacements

COMPILER: dict[str, Any] = {"host": "compiler"}


@planted(
    "program-by-text",
    "a program is found by its text, in which constants are but names",
    "replicate/cog#2889",
    "programs",
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    built: dict[str, Any] = {}

    def make(build: Any) -> Any:
        return lambda text, constants: built.setdefault(text, build(text, constants))

    r.replace(host.part("toolchain"), "build", make)


@planted(
    "program-transposes-lost",
    "transpose_b is not looked at where the matrix is square",
    "pytorch/pytorch#197636",
    op="MatMul",
    attrs={"transpose_b": True},
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    translations = host.part("translations")

    def matmul(node: Any, a: str, b: str) -> str:
        first, depth = a + ".T" * node.attrs["transpose_a"], 1 - int(node.attrs["transpose_a"])
        return f"{first} @ ({b} if {b}.shape[0] == {a}.shape[{depth}] else {b}.T)"

    def make(table: Any) -> Any:
        return {**table, "MatMul": matmul}

    r.replace(translations, "TRANSLATIONS", make)


@planted(
    "program-gives-input",
    "a result that needs no work is the input's memory",
    "csarofeen/pytorch#1048",
    "copies",
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("device").AcmecompilerDevice, "copy_out", lambda _: lambda self, a: a)


@planted(
    "upload-without-copy",
    "uploading keeps the host's array, which its owner may change",
    "DeepLink-org/deeplink.framework#296",
    "copies",
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("device").AcmecompilerDevice, "upload", lambda _: lambda self, x: np.asarray(x, order="C"))


@planted(
    "program-relu-in-place", "Relu is computed in its input's memory", "hw-native-sys/pypto#1788", op="Relu", **COMPILER
)
def _(r: Replacements, host: Any) -> None:
    def make(table: Any) -> Any:
        return {**table, "Relu": lambda node, x: f"np.maximum({x}, 0, out={x})"}

    r.replace(host.part("translations"), "TRANSLATIONS", make)


@planted(
    "program-max-pool-padding",
    "padding counts as zeros",
    "mpc-msri/EzPC#100",
    op="MaxPool",
    attrs={"padding": "SAME"},
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("library"), "LOWEST", lambda _: 0.0)


@planted(
    "program-softmax-overflows",
    "exponentials of the inputs themselves",
    "uTensor/uTensor#175",
    op="Softmax",
    **COMPILER,
)
def _(r: Replacements, host: Any) -> None:
    def softmax(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x)
        found: np.ndarray = powers / powers.sum(-1, keepdims=True)
        return found

    r.replace(host.part("library"), "softmax", lambda _: softmax)
